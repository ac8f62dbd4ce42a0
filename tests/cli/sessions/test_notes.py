"""`reverie notes` and /notes: what is kept of a conversation, what is missing in it, and bringing it up to date."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.chat.test_chat import chat
from tests.cli.conftest import Command
from tests.cli.sessions.test_compact import SUMMARY, TALK, talked


def test_none_yet_then_by_hand_on_a_session_that_is_not_open(reverie: Command) -> None:
    talked(reverie, 2)
    none = reverie("notes")
    assert none.stdout == "" and "There are no notes yet: they begin at 10,000 tokens" in none.stderr
    assert json.loads(reverie("notes", "--json").stdout)["text"] is None
    done = reverie("notes", "--update")
    assert "mind the tide" in done.stdout and done.stdout.startswith("# Title\n_")
    assert "It covers everything that was said." in done.stderr and "Nothing under:" in done.stderr
    path = Path(json.loads(reverie("notes", "--json").stdout)["path"])
    assert path.read_text().rstrip() == done.stdout.rstrip() and f"{path}, " in done.stderr
    reverie("run", "--continue", "Question 3.")
    found = json.loads(reverie("notes", "last", "--json").stdout)
    assert found["behind"]["messages"] == 4 and found["behind"]["tokens"] > 100
    assert "the last 4 messages" in reverie("notes").stderr
    path.write_text(path.read_text() + "too much of it\n" * 1_000)
    assert '"Log" is about' in reverie("notes").stderr


def test_mistakes_are_one_sentence(reverie: Command) -> None:
    assert "no session" in reverie("notes", code=2).stderr
    talked(reverie, 1)
    assert "no session here starts with 'nowhere'" in reverie("notes", "nowhere", code=2).stderr
    path = Path(json.loads(reverie("notes", "--json").stdout)["path"])
    path.mkdir(parents=True)
    assert "it is a folder, not a file" in reverie("notes", code=4).stderr


def test_a_live_session_takes_its_notes_itself(reverie: Command) -> None:
    (reverie.work / "big.txt").write_text("the lamp burns all night\n" * 200)
    with chat(reverie, "--model", reverie.script(TALK + SUMMARY + "\n[notes]\nsay Nothing to add.\n")) as terminal:
        terminal.say("Question 1.")
        terminal.until("Done with 1.")
        terminal.say("/notes")
        terminal.until("There are no notes yet")
        refused = reverie("notes", "--update", code=1)
        assert "left the notes as they were" in refused.stderr, "its own model was asked, and wrote nothing"
        assert "Question 1." in reverie("notes").stdout, "first notes are written by code then"
        terminal.say("/notes")
        terminal.until("Where things stand")
        terminal.until("It covers everything that was said")
        terminal.say("/notes nonsense")
        terminal.until("Write /notes, or /notes update.")
        terminal.say("/exit")
        assert terminal.ended() == 0
