"""What a chat that continues shows of its conversation: the last turns as they were, bounded, and where the rest is."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pytest

from reverie.cli.chat.recap import MOST_LINES
from reverie.paths import slug
from reverie.storage.transcript.session_log import SessionLog
from reverie.text.columns import width
from reverie.types import Message, Origin, TextBlock
from tests.cli.conftest import Command
from tests.cli.terminal import PROMPT, Terminal

CTRL_O = "\x0f"
SESSION = str(uuid.UUID(int=7))


def resumed(reverie: Command, *args: str, columns: int = 80) -> Terminal:
    return Terminal("chat", "--continue", *args, cwd=reverie.work, env=reverie.env, columns=columns)


def write(reverie: Command, turns: Sequence[tuple[str, str]]) -> None:
    """Writes a session of these messages and answers."""
    path = reverie.home / "projects" / slug(reverie.work) / f"{SESSION}.jsonl"
    log = SessionLog(path, SESSION, cwd=reverie.work, version="0")
    for number, (message, answer) in enumerate(turns):
        log.append_message(Message("user", (TextBlock(message, Origin.TYPED),)))
        fields = {"id": f"msg_{number}", "type": "message", "model": "embedded", "usage": {"input_tokens": 9}}
        log.append_message(Message("assistant", (TextBlock(answer, Origin.MODEL),), fields=fields))
    log.close()


def recap(terminal: Terminal) -> list[str]:
    """The lines between the greeting and the prompt."""
    terminal.until("Continuing")
    terminal.wait_for_prompt()
    lines = terminal.screen
    begins = next(number for number, line in enumerate(lines) if line.startswith("Continuing"))
    return lines[begins : lines.index("›", begins)]


def test_the_turns_look_as_they_did(reverie: Command) -> None:
    (reverie.work / "server.py").write_text("port = 8080\nworkers = 4\n")
    model = reverie.script(
        'say I look.\ncall Read {"file_path": "server.py"}\ncall Read {"file_path": "gone.py"}\n---\n'
        "say The port is **8080**.\n|\n| - with 4 workers\n---\nsay Thanks.\n---\nsay Again.\n"
    )
    reverie("chat", "--model", model, stdin="Which port?\nWell done.\n")
    with resumed(reverie, "--model", model) as terminal:
        shown = recap(terminal)
        assert "\x1b[1m8080\x1b[0m" in terminal.raw
    assert shown[1:11] == [
        "",
        "› Which port?",
        "",
        "I look.",
        "  ✓ Read server.py  2 lines",
        shown[6],
        "",
        "The port is 8080.",
        "",
        "• with 4 workers",
    ]
    assert shown[6].startswith("  ✗ Read gone.py  ")
    assert shown[11:15] == ["", "› Well done.", "", "Thanks."]


def test_of_a_long_session_the_end_is_shown_and_how_much_is_above(reverie: Command) -> None:
    write(reverie, [(f"Question {number}?", f"Answer {number}.") for number in range(1, 301)])
    with resumed(reverie) as terminal:
        shown = recap(terminal)
    assert shown[0] == f"Continuing {SESSION[:8]}, 600 messages."
    assert shown[1] == f"  … 297 turns above: reverie sessions show {SESSION[:8]}"
    assert [line for line in shown[2:] if line] == [
        line for number in (298, 299, 300) for line in (f"› Question {number}?", f"Answer {number}.")
    ]
    whole = reverie("sessions", "show", SESSION[:8]).stdout
    assert "Question 1?" in whole and "Question 300?" in whole


def test_of_a_long_answer_the_question_and_the_end_are_shown(reverie: Command) -> None:
    write(reverie, [("Old?", "Old.\n" * 200), ("List them.", "\n".join(f"- item {n}" for n in range(5_000)))])
    with resumed(reverie) as terminal:
        shown = recap(terminal)
    assert len(shown) <= MOST_LINES + 4
    assert shown[1] == f"  … 1 turn above: reverie sessions show {SESSION[:8]}"
    assert shown[3] == "› List them."
    assert "• item 4999" in shown and "• item 4000" not in shown
    kept = sum(line.startswith("• item") for line in shown)
    assert f"  … {5_000 - kept:,} more lines" in shown


def test_lines_are_counted_as_the_terminal_wraps_them(reverie: Command) -> None:
    line = " ".join(letter * 21 for letter in "xyz")
    write(reverie, [("Show it.", f"```\n{line}\n" + f"{line}\n" * 60 + "```\nThe end.")])
    with resumed(reverie, columns=40) as terminal:
        shown = recap(terminal)
    assert len(shown) <= MOST_LINES + 5 and shown[-2] == "The end."


def test_of_a_huge_answer_only_the_end_is_looked_at(reverie: Command) -> None:
    code = "".join(f"x{number} = {number}  # *note*\n" for number in range(100_000))
    write(reverie, [("word " * 500_000, f"```python\n{code}```\nThe *end*.")])
    with resumed(reverie) as terminal:
        shown = recap(terminal)
    assert len(shown) <= MOST_LINES + 4
    assert "  x99999 = 99999  # *note*" in shown and "The end." in shown
    kept = sum(line.startswith("  x") for line in shown)
    [more] = [line for line in shown if "more lines" in line]
    assert int(more.strip(" …").partition(" ")[0].replace(",", "")) >= 100_000 - kept


def test_after_a_compaction_it_shows_what_was_said(reverie: Command) -> None:
    answers = {"Sure": "Yes.", "Which port": "The port is 8080.", "How many": "Three.", "Talk": "word " * 6_000}
    rules = "".join(f"when /{message}/\nsay {answer}\nend\n" for message, answer in answers.items())
    model = reverie.script(f"{rules}repeat forever\nsay SUMMARY of the work\nend\n")
    reverie("chat", "--model", model, stdin="Talk.\nHow many?\nWhich port?\n/compact\nSure?\n")
    assert "compact_boundary" in reverie.transcripts()[0].read_text()
    with resumed(reverie, "--model", model) as terminal:
        shown = recap(terminal)
    assert [line for line in shown[1:] if line] == [
        f"  … 1 turn above: reverie sessions show {reverie.transcripts()[0].stem[:8]}",
        *("› How many?", "Three.", "› Which port?", "The port is 8080.", "› Sure?", "Yes."),
    ]


def test_what_was_cleared_is_not_shown(reverie: Command) -> None:
    model = reverie.script("say The port is 8080.\n---\nsay Again.\n")
    reverie("chat", "--model", model, stdin="Which port?\n/clear\n")
    with resumed(reverie, "--model", model) as terminal:
        assert recap(terminal) == [f"Continuing {reverie.transcripts()[0].stem[:8]}, 0 messages.", ""]


@pytest.mark.parametrize("columns", [40, 80])
def test_no_line_is_wider_than_the_terminal(reverie: Command, columns: int) -> None:
    wide = "日本語の文章はとても長いので行が折り返されます。" * 3
    write(reverie, [(f"この{wide}", f"**太字** {wide}\n\n- {wide}\n\n```\n{wide}\n```\n{'x' * 300}")])
    with resumed(reverie, columns=columns) as terminal:
        terminal.until("Continuing")
        terminal.wait_for_prompt()
        written = terminal.shown.split("\n")
    wide_lines = [line for line in written if "日本語" in line]
    assert wide_lines and max(map(width, wide_lines)) <= columns
    assert "\x1b[1m太\x1b[0m" in terminal.raw


@pytest.mark.parametrize("text", ["\x1b]52;c;aGk=\x07", "\x1b[2J", "\u202egnp.exe", "\x9b31m", "\r\x1b[K"])
def test_text_of_a_transcript_cannot_steer_the_terminal(reverie: Command, text: str) -> None:
    write(reverie, [(f"a {text} b", f"c {text} d\n\n```\n{text}\n```\n")])
    with resumed(reverie) as terminal:
        shown = "\n".join(recap(terminal))
        assert "a " in shown and "c " in shown
        assert text not in terminal.raw


def test_an_old_output_unfolds_and_the_old_answer_is_copied(reverie: Command) -> None:
    (reverie.work / "lines.txt").write_text("".join(f"row {number}\n" for number in range(40)))
    model = reverie.script('call Bash {"command": "cat lines.txt"}\n---\nsay Over.\n---\nsay Again.\n')
    reverie("chat", "--model", model, stdin="look\n")
    with resumed(reverie, "--model", model) as terminal:
        terminal.until("✓ Bash $ cat lines.txt  40 lines")
        terminal.until(PROMPT)
        terminal.press(CTRL_O)
        terminal.until("row 39")
        terminal.press("/copy\r")
        terminal.until("5 characters to the clipboard")


def test_a_long_paste_is_one_mark(reverie: Command) -> None:
    model = reverie.script("say Thanks.\n---\nsay Again.\n")
    reverie("run", "--model", model, "Look at this.", stdin="".join(f"log line {n}\n" for n in range(500)))
    with resumed(reverie, "--model", model) as terminal:
        shown = "\n".join(recap(terminal))
    assert "Look at this." in shown and "[Pasted text 1: 500 lines" in shown and "log line 7" not in shown


def test_screen_readers_get_words(reverie: Command) -> None:
    (reverie.work / "server.py").write_text("port = 8080\nworkers = 4\n")
    model = reverie.script(
        'call Read {"file_path": "server.py"}\n---\nsay The port is **8080**.\n---\nsay Two.\n---\nsay Three.\n'
        "---\nsay Four.\n---\nsay Five.\n"
    )
    reverie("chat", "--model", model, stdin="Which port?\nand two?\nand three?\n")
    with resumed(reverie, "--plain", "--model", model) as terminal:
        terminal.until("messages.")
        terminal.until("You: Which port?")
        terminal.until("Tool: Read server.py, 2 lines.")
        terminal.until("Answer: The port is **8080**.")
        terminal.until("You: and three?")
        terminal.until("Answer: Three.")
        terminal.press("go on\n")
        terminal.until("Four.")
        terminal.until("Ready.")
        terminal.press("/exit\n")
        assert terminal.ended() == 0
        assert "\x1b" not in terminal.raw and not set(terminal.raw) & set("✓✗›⋯·■✻▰…")


def test_a_pipe_gets_only_answers(reverie: Command) -> None:
    model = reverie.script("say The port is 8080.\n---\nsay Again.\n---\nsay More.\n")
    reverie("run", "--model", model, "Which port?")
    assert reverie("chat", "--continue", "--model", model, stdin="again\n").stdout == "Again.\n"
    session = reverie.transcripts()[0].stem[:8]
    piped = reverie("chat", "--model", model, stdin=f"/resume {session}\n").stdout
    assert piped.strip() == f"Continuing {session}, 4 messages."
