"""The full screen in tmux, as a user has it: keys, a paste of 500 lines, another size, kill -9, the end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Command

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


@dataclass(frozen=True, slots=True)
class Tmux:
    """One window of a tmux server of its own."""

    socket: Path

    def __call__(self, *args: str, given: str | None = None) -> str:
        command = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *args]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout

    @property
    def shown(self) -> str:
        return self("capture-pane", "-p", "-t", "a")

    def keys(self, *keys: str) -> None:
        self("send-keys", "-t", "a", *keys)

    def until(self, text: str | Callable[[str], bool], seconds: float = 30) -> str:
        ends = time.monotonic() + seconds
        while True:
            shown = self.shown
            if text(shown) if callable(text) else text in shown:
                return shown
            assert time.monotonic() < ends, f"no {text!r} in:\n{shown}"
            time.sleep(0.05)


@pytest.fixture
def reverie(tmp_path: Path) -> Command:
    work = tmp_path / "work"
    work.mkdir()
    return Command(tmp_path / "home" / ".reverie", work)


@pytest.fixture
def tmux(reverie: Command, tmp_path: Path) -> Iterator[Tmux]:
    window = Tmux(tmp_path / "tmux")
    env = [part for key, value in reverie.env.items() for part in ("-e", f"{key}={value}")]
    window("new-session", "-d", "-s", "a", "-x", "80", "-y", "24", "-c", str(reverie.work), *env, "sh")
    yield window
    window("kill-server")


def start(tmux: Tmux, *options: str) -> None:
    tmux.keys(f"{sys.executable} -m reverie chat --full-screen {' '.join(options)}", "Enter")
    tmux.until("F1 keys")


def test_a_chat_from_its_start_to_its_end(reverie: Command, tmux: Tmux) -> None:
    (reverie.work / "server.py").write_text("port = 1\n")
    edit = '{"file_path": "server.py", "old_string": "port = 1", "new_string": "port = 2"}'
    model = reverie.script(f'call Read {{"file_path": "server.py"}}\n---\ncall Edit {edit}\n---\nsay Port **2**.\n')
    start(tmux, "--model", model)
    tmux("load-buffer", "-", given="".join(f"log {number}\n" for number in range(500)))
    tmux("paste-buffer", "-p", "-t", "a")
    tmux.until("[Pasted text 1: 501 lines")
    tmux.keys(" change it", "Enter")
    tmux.until("+ port = 2")
    time.sleep(0.6)  # keys right after the question do not answer it
    tmux.keys("y")
    tmux.until("Port 2.")
    assert (reverie.work / "server.py").read_text() == "port = 2\n"
    tmux("resize-window", "-t", "a", "-x", "40", "-y", "15")
    tmux.until(lambda shown: "Port 2." in shown and max(map(len, shown.splitlines())) <= 40)
    tmux.keys("C-p")
    tmux.until("type to search")
    tmux.keys("Escape")
    tmux.until(lambda shown: "type to search" not in shown)
    tmux.keys("C-c")
    tmux.until("Ctrl-C again leaves")
    tmux.keys("C-c")
    shown = tmux.until("--resume")
    assert "F1 keys" not in shown, "the terminal is as it was before"


def test_kill_9_and_resume(reverie: Command, tmux: Tmux) -> None:
    model = reverie.script("say The port is 8080.\n---\nwait 60\nsay Never.\n")
    start(tmux, "--model", model)
    tmux.keys("Which port?", "Enter")
    tmux.until("The port is 8080.")
    tmux.keys("And now?", "Enter")
    tmux.until("working")
    found = subprocess.run(
        ["pgrep", "-P", tmux("display", "-p", "-t", "a", "#{pane_pid}").strip()], capture_output=True
    )
    os.kill(int(found.stdout.split()[0]), signal.SIGKILL)
    time.sleep(0.5)
    tmux.keys("", "Enter")
    tmux("respawn-pane", "-k", "-t", "a", "sh")
    start(tmux, "--continue", "--model", model)
    tmux.until("The port is 8080.")
