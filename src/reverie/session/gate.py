"""The gate for every tool call of the main agent and its children: the user's hooks, the rules, then the user.

It remembers what the user always allows in this session. A question that nobody can answer becomes a refusal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import field, replace
from itertools import count
from pathlib import Path
from typing import Protocol

from reverie.errors import ReverieError
from reverie.events import Event, Notice, PermissionAsked
from reverie.permissions.answers import AnswerKind, PermissionAnswer
from reverie.permissions.offers import Offer, make_offer
from reverie.permissions.patterns import find_covering_rule
from reverie.permissions.policy import Policy, PolicyMode, Rules, make_policy, refuse_headless
from reverie.permissions.rules import Allow, Ask, Decision, Deny, Profile, ToolCall, Widening
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.quick import dataclass
from reverie.runtime.hooks import HookEvent, HookOutcome, Hooks
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class Requester:
    """Who makes the call, if not the main agent: its name, how long a question may wait, and which calls are free."""

    name: str = ""
    kind: str = ""
    wait_s: float | None = None
    is_free: Callable[[ToolCall], bool] = lambda _call: False


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """An open question; `answer` settles it by its id."""

    id: str
    call: ToolCall
    reason: str
    offer: Offer = Offer()


class RuleStore(Protocol):
    """Where rules are kept that the user chose to always allow."""

    @property
    def path(self) -> Path: ...

    def save(self, rules: tuple[str, ...]) -> None:
        """Raises a ReverieError if that is not possible."""
        ...


_MAIN = Requester()


async def _cannot_undo(_cwd: Path) -> str | None:
    return "nothing keeps the files here."


def _changes_project(decision: Decision) -> bool:
    return isinstance(decision, Allow) and decision.profile is not None and decision.profile.writes_project


def _chosen(call: ToolCall, answer: PermissionAnswer) -> Profile | None:
    """The profile that an answer allows; None: everything that the user may."""
    if call.widening is None or answer.kind is not AnswerKind.ONCE:
        return None
    choices = call.widening.choices
    profile = answer.profile if answer.profile in choices else choices[0]
    return None if profile is Profile.FREE else profile


@dataclass(slots=True, eq=False)
class PermissionGate:
    """Decides calls. `answer` settles a question that `PermissionAsked` announced."""

    hooks: Hooks
    mode: PolicyMode  # may change during the session: a teammate may do more once its plan is approved
    rules: Rules
    can_ask: bool
    emit: Callable[[Event], None]
    writes_memory: Callable[[ToolCall], bool] = lambda _call: False
    is_read_only: Callable[[str, JsonObject], bool] = lambda _tool, _input: False
    for_turn: Rules = field(default_factory=Rules, init=False)
    """Rules of the command that the user runs; they end with the turn."""
    why_ask: Callable[[ToolCall], str | None] = lambda _call: None
    """Why a call that would be allowed is asked for nevertheless; None if it is not."""
    trusted: bool = False
    """Whether the user trusts the folder: then "always" can be chosen."""
    sandboxes: Sandboxes = field(default_factory=Sandboxes)
    """Where commands run that nobody is asked about."""
    before_change: Callable[[Path], Awaitable[str | None]] = _cannot_undo
    """Keeps the files of the project around a folder before a command may change them, for an undo; returns why it
    cannot."""
    store: RuleStore | None = None
    """Keeps rules beyond the session; None: they cannot be kept."""
    is_saved: bool = field(default=False, init=False)
    """Whether the rules of the last "always" are kept beyond the session."""
    _asked: set[str] = field(default_factory=set[str], init=False)
    """Such reasons that the user allowed."""
    _always: frozenset[str] = field(default_factory=frozenset[str], init=False)
    _waiting: dict[str, tuple[OpenQuestion, asyncio.Future[Decision]]] = field(
        default_factory=dict[str, tuple[OpenQuestion, asyncio.Future[Decision]]], init=False
    )
    _numbers: Iterator[int] = field(default_factory=lambda: count(1), init=False)

    async def __call__(self, call: ToolCall) -> Decision:
        """Returns Allow, perhaps with another input, or Deny with a reason; never a question."""
        return await self.judge(call)

    async def judge(self, call: ToolCall, whose: Requester = _MAIN) -> Decision:
        """Does the same for a call of another agent."""
        if call.widening is not None:
            return await self._widen(call, call.widening, whose)
        outcome = await self._before(call, whose)
        if outcome.blocked:
            return Deny(outcome.reason or "a PreToolUse hook refused this call")
        judged = call if outcome.updated_input is None else self._changed(call, outcome.updated_input)
        policy = self._policy(judged, whose)
        # A check of a command looks at files, and may ask git.
        decision = await asyncio.to_thread(policy, judged) if judged.tool == "Bash" else policy(judged)
        doubt = self._doubt(judged) if isinstance(decision, Allow) else None
        if doubt is not None:
            decision = Ask(doubt)
        may_widen = isinstance(decision, Allow) and decision.may_widen
        if outcome.permission == "allow" and (isinstance(decision, Ask) or (may_widen and doubt is None)):
            decision = Allow()
        elif isinstance(decision, Allow) and outcome.permission == "ask":
            decision = Ask(outcome.reason or "a hook wants this to be asked")
        if isinstance(decision, Ask) and (error := judged.must_fail(judged.input)) is not None:
            return Deny(error)  # a question would be in vain
        if isinstance(decision, Ask):
            decision = await self._ask(judged, decision.reason, whose)
            if doubt is not None and isinstance(decision, Allow):
                self._asked.add(doubt)
        if _changes_project(decision) and await self.before_change(judged.cwd) is not None:
            # It begins without the right to write, and the user is asked about what it tried.
            decision = Allow(profile=Profile.READ_ONLY, may_widen=True)
        if isinstance(decision, Allow) and outcome.updated_input is not None:
            return replace(decision, updated_input=outcome.updated_input)
        return decision

    def _doubt(self, call: ToolCall) -> str | None:
        """Returns why to ask for an allowed call, unless the user has allowed just this before."""
        if find_covering_rule(call, self.rules.allowing(self._always).always):
            return None
        reason = self.why_ask(call)
        return None if reason in self._asked else reason

    def _changed(self, call: ToolCall, given: JsonObject) -> ToolCall:
        """Returns the call with the input of a hook, which may write where the old one only read."""
        return replace(call, input=given, read_only=self.is_read_only(call.tool, given))

    def _policy(self, call: ToolCall, whose: Requester) -> Policy:
        """Returns the policy. A memory can be undone and has its own gate: nobody is asked, but rules still count."""
        rules = self.rules.allowing(self._always).joined(self.for_turn)
        is_free = self.mode is not PolicyMode.READ_ONLY and (self.writes_memory(call) or whose.is_free(call))
        mode = PolicyMode.ACCEPT_ALL if is_free else self.mode
        return make_policy(mode, rules, can_ask=self.can_ask, sandboxes=self.sandboxes)

    async def _widen(self, call: ToolCall, widening: Widening, whose: Requester) -> Decision:
        """Asks once whether a call that the sandbox got in the way of may run again."""
        if not self.can_ask:
            return refuse_headless(call, "It ran in the sandbox, which refused this.")
        rest = "; parts of it may have run" if widening.started else ""
        reason = f"In the sandbox it tried to {', to '.join(widening.tried)}{rest}. Run it again?"
        if not widening.started:
            reason = f"It did not run in the sandbox: {', '.join(widening.tried)}. Run it outside?"
        decision = await self._ask(call, reason, whose)
        if _changes_project(decision) and (why := await self.before_change(call.cwd)) is not None:
            self.emit(Notice(f"What this command changes cannot be undone: {why}", "warning"))
        return decision

    async def _before(self, call: ToolCall, whose: Requester) -> HookOutcome:
        payload: JsonObject = {"tool_name": call.tool, "tool_input": call.input, "tool_use_id": call.id}
        if call.agent_id is not None:
            payload |= {"agent_id": call.agent_id, "agent_type": whose.kind}
        outcome = await self.hooks.fire(HookEvent.PRE_TOOL_USE, payload, match_on=call.tool)
        for notice in outcome.notices:
            self.emit(notice)
        if outcome.permission == "deny" or outcome.stop:
            reason = outcome.reason or outcome.stop_reason or "a PreToolUse hook refused this call"
            return replace(outcome, blocked=True, reason=reason)
        return outcome

    async def _ask(self, call: ToolCall, reason: str, whose: Requester) -> Decision:
        if not self.can_ask:
            return Deny(reason)
        name = f"ask-{next(self._numbers)}"
        answer = asyncio.get_running_loop().create_future()
        text = f"{whose.name}: {reason}" if whose.name else reason
        offer = await asyncio.to_thread(make_offer, call)
        saves_to = str(self.store.path) if self.store is not None and self.trusted and offer.can_save else ""
        self._waiting[name] = (OpenQuestion(name, call, text, offer), answer)
        tried = call.widening.tried if call.widening is not None else ()
        choices = tuple(profile.value for profile in call.widening.choices) if call.widening is not None else ()
        where = str(call.cwd)
        self.emit(PermissionAsked(name, call.tool, call.input, text, where, offer.rules, saves_to, tried, choices))
        try:
            async with asyncio.timeout(whose.wait_s):
                return await answer
        except TimeoutError:
            return Deny(f"{reason} Nobody answered within {whose.wait_s:g} s, so the call is denied.")
        finally:
            del self._waiting[name]

    def questions(self) -> list[OpenQuestion]:
        """The open questions, oldest first."""
        return [question for question, _ in self._waiting.values()]

    def is_open(self, name: str) -> bool:
        """Whether somebody still waits for the answer to this question."""
        return name in self._waiting

    def close(self, reason: str) -> None:
        """Asks nothing any more: the user has left. Open questions are answered with no."""
        self.can_ask = False
        for question in self.questions():
            self.settle(question.id, PermissionAnswer.deny(reason))

    def answer(self, name: str, *, allow: bool, always: bool = False, reason: str = "") -> bool:
        """Settles a question with a plain yes or no; with `always`, its rules hold for this session."""
        yes = PermissionAnswer.session() if always else PermissionAnswer.once()
        return self.settle(name, yes if allow else PermissionAnswer.deny(reason))

    def settle(self, name: str, answer: PermissionAnswer) -> bool:
        """Settles a question; False if it is not open. A rule that cannot be saved holds for the session."""
        question, future = self._waiting.get(name, (None, None))
        if question is None or future is None or future.done():
            return False
        if answer.kind in (AnswerKind.SESSION, AnswerKind.ALWAYS):
            rules = tuple(rule for rule in question.offer.rules if not answer.rules or rule in answer.rules)
            self._always |= frozenset(rules)
            if answer.kind is AnswerKind.ALWAYS:
                self._save(rules, question.offer)
        denied = Deny(answer.reason or "the user refused this call")
        future.set_result(
            denied if answer.kind is AnswerKind.DENY else Allow(profile=_chosen(question.call, answer), asked=True)
        )
        return True

    def _save(self, rules: tuple[str, ...], offer: Offer) -> None:
        if not rules or not offer.can_save or self.store is None:
            return
        self.is_saved = False
        try:
            self.store.save(rules)
            self.is_saved = True
        except ReverieError as error:
            self.emit(Notice(f"{error} It holds for this session.", "warning"))

    @property
    def session_rules(self) -> tuple[str, ...]:
        """The rules that the user chose in this session, saved or not."""
        return tuple(sorted(self._always))

    def drop_rule(self, rule: str) -> bool:
        """Stops allowing what this rule allows, in this session; False if no allow rule has this text."""
        known = {*self._always, *map(str, self.rules.allow)}
        self._always -= {rule}
        self.rules = replace(self.rules, allow=tuple(one for one in self.rules.allow if str(one) != rule))
        return rule in known
