"""Bash: runs one command, in the sandbox or in its own process session, with a time limit and without input.

If a call ends early (time, cancellation, too much output), all processes of the command are ended. It never waits for a
process that only holds the output open, and never keeps a large output in memory.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from reverie.errors import UserError
from reverie.paths.programs import make_bare_environment, system_program, users_program
from reverie.permissions.rules import Profile, Widening
from reverie.permissions.strict_shell import anchor_globs, is_read_only_shell, why_not_read_only
from reverie.quick import dataclass
from reverie.runtime.agent_above import mark_environment, mark_words
from reverie.runtime.bounded import bounded, explain_limit
from reverie.runtime.process_family import ProcessFamily
from reverie.tools.base import BuiltIn, ToolContext, ToolOutput
from reverie.tools.files import format_path
from reverie.tools.kept_output import MAX_KEPT_BYTES, KeptOutput
from reverie.types import JsonObject

if TYPE_CHECKING:
    from reverie.permissions.sandbox.client import SandboxedCommand
    from reverie.permissions.sandbox.order import Attempt, SandboxReport
    from reverie.permissions.sandbox.profiles import Sandbox

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
        if context.profile is None:
            return await self._run_outside(command, {**os.environ, "TERM": "dumb"}, seconds, context)
        if (await asyncio.to_thread(lambda: context.sandboxes.layers)).can_read:
            return await self._run_inside(command, context.profile, seconds, context)
        if refusal := why_not_read_only(command):
            raise UserError(refusal)
        # A file with the name of an option must not become one.
        strict = anchor_globs(command)
        return await self._run_outside(strict, make_bare_environment(), seconds, context, unasked=True)

    async def _run_outside(
        self, text: str, env: dict[str, str], seconds: float, context: ToolContext, *, unasked: bool = False
    ) -> ToolOutput:
        words = [str(_find_shell(context.cwd)), "--noprofile", "--norc", "-c", text]
        if unasked:
            words = bounded(words)
        if not self.is_users:
            words, env = mark_words(words), mark_environment(env)
        running = await _RunningCommand.start(lambda output: _start_process(words, env, context, output))
        kept, ending = await self._collect(running, seconds, context)
        code = await running.process.wait() if running.process.has_ended else None
        output = _make_output(kept, code, ending, seconds)
        note = explain_limit(code, kept.text()) if unasked else ""
        return replace(output, content=f"{output.content}\n[{note}]") if note else output

    async def _run_inside(self, command: str, profile: Profile, seconds: float, context: ToolContext) -> ToolOutput:
        from reverie.permissions.sandbox.client import SandboxFailed
        from reverie.permissions.sandbox.names import TooManyNames

        sandbox = context.sandboxes.at(context.cwd)
        try:
            shown = (context.keep_dir, *context.shown)
            view = await asyncio.to_thread(sandbox.make_view, profile, shown)
            if sandbox.layers.namespaces:
                view = replace(view, replaced=tuple((str(real), str(place)) for real, place in context.replaced))
            else:  # it cannot show one folder in place of another
                view = replace(view, hidden=(*view.hidden, *(str(place) for _, place in context.replaced)))
            before = sandbox.obeyed_files() if profile.writes_project else {}
            started = list[_SandboxedProcess]()

            async def start(output: int) -> _SandboxedProcess:
                cwd = context.map_path(context.cwd)
                started.append(_SandboxedProcess(await sandbox.start(command, cwd, view, output)))
                return started[0]

            running = await _RunningCommand.start(start)
        except (SandboxFailed, TooManyNames, OSError, ValueError) as error:
            if isinstance(error, UnicodeError | ValueError):
                raise UserError(_explain_start_error(error, command, context.cwd)) from error
            return _not_started(str(error))
        kept, ending = await self._collect(running, seconds, context)
        report = await started[0].report()
        if report.status is None:
            kept.discard()
            return _not_started(report.error)
        output = _make_output(kept, report.status, ending, seconds)
        after = await asyncio.to_thread(sandbox.obeyed_files) if profile.writes_project else {}
        return await asyncio.to_thread(_add_report, output, report, sandbox, profile, _changed(before, after))

    async def _collect(
        self, running: _RunningCommand, seconds: float, context: ToolContext
    ) -> tuple[KeptOutput, _Ending]:
        kept = KeptOutput(context.keep_dir, self.inline_bytes, context.progress)
        try:
            ending = await running.wait(kept, seconds)
        except BaseException:  # cancelled: no process is left, and no result names the file
            kept.discard()
            raise
        kept.close()
        return kept, ending


def _not_started(reason: str) -> ToolOutput:
    text = f"The command did not run, because the sandbox could not be started: {reason}"
    return ToolOutput(text, is_error=True, widening=Widening((reason,), Profile.FREE, started=False))


def _changed(before: dict[str, tuple[int, int, int]], after: dict[str, tuple[int, int, int]]) -> list[str]:
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _add_report(
    output: ToolOutput, report: SandboxReport, sandbox: Sandbox, profile: Profile, obeyed: Sequence[str]
) -> ToolOutput:
    """Adds what the sandbox refused and what a program will obey, so that nobody takes silence for success."""
    serious = sandbox.serious(report)
    tried = _describe(serious, sandbox.project)
    notes = list[str]()
    if tried:
        head = "project sandbox" if profile.writes_project else "read-only sandbox: nothing was changed"
        notes.append(f"[{head}; it tried to {' and to '.join(tried)}]")
    if obeyed:
        names = ", ".join(os.path.relpath(path, sandbox.project) for path in obeyed)
        notes.append(f"[made or changed, and obeyed later by programs or agents: {names}]")
    structured = {**cast("JsonObject", output.structured), "sandbox": profile.value}
    if tried:
        structured["tried"] = list(tried)
    wider = sandbox.profile_for(serious) if serious else None
    if wider is profile or (wider is Profile.WORKSPACE and profile is Profile.REPOSITORY):
        wider = Profile.FREE
    content = str(output.content)
    if notes:  # at the beginning if the end may be left out
        content = "\n".join((*notes, content) if output.kept_in else (content, *notes))
    widening = Widening(tried, wider) if wider is not None else None
    return replace(output, content=content, structured=structured, widening=widening, how="sandbox")


_SHOWN = 6


def _describe(attempts: Iterable[Attempt], project: Path) -> tuple[str, ...]:
    verbs = {"write": "write", "network": "connect to", "service": "use the service", "socket": "use"}
    named = list[str]()
    for attempt in attempts:
        target = attempt.target
        if attempt.kind == "write" and target.startswith(f"{project}/"):
            target = os.path.relpath(target, project)
        named.append(f"{verbs.get(attempt.kind, attempt.kind)} {target}")
    named = list(dict.fromkeys(named))
    more = len(named) - _SHOWN
    return (*named[:_SHOWN], f"do {more} more such things") if more > 0 else tuple(named)


class _Process(Protocol):
    """A command that runs, in the sandbox or outside."""

    @property
    def has_ended(self) -> bool: ...

    async def wait(self) -> int | None:
        """Waits for its end and returns its exit code."""
        ...

    async def end(self) -> None:
        """Ends it with all that it started."""
        ...

    def leaves_living(self) -> bool:
        """Whether something that it started still runs."""
        ...


@dataclass(frozen=True, slots=True)
class _FreeProcess:
    process: asyncio.subprocess.Process
    family: ProcessFamily

    @property
    def has_ended(self) -> bool:
        return self.process.returncode is not None

    async def wait(self) -> int | None:
        return await self.process.wait()

    async def end(self) -> None:
        await self.family.end()

    def leaves_living(self) -> bool:
        return bool(self.family.living())


class _SandboxedProcess:
    """A command in the sandbox: nothing of it is left when it ends."""

    def __init__(self, command: SandboxedCommand) -> None:
        self._command = command
        self._ended = False

    @property
    def has_ended(self) -> bool:
        return self._ended

    async def report(self) -> SandboxReport:
        report = await self._command.wait()
        self._ended = True
        return report

    async def wait(self) -> int | None:
        return (await self.report()).status

    async def end(self) -> None:
        if not self._ended:
            await self._command.end()

    def leaves_living(self) -> bool:
        return False


async def _start_process(
    words: Sequence[str | Path], env: dict[str, str], context: ToolContext, output: int
) -> _FreeProcess:
    """Starts a command outside of the sandbox; raises UserError if that fails."""
    identity = os.fstat(output)
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            cwd=context.map_path(context.cwd),
            env=env,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise UserError(_explain_start_error(error, str(words[-1]), context.cwd)) from error
    return _FreeProcess(process, ProcessFamily(process.pid, (identity.st_dev, identity.st_ino)))


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

    process: _Process
    output: asyncio.StreamReader
    pipe: asyncio.ReadTransport
    cancelled: asyncio.CancelledError | None
    """Came while it was started; `wait` raises it."""

    @staticmethod
    async def start(begin: Callable[[int], Awaitable[_Process]]) -> _RunningCommand:
        """Makes the pipe, and starts the command with its other end as output."""
        reading, writing = os.pipe()
        _widen_pipe(reading)
        output = asyncio.StreamReader(limit=_CHUNK_BYTES)
        pipe: asyncio.ReadTransport | None = None
        try:
            # We make the pipe: with asyncio's own, `wait` waits for every process that holds the other end.
            pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
                lambda: asyncio.StreamReaderProtocol(output), os.fdopen(reading, "rb", buffering=0)
            )
            starting = asyncio.ensure_future(begin(writing))
            cancelled: asyncio.CancelledError | None = None
            while not starting.done():  # a cancellation waits: asyncio would end the shell without its children
                try:
                    await asyncio.wait({starting})
                except asyncio.CancelledError as error:
                    cancelled = error
            return _RunningCommand(starting.result(), output, pipe, cancelled)
        except BaseException:
            if pipe:
                pipe.close()
            raise
        finally:
            os.close(writing)

    async def wait(self, kept: KeptOutput, seconds: float) -> _Ending:
        """Waits for the end and collects the output; no process holds the pipe afterwards."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        exited = asyncio.ensure_future(self.process.wait())
        drained = asyncio.ensure_future(self._drain(kept))
        ending: _Ending | None = None
        try:
            if self.cancelled:
                raise self.cancelled
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
                    await self.process.end()
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
        return _Ending.BACKGROUND if self.process.leaves_living() else _Ending.DETACHED

    async def _drain(self, kept: KeptOutput) -> bool:
        """Reads the whole output; False if there was more than can be kept."""
        while chunk := await self.output.read(_CHUNK_BYTES):
            if not kept.add(chunk):
                return False
        return True


def _make_output(kept: KeptOutput, code: int | None, ending: _Ending, seconds: float) -> ToolOutput:
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
