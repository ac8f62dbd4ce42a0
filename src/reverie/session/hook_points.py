"""The moments of a turn when the user's hooks run, and what their answers mean.

Every notice of a hook is shown. Text that a hook adds for the model becomes blocks with the origin HOOK.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from reverie.events import Event, Notice
from reverie.layers.base import Companion, EffectResult, RunHook
from reverie.origins import fence
from reverie.runtime.hooks import HookEvent, HookOutcome, Hooks
from reverie.tools.base import ToolOutput
from reverie.types import Block, JsonObject, Origin, ToolUseBlock

MAX_STOP_REFUSALS = 5
AskStop: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Given the answer, returns why the agent may not end yet; None if it may."""


class ToolHooks(Companion):
    """The tool hooks, for an agent of the session."""

    def __init__(self, points: HookPoints) -> None:
        self.after_result = points.after_result


class HookPoints(Companion):
    """The hook points of one session."""

    def __init__(self, hooks: Hooks, emit: Callable[[Event], None]) -> None:
        self._hooks = hooks
        self._emit = emit
        self._for_next_message: list[Block] = []
        self._stop_refusals = 0

    async def session_started(self, source: str) -> None:
        """Runs the hooks of a start (`startup`, `resume`, `clear`, `compact`); their text joins the next message."""
        outcome = await self._fire(HookEvent.SESSION_START, {"source": source}, match_on=source)
        self._for_next_message += _blocks(outcome.context)

    async def check_prompt(self, text: str) -> tuple[str | None, list[Block]]:
        """Asks the hooks about a message of the user. Returns why it is refused, or None and the added blocks."""
        outcome = await self._fire(HookEvent.USER_PROMPT_SUBMIT, {"prompt": text})
        if outcome.blocked or outcome.stop:
            return outcome.reason or outcome.stop_reason or "a UserPromptSubmit hook refused this message", []
        added, self._for_next_message = self._for_next_message, []
        self._stop_refusals = 0
        return None, added + _blocks(outcome.context)

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """Runs the hooks after a tool that ran. Returns what the model sees next to its result."""
        if not output.ran or not self._hooks.listens_to(HookEvent.POST_TOOL_USE):
            return ()
        response = output.content if isinstance(output.content, str) else [b.wire() for b in output.content]
        payload: JsonObject = {"tool_name": call.name, "tool_input": call.input, "tool_response": response}
        outcome = await self._fire(HookEvent.POST_TOOL_USE, payload, match_on=call.name)
        return _blocks((outcome.reason, *outcome.context) if outcome.blocked else outcome.context)

    async def may_stop(self, answer: str) -> str | None:
        """Asks the hooks when the model is done; a reason means that it goes on. Too many refusals are ignored."""
        reason = await self._refuses(HookEvent.STOP, self._stop_refusals, {"last_assistant_message": answer})
        self._stop_refusals += reason is not None
        return reason

    def agent_stop(self, id: str, name: str) -> AskStop:
        """Returns the same check for an agent that this session started."""
        refusals = 0

        async def may_stop(answer: str) -> str | None:
            nonlocal refusals
            payload: JsonObject = {"agent_id": id, "agent_name": name, "last_assistant_message": answer}
            reason = await self._refuses(HookEvent.SUBAGENT_STOP, refusals, payload)
            refusals += reason is not None
            return reason

        return may_stop

    async def _refuses(self, event: HookEvent, refusals: int, payload: JsonObject) -> str | None:
        if not self._hooks.listens_to(event):
            return None
        outcome = await self._fire(event, {"stop_hook_active": refusals > 0, **payload})
        if not outcome.blocked or outcome.stop:
            return None
        if refusals >= MAX_STOP_REFUSALS:
            text = f"a {event.value} hook refused {MAX_STOP_REFUSALS} times in a row; the turn ends"
            self._emit(Notice(text, "warning"))
            return None
        return outcome.reason or f"a {event.value} hook wants you to go on"

    async def run(self, effect: RunHook) -> EffectResult:
        """Runs a hook for a layer."""
        outcome = await self._fire(HookEvent(effect.event), effect.payload, match_on=effect.match_on)
        return EffectResult(ok=not outcome.blocked, text=outcome.reason or "\n".join(outcome.context))

    async def session_ended(self, reason: str) -> None:
        await self._fire(HookEvent.SESSION_END, {"reason": reason})

    async def _fire(self, event: HookEvent, payload: JsonObject, *, match_on: str | None = None) -> HookOutcome:
        outcome = await self._hooks.fire(event, payload, match_on=match_on)
        for notice in outcome.notices:
            self._emit(notice)
        return outcome


def _blocks(texts: Sequence[str]) -> list[Block]:
    return [fence(Origin.HOOK, text) for text in texts if text.strip()]
