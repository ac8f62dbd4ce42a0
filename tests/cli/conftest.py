"""The command line as people run it: real processes, in a home and a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.waiting import LIMIT_S


@dataclass(slots=True)
class Command:
    """Runs `reverie` in `work`, with `home` as its home."""

    home: Path
    work: Path
    extra: dict[str, str] = field(default_factory=dict)
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        passed = (
            "PATH",
            "PYTHONPATH",
            "LANG",
            "LC_ALL",
            "TMPDIR",
            "REVERIE_REQUEST_LOG",
        )  # the last: see `prefix_watch`
        kept = {key: value for key, value in os.environ.items() if key in passed}
        return {**kept, "HOME": str(self.home.parent), "REVERIE_HOME": str(self.home), **self.extra}

    def __call__(
        self, *args: str, stdin: str | bytes = b"", code: int | None = 0, timeout: float = LIMIT_S
    ) -> subprocess.CompletedProcess[str]:
        """Runs to the end and checks the exit code (None: any)."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = warm.run(*args, stdin=given, cwd=self.work, env=self.env, timeout=timeout)
        out, err = done.stdout.decode(), done.stderr.decode()
        if code is not None:
            assert done.returncode == code, f"exit code {done.returncode}, not {code}\n{out}\n{err}"
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """Starts it and leaves it running; ended with the test."""
        process = subprocess.Popen(
            [sys.executable, "-m", "reverie", *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.work,
            env=self.env,
        )
        self.running.append(process)
        return process

    def script(self, text: str, name: str = "play.script") -> str:
        """Writes a script and returns the model that plays it."""
        (self.work / name).write_text(text)
        return f"scripted:{name}"

    def events(self, *args: str, **more: Any) -> list[dict[str, Any]]:
        """The events of `run --json`."""
        return [json.loads(line) for line in self("run", "--json", *args, **more).stdout.splitlines()]

    def transcripts(self) -> list[Path]:
        return sorted(self.home.glob("projects/*/*.jsonl"))


@pytest.fixture
def reverie(tmp_path: Path) -> Iterator[Command]:
    work = tmp_path / "work"
    work.mkdir()
    # Memory has tests of its own; here what a script is told shall be what was typed.
    command = Command(tmp_path / "home", work, {"REVERIE_DISABLE_MEMORY": "1"})
    yield command
    for process in command.running:
        if process.poll() is None:
            process.kill()
        process.communicate()
