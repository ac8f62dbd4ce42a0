"""Bash: runs one command in its own process session, with a time limit and without input.

If a call ends early (time, cancellation, too much output), all processes of the command are ended. It never waits for a
process that only holds the output open, and never keeps a large output in memory.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from enum import Enum
from pathlib import Path

from reverie.errors import UserError
from reverie.paths.programs import make_bare_environment, system_program, users_program
from reverie.permissions.rules import NotReadOnly
from reverie.permissions.shell.read_only import is_read_only_shell
from reverie.permissions.shell.words import anchor_globs
from reverie.quick import dataclass
from reverie.runtime.agent_above import mark_environment, mark_words
from reverie.runtime.bounded import bounded, explain_limit
from reverie.runtime.process_family import ProcessFamily
from reverie.tools.base import BuiltIn, ToolContext, ToolOutput
from reverie.tools.files import format_path
from reverie.tools.kept_output import MAX_KEPT_BYTES, KeptOutput
from reverie.types import JsonObject

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
_CHUNK_BYTES = 256 * 1024
_LEFTOVER_SECONDS = 0.5
_PROPERTIES: JsonObject = {
    "command": {"type": "string", "description": "The command to run"},
    "timeout": {
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_TIMEOUT_MS,
        "description": "Time limit in milliseconds",
    },
    "description": {"type": "string", "description": "What the command does, in a few words"},
}


@dataclass(frozen=True)
class Bash(BuiltIn, prompt="bash.md", properties=_PROPERTIES, required=["command"]):
    """The Bash tool. Output beyond `inline_bytes` is kept in a file under the context's `keep_dir`."""

    inline_bytes: int = 400_000  # a larger result is never sent to a model
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    max_timeout_ms: int = MAX_TIMEOUT_MS
    is_users: bool = False
    """The user typed the command. Else what it starts is known as an agent's."""

    def is_read_only(self, given: JsonObject) -> bool:
        command = given.get("command")
        return isinstance(command, str) and is_read_only_shell(command)

    async def _run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        command: str = given["command"]
        seconds = min(int(given.get("timeout") or self.timeout_ms), self.max_timeout_ms) / 1_000
        if context.guarded:
            async with _guard(command, context.cwd) as (text, env):
                return await self._run_text(text, env, seconds, context, unasked=True)
        if self.is_read_only(given):  # a file with the name of an option must not become one
            env = make_bare_environment()
            return await self._run_text(anchor_globs(command), env, seconds, context, unasked=True)
        return await self._run_text(command, {**os.environ, "TERM": "dumb"}, seconds, context)

    async def _run_text(
        self, text: str, env: dict[str, str], seconds: float, context: ToolContext, *, unasked: bool = False
    ) -> ToolOutput:
        words = [str(_find_shell(context.cwd)), "--noprofile", "--norc", "-c", text]
        if unasked:
            words = bounded(words)
        if not self.is_users:
            words, env = mark_words(words), mark_environment(env)
        running = await _RunningCommand.start(words, env, context)
        kept = KeptOutput(context.keep_dir, self.inline_bytes, context.progress)
        try:
            ending = await running.wait(kept, seconds)
        except BaseException:  # cancelled: no process is left, and no result names the file
            kept.discard()
            raise
        kept.close()
        return _make_output(kept, running.process.returncode, ending, seconds, unasked)


@asynccontextmanager
async def _guard(command: str, cwd: Path) -> AsyncGenerator[tuple[str, dict[str, str]]]:
    """Yields how a harmless command runs. It was checked before, but what it needs may have changed since."""
    from reverie.permissions.harmless.command import guarded

    prepared = guarded(command, cwd)
    try:
        how = await asyncio.to_thread(prepared.__enter__)
    except NotReadOnly as refusal:
        raise UserError(
            f"The command did not run: it cannot run without a question any more, because {refusal}."
        ) from refusal
    try:
        yield how
    finally:
        await asyncio.to_thread(prepared.__exit__, None, None, None)


class _Ending(Enum):
    """The reason why a command ended."""

    ITSELF = ""
    TIME = "it was stopped at its time limit"
    OUTPUT = f"it was stopped after {MAX_KEPT_BYTES:,} bytes of output"
    BACKGROUND = "its processes in the background were ended, because they still held the output"
    DETACHED = "a process that it started still holds the output, which is no longer read"

    @property
    def stopped(self) -> bool:
        return self in (_Ending.TIME, _Ending.OUTPUT)


@dataclass(frozen=True, slots=True)
class _RunningCommand:
    """One started command: its process and the pipe of its output."""

    process: asyncio.subprocess.Process
    family: ProcessFamily
    output: asyncio.StreamReader
    pipe: asyncio.ReadTransport

    @staticmethod
    async def start(words: Sequence[str | Path], env: dict[str, str], context: ToolContext) -> _RunningCommand:
        """Starts the command; raises UserError if that fails."""
        reading, writing = os.pipe()
        identity = os.fstat(reading)
        _widen_pipe(reading)
        output = asyncio.StreamReader(limit=_CHUNK_BYTES)
        pipe: asyncio.ReadTransport | None = None
        try:
            # We make the pipe: with asyncio's own, `wait` waits for every process that holds the other end.
            pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(output), os.fdopen(reading, "rb", buffering=0)
            )
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=asyncio.subprocess.STDOUT,
                cwd=context.map_path(context.cwd),
                env=env,
                start_new_session=True,
            )
        except BaseException as error:
            if pipe:
                pipe.close()
            if isinstance(error, OSError | ValueError):
                raise UserError(_explain_start_error(error, str(words[-1]), context.cwd)) from error
            raise
        finally:
            os.close(writing)
        return _RunningCommand(process, ProcessFamily(process.pid, (identity.st_dev, identity.st_ino)), output, pipe)

    async def wait(self, kept: KeptOutput, seconds: float) -> _Ending:
        """Waits for the end and collects the output; no process holds the pipe afterwards."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        exited = asyncio.ensure_future(self.process.wait())
        drained = asyncio.ensure_future(self._drain(kept))
        ending: _Ending | None = None
        try:
            while ending is None:
                await asyncio.wait(
                    {task for task in (exited, drained) if not task.done()},
                    timeout=max(0.0, deadline - loop.time()),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if drained.done() and not drained.result():
                    ending = _Ending.OUTPUT
                elif exited.done():
                    ending = await self._after_exit(drained)
                elif loop.time() >= deadline:
                    ending = _Ending.TIME
            return ending
        finally:
            try:
                if ending is not _Ending.ITSELF:
                    await self.family.end()
                    await asyncio.wait({exited, drained}, timeout=_LEFTOVER_SECONDS)
            finally:
                exited.cancel()
                drained.cancel()
                self.pipe.close()

    async def _after_exit(self, drained: asyncio.Future[bool]) -> _Ending:
        """The shell has ended. Processes that still hold its output get a moment to finish."""
        if not drained.done():
            await asyncio.wait({drained}, timeout=_LEFTOVER_SECONDS)
        if drained.done():
            return _Ending.ITSELF if drained.result() else _Ending.OUTPUT
        return _Ending.BACKGROUND if self.family.living() else _Ending.DETACHED

    async def _drain(self, kept: KeptOutput) -> bool:
        """Reads the whole output; False if there was more than can be kept."""
        while chunk := await self.output.read(_CHUNK_BYTES):
            if not kept.add(chunk):
                return False
        return True


def _make_output(kept: KeptOutput, code: int | None, ending: _Ending, seconds: float, unasked: bool) -> ToolOutput:
    lines: list[str] = []
    if ending.stopped:
        limit = f" of {seconds:g} seconds (give a longer timeout if it needs one)" if ending is _Ending.TIME else ""
        lines.append(f"The command did not finish: {ending.value}{limit}.")
    elif code is not None and code < 0:
        lines.append(f"The command was ended by signal {-code} ({_signal_name(-code)}).")
    elif code:
        lines.append(f"Exit code {code}")
    text = kept.text()
    left = f"[{ending.value.capitalize()}; redirect the output to a file to let it continue.]"
    is_left = ending in (_Ending.BACKGROUND, _Ending.DETACHED)
    if is_left and kept.path:  # before the output, whose end may be left out
        lines.append(left)
    if text.strip():
        lines.append(text.removesuffix("\n"))
    elif not lines:
        lines.append("The command finished without output.")
    if is_left and not kept.path:
        lines.append(left)
    if unasked and (limit := explain_limit(code, text)):
        lines.append(f"[{limit}]")
    structured: JsonObject = {"exitCode": code, "interrupted": ending.stopped}
    if kept.path:
        structured |= {"persistedOutputPath": str(kept.path), "persistedOutputSize": kept.size}
    size = kept.size if kept.path else 0
    return ToolOutput("\n".join(lines), bool(ending.stopped or code), structured, kept_bytes=size, kept_in=kept.path)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _find_shell(cwd: Path) -> Path:
    """Returns the system's bash, never one from the project; raises UserError if there is none."""
    found = system_program("bash") or users_program("bash", cwd)
    if found is None:
        raise UserError("bash was not found on this machine: install it in /usr/bin or /bin.")
    return found


def _widen_pipe(pipe: int) -> None:
    """Makes the pipe larger, if possible: that means fewer wake-ups for a large output."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1024 * 1024)


def _explain_start_error(error: OSError | ValueError, command: str, cwd: Path) -> str:
    if isinstance(error, UnicodeError):
        return "The command holds half a character (a lone surrogate): send it again without that."
    if isinstance(error, ValueError):
        return "The command holds a NUL character: send it again without that."
    if error.errno == errno.E2BIG:
        size = len(command.encode("utf-8", "replace"))
        return f"The command is too long to be run ({size:,} bytes): write it to a file with Write and run that."
    if not cwd.is_dir():
        return f"The working folder {format_path(cwd)} does not exist any more, so commands cannot run in it."
    return f"The command could not be started: {(error.strerror or str(error)).lower()}."
