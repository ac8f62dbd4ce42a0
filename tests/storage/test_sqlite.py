"""Databases in files are private whatever the umask, and those of versions that left it to the umask become private."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.app import commands
from reverie.storage.sqlite import connect
from tests.other_users import forked

ENDS = ("", "-wal", "-shm")


@pytest.fixture(autouse=True, params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def write(path: Path) -> sqlite3.Connection:
    connection = connect(path, 5)
    connection.execute("pragma journal_mode = wal")
    connection.execute("create table if not exists t (n)")
    connection.execute("insert into t values (1)")
    return connection


def modes(path: Path) -> set[int]:
    return {Path(f"{path}{end}").stat().st_mode & 0o777 for end in ENDS}


def test_new_and_old_files_are_private(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    with closing(write(path)):
        assert modes(path) == {0o600}
        for end in ENDS:
            Path(f"{path}{end}").chmod(0o644)
        with closing(write(path)) as second:
            assert modes(path) == {0o600}
            assert second.execute("select count(*) from t").fetchone() == (2,)


def test_opening_again_keeps_the_locks_of_this_process(tmp_path: Path) -> None:
    """POSIX drops all locks of a process on a file when it closes the file once."""
    path = tmp_path / "x.sqlite"
    with closing(write(path)) as first:
        first.execute("begin immediate")
        write_elsewhere = (
            f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('insert into t values (2)')"
        )
        connect(path, 5).close()

        def other(send: object) -> None:
            try:
                exec(write_elsewhere)
                send("written")  # type: ignore[operator]
            except sqlite3.OperationalError as error:
                send(str(error))  # type: ignore[operator]

        with forked(other) as (_pid, said):
            assert said == "database is locked"


def test_a_place_that_cannot_be_written_is_an_error_of_sqlite(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(sqlite3.OperationalError):
        connect(tmp_path / "file" / "x.sqlite", 1)


def test_everything_in_a_home_is_private(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for args in (
        ["remember", "Deploys are on Tuesdays."],
        ["recall", "When are deploys?"],
        ["memory", "list"],
        ["run", "When are deploys?", "--model", "embedded"],
        ["dream", "--now", "--model", "embedded"],
        ["status"],
    ):
        CliRunner().invoke(commands, args, env={"REVERIE_HOME": str(home)})
    made = [home, *home.rglob("*")]
    assert any(one.suffix == ".sqlite" for one in made) and any(one.suffix == ".jsonl" for one in made)
    wrong = [one for one in made if not one.is_symlink() and one.stat().st_mode & 0o077]
    assert not wrong, wrong
