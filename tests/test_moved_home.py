"""A home that is moved to another folder goes on working: sessions, memories, dreams, and the paths they name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from reverie.cli.app import commands
from reverie.models.request_log import read_log
from reverie.paths import Places
from reverie.settings import load_settings

FIRST, SECOND, THIRD = "home", "elsewhere/.reverie", "home/below"
SCRIPT = """
think All of it is in a file.
call Bash {"command": "cat big.txt"}
---
say Done.
"""

Move = Callable[[str, str], Path]


@pytest.fixture
def move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Move:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "big.txt").write_text("".join(f"line {number}\n" for number in range(40_000)))
    (tmp_path / "project" / "play.script").write_text(SCRIPT)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / FIRST))
    monkeypatch.chdir(tmp_path / "project")

    def to(old: str, new: str) -> Path:
        (tmp_path / new).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / old).rename(tmp_path / new)
        monkeypatch.setenv("REVERIE_HOME", str(tmp_path / new))
        return tmp_path / new

    return to


def reverie(*args: str) -> str:
    done = CliRunner().invoke(commands, args, catch_exceptions=False, standalone_mode=False)
    assert done.exception is None and done.return_value in (None, 0), done.output
    return done.output


def last_request(log: Path) -> str:
    return "\n".join([entry for entry in read_log(log) if entry.purpose == "main"][-1].parts)


def test_a_session_goes_on_with_the_paths_of_the_home_that_is_open(
    tmp_path: Path, move: Move, prefix_watch: Path
) -> None:
    reverie("run", "--model", "scripted:play.script", "--permission-mode", "accept_all", "Look at it")
    for old, new in ((FIRST, SECOND), (SECOND, THIRD)):
        home = move(old, new)
        before = next((home / "projects").rglob("*.jsonl")).read_bytes()
        said = reverie("run", "-c", "--model", "scripted:play.script", "And now?")
        assert "cache was missed" not in said
        after = next((home / "projects").rglob("*.jsonl")).read_bytes()
        assert after.startswith(before), "nothing on disk is rewritten"
        sent = last_request(prefix_watch)
        below = set(re.findall(rf"{tmp_path}/([\w./-]*?)/projects/", sent))
        assert below == {new}
        [kept] = set(re.findall(rf"{home}/projects/[\w./-]+/tool-results/[\w.-]+\.txt", sent))
        assert Path(kept).is_file()
        assert not list((tmp_path / old).glob("projects")), "nothing is written where the home was"
    assert "All of it is in a file." in last_request(prefix_watch)


def test_memories_and_dreams_move_along(move: Move) -> None:
    reverie("remember", "The database port is 5433 because the old one clashes.")
    reverie("dream", "--now", "--model", "embedded")
    told = reverie("dream", "log")
    assert "unchanged" in told
    move(FIRST, SECOND)
    assert reverie("dream", "log") == told
    assert json.loads(reverie("dream", "log", "--json"))["runs"]
    assert "5433" in reverie("recall", "Which port has the database?")


def test_what_is_kept_by_a_name_is_found_again(tmp_path: Path, move: Move) -> None:
    (tmp_path / FIRST).mkdir()

    def kept() -> list[Path]:
        places = Places.of(Path.cwd(), load_settings(Path.cwd()))
        made = [places.search_index(places.default_memory), places.team_sync(places.default_memory)]
        return [path.relative_to(places.home) for path in made]

    before = kept()
    move(FIRST, SECOND)
    assert kept() == before


def test_what_was_learnt_from_a_session_is_not_learnt_again(tmp_path: Path, move: Move) -> None:
    reverie("run", "--bare", "--model", "embedded", "We deploy on Fridays, always through the blue pipeline.")

    def extract(home: Path) -> int:
        [folder] = (home / "projects").iterdir()
        return json.loads(reverie("extract", "--model", "embedded", "--json", str(folder)))["turns"]

    assert extract(tmp_path / FIRST) > 0
    assert extract(move(FIRST, SECOND)) == 0
