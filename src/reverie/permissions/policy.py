"""Decides whether a tool call may run: one function per permission mode, and the user's rules before it.

A policy takes one call and returns a decision; it has no state and does not ask. Deny rules win over ask rules, ask
rules over allow rules, and every rule over the mode.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from reverie.permissions.obeyed_files import is_free_at_the_top, is_obeyed
from reverie.permissions.obeyed_links import find_project, is_reached_by_obeyed
from reverie.permissions.patterns import (
    PermissionRule,
    find_applying_rule,
    find_covering_rule,
    is_wide,
    list_paths,
    make_rule,
    parse_rule,
)
from reverie.permissions.rules import Allow, Ask, Decision, Deny, ToolCall
from reverie.permissions.sensitive import is_sensitive
from reverie.quick import dataclass

Policy: TypeAlias = Callable[[ToolCall], Decision]

_CHANGES_A_FILE = frozenset({"Write", "Edit"})
# A message changes nothing; the actions of its reader pass the reader's own permission check.
_FREE = frozenset({"SendMessage"})


class PolicyMode(StrEnum):
    """The setting `permissions.mode`: what happens to a call that no rule matches."""

    ASK = "ask"
    ACCEPT_EDITS = "accept_edits"
    ACCEPT_ALL = "accept_all"
    READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings `permissions.allow`, `.ask` and `.deny`, parsed."""

    allow: tuple[PermissionRule, ...] = ()
    ask: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    always: tuple[PermissionRule, ...] = ()
    """What the user chose to always allow in this session. Ask rules do not ask about it again."""

    @staticmethod
    def parse(allow: Iterable[str] = (), ask: Iterable[str] = (), deny: Iterable[str] = ()) -> Rules:
        """Parses the three lists; raises UserError for the first rule that cannot be read."""
        return Rules(*(tuple(parse_rule(text) for text in texts) for texts in (allow, ask, deny)))

    def joined(self, more: Rules) -> Rules:
        """Returns these rules and more of them."""
        return replace(self, allow=self.allow + more.allow, ask=self.ask + more.ask, deny=self.deny + more.deny)

    def allowing(self, texts: Iterable[str]) -> Rules:
        """Returns the same rules with more that the user chose to "always allow" in this session."""
        return replace(self, always=(*self.always, *(parse_rule(text) for text in sorted(texts))))


def make_policy(
    mode: PolicyMode,
    rules: Rules = Rules(),  # noqa: B008 (frozen)
    *,
    can_ask: bool = True,
    trusted: bool = False,
) -> Policy:
    """Returns the policy of a session. If nobody can be asked (`can_ask=False`), a question becomes a refusal.

    `trusted`: the user trusts the folder, so the main agent runs harmless commands without a question.
    """
    by_mode = _BY_MODE[mode]
    if trusted and mode is not PolicyMode.ACCEPT_ALL:
        by_mode = allow_harmless(by_mode)
    policy = with_rules(rules, by_mode)
    return policy if can_ask else headless(policy)


def with_rules(rules: Rules, policy: Policy) -> Policy:
    """Rules come first: deny, then what is always allowed, then ask, then allow; after them, the policy decides.

    A rule with a pattern for many calls never allows a call that names a file with secrets, or changes an obeyed one.
    """

    def decide(call: ToolCall) -> Decision:
        if rule := find_applying_rule(call, rules.deny):
            return Deny(f"The permission rule {rule} denies this {call.tool} call.")
        if (rule := find_covering_rule(call, rules.always)) and not _goes_too_far(rule, call):
            return Allow()
        if rule := find_applying_rule(call, rules.ask):
            return Ask(f"The permission rule {rule} asks first.")
        if (rule := find_covering_rule(call, rules.allow)) and not _goes_too_far(rule, call):
            return Allow()
        return policy(call)

    return decide


def interactive(call: ToolCall) -> Decision:
    """Allows messages, and reads of files whose name does not suggest secrets; asks about everything else."""
    if call.read_only or call.tool in _FREE:
        return _decide_read(call)
    if call.tool in _CHANGES_A_FILE:
        where = "" if _is_inside_cwd(call) else " outside the working folder"
        return Ask(f"{call.tool} changes {_name_file(call)}{where}.")
    if call.tool == "Bash":
        return Ask("This command may change something.")
    return Ask(f"{call.tool} may change something.")


def accept_edits(call: ToolCall) -> Decision:
    """Like `interactive`, and allows changes to files in the working folder, except for files that are obeyed later
    (see `obeyed_files`), files that may hold secrets, and new ones at the top that may be configuration."""
    if call.tool not in _CHANGES_A_FILE or not _is_inside_cwd(call):
        return interactive(call)
    if _is_obeyed_later(call):
        return Ask(f"{call.tool} changes {_name_file(call)}, which is obeyed later without a question.")
    if any(map(is_sensitive, list_paths(call))):
        return Ask(f"{call.tool} changes {_name_file(call)}, which by its name may hold secrets.")
    if _is_new_at_the_top(call):
        return Ask(f"{call.tool} makes {_name_file(call)}, which a program may look for there and obey.")
    return Allow()


def allow_harmless(policy: Policy) -> Policy:
    """Lets the main agent run the commands of `permissions/harmless`, guarded; the policy decides about others."""

    def decide(call: ToolCall) -> Decision:
        if call.tool != "Bash" or call.read_only or not call.is_main:
            return policy(call)
        from reverie.permissions.harmless.command import judge_command  # loaded with the first command

        decision = judge_command(str(call.input.get("command", "")), call.cwd)
        return policy(call) if decision is None else decision

    return decide


def read_only(call: ToolCall) -> Decision:
    """Decides reads like `interactive`; denies every call that may change something."""
    if call.read_only or call.tool in _FREE:
        return _decide_read(call)
    return Deny(f"{call.tool} is denied because this session is read-only (permissions.mode = read_only).")


def accept_all(call: ToolCall) -> Decision:
    """Allows everything; only deny and ask rules come before it."""
    del call
    return Allow()


_BY_MODE: Mapping[PolicyMode, Policy] = {
    PolicyMode.ASK: interactive,
    PolicyMode.ACCEPT_EDITS: accept_edits,
    PolicyMode.ACCEPT_ALL: accept_all,
    PolicyMode.READ_ONLY: read_only,
}


def headless(policy: Policy) -> Policy:
    """Wraps a policy for runs where nobody can be asked: a question becomes a refusal that says how to allow it."""

    def decide(call: ToolCall) -> Decision:
        decision = policy(call)
        if not isinstance(decision, Ask):
            return decision
        return Deny(
            f"{decision.reason} Nobody can be asked here, so the call is denied; allow it with --allow "
            f"'{make_rule(call) or call.tool}' or the setting permissions.allow."
        )

    return decide


def _goes_too_far(rule: PermissionRule, call: ToolCall) -> bool:
    return is_wide(rule) and names_guarded_file(call)


def names_guarded_file(call: ToolCall) -> bool:
    """Whether the call names a file that may hold secrets, or may change a file that is obeyed later."""
    if call.tool != "Bash":
        changes = call.tool in _CHANGES_A_FILE
        return any(map(is_sensitive, list_paths(call))) or (changes and _is_inside_cwd(call) and _is_obeyed_later(call))
    from reverie.permissions.shell.commands import all_commands

    named = (word for part in all_commands(str(call.input.get("command", ""))) for word in part.words[1:] if word)
    return any(_is_guarded_word(piece, call.cwd) for word in named for piece in (word, *re.split("[=:@]", word)[1:]))


def _is_guarded_word(word: str, cwd: Path) -> bool:
    word = word.removesuffix("...")  # of Go: a folder and everything in it
    if not word or word.startswith("-") or "\0" in word or " " in word:
        return False
    path = Path(os.path.normpath(cwd / word))
    inside = path.relative_to(cwd).parts if path.is_relative_to(cwd) else ()
    return is_sensitive(path) or (bool(inside) and is_obeyed(inside))


def _decide_read(call: ToolCall) -> Decision:
    if call.tool == "Bash":
        from reverie.permissions.secret_reads import why_secret  # loaded with the first command

        secret = why_secret(str(call.input.get("command", "")), call.cwd)
        return Allow() if secret is None else Ask(secret)
    for path in list_paths(call):
        if is_sensitive(path):
            return Ask(f"{call.tool} would read {path}, which by its name may hold secrets.")
    return Allow()


def _is_inside_cwd(call: ToolCall) -> bool:
    root = Path(os.path.realpath(call.cwd))
    paths = list_paths(call)
    return bool(paths) and paths[-1].is_relative_to(root) and paths[-1] != root


def _is_obeyed_later(call: ToolCall) -> bool:
    """Whether the file is obeyed under its written name, its real name, or because an obeyed file leads to it."""
    seen = list_paths(call)
    roots = (Path(os.path.normpath(call.cwd)), Path(os.path.realpath(call.cwd)), find_project(call.cwd))
    if any(is_obeyed(path.relative_to(root).parts) for path in seen for root in roots if path.is_relative_to(root)):
        return True
    return is_reached_by_obeyed(seen, call.cwd)


def _is_new_at_the_top(call: ToolCall) -> bool:
    """Whether the call makes a file in the working folder or at the top of the project that may be configuration."""
    roots = {os.path.realpath(root) for root in (call.cwd, find_project(call.cwd))}
    return any(
        str(path.parent) in roots and not is_free_at_the_top(path.name) and not os.path.lexists(path)
        for path in list_paths(call)
    )


def _name_file(call: ToolCall) -> str:
    paths = list_paths(call)
    return str(paths[0]) if paths else "a file"
