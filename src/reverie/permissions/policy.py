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
from typing import TYPE_CHECKING, TypeAlias

from reverie.errors import ReverieError
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
from reverie.permissions.rules import Allow, Ask, Decision, Deny, Profile, ToolCall
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.permissions.sensitive import is_sensitive
from reverie.permissions.strict_shell import is_read_only_shell, reads_widely
from reverie.quick import dataclass

if TYPE_CHECKING:
    from reverie.permissions.sandbox.profiles import Sandbox

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
    sandboxes: Sandboxes | None = None,
) -> Policy:
    """Returns the policy of a session. If nobody can be asked (`can_ask=False`), a question becomes a refusal."""
    by_mode = _BY_MODE[mode]
    if mode is not PolicyMode.ACCEPT_ALL:
        by_mode = with_sandbox(sandboxes or Sandboxes(), mode, by_mode)
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
    if call.tool == "Bash":
        return Ask("This command may change something.")
    if call.read_only or call.tool in _FREE:
        return _decide_read(call)
    if call.tool in _CHANGES_A_FILE:
        where = "" if _is_inside_cwd(call) else " outside the working folder"
        return Ask(f"{call.tool} changes {_name_file(call)}{where}.")
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


def with_sandbox(sandboxes: Sandboxes, mode: PolicyMode, policy: Policy) -> Policy:
    """Decides shell commands: they run in the sandbox, with what the mode allows. The policy decides about the rest.

    Where there is no sandbox, a command runs if it is on the short strict list; the policy decides about others.
    """
    never_wider = mode is PolicyMode.READ_ONLY

    def decide(call: ToolCall) -> Decision:
        if call.tool != "Bash":
            return policy(call)
        command, sandbox = str(call.input.get("command", "")), sandboxes.at(call.cwd)
        if not sandbox.layers.can_read:
            may_run = reads_strictly(command, call.cwd, sandbox)
            return Allow(profile=Profile.READ_ONLY) if may_run else policy(call)
        if never_wider:
            return Allow(profile=Profile.READ_ONLY)
        if names_program(command, "git") and sandbox.history_holds_secrets():
            return Ask("A commit of this repository has a file that may hold secrets, and git could show it.")
        may_work = mode is PolicyMode.ACCEPT_EDITS and sandbox.can_work
        return Allow(profile=Profile.WORKSPACE if may_work else Profile.READ_ONLY, may_widen=True)

    return decide


def reads_strictly(command: str, cwd: Path, sandbox: Sandbox) -> bool:
    """Whether a command only reads, and no secrets: for machines without a sandbox."""
    from reverie.permissions.shell_commands import all_commands

    if not is_read_only_shell(command):
        return False
    words = [word for part in all_commands(command) for word in part.words[1:] if word]
    if any(is_sensitive(Path(os.path.realpath(cwd / word))) for word in words):  # by a link, too
        return False
    try:
        return not reads_widely(command) or not sandbox.holds_secrets()
    except ReverieError:  # too many files to look through
        return False


def read_only(call: ToolCall) -> Decision:
    """Decides reads like `interactive`; denies every call that may change something."""
    if call.tool != "Bash" and (call.read_only or call.tool in _FREE):
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
        return refuse_headless(call, decision.reason) if isinstance(decision, Ask) else decision

    return decide


def refuse_headless(call: ToolCall, reason: str) -> Deny:
    """The refusal of a question that nobody can answer."""
    return Deny(
        f"{reason} Nobody can be asked here, so the call is denied; allow it with --allow "
        f"'{make_rule(call) or call.tool}' or the setting permissions.allow."
    )


def _goes_too_far(rule: PermissionRule, call: ToolCall) -> bool:
    return is_wide(rule) and names_guarded_file(call)


def names_guarded_file(call: ToolCall) -> bool:
    """Whether the call names a file that may hold secrets, or may change a file that is obeyed later."""
    if call.tool != "Bash":
        changes = call.tool in _CHANGES_A_FILE
        return any(map(is_sensitive, list_paths(call))) or (changes and _is_inside_cwd(call) and _is_obeyed_later(call))
    from reverie.permissions.shell_commands import all_commands

    named = (word for part in all_commands(str(call.input.get("command", ""))) for word in part.words[1:] if word)
    return any(_is_guarded_word(piece, call.cwd) for word in named for piece in (word, *re.split("[=:@]", word)[1:]))


def names_program(command: str, program: str) -> bool:
    """Whether a part of the command, at any depth, starts this program by its name."""
    from reverie.permissions.shell_commands import all_commands

    return any(part.words and (part.words[0] or "").rpartition("/")[2] == program for part in all_commands(command))


def _is_guarded_word(word: str, cwd: Path) -> bool:
    word = word.removesuffix("...")  # of Go: a folder and everything in it
    if not word or word.startswith("-") or "\0" in word or " " in word:
        return False
    path = Path(os.path.normpath(cwd / word))
    inside = path.relative_to(cwd).parts if path.is_relative_to(cwd) else ()
    return is_sensitive(path) or (bool(inside) and is_obeyed(inside))


def _decide_read(call: ToolCall) -> Decision:
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
