"""Finds the program of a model and runs it: in an empty folder, with a time limit, and with no process left behind.

Every program gets `REVERIE_INSIDE=1`, so that hooks of ours that it starts do nothing and no such model starts another.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

from reverie.errors import ModelError, Unreachable, UserError
from reverie.paths.programs import users_program
from reverie.quick import dataclass
from reverie.runtime.hook_process import run_command
from reverie.settings.sections import INSIDE

MOST_OUTPUT = 16 * 1024 * 1024
_LONGEST_LINE = 300
_SHORT_LINE = 12
_NOT_PASSED_ON = (
    *("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "CLAUDE_PROJECT_DIR"),
    *("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_ENV_FILE", "CODEX_THREAD_ID"),
)
"""What agents set for the commands that they run: the program is not a part of such an agent's session."""

_places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folders of one run: `work` is empty, `files` has what the options name, `temporary` is for the program."""

    work: Path
    files: Path
    temporary: Path

    def write(self, name: str, text: str) -> str:
        path = self.files / name
        path.write_text(text, encoding="utf-8", errors="replace")
        return str(path)


@dataclass(frozen=True, slots=True)
class Printed:
    """What a program printed, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str
    given: str = ""
    """Its standard input."""

    @property
    def complaint(self) -> str:
        """The first line of its errors, or of its output, for the user. Errors are logged, so no line that quotes the
        conversation."""
        lines = (line.strip() for text in (self.stderr, self.stdout) for line in text.splitlines())
        own = (line for line in lines if line and (len(line) < _SHORT_LINE or line not in self.given))
        line = next(own, "it printed nothing of its own" if self.stderr or self.stdout else "it printed nothing")
        return "".join(c if c.isprintable() else " " for c in line)[:_LONGEST_LINE]


class Program:
    """One program with its first words."""

    def __init__(self, command: str, *, shown: str, missing: str, timeout_s: float, at_once: int, inside: bool) -> None:
        """Raises UserError if it does not exist (`missing`: what to do then), or if this runs inside such a program."""
        if inside:
            raise UserError(f"{shown} does not start here: this runs inside a program of a model ({INSIDE} is set).")
        self.shown = shown
        self.timeout_s = timeout_s
        self.at_once = at_once
        self.words = _find(command, shown, missing)

    async def run(
        self, options: Sequence[str], stdin: str, scratch: Scratch, env: Mapping[str, str] | None = None
    ) -> Printed:
        """Runs it to its end. Raises a ModelError if it cannot start, takes too long or prints too much."""
        passed = {name: value for name, value in dict(os.environ).items() if name not in _NOT_PASSED_ON}
        async with _place(self.at_once):
            try:
                ran = await run_command(
                    [*self.words, *options],
                    stdin=stdin.encode("utf-8", "replace"),
                    cwd=scratch.work,
                    env={**passed, "TMPDIR": str(scratch.temporary), **(env or {}), INSIDE: "1"},
                    timeout_s=self.timeout_s,
                    kept_bytes=MOST_OUTPUT,
                    to_the_end=False,
                )
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                raise ModelError(f"{self.shown} cannot be started ({self.words[0]}): {why}.") from error
        if ran.cut:
            raise ModelError(f"{self.shown} printed more than {MOST_OUTPUT // 1024**2} MB and was ended.")
        if ran.exit_code is None:
            limit = f"{self.timeout_s:g} s (model.timeout_s)"
            raise Unreachable(f"{self.shown} did not answer within {limit} and was ended.")
        stdout, stderr = (text.decode("utf-8", "replace") for text in (ran.stdout, ran.stderr))
        return Printed(ran.exit_code, stdout, stderr, stdin)


class ScratchFolder:
    """Makes the folders of one run and removes them at its end."""

    def __enter__(self) -> Scratch:
        self._folder = tempfile.TemporaryDirectory(prefix="reverie-model-", ignore_cleanup_errors=True)
        top = Path(self._folder.name)
        made = Scratch(*(top / name for name in ("work", "files", "tmp")))
        for folder in (made.work, made.files, made.temporary):
            folder.mkdir()
        return made

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()


def _place(at_once: int) -> asyncio.Semaphore:
    """The places of this process; the first program decides how many there are."""
    return _places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(at_once))


def _find(command: str, shown: str, missing: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UserError(f"{shown}: {command!r} is not a command ({error}); close its quotes.") from error
    if not words or "\0" in command:
        raise UserError(f"{shown}: {missing}")
    name = words[0]
    if "/" in name:
        path = Path(name).expanduser().absolute()
        found = path if os.access(path, os.X_OK) and path.is_file() else None
    else:
        found = users_program(name)
    if found is None:
        raise UserError(f"{shown}: the program {name} was not found. {missing}")
    return [str(found), *words[1:]]
