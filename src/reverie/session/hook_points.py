"""The moments of a turn at which the user's hooks are asked, and what their answers mean for it.

Every notice of a hook is told. What a hook adds for the model comes back as blocks with the origin HOOK.
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
"""Given the answer, why the agent may not end yet; None if it may."""


class ToolHooks(Companion):
    """The hooks that hear of tools, for an agent of the session."""

    def __init__(self, points: HookPoints) -> None:
        self.after_result = points.after_result


class HookPoints(Companion):
    """One a session."""

    def __init__(self, hooks: Hooks, emit: Callable[[Event], None]) -> None:
        self._hooks = hooks
        self._emit = emit
        self._for_next_message: list[Block] = []
        self._stop_refusals = 0

    async def session_started(self, source: str) -> None:
        """A session began (`startup`, `resume`, `clear`, `compact`); what the hooks say goes with the next message."""
        outcome = await self._fire(HookEvent.SESSION_START, {"source": source}, match_on=source)
        self._for_next_message += _blocks(outcome.context)

    async def check_prompt(self, text: str) -> tuple[str | None, list[Block]]:
        """A person sent a message: why it is refused, or None and what is added to it."""
        outcome = await self._fire(HookEvent.USER_PROMPT_SUBMIT, {"prompt": text})
        if outcome.blocked or outcome.stop:
            return outcome.reason or outcome.stop_reason or "a UserPromptSubmit hook refused this message", []
        added, self._for_next_message = self._for_next_message, []
        self._stop_refusals = 0
        return None, added + _blocks(outcome.context)

    async def after_result(self, call: ToolUseBlock, output: ToolOutput) -> Sequence[Block]:
        """A call is over: what the model is told beside its result. Hooks hear only of tools that ran."""
        if not output.ran or not self._hooks.listens_to(HookEvent.POST_TOOL_USE):
            return ()
        response = output.content if isinstance(output.content, str) else [b.wire() for b in output.content]
        payload: JsonObject = {"tool_name": call.name, "tool_input": call.input, "tool_response": response}
        outcome = await self._fire(HookEvent.POST_TOOL_USE, payload, match_on=call.name)
        return _blocks((outcome.reason, *outcome.context) if outcome.blocked else outcome.context)

    async def may_stop(self, answer: str) -> str | None:
        """The model is done: a reason means that it must go on. A hook that never lets go is overruled."""
        reason = await self._refuses(HookEvent.STOP, self._stop_refusals, {"last_assistant_message": answer})
        self._stop_refusals += reason is not None
        return reason

    def agent_stop(self, id: str, name: str) -> AskStop:
        """The same question for one agent that this session started, whatever its kind: asked before it ends."""
        refusals = 0

        async def may_stop(answer: str) -> str | None:
            nonlocal refusals
            told: JsonObject = {"agent_id": id, "agent_name": name, "last_assistant_message": answer}
            reason = await self._refuses(HookEvent.SUBAGENT_STOP, refusals, told)
            refusals += reason is not None
            return reason

        return may_stop

    async def _refuses(self, event: HookEvent, refusals: int, told: JsonObject) -> str | None:
        """Why the hooks do not let an agent end; after so many refusals in a row nobody listens to them."""
        if not self._hooks.listens_to(event):
            return None
        outcome = await self._fire(event, {"stop_hook_active": refusals > 0, **told})
        if not outcome.blocked or outcome.stop:
            return None
        if refusals >= MAX_STOP_REFUSALS:
            text = f"a {event.value} hook refused {MAX_STOP_REFUSALS} times in a row; the turn ends"
            self._emit(Notice(text, "warning"))
            return None
        return outcome.reason or f"a {event.value} hook wants you to go on"

    async def run(self, effect: RunHook) -> EffectResult:
        """A hook that a layer wants to run."""
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
