"""How long the first word of an answer takes to reach the terminal.

A real chat on a terminal of its own, with a long conversation. The time is from the Enter key to the first word in the
terminal's input.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.scratch import clean_env, count_option
from reverie.errors import UserError
from reverie.lab.measurement import Result, measurement
from reverie.paths import slug
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message, Origin, TextBlock

_CHARACTERS = 100_000
_ANSWER = "Some **words** of an answer with `code`, and a list:\n\n- one\n- two\n\n" * 30
_SCRIPT = "repeat forever\nsay answer-{turn}. Some more words follow this one.\nend\n"
_STYLE = re.compile(rb"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[=>]|\][^\x07\x1b]*(?:\x07|\x1b\\)|\([A-Z0-9])")
_PATIENCE_S = 60.0


@measurement("reverie lab screen --runs 21")
@count_option("--runs", 21, 1, "Answers.")
def screen(runs: int) -> Result:
    """Measure how long the first word of an answer takes to the terminal.

    A chat continues a conversation of 100,000 characters on a terminal of its own.
    """
    with TemporaryDirectory(prefix="reverie-screen-") as folder, _chat(Path(folder)) as chat:
        # The first answers load modules and fill caches; they are not counted.
        taken = median([chat.ask() for _ in range(runs + 2)][2:])
    return Result({"line_ms": taken, "characters": _CHARACTERS, "runs": runs}, [f"reverie chat: {taken:.1f} ms"])


class _Chat:
    """A chat on a terminal."""

    def __init__(self, terminal: int, process: subprocess.Popen[bytes]) -> None:
        self._terminal, self._process = terminal, process
        self._turn = 0

    def ask(self) -> float:
        """Sends a message; milliseconds until the first word of the answer is drawn."""
        self._turn += 1
        question = f"question{self._turn}"
        os.write(self._terminal, question.encode())
        self.wait_for(question.encode()[-6:])
        time.sleep(0.3)  # the screen is at rest
        self._drain()
        begun = time.perf_counter()
        os.write(self._terminal, b"\r")
        self.wait_for(b"answer-")
        taken = time.perf_counter() - begun
        time.sleep(0.3)
        self._drain()
        return taken * 1_000

    def wait_for(self, text: bytes) -> None:
        ends, seen = time.monotonic() + _PATIENCE_S, b""
        while text not in _STYLE.sub(b"", seen):
            if time.monotonic() > ends or self._process.poll() is not None:
                shown = _STYLE.sub(b"", seen).decode("utf-8", "replace").split()
                raise UserError(f"The chat does not show `{text.decode()}`: {' '.join(shown[-20:])}")
            if select.select([self._terminal], [], [], 0.5)[0]:
                seen += os.read(self._terminal, 65_536)

    def _drain(self) -> None:
        while select.select([self._terminal], [], [], 0)[0]:
            os.read(self._terminal, 65_536)


@contextmanager
def _chat(folder: Path) -> Generator[_Chat]:
    home, work = folder / "home", folder / "work"
    work.mkdir(parents=True)
    (work / "play.script").write_text(_SCRIPT)
    _write_session(home, work.resolve())
    env = clean_env(REVERIE_HOME=home, HOME=folder, TERM="xterm-256color")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    command = [sys.executable, "-m", "reverie", "chat", "--continue", "--model", "scripted:play.script"]
    process = subprocess.Popen(command, cwd=work, env=env, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    try:
        chat = _Chat(master, process)
        chat.wait_for(b"Continuing")
        yield chat
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _write_session(home: Path, cwd: Path) -> None:
    """Writes a conversation of the wanted length."""
    session = str(uuid.UUID(int=1))
    log = SessionLog(home / "projects" / slug(cwd) / f"{session}.jsonl", session, cwd=cwd, version="0")
    for turn in range(_CHARACTERS // len(_ANSWER)):
        log.append_message(Message("user", (TextBlock(f"Message {turn}.", Origin.TYPED),)))
        usage = {"input_tokens": 20, "output_tokens": 8}
        fields = {"id": f"msg_{turn}", "type": "message", "model": "embedded", "usage": usage}
        log.append_message(Message("assistant", (TextBlock(_ANSWER, Origin.MODEL),), fields=fields))
    log.close()
