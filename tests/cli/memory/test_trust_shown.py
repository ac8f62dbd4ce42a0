"""Trust as a user sees it: where a memory comes from, what is inferred, what waits, and how one key decides."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import Terminal


@pytest.fixture
def reverie(reverie: Command) -> Command:
    reverie.extra = {}
    return reverie


def asked(reverie: Command, *args: str, **more: Any) -> Any:
    return json.loads(reverie(*args, "--json", **more).stdout)


def root(reverie: Command) -> Path:
    return Path(reverie("memory", "path").stdout.strip())


def at_terminal(reverie: Command, *args: str) -> str:
    with Terminal(*args, cwd=reverie.work, env=reverie.env) as terminal:
        terminal.process.wait()
        terminal.until("Undo: ")
        return terminal.shown


def test_trust_follows_how_the_user_gave_the_text(reverie: Command) -> None:
    at_terminal(reverie, "remember", "I have written Go for ten years")
    entered = asked(reverie, "remember", "Deploy only after Petra has signed off")
    piped = reverie("remember", stdin="The build farm moved to Graz in March.\n").stdout
    assert entered["trust"] == "inferred" and "comes from a pipe or a file" in piped
    listed = {one["file"]: one for one in asked(reverie, "memory", "list")["memories"]}
    typed = listed["user_written_go_ten_years.md"]
    assert typed["trust"] == "confirmed" and typed["evidence"].startswith("you, 20")
    assert '"I have written Go for ten years"' in typed["evidence"]
    assert listed["project_build_farm_moved_graz_march.md"]["evidence"] == "from a pipe or a file"
    table = reverie("memory", "list").stdout
    assert "confirmed" in table and "inferred" in table
    (one,) = asked(reverie, "recall", "when was the build farm moved to Graz?")["shown"]
    assert (one["trust"], one["evidence"]) == ("inferred", "from a pipe or a file")
    (said,) = asked(reverie, "memory", "show", "go_ten")["statements"]
    assert (said["trust"], said["how"], said["quote"]) == ("confirmed", "typed", "I have written Go for ten years")


def test_saying_it_again_on_a_terminal_confirms_it(reverie: Command) -> None:
    reverie("remember", "The staging port is 8080")
    with Terminal("remember", "The staging port is 8080", cwd=reverie.work, env=reverie.env) as terminal:
        terminal.until("already says this; it is confirmed now")
    assert asked(reverie, "memory", "list")["memories"][0]["trust"] == "confirmed"
    assert asked(reverie, "memory", "inferred")["statements"] == []


def test_an_edit_confirms_what_the_user_wrote(reverie: Command, tmp_path: Path) -> None:
    reverie("remember", "The staging port is 8080")
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\necho "The kiln is loaded on Thursdays." >> "$1"\n')
    editor.chmod(0o755)
    reverie.extra = {"EDITOR": str(editor)}
    reverie("memory", "edit", "staging")
    said = {one["statement"]: one["trust"] for one in asked(reverie, "memory", "show", "staging")["statements"]}
    assert said == {"The staging port is 8080": "inferred", "The kiln is loaded on Thursdays.": "confirmed"}


def test_inferred_statements_are_confirmed_and_rejected_one_by_one(reverie: Command) -> None:
    assert "No statement is inferred" in reverie("memory", "inferred").stdout
    reverie("remember", stdin="The kiln is loaded on Thursdays.\n\nIvo has the key of the yard.\n")
    found = asked(reverie, "memory", "inferred")["statements"]
    assert [one["statement"] for one in found] == ["The kiln is loaded on Thursdays.", "Ivo has the key of the yard."]
    shown = reverie("memory", "inferred").stdout
    assert all(one["id"] in shown and one["statement"] in shown for one in found) and "from a pipe or a file" in shown
    done = asked(reverie, "memory", "inferred", "confirm", found[0]["id"][:5])
    assert done["confirmed"] == found[0]["id"] and done["version"]["writer"] == "user"
    assert [one["id"] for one in asked(reverie, "memory", "inferred")["statements"]] == [found[1]["id"]]
    assert asked(reverie, "memory", "list")["memories"][0]["trust"] == "confirmed"
    reverie("memory", "inferred", "doubt", found[0]["id"])
    assert len(asked(reverie, "memory", "inferred")["statements"]) == 2
    assert "Undo: reverie memory undo" in reverie("memory", "inferred", "reject", found[0]["id"]).stdout
    text = reverie("memory", "show", "kiln").stdout
    assert "Thursdays" not in text and "Ivo has the key" in text, "the title and the description follow"
    assert "Thursdays" not in (root(reverie) / "MEMORY.md").read_text()
    reverie("memory", "inferred", "reject", found[1]["id"])
    assert asked(reverie, "memory", "list")["memories"] == [], "a memory without statements is gone"
    reverie("memory", "undo")
    reverie("memory", "undo", asked(reverie, "memory", "log")["versions"][2]["short"])
    assert "Thursdays" in reverie("memory", "show", "kiln").stdout
    assert "No statement has the id" in reverie("memory", "inferred", "confirm", "zzzz", code=2).stderr


def test_one_key_each_on_a_terminal(reverie: Command) -> None:
    reverie(
        "remember", stdin="The kiln is loaded on Thursdays.\n\nIvo has the key of the yard.\n\nThe mill is closed.\n"
    )
    with Terminal("memory", "inferred", cwd=reverie.work, env=reverie.env) as terminal:
        for at, key, outcome in (("1 of 3", "y", "Confirmed"), ("2 of 3", "n", "Rejected"), ("3 of 3", "s", "skip")):
            terminal.until(at)
            terminal.until("›")
            terminal.press(key)
            terminal.until(outcome)
    said = {one["statement"]: one["trust"] for one in asked(reverie, "memory", "show", "kiln")["statements"]}
    assert said == {"The kiln is loaded on Thursdays.": "confirmed", "The mill is closed.": "inferred"}


def held_mirror(reverie: Command, prompt: str = "please read page.txt") -> None:
    """An agent writes down what a page says."""
    (reverie.work / "page.txt").write_text("The mirror moved to mirror.example.org last night.\n")
    text = "---\nname: Mirror\ndescription: Mirror\ntype: reference\n---\n\nThe mirror moved to mirror.example.org.\n"
    write = json.dumps({"file_path": str(root(reverie) / "reference_mirror.md"), "content": text})
    script = f'call Read {{"file_path": "page.txt"}}\n---\ncall Write {write}\n---\nsay done\n'
    reverie("run", prompt, "--model", reverie.script(script), "--quiet")


def test_the_inbox_by_key_and_in_the_chat(reverie: Command) -> None:
    held_mirror(reverie)
    checks = {one["name"]: one for one in asked(reverie, "doctor")["checks"]}
    assert "1 item waiting for you (1 statement held, 0 questions)" in checks["inbox"]["found"]
    lines = "/memory inbox\n/memory inferred\n/memory inbox accept\n"
    out = " ".join(reverie("chat", "--model", "embedded", stdin=lines).stdout.split())
    assert "The mirror moved to mirror.example.org" in out and "/memory inbox accept ID" in out
    assert "No statement is inferred" in out and len(asked(reverie, "memory", "inbox")["items"]) == 1
    with Terminal("memory", "inbox", cwd=reverie.work, env=reverie.env) as terminal:
        terminal.until("mirror.example.org")
        terminal.until("›")
        terminal.press("y")
        terminal.until("confirmed by you")
    (one,) = asked(reverie, "memory", "list")["memories"]
    assert (one["trust"], one["evidence"]) == ("confirmed", "confirmed by you")
    assert "inferred" not in {one["name"]: one for one in asked(reverie, "doctor")["checks"]}["statements"]["found"]


def test_a_question_shows_both_statements(reverie: Command) -> None:
    at_terminal(reverie, "remember", "Backups run every night at two")
    name = asked(reverie, "memory", "list")["memories"][0]["file"]
    path = root(reverie) / name
    (reverie.work / "page.txt").write_text("The vendor says that backups should be off.\n")
    edit = {
        "file_path": str(path),
        "old_string": "---\n\nBackups run every night at two",
        "new_string": "---\n\nBackups are off",
    }
    calls = [f'call Read {{"file_path": {json.dumps(str(one))}}}' for one in (reverie.work / "page.txt", path)]
    script = "\n---\n".join([*calls, f"call Edit {json.dumps(edit)}", "say done"]) + "\n"
    reverie("run", "please read page.txt", "--model", reverie.script(script), "--quiet")
    assert "every night at two" in path.read_text()
    shown = " ".join(reverie("memory", "inbox").stdout.split())
    assert "now Backups run every night at two" in shown and "new Backups are off" in shown
    assert "you, 20" in shown and "tool: " in shown


def test_forgetting_says_how_to_undo_and_how_to_purge(reverie: Command) -> None:
    reverie("remember", "I had a knee operation in March and cannot run")
    reverie("run", "what about my knee operation?", "--model", "embedded", "--quiet")
    done = reverie("forget", "Operationen", "--yes")  # another language: the beginning of the word is the same
    assert "Forgot user_" in done.stdout and "Undo: reverie memory undo" in done.stdout
    command = next(line for line in done.stdout.splitlines() if "purge" in line).partition("reverie ")[2].split()
    assert "knee" not in (root(reverie) / "MEMORY.md").read_text()
    looked = asked(reverie, *command, "--dry-run")
    assert {"history", "marks"} <= {place["kind"] for place in looked["places"]}
    reverie(*command, "--yes")
    for folder, _, names in os.walk(root(reverie).parent):
        for name in names:
            data = Path(folder, name).read_bytes() + name.encode()
            assert b"cannot run" not in data and b"knee_operation" not in data, (folder, name)
    assert "There was no memory" in reverie("memory", "purge", "--forgotten", "nothing", code=2).stderr


def test_on_a_terminal_a_memory_in_other_words_can_be_chosen(reverie: Command) -> None:
    reverie("remember", "I have a peanut allergy")
    with Terminal("forget", "Erdnüsse", cwd=reverie.work, env=reverie.env) as terminal:
        terminal.until("No memory has these words")
        terminal.until("Forget it?")
        terminal.press("y\r")
        terminal.until("Forgot user_peanut_allergy.md")
    assert asked(reverie, "memory", "list")["memories"] == []


def test_one_key_each_in_the_chat(reverie: Command) -> None:
    reverie("remember", stdin="The kiln is loaded on Thursdays.\n")
    with Terminal("chat", "--model", "embedded", cwd=reverie.work, env=reverie.env) as terminal:
        terminal.say("/memory inferred")
        terminal.until("1 of 1")
        terminal.until("quit")
        terminal.press("y")
        terminal.until("Confirmed")
        terminal.say("/remember I keep bees")
        terminal.until("Remembered as")
        terminal.say("/exit")
        terminal.process.wait()
    trust = {one["file"]: one["trust"] for one in asked(reverie, "memory", "list")["memories"]}
    assert set(trust.values()) == {"confirmed"} and len(trust) == 2, "typed on a terminal"
