"""The conversation on the full screen: text that streams, blocks that fold, old messages, hostile text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

LOOK = """
think The port must be in the server.
say Let me **look**.
call Read {"file_path": "server.py"}
---
say ## Result
|
| | port | use |
| |---|---|
| | 1 | server |
|
| See [the page](javascript:alert(1)), [the docs](https://example.com) and
| <b>this</b>.
"""


@pytest.fixture(scope="module", autouse=True)
def screen() -> None:
    """Takes a quarter of a second: only a process that runs one of these tests imports it."""
    global Answer, Call, Message, Thinking, GrowingMarkdown, Stage, lines_of, play
    from reverie.cli.full_screen.blocks import Answer, Call, Message, Thinking
    from reverie.cli.full_screen.markdown import GrowingMarkdown
    from tests.cli.full_screen.stage import Stage, lines_of, play


def text_of(markdown: GrowingMarkdown, columns: int) -> list[str]:
    return ["".join(part.text for part in line).rstrip() for line in markdown.lines(columns)]


def test_an_answer_streams_and_a_call_unfolds_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("".join(f"line {number}\n" for number in range(1, 251)))

    async def act(stage: Stage) -> None:
        await stage.say("Which port?")
        await stage.until(lambda: "<b>this</b>." in stage.conversation)
        blocks = [type(block) for block in stage.app.conversation.blocks[1:]]
        assert blocks == [Message, Thinking, Answer, Call, Answer]
        shown = stage.conversation
        assert "› Which port?" in shown
        assert "✓ Read server.py  250 lines" in shown
        assert "Let me look." in shown  # without the stars
        assert "──" in shown  # a table
        assert "[the page](javascript:alert(1))" in shown
        assert "the docs (https://example.com)" in shown
        assert "<b>this</b>" in shown
        assert "The port must be" not in shown
        call = stage.app.conversation.blocks[4]
        await stage.pilot.press("tab")  # to the conversation: the last block that can be unfolded
        assert stage.app.conversation.chosen is call
        await stage.pilot.press("enter")
        assert "line 100" in stage.conversation
        assert "line 101" not in stage.conversation
        assert "150 more lines" in stage.conversation
        await stage.pilot.press("enter", "enter")
        assert "line 250" in stage.conversation
        await stage.pilot.press("enter")
        assert "line 1\n" not in stage.conversation
        await stage.pilot.press("k", "k", "enter")
        assert "The port must be in the server." in stage.conversation

    play(tmp_path, LOOK, act)


def test_parts_of_a_text_look_like_the_whole_text() -> None:
    """However a text is cut while it streams, it looks the same at the end."""
    items = "".join(f"{number}. item `{number}`\n" for number in range(1, 300))
    code = "```python\n" + "".join(f"x{number} = {number}  # note\n" for number in range(400)) + "```\n"
    text = f"# Title\r\n\r\nSome *words*.\n\n{items}\n{code}\n> a quote\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\nThe end.\n"
    pieces, whole = GrowingMarkdown(), GrowingMarkdown()
    whole.feed(text)
    for at in range(0, len(text), 97):
        pieces.feed(text[at : at + 97])
        pieces.lines(60)
    assert text_of(pieces, 60) == text_of(whole, 60)
    shown = "\n".join(text_of(whole, 60))
    assert "x399 = 399  # note" in shown
    assert "299 item 299" in shown


@pytest.mark.parametrize(
    "text", ["\x1b]52;c;aGk=\x07", "\x1b[2J", "\u202egnp.exe", "\x9b31m", "[bold red]x[/]", "\x07", "\r\x1b[K"]
)
def test_text_of_a_model_cannot_steer_the_terminal(tmp_path: Path, text: str) -> None:
    for block in (
        Answer(f"a {text} b\n\n```\n{text}\n```\n\n| {text} | b |\n|--|--|\n"),
        Message(text),
        Thinking(text),
    ):
        block.open = True
        drawn = "".join(part.text for line in block.lines(60) for part in line)
        assert not any(char in drawn for char in "\x1b\x07\x9b\u202e\r")
        if text.startswith("[bold"):
            assert "[bold red]x[/]" in drawn


def test_a_long_conversation_opens_at_its_end_and_loads_the_rest_on_the_way_up(tmp_path: Path) -> None:
    script = "repeat forever\nsay Answer {turn} is here.\nend\n"
    turns = 50

    async def fill(stage: Stage) -> None:
        session = stage.app.chat.session
        for number in range(1, turns + 1):
            async for _ in session.send(f"Question {number}"):
                pass

    async def act(stage: Stage) -> None:
        await stage.until(lambda: f"Question {turns}" in stage.conversation)
        assert "Question 1\n" not in stage.conversation
        assert len(stage.app.conversation.blocks) < 60
        view = stage.app.conversation
        assert view.scroll_y == view.max_scroll_y
        await stage.pilot.press("tab")
        for _ in range(15):
            await stage.pilot.press("pageup")
        await stage.until(lambda: "› Question 1\n" in stage.conversation.replace(" \n", "\n"))
        assert view.find("Answer 7 ") is not None

    play(tmp_path, script, fill)
    begun = time.monotonic()
    play(tmp_path, script, act, resume="last")
    assert time.monotonic() - begun < 30


def test_forty_columns_and_a_change_of_the_width(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await stage.say("Which port? " + "word " * 30)
        await stage.until(lambda: "<b>this</b>." in stage.conversation)
        await stage.pilot.resize_terminal(40, 16)
        await stage.until(lambda: stage.app.conversation.size.width == 40)
        for block in stage.app.conversation.blocks:
            assert all(len(line) <= 38 for line in lines_of(stage.app, block)), lines_of(stage.app, block)
        await stage.until(lambda: all(len(line) <= 40 for line in stage.bottom.splitlines()))
        await stage.pilot.press("f1")
        await stage.dialog("Reader")

    play(tmp_path, LOOK, act)
