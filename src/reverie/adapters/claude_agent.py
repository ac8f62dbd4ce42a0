"""The Claude Agent SDK: `ClaudeAgentOptions(hooks=hooks(memory))`: large results to disk, recall, and extraction.

Claude Code builds its own requests. So hooks cannot clear old results, compact or set cache markers. Errors of ours are
logged, and the agent goes on without the hook.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

from reverie.errors import MissingExtra, ReverieError
from reverie.library.engine import Engine
from reverie.library.memory import Memory
from reverie.library.tool_output import ON_DISK, with_texts
from reverie.paths.installed import pip_install
from reverie.plugins import guarded
from reverie.types import JsonObject

__all__ = ["Hooks", "hooks"]

_log = logging.getLogger("reverie.adapters")
_NOTHING: Final[JsonObject] = {}


def hooks(
    memory: Memory | None = None,
    *,
    model: str = "anthropic:claude-sonnet-5-5",
    home: Path | str | None = None,
    settings: Mapping[str, object] | None = None,
    k: int = 5,
    characters: int = 6_000,
) -> Hooks:
    """Returns the hooks for `ClaudeAgentOptions(hooks=…)`. Call `close` when the program ends.

    Large results of tools go to disk below `home`, and the agent sees their beginning and the path. With `memory`, at
    most `k` memories that fit are added to each prompt, each once per session and at most so many `characters` per
    prompt; and lessons are written to memory in the background when the agent stops.
    """
    return Hooks(memory, lambda id: Engine.open(id, model=model, home=home, settings=settings), k, characters)


class Hooks(dict[Any, Any]):
    """The hooks by their event, as the SDK wants them. Make them with `hooks`."""

    def __init__(self, memory: Memory | None, open_engine: Callable[[str], Engine], k: int, characters: int) -> None:
        try:
            sdk: Any = import_module("claude_agent_sdk")
        except ImportError as error:
            raise MissingExtra(
                f"This needs the Claude Agent SDK; install it with: {pip_install('claude-agent')}"
            ) from error
        self._memory = memory
        self._open_engine = open_engine
        self._k, self._characters = k, characters
        self._engines = dict[str, Engine]()
        self._shown = dict[str, set[str]]()
        self._said = dict[str, list[JsonObject]]()
        self._learning = set[asyncio.Task[None]]()
        self._alone = asyncio.Lock()
        events = {"PostToolUse": self._keep}
        if memory is not None:
            events |= {"UserPromptSubmit": self._recall, "Stop": self._learn}
        super().__init__({event: [sdk.HookMatcher(hooks=[_safe(hook)])] for event, hook in events.items()})

    async def close(self) -> None:
        """Waits until all lessons are written."""
        if self._learning:
            await asyncio.wait(self._learning)
        for engine in self._engines.values():
            await engine.close()
        self._engines.clear()

    # -- layer 1 ---------------------------------------------------------------------------------------------------

    async def _keep(self, given: JsonObject) -> JsonObject:
        name, call = str(given.get("tool_name")), str(given.get("tool_use_id"))
        if name in ON_DISK:
            return _NOTHING
        session = str(given.get("session_id"))
        calls = (call if number == 0 else f"{call}-{number}" for number in count())

        async def keep(text: str) -> str:
            if session not in self._engines:
                self._engines[session] = self._open_engine(session)
            return (await self._engines[session].keep(next(calls), name, text)).content

        output: Any = given.get("tool_response")
        made = await with_texts(output, keep)
        return _output("PostToolUse", updatedToolOutput=made) if made != output else _NOTHING

    # -- memory ----------------------------------------------------------------------------------------------------

    async def _recall(self, given: JsonObject) -> JsonObject:
        memory, session, prompt = self._memory, str(given.get("session_id")), str(given.get("prompt") or "")
        self._said.setdefault(session, []).append({"role": "user", "content": prompt})
        shown = self._shown.setdefault(session, set())
        assert memory is not None
        text, names = await memory.reminder_within(self._characters, prompt, self._k, without=shown)
        shown |= set(names)
        return _output("UserPromptSubmit", additionalContext=text) if text else _NOTHING

    async def _learn(self, given: JsonObject) -> JsonObject:
        said = self._said.setdefault(str(given.get("session_id")), [])
        answer = str(given.get("last_assistant_message") or "")
        if answer:
            said.append({"role": "assistant", "content": answer})
        task = asyncio.create_task(self._extract(list(said)))
        self._learning.add(task)
        task.add_done_callback(self._learning.discard)
        return _NOTHING

    async def _extract(self, messages: list[JsonObject]) -> None:
        try:
            with guarded("the extraction of Reverie"):
                async with self._alone:
                    assert self._memory is not None
                    await self._memory.extract(messages)
        except ReverieError as error:
            _log.warning("Nothing was learned from this turn: %s", error)


def _output(event: str, **fields: Any) -> JsonObject:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


def _safe(
    hook: Callable[[JsonObject], Awaitable[JsonObject]],
) -> Callable[[Any, str | None, Any], Awaitable[JsonObject]]:
    """The hook as the SDK calls it. It never fails."""

    async def run(given: Any, tool_use_id: str | None, context: Any) -> JsonObject:
        try:
            with guarded("a hook of Reverie"):
                return await hook(dict(given))
        except ReverieError as error:
            _log.warning("%s", error)
            return _NOTHING

    return run
