"""`reverie sessions`: listing, showing and deleting what is on disk, ours and others'."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reverie.paths import slug
from tests.cli.conftest import Command
from tests.shared_data import sources

TALK = """
say Let me look.
call Read {"file_path": "notes.txt"}
call Read {"file_path": "missing.txt"}
---
say **Found** it.
"""


def talk(reverie: Command, text: str = "Where is it?") -> str:
    (reverie.work / "notes.txt").write_text("here\n")
    return reverie.events("--model", reverie.script(TALK), text)[0]["session_id"]


def test_an_empty_list_says_how_to_start(reverie: Command) -> None:
    done = reverie("sessions", "list")
    assert done.stdout == ""
    assert "reverie chat" in done.stderr
    assert json.loads(reverie("sessions", "list", "--json").stdout) == {"sessions": []}


def test_the_list_shows_age_id_title_and_size_newest_first(reverie: Command) -> None:
    first, second = talk(reverie, "The first question"), talk(reverie, "The second\nquestion \x1b[31m in red")
    lines = reverie("sessions", "list").stdout.splitlines()
    assert re.match(rf"\s+\d+ s  {second[:8]}  The second question ␛\[31m in red\s+\d", lines[0])
    assert re.match(rf"\s+\d+ s  {first[:8]}  The first question .* KB", lines[1])
    listed = json.loads(reverie("sessions", "list", "--json", "--limit", "1").stdout)["sessions"]
    assert [one["id"] for one in listed] == [second]
    assert listed[0]["open_in"] is None


def test_sessions_of_other_folders_are_listed_with_all(reverie: Command) -> None:
    here = talk(reverie)
    reverie.work = reverie.work.parent / "elsewhere"
    reverie.work.mkdir()
    there = talk(reverie)
    assert here[:8] not in reverie("sessions", "list").stdout
    shown = reverie("sessions", "list", "--all").stdout
    assert here[:8] in shown
    assert there[:8] in shown
    assert "elsewhere" in shown
    assert reverie("sessions", "path", here).stdout.strip().endswith(f"{here}.jsonl")


def test_show_tells_who_said_what(reverie: Command) -> None:
    talk(reverie)
    shown = reverie("sessions", "show", "last").stdout
    assert shown.index("› Where is it?") < shown.index("Let me look.") < shown.index("✓ Read notes.txt")
    assert "✗ Read missing.txt" in shown
    assert shown.rstrip().endswith("**Found** it.")
    assert "here\n" not in shown
    assert "here\n" in reverie("sessions", "show", "last", "--full").stdout


def test_show_json_gives_the_records_as_they_are(reverie: Command) -> None:
    talk(reverie)
    path = reverie.transcripts()[0]
    shown = reverie("sessions", "show", "last", "--json").stdout
    assert [json.loads(line) for line in shown.splitlines()] == [
        json.loads(line) for line in path.read_text().splitlines()
    ]


def test_show_names_the_lines_it_cannot_read(reverie: Command) -> None:
    talk(reverie)
    path = reverie.transcripts()[0]
    path.write_bytes(b"not json\n" + path.read_bytes() + b"{torn")
    shown = reverie("sessions", "show", "last").stdout
    assert "Where is it?" in shown
    assert "! line 1 cannot be read" in shown
    assert "! the last line is not complete" in shown


def test_path_prints_the_path_alone(reverie: Command) -> None:
    talk(reverie)
    assert reverie("sessions", "path", "last").stdout == f"{reverie.transcripts()[0]}\n"


def test_an_id_that_is_not_there_is_a_mistake(reverie: Command) -> None:
    talk(reverie)
    for sub in ("show", "path", "delete"):
        assert "'zzz'" in reverie("sessions", sub, "zzz", code=2).stderr
    assert "there is no transcript" in reverie("sessions", "show", "nowhere.jsonl", code=2).stderr


def test_delete_asks_first_and_removes_everything(reverie: Command) -> None:
    session = talk(reverie)
    kept = talk(reverie, "Another one")
    folder = reverie.transcripts()[0].parent / session
    (folder / "tool-results").mkdir(parents=True, exist_ok=True)
    (folder / "tool-results" / "x.txt").write_text("x" * 2_000)
    known = [reverie.home / "hooks" / name / f"{session}.json" for name in ("sessions", "digests")]  # of hooks
    for path in known:
        path.parent.mkdir(parents=True)
        path.write_text("{}")
    refused = reverie("sessions", "delete", session, code=2)
    assert "--yes" in refused.stderr
    assert "1 more file (2.0 KB)" in refused.stdout
    assert folder.exists()
    reverie("sessions", "delete", session[:8], "--yes")
    assert not folder.exists() and not any(path.exists() for path in known)
    assert [path.stem for path in reverie.transcripts()] == [kept]


@pytest.mark.parametrize("folder", sources("transcripts"))
def test_sessions_of_claude_code_are_listed_shown_and_continued(reverie: Command, folder: Path) -> None:
    project = reverie.home / "projects" / slug(reverie.work.resolve())
    project.mkdir(parents=True)
    files = sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_size)[:6]
    for source in files:
        (project / source.name).write_bytes(source.read_bytes())
    listed = json.loads(reverie("sessions", "list", "--json").stdout)["sessions"]
    assert {one["id"] for one in listed} == {source.stem for source in files}
    for one in listed:
        shown = reverie("sessions", "show", one["id"]).stdout
        assert "✓" in shown or "›" in shown
    model = reverie.script("repeat forever\n  say Going on.\nend\n")
    assert reverie("run", "--model", model, "--resume", listed[0]["id"], "go on").stdout == "Going on.\n"
