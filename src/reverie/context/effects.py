"""Carries out what the layers decide: writes files, runs hooks, asks forks. A failed effect is a normal result."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from reverie.errors import ReverieError
from reverie.flags import Flags
from reverie.layers.base import AskFork, Effect, EffectResult, ReadFile, RunHook, WaitFor, WriteFile
from reverie.layers.l1_tool_results.replacement import ResultLimits, file_name, judge, render_replacement
from reverie.models.wire import as_object
from reverie.regular_files import LARGEST, read_head, read_regular
from reverie.settings import Settings
from reverie.settings.sections import ToolResultSettings
from reverie.storage.atomic import create_exclusive, make_private_dir, storage_error
from reverie.tools.base import ToolOutput
from reverie.types import Purpose, ToolUseBlock

_LARGE = 1_000_000
"""Bytes from which a write runs in a thread."""
TAKEN = "another result is kept under this name"


def _create(effect: WriteFile) -> bool:
    """Returns whether the file holds this data now; False if it was there with other data."""
    make_private_dir(effect.path.parent)
    if create_exclusive(effect.path, effect.data):
        return True
    try:
        return effect.path.stat().st_size == len(effect.data) and read_regular(effect.path, LARGEST) == effect.data
    except OSError as error:
        raise storage_error(error, effect.path, "read") from error


def _read(effect: ReadFile) -> EffectResult:
    try:
        raw = read_head(effect.path, effect.max_bytes + 1)
    except OSError as error:
        return EffectResult(ok=False, text=str(storage_error(error, effect.path, "read")))
    if b"\0" in raw:
        return EffectResult(ok=False, text=f"{effect.path} is not text")
    return EffectResult(ok=True, text=raw[: effect.max_bytes].decode("utf-8", "replace"))


class ResultKeeper:
    """Layer 1 for single results: keeps what is too large in one folder."""

    def __init__(
        self,
        settings: ToolResultSettings,
        flags: Flags,
        window: int,
        folder: Path,
        failed: Callable[[str], None] = lambda _why: None,
    ) -> None:
        self._settings = settings
        self._flags = flags
        self._window = window
        self._folder = folder
        self._failed = failed

    def limits(self, tool: str = "") -> ResultLimits:
        """Returns the limits of layer 1 as settings, flags and window define them now. `tool`: whose result it is."""
        given, number = self._settings, self._flags.number
        default = number("tool_results.default_limit", given.default_limit)
        listed = {**given.limits, tool: given.limits.get(tool, default)} if tool else given.limits
        limits = ResultLimits(
            default=default,
            by_tool={name: number(f"tool_results.limits.{name}", limit) for name, limit in listed.items()},
            message=number("tool_results.message_characters", given.message_characters),
            preview=number("tool_results.preview_bytes", given.preview_bytes),
        )
        return limits.for_window(self._window)

    async def keep(self, call: ToolUseBlock, output: ToolOutput) -> ToolOutput:
        """Runs layer 1 on one result and returns what is recorded."""
        if not self._flags.on("tool_results"):
            return output
        limits = self.limits(call.name)
        if output.kept_in is not None:
            return self._preview(call, output, output.kept_in, limits.preview)
        judged = judge(call.name, call.id, output.content, limits, self._folder)
        if judged.write is None:
            return output if judged.shown is output.content else replace(output, content=judged.shown)
        done = await self._write(judged.write)
        if done.text == TAKEN:  # two calls with one id: another agent, or a server that counts from one
            own = f"{call.id}-{hashlib.sha256(judged.write.data).hexdigest()[:12]}"
            judged = judge(call.name, own, output.content, limits, self._folder)
            done = await self._write(judged.write) if judged.write is not None else done
        if not done.ok or judged.write is None:
            self._failed(f"a large result could not be put on disk: {done.text}")
            return replace(output, content=judged.otherwise, structured=None)
        return replace(output, content=judged.shown, structured=None, kept_bytes=len(judged.write.data))

    def _preview(self, call: ToolUseBlock, output: ToolOutput, path: Path, preview_bytes: int) -> ToolOutput:
        """Shows what a tool put on disk itself like any other result on disk, with the file under the usual name."""
        usual = self._folder / file_name(call.id, structured=False)
        with suppress(OSError):  # then it keeps the name that the tool chose
            if not usual.exists():
                path = path.rename(usual)
        text = output.content if isinstance(output.content, str) else ""
        shown = render_replacement(text, path, preview_bytes, size=output.kept_bytes)
        structured = {**as_object(output.structured), "persistedOutputPath": str(path)}
        return replace(output, content=shown, structured=structured, kept_in=None)

    async def _write(self, effect: WriteFile) -> EffectResult:
        try:
            if len(effect.data) > _LARGE:
                free = await asyncio.to_thread(_create, effect)
            else:
                free = _create(effect)
        except ReverieError as error:
            return EffectResult(ok=False, text=str(error))
        return EffectResult(ok=free, text="" if free else TAKEN)


class Effects(ResultKeeper):
    """The effects of one session."""

    def __init__(
        self,
        settings: Settings,
        flags: Flags,
        window: int,
        folder: Path,
        *,
        ask_fork: Callable[[AskFork], Awaitable[EffectResult]],
        run_hook: Callable[[RunHook], Awaitable[EffectResult]],
        wait_for: Callable[[Purpose, float, float | None], Awaitable[bool]],
        failed: Callable[[str], None] = lambda _why: None,
    ) -> None:
        super().__init__(settings.tool_results, flags, window, folder, failed)
        self._ask_fork = ask_fork
        self._run_hook = run_hook
        self._wait_for = wait_for

    async def carry_out(self, effect: Effect) -> EffectResult:
        match effect:
            case WriteFile():
                return await self._write(effect)
            case RunHook():
                return await self._run_hook(effect)
            case AskFork():
                return await self._ask_fork(effect)
            case ReadFile():
                return await asyncio.to_thread(_read, effect)
            case WaitFor():
                return EffectResult(ok=await self._wait_for(effect.purpose, effect.timeout_s, effect.ignore_after_s))
            case _:
                assert_never(effect)
