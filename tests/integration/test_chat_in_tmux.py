"""The chat in a real terminal, tmux: what a person sees after streaming, resizing, pasting, questions and a crash."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


class Tmux:
    """`reverie chat` in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = ""
        self._folder = folder
        self.work = folder / "work"
        self.work.mkdir()

    def run(self, *args: str) -> str:
        given = ["tmux", "-S", self._socket, "-f", "/dev/null", *args]
        return subprocess.run(given, capture_output=True, text=True, timeout=20, check=True).stdout

    def start(self, *args: str, columns: int = 80, rows: int = 24, ready: str = "\n›", **more: str) -> None:
        self._socket = f"{self._folder}/{len(list(self._folder.iterdir()))}.sock"  # an old server may still be ending
        home = self._folder / "home"
        env = f"HOME={home} REVERIE_HOME={home}/.reverie REVERIE_DISABLE_MEMORY=1"
        env += "".join(f" {key}={value}" for key, value in more.items())
        command = f"env {env} {sys.executable} -m reverie chat {' '.join(args)}; echo ENDED $?; sleep 600"
        self.run("new", "-d", "-x", str(columns), "-y", str(rows), "-c", str(self.work), command)
        self.until(lambda text: "/help lists" in text and ready in text)

    def script(self, text: str) -> str:
        (self.work / "play.script").write_text(text)
        return "scripted:play.script"

    def keys(self, *keys: str) -> None:
        self.run("send-keys", *keys)

    @property
    def text(self) -> str:
        """The whole scrollback."""
        return self.run("capture-pane", "-p", "-S", "-5000")

    def until(self, holds: str | Callable[[str], bool], seconds: float = 30.0) -> str:
        ends = time.monotonic() + seconds
        while True:
            text = self.text
            if holds in text if isinstance(holds, str) else holds(text):
                return text
            assert time.monotonic() < ends, text
            time.sleep(0.1)

    def end(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, timeout=20, check=False)


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    made = Tmux(tmp_path)
    yield made
    made.end()


def test_every_word_is_there_once_after_streaming_and_resizing(tmux: Tmux) -> None:
    words = " ".join(f"w{number}." for number in range(400))
    tmux.start("--model", tmux.script(f"slow 0.02\nsay {words}\n---\nsay [{{text}}]\n"))
    tmux.keys("go", "Enter")
    tmux.until("w40.")
    tmux.keys("typed meanwhile")
    tmux.until("› typed meanwhile")
    for columns in (100, 44, 60, 120, 80):
        tmux.run("resize-window", "-x", str(columns), "-y", "24")
        time.sleep(0.4)
    tmux.keys("Enter")
    text = tmux.until("[typed meanwhile]")
    found = re.findall(r"w\d+\.", text.replace("\n", ""))
    assert sorted(set(found), key=lambda word: int(word[1:-1])) == words.split(), text
    assert len(found) == 400, text
    assert len(re.findall(r"(?m)^  scripted:", text)) == 1, text  # one status line


def test_escape_stops_and_ctrl_c_twice_leaves_with_the_command_to_continue(tmux: Tmux) -> None:
    tmux.start("--model", tmux.script("slow 0.05\nsay " + "word " * 2000 + "\n---\nsay [{text}]\n"))
    tmux.run("set", "-g", "escape-time", "0")
    tmux.keys("talk", "Enter")
    tmux.until("word word")
    began = time.monotonic()
    tmux.keys("Escape")
    tmux.until("Stopped.")
    assert time.monotonic() - began < 3
    tmux.keys("C-c")
    tmux.until("Ctrl-C again leaves")
    tmux.keys("C-c")
    text = tmux.until("ENDED 0")
    assert re.search(r"continue with: reverie chat --resume [0-9a-f]{8}", text)


def test_the_answers_of_a_question_and_a_rule_that_stays(tmux: Tmux) -> None:
    calls = [f'call Bash {{"command": "touch {name}.txt"}}\n---\n' for name in ("a", "b", "a", "c")]
    model = tmux.script("".join(calls) + "say Over.\n")
    tmux.start("--model", model, rows=40)
    tmux.keys("go", "Enter")
    for number, key in enumerate(("y", "s", "n"), 1):
        tmux.until(lambda text, number=number: text.count("? Bash $") == number and "no ›" in text)
        time.sleep(0.6)  # a person reads it first
        tmux.keys(key)
    tmux.until("Why not?")
    tmux.keys("not now", "Enter")
    tmux.until(lambda text: "Over." in text or "no ›" in text)
    assert (tmux.work / "a.txt").exists() and (tmux.work / "b.txt").exists()


def test_five_hundred_pasted_lines_are_one_mark(tmux: Tmux) -> None:
    tmux.start("--model", tmux.script("say Thanks.\n"), columns=40)
    pasted = tmux.work / "pasted.txt"
    pasted.write_text("".join(f"pasted line {number}\n" for number in range(500)))
    tmux.run("load-buffer", str(pasted))
    tmux.keys("see ")
    tmux.run("paste-buffer", "-p")
    tmux.until("[Pasted text 1: 501 lines")
    tmux.keys("Enter")
    text = tmux.until("Thanks.")
    assert "pasted line 7" not in text
    assert max(map(len, text.split("\n"))) <= 40


def test_a_killed_chat_is_resumed_with_the_picker(tmux: Tmux) -> None:
    model = tmux.script("say The port is 8080.\n---\nslow 0.1\nsay " + "word " * 900 + "\n")
    tmux.start("--model", model)
    tmux.keys("remember the port", "Enter")
    tmux.until("The port is 8080.")
    tmux.keys("and talk", "Enter")
    tmux.until("word word")
    panes = tmux.run("list-panes", "-F", "#{pane_pid}").split()
    children = subprocess.run(["pgrep", "-P", panes[0]], capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(children[0]), signal.SIGKILL)
    tmux.until("ENDED 137")
    tmux.end()
    tmux.start("--model", model)
    tmux.keys("/resume", "Enter")
    tmux.until("Continue which session?")
    tmux.keys("prt")
    tmux.until("1 of 1")
    tmux.keys("Enter")
    tmux.until("Continuing")
    tmux.until("The port is 8080.")


def test_copy_goes_through_tmux_to_the_clipboard(tmux: Tmux) -> None:
    tmux.start("--model", tmux.script("say The **port** is 8080.\n"))
    tmux.run("set", "-g", "set-clipboard", "on")
    tmux.keys("Which port?", "Enter")
    tmux.until("port is 8080")
    tmux.keys("/copy ", "Enter")
    tmux.until("characters to the clipboard")
    assert tmux.run("show-buffer").strip() == "The **port** is 8080."


def test_simple_terminals_get_plain_lines(tmux: Tmux) -> None:
    tmux.start("--model", tmux.script("say The port is 8080.\n"), ready="/help", TERM="dumb")
    tmux.keys("Which port?", "Enter")
    tmux.until("Ready.")
    assert tmux.run("display", "-p", "#{alternate_on} #{mouse_any_flag}").split() == ["0", "0"]


def test_the_screen_and_the_mouse_belong_to_the_terminal(tmux: Tmux) -> None:
    tmux.start("--model", tmux.script("say Hi.\n"))
    assert tmux.run("display", "-p", "#{alternate_on} #{mouse_any_flag}").split() == ["0", "0"]
