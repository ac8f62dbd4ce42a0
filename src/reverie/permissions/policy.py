"""The default answers to "may this call run?": one small function a mode, and rules that come before them.

A policy looks at one call and returns a decision; it remembers nothing and asks nobody. Deny rules beat ask rules, ask
rules beat allow rules, and any rule beats the mode. What must never ask (a headless run, a fork) wraps a policy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias, assert_never

from reverie.permissions.obeyed import is_obeyed
from reverie.permissions.obeyed_links import is_led_to, project_of
from reverie.permissions.patterns import Rule, covered, parse_rule, rule_for, touched, touched_paths
from reverie.permissions.rules import Allow, Ask, Decision, Deny, ToolCall
from reverie.permissions.sensitive import is_sensitive

Policy: TypeAlias = Callable[[ToolCall], Decision]

_CHANGES_A_FILE = frozenset({"Write", "Edit"})
# Changes no file; what the reader of a letter does passes the reader's own gate.
_FREE = frozenset({"SendMessage"})


class Mode(StrEnum):
    """The setting `permissions.mode`: what happens to a call no rule speaks about."""

    ASK = "ask"
    ACCEPT_EDITS = "accept_edits"
    ACCEPT_ALL = "accept_all"
    READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings `permissions.allow`, `.ask` and `.deny`, parsed."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    always: tuple[Rule, ...] = ()
    """What a person chose to always allow in this session: they were asked, so no ask rule asks them again."""

    @staticmethod
    def parse(allow: Iterable[str] = (), ask: Iterable[str] = (), deny: Iterable[str] = ()) -> Rules:
        """Reads the three lists; raises UserError naming the first rule that cannot be read."""
        return Rules(*(tuple(parse_rule(text) for text in texts) for texts in (allow, ask, deny)))

    def allowing(self, texts: Iterable[str]) -> Rules:
        """The same rules and what a person chose to "always allow" in this session."""
        return replace(self, always=(*self.always, *(parse_rule(text) for text in sorted(texts))))


def policy_for(mode: Mode, rules: Rules = Rules(), *, can_ask: bool = True) -> Policy:  # noqa: B008 (frozen)
    """The policy of a session. Where nobody can be asked (`can_ask=False`), a question becomes a refusal."""
    match mode:
        case Mode.ASK:
            base = interactive
        case Mode.ACCEPT_EDITS:
            base = accept_edits
        case Mode.ACCEPT_ALL:
            base = accept_all
        case Mode.READ_ONLY:
            base = read_only
        case _:
            assert_never(mode)
    policy = with_rules(rules, base)
    return policy if can_ask else headless(policy)


def with_rules(rules: Rules, policy: Policy) -> Policy:
    """Rules first: deny beats what was always allowed, beats ask, beats allow; without any, the policy decides."""

    def decide(call: ToolCall) -> Decision:
        if rule := touched(call, rules.deny):
            return Deny(f"The permission rule {rule} denies this {call.tool} call.")
        if covered(call, rules.always):
            return Allow()
        if rule := touched(call, rules.ask):
            return Ask(f"The permission rule {rule} wants to be asked.")
        if covered(call, rules.allow):
            return Allow()
        return policy(call)

    return decide


def interactive(call: ToolCall) -> Decision:
    """Letters are allowed, and reads except of files that hold secrets by their name; everything else asks."""
    if call.read_only or call.tool in _FREE:
        return _reading(call)
    if call.tool in _CHANGES_A_FILE:
        where = "" if _inside_cwd(call) else " outside the working folder"
        return Ask(f"{call.tool} changes {_named(call)}{where}.")
    if call.tool == "Bash":
        return Ask("This command may change something.")
    return Ask(f"{call.tool} may change something.")


def accept_edits(call: ToolCall) -> Decision:
    """As `interactive`, and files inside the working folder may be changed: not those that are obeyed later (see
    `obeyed`), nor those that hold secrets."""
    if call.tool not in _CHANGES_A_FILE or not _inside_cwd(call):
        return interactive(call)
    if _obeyed_later(call):
        return Ask(f"{call.tool} changes {_named(call)}, which is obeyed later without a question.")
    if any(map(is_sensitive, touched_paths(call))):
        return Ask(f"{call.tool} changes {_named(call)}, which by its name may hold secrets.")
    return Allow()


def read_only(call: ToolCall) -> Decision:
    """Reads as in `interactive`; whatever may change something is denied."""
    if call.read_only or call.tool in _FREE:
        return _reading(call)
    return Deny(f"{call.tool} is denied because this session is read-only (permissions.mode = read_only).")


def accept_all(call: ToolCall) -> Decision:
    """Everything is allowed; only deny and ask rules in front of it can say otherwise."""
    del call
    return Allow()


def headless(policy: Policy) -> Policy:
    """Where nobody can be asked: a question becomes a refusal that says how to allow the call."""

    def decide(call: ToolCall) -> Decision:
        decision = policy(call)
        match decision:
            case Allow() | Deny():
                return decision
            case Ask(reason):
                rule = rule_for(call) or call.tool
                return Deny(
                    f"{reason} Nobody is there to be asked, so the call is denied; it can be allowed with --allow "
                    f"'{rule}' or the setting permissions.allow."
                )
            case _:
                assert_never(decision)

    return decide


def _reading(call: ToolCall) -> Decision:
    if call.tool == "Bash":
        from reverie.permissions.secret_reads import why_secret  # loaded with the first command

        secret = why_secret(str(call.input.get("command", "")), call.cwd)
        return Allow() if secret is None else Ask(secret)
    for path in touched_paths(call):
        if is_sensitive(path):
            return Ask(f"{call.tool} would read {path}, which by its name may hold secrets.")
    return Allow()


def _inside_cwd(call: ToolCall) -> bool:
    root = Path(os.path.realpath(call.cwd))
    paths = touched_paths(call)
    return bool(paths) and paths[-1].is_relative_to(root) and paths[-1] != root


def _obeyed_later(call: ToolCall) -> bool:
    """Under the name it is written by, where that leads, or because something obeyed leads to it."""
    seen = touched_paths(call)
    roots = (Path(os.path.normpath(call.cwd)), Path(os.path.realpath(call.cwd)), project_of(call.cwd))
    if any(is_obeyed(path.relative_to(root).parts) for path in seen for root in roots if path.is_relative_to(root)):
        return True
    return is_led_to(seen, call.cwd)


def _named(call: ToolCall) -> str:
    paths = touched_paths(call)
    return str(paths[0]) if paths else "a file"
