"""Which rule a permission question offers for "this session" and "always": the one for exactly the call that is shown.

A rule for more than that is one that the user writes: what a program does with other words, no table can know.
"""

from __future__ import annotations

from reverie.permissions.patterns import make_rule
from reverie.permissions.policy import names_guarded_file
from reverie.permissions.rules import ToolCall
from reverie.quick import dataclass


@dataclass(frozen=True, slots=True)
class Offer:
    """Rules that cover the call together. `can_save`: they are worth keeping beyond the session."""

    rules: tuple[str, ...] = ()
    can_save: bool = False


def make_offer(call: ToolCall) -> Offer:
    """Returns what to offer for a call; no rules if none can express it, or if it is about a guarded file."""
    exact = None if names_guarded_file(call) else make_rule(call)
    if exact is None:
        return Offer()
    return Offer((exact,), can_save=call.tool != "Bash" or _is_plain(str(call.input.get("command", ""))))


def _is_plain(command: str) -> bool:
    """Whether the text says all: without variables, substitutions and redirections."""
    from reverie.permissions.shell_commands import plain_commands

    return plain_commands(command) is not None
