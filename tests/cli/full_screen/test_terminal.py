"""The full screen on a real terminal: a kill and a resumed session, colours, and who imports Textual."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import Terminal

CTRL_C = "\x03"


def chat(reverie: Command, *args: str, columns: int = 80, **more: str) -> Terminal:
    env = {**reverie.env, **more}
    return Terminal("chat", "--full-screen", *args, cwd=reverie.work, env=env, columns=columns)


def styles_in(raw: str) -> set[str]:
    return {code for found in re.findall(r"\x1b\[([0-9;]+)m", raw) for code in found.split(";")}


def test_a_killed_chat_continues_with_its_conversation(reverie: Command) -> None:
    model = reverie.script("say The port is 8080.\n---\nwait 60\nsay Never.\n")
    with chat(reverie, "--model", model) as terminal:
        terminal.press("Which port?\r")  # before the app reads keys: it is kept, and not sent
        terminal.until("F1 keys")
        terminal.press("\r")
        terminal.until("The port is 8080.")
        terminal.press("And now?\r")
        terminal.until("working")
        terminal.process.kill()
        terminal.process.wait()
    with chat(reverie, "--continue", "--theme", "light", "--model", model) as terminal:
        terminal.until_all("The port is 8080.", "F1 keys")
        terminal.press(CTRL_C)
        terminal.until("Ctrl-C again leaves")
        terminal.press(CTRL_C)
        assert terminal.ended() == 0
        styles = styles_in(terminal.raw)
        assert "34" in styles and not {"33", "36"} & styles  # blue instead of cyan and yellow
        assert "F1 keys" in terminal.shown  # drawn before or after the conversation
        assert "continue with: reverie chat --resume" in terminal.shown
        assert terminal.raw.rindex("\x1b[?1049l") > terminal.raw.rindex("\x1b[?1049h")  # the terminal is as before


def test_no_mouse_no_foreign_sequence_and_no_colour_on_request(reverie: Command) -> None:
    (reverie.work / "evil.txt").write_text("\x1b]0;owned\x07\x1b[31mred\x1b[?1003h\n")
    model = reverie.script('call Read {"file_path": "evil.txt"}\n---\nsay \x1b]52;c;aGk=\x07done **now**\n')
    with chat(reverie, "--model", model, NO_COLOR="1") as terminal:
        terminal.until("F1 keys")
        terminal.press("Read it\r")
        terminal.until("done now")
        raw = terminal.raw
    assert "\x1b]52" not in raw
    assert "\x1b]0;owned" not in raw
    assert "\x1b[?1003h" not in raw  # no mouse
    styles = styles_in(raw)
    assert not {str(code) for code in (*range(31, 38), *range(91, 98), 38, 48)} & styles, styles


@pytest.mark.parametrize("args", [["--version"], ["chat", "--model", "scripted:play.script"], ["sessions", "list"]])
def test_only_the_full_screen_imports_textual(reverie: Command, args: list[str]) -> None:
    reverie.script("say Hello.\n")
    program = (
        "import sys; from reverie.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert 'textual' not in sys.modules, 'textual'"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *args], cwd=reverie.work, env=reverie.env, input="Hi\n", text=True, timeout=60
    )
    assert done.returncode == 0
