"""The gate every tool call passes, the main agent's and its children's: the user's hooks, the rules, then the person.

Remembers what the person chose to always allow in this session. It never runs anything, and a question that nobody can
answer is a refusal with a reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count

from reverie.events import Event, PermissionAsked
from reverie.permissions.patterns import make_rule
from reverie.permissions.policy import Policy, PolicyMode, Rules, make_policy
from reverie.permissions.rules import Allow, Ask, Decision, Deny, ToolCall
from reverie.runtime.hooks import HookEvent, HookOutcome, Hooks
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class OnBehalf:
    """Whose call it is, where it is not the main agent's: who the person is told, how long a question may wait, and
    what it may write without one."""

    name: str = ""
    wait_s: float | None = None
    is_free: Callable[[ToolCall], bool] = lambda _call: False


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is open: `answer` settles it by its id."""

    id: str
    call: ToolCall
    reason: str


_MAIN = OnBehalf()


class Gate:
    """Decides calls. `answer` settles a question that was asked with `PermissionAsked`."""

    def __init__(
        self,
        hooks: Hooks,
        mode: PolicyMode,
        rules: Rules,
        *,
        can_ask: bool,
        emit: Callable[[Event], None],
        writes_memory: Callable[[ToolCall], bool] = lambda _call: False,
        is_read_only: Callable[[str, JsonObject], bool] = lambda _tool, _input: False,
    ) -> None:
        self._hooks = hooks
        self.mode = mode
        """May be changed while it is in use: a teammate whose plan was approved may do more than read."""
        self._rules = rules
        self._can_ask = can_ask
        self._emit = emit
        self._writes_memory = writes_memory
        self._is_read_only = is_read_only
        self._always = frozenset[str]()
        self._waiting: dict[str, tuple[Question, asyncio.Future[Decision]]] = {}
        self._numbers = count(1)

    async def __call__(self, call: ToolCall) -> Decision:
        """Allow, possibly with another input, or deny with a reason; never a question."""
        return await self.judge(call)

    async def judge(self, call: ToolCall, whose: OnBehalf = _MAIN) -> Decision:
        """The same for a call that somebody else makes."""
        outcome = await self._before(call)
        if outcome.blocked:
            return Deny(outcome.reason or "a PreToolUse hook refused this call")
        judged = call if outcome.updated_input is None else self._changed(call, outcome.updated_input)
        decision = self._policy(judged, whose)(judged)
        if isinstance(decision, Ask) and outcome.permission == "allow":
            decision = Allow()
        elif isinstance(decision, Allow) and outcome.permission == "ask":
            decision = Ask(outcome.reason or "a hook wants this to be asked")
        if isinstance(decision, Ask):
            decision = await self._ask(judged, decision.reason, whose)
        if isinstance(decision, Allow) and outcome.updated_input is not None:
            return Allow(outcome.updated_input)
        return decision

    def _changed(self, call: ToolCall, given: JsonObject) -> ToolCall:
        """The call with a hook's input: what only read before may write now."""
        return replace(call, input=given, read_only=self._is_read_only(call.tool, given))

    def _policy(self, call: ToolCall, whose: OnBehalf) -> Policy:
        """A memory can be undone and passes a gate of its own: nobody is asked about it, but rules still hold."""
        rules = self._rules.allowing(self._always)
        is_free = self.mode is not PolicyMode.READ_ONLY and (self._writes_memory(call) or whose.is_free(call))
        return make_policy(PolicyMode.ACCEPT_ALL if is_free else self.mode, rules, can_ask=self._can_ask)

    async def _before(self, call: ToolCall) -> HookOutcome:
        payload: JsonObject = {"tool_name": call.tool, "tool_input": call.input, "tool_use_id": call.id}
        outcome = await self._hooks.fire(HookEvent.PRE_TOOL_USE, payload, match_on=call.tool)
        for notice in outcome.notices:
            self._emit(notice)
        if outcome.permission == "deny" or outcome.stop:
            reason = outcome.reason or outcome.stop_reason or "a PreToolUse hook refused this call"
            return replace(outcome, blocked=True, reason=reason)
        return outcome

    async def _ask(self, call: ToolCall, reason: str, whose: OnBehalf) -> Decision:
        if not self._can_ask:
            return Deny(reason)
        name = f"ask-{next(self._numbers)}"
        answer = asyncio.get_running_loop().create_future()
        told = f"{whose.name}: {reason}" if whose.name else reason
        self._waiting[name] = (Question(name, call, told), answer)
        self._emit(PermissionAsked(name, call.tool, call.input, told, str(call.cwd)))
        try:
            async with asyncio.timeout(whose.wait_s):
                return await answer
        except TimeoutError:
            return Deny(f"{reason} Nobody answered within {whose.wait_s:g} s, so the call is denied.")
        finally:
            del self._waiting[name]

    def questions(self) -> list[Question]:
        """The questions that are open, oldest first."""
        return [question for question, _ in self._waiting.values()]

    def answer(self, name: str, *, allow: bool, always: bool = False, reason: str = "") -> bool:
        """Settles a question; False if it is not (or no longer) open. `always` allows calls like it from now on."""
        question, future = self._waiting.get(name, (None, None))
        if question is None or future is None or future.done():
            return False
        if allow and always:
            rule = make_rule(question.call)
            self._always |= {rule} if rule is not None else frozenset()
        future.set_result(Allow() if allow else Deny(reason or "the user refused this call"))
        return True
