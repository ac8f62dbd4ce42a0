"""Where an attack runs: folders of its own, children that can be killed, and honest counts.

A case counts when it was judged. A child that hangs, crashes, runs out of memory or shows a traceback is a finding. The
arena never touches the user's files.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

LIMIT_S = 60.0
"""For one command. Far above what any takes, so that a busy machine makes no finding."""
MEMORY = 3 << 30
PASSED_ON = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended. `code` is negative for a signal; `late`: it was killed because it did not end."""

    code: int
    out: str
    err: str
    late: bool
    cpu_s: float

    @property
    def crash(self) -> str | None:
        """What must never happen to any child; None if it did not."""
        if self.late:
            return f"does not end within {LIMIT_S:.0f} s"
        if self.code < 0:
            return f"ended by {signal.Signals(-self.code).name}"
        for text in (self.err, self.out):
            if "Traceback (most recent call last)" in text:
                return "a traceback: " + text[text.rindex("Traceback") :][-600:]
        return None


def in_child(work: Callable[[], int | None], *, stdin: bytes = b"", limit_s: float = LIMIT_S) -> Ended:
    """Does the work in a forked process with bounded memory and time, in a session of its own."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if not child:
            _be_child(work, (given.fileno(), out.fileno(), err.fileno()))
        status, used, late = _waited(child, limit_s)
        texts = list[str]()
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
    return Ended(os.waitstatus_to_exitcode(status), *texts, late, used.ru_utime + used.ru_stime)


def _be_child(work: Callable[[], int | None], files: tuple[int, int, int]) -> None:
    code = 70
    try:
        os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
        sys.stdin = os.fdopen(0, "r", closefd=False)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        code = work() or 0
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def _waited(child: int, limit_s: float) -> tuple[int, resource.struct_rusage, bool]:
    until, late = time.monotonic() + limit_s, False
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > until and not late:
            late = True
            os.kill(child, signal.SIGKILL)
        time.sleep(0.005)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # whoever it left behind
    return status, used, late


@dataclass(slots=True)
class World:
    """A home and a working folder; commands run in it as a user runs them."""

    home: Path
    work: Path
    env: dict[str, str]

    @property
    def memory(self) -> Path:
        """The project's memory folder, once there is one."""
        return next(iter(sorted(self.home.glob("projects/*/memory"))), self.home / "projects/none/memory")

    def reverie(self, *args: str, stdin: str | bytes = b"", limit_s: float = LIMIT_S, cwd: Path | None = None) -> Ended:
        def work() -> None:
            os.environ.clear()
            os.environ.update(self.env)
            os.chdir(cwd or self.work)
            from reverie.cli.app import app

            sys.argv = ["reverie", *args]
            app()

        return in_child(work, stdin=stdin.encode() if isinstance(stdin, str) else stdin, limit_s=limit_s)


@dataclass(slots=True)
class Arena:
    """What an attack gets: chance, a folder, and where it says what it judged and found."""

    folder: Path
    seed: int
    name: str
    full: bool = True
    cases: int = 0
    findings: list[str] = field(default_factory=list)
    told: Callable[[str], None] = lambda _: None
    chance: random.Random = field(init=False)
    _worlds: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(f"{self.name} {self.seed}")

    def count(self, few: int, many: int) -> int:
        """So many: `few` in a smoke test."""
        return many if self.full else few

    def judge(self, wrong: str | None) -> None:
        """One case was judged; `wrong` is what must not have happened."""
        self.cases += 1
        if wrong is not None:
            self.findings.append(wrong)
            self.told(wrong)

    def judge_ended(self, done: Ended, what: str) -> bool:
        """Judges a child by how it ended alone; True if nothing was wrong."""
        self.judge(None if done.crash is None else f"{what}: {done.crash}")
        return done.crash is None

    def world(self) -> World:
        """A new home and folder."""
        self._worlds += 1
        base = self.folder / f"w{self._worlds}"
        world = World(base / "user" / ".reverie", base / "work", {})
        world.home.mkdir(parents=True)
        world.work.mkdir()
        kept = {key: value for key, value in os.environ.items() if key in PASSED_ON}
        world.env = {
            **kept,
            "HOME": str(world.home.parent),
            "REVERIE_HOME": str(world.home),
            "REVERIE_REQUEST_LOG": str(base / "requests.jsonl"),
        }
        return world
