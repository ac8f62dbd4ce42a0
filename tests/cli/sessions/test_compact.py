"""`reverie compact`, `rewind` and `pin`: on a session that is not open, on a live one, and in the chat."""

from __future__ import annotations

import json

from tests.cli.chat.test_chat import chat
from tests.cli.conftest import Command
from tests.waiting import LIMIT_S

TALK = 'repeat forever\n  call Read {"file_path": "big.txt"}\n  ---\n  say Done with {turn}.\nend\n'
SUMMARY = "\n[compaction]\nsay <summary>It was about the harbour.</summary>\n"


def talked(reverie: Command, turns: int = 3) -> str:
    """A session of some turns that is closed again."""
    (reverie.work / "big.txt").write_text("the lamp burns all night\n" * 200)
    model = reverie.script(TALK + SUMMARY)
    reverie("run", "--model", model, "Question 1: mind the tide.")
    for number in range(2, turns + 1):
        reverie("run", "--continue", f"Question {number}.")
    return model


def test_compact_preview_and_undo_on_a_session_that_is_not_open(reverie: Command) -> None:
    talked(reverie)
    before = reverie.transcripts()[0].read_bytes()
    shown = reverie("compact", "--preview")
    assert "Question 1: mind the tide." in shown.stdout and "tokens" in shown.stderr
    assert reverie.transcripts()[0].read_bytes() == before
    done = json.loads(reverie("compact", "mind", "the", "gap", "--json").stdout)
    assert done["writer"] == "fork" and "It was about the harbour." in done["text"]
    assert done["survival"]["kept"]["requests"] == 3
    reverie("run", "--continue", "Question 4.")
    undone = reverie("compact", "undo").stdout
    assert "is taken back" in undone
    reverie("run", "--continue", "Question 5.")
    assert "There is no" not in reverie("compact", "undo", code=2).stderr
    assert "no compaction to take back" in reverie("compact", "undo", code=2).stderr


def test_parts_by_message(reverie: Command) -> None:
    talked(reverie, 4)
    assert "tokens" in reverie("compact", "--up-to", "-2").stdout
    assert "no message in view" in reverie("compact", "--from", "nowhere", code=2).stderr
    assert "together" in reverie("compact", "--from", "-1", "--up-to", "-2", code=2).stderr
    assert "needs undo" in reverie("compact", "--fit", code=2).stderr
    assert "only be combined with --fit" in reverie("compact", "undo", "--preview", code=2).stderr


def test_rewind_lists_and_goes_back(reverie: Command) -> None:
    talked(reverie)
    listed = reverie("rewind").stdout.splitlines()
    assert len(listed) == 3 and listed[0].split()[0] == "-3" and "mind the tide" in listed[0]
    assert "Back to before: Question 3." in reverie("rewind", "-1").stdout
    assert len(json.loads(reverie("rewind", "--json").stdout)) == 2
    assert "where it was" in reverie("compact", "undo").stdout
    assert len(reverie("rewind").stdout.splitlines()) == 3
    assert "none of your messages" in reverie("rewind", "nowhere", code=2).stderr


def test_pins_are_listed_and_removed(reverie: Command) -> None:
    talked(reverie, 1)
    assert "Nothing is pinned." in reverie("pin").stderr
    assert "Pinned as 1." in reverie("pin", "Never", "sail at night").stdout
    assert "Never sail at night" in reverie("pin").stdout
    refused = reverie("pin", "the password of the lamp is Tr0ub4dor&3", code=2)
    assert "Not pinned: the text holds a password" in refused.stderr and "Tr0ub" not in refused.stderr
    assert "Tr0ub" not in reverie("pin").stdout + "".join(path.read_text() for path in reverie.transcripts())
    assert "Never sail at night" in reverie("compact", "--preview").stdout
    assert "No longer pinned: Never sail" in reverie("pin", "--remove", "1").stdout
    assert "there is no pin" in reverie("pin", "--remove", "1", code=2).stderr


def test_without_a_session_it_says_so(reverie: Command) -> None:
    for command in (("compact",), ("rewind",), ("pin", "x")):
        assert "no session" in reverie(*command, code=2).stderr


def test_on_a_live_session_it_is_the_session_that_acts(reverie: Command) -> None:
    (reverie.work / "big.txt").write_text("the lamp burns all night\n" * 200)
    with chat(reverie, "--model", reverie.script(TALK + SUMMARY)) as terminal:
        for number in (1, 2, 3):
            terminal.say(f"Question {number}.")
            terminal.until(f"Done with {number}.")
        terminal.wait_for_prompt()
        assert "Pinned as 1." in reverie("pin", "Mind the reef").stdout
        done = json.loads(reverie("compact", "--json").stdout)
        assert done["writer"] == "fork" and "Mind the reef" in done["text"]
        terminal.until("Compacted")
        terminal.say("Another question.")
        terminal.until("Done with")
        terminal.wait_for_prompt()
        assert "taken back" in reverie("compact", "undo").stdout
        terminal.say("/exit")
        assert terminal.ended() == 0


def test_on_a_live_session_in_the_middle_of_a_turn_it_waits_for_the_end_of_the_round(reverie: Command) -> None:
    (reverie.work / "big.txt").write_text("the lamp burns all night\n" * 200)
    slow = 'call Bash {"command": "until [ -e go ]; do sleep 0.02; done; cat big.txt"}\n---\nsay All of it is read.\n'
    with chat(reverie, "--permission-mode", "accept_all", "--model", reverie.script(slow + SUMMARY)) as terminal:
        terminal.say("Read it when you may.")
        terminal.until("big.txt")  # the call: what was typed is shown before the session has it
        assert "a turn is running" in reverie("compact", "undo", code=1).stderr
        asked = reverie.start("compact", "--json")
        terminal.until("at the end of this round")
        (reverie.work / "go").touch()
        done = json.loads(asked.communicate(timeout=LIMIT_S)[0])
        assert done["writer"] == "fork" and "Read it when you may." in done["text"]
        terminal.until("Compacted")
        terminal.until("All of it is read.")
        terminal.say("/exit")
        assert terminal.ended() == 0


def test_in_the_chat(reverie: Command) -> None:
    (reverie.work / "big.txt").write_text("the lamp burns all night\n" * 200)
    with chat(reverie, "--model", reverie.script(TALK + SUMMARY)) as terminal:
        for number in (1, 2):
            terminal.say(f"Question {number}.")
            terminal.until(f"Done with {number}.")
        terminal.say("/pin Never sail at night")
        terminal.until("Pinned as 1")
        terminal.say("/compact mind the gap")
        terminal.until("kept after compaction:")
        terminal.say("/undo")
        terminal.until("The compaction is taken back")
        terminal.say("/rewind")
        terminal.until("Question 1.")
        terminal.press("\x1b")  # closes the list
        terminal.say("/rewind -1")
        terminal.until("Back to before: Question 2.")
        terminal.until("› Question 2.")  # the text is there again, to be changed
        terminal.press("\x15/undo\r")
        terminal.until("where it was before")
        terminal.say("/clear")
        terminal.until("Continue?")
        terminal.press("n")
        terminal.until("Nothing was changed.")
        terminal.say("/compact --nonsense")
        terminal.until("does not know --nonsense")
        terminal.say("/exit")
        assert terminal.ended() == 0
