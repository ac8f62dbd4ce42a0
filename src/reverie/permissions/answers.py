"""The answers to a permission question: once, for this session, always, or no with a reason.

A question (`events.PermissionAsked`) says which rules it offers. Whoever shows it sends one `PermissionAnswer` to
`session.gate.settle`; it does not decide or store anything itself.
"""

from __future__ import annotations

from enum import Enum

from reverie.permissions.rules import Profile
from reverie.quick import dataclass


class AnswerKind(Enum):
    ONCE = "once"
    SESSION = "session"
    """The offered rules hold until the session ends."""
    ALWAYS = "always"
    """They are saved in the local settings of the project."""
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class PermissionAnswer:
    """One answer. `rules`: which of the offered rules to use; empty means all of them."""

    kind: AnswerKind
    rules: tuple[str, ...] = ()
    reason: str = ""
    """Why not: the model gets it."""
    profile: Profile | None = None
    """In which of the offered profiles the call runs again; None: in the least of them, or free with a rule."""

    @staticmethod
    def once(profile: Profile | None = None) -> PermissionAnswer:
        return PermissionAnswer(AnswerKind.ONCE, profile=profile)

    @staticmethod
    def session(*rules: str) -> PermissionAnswer:
        return PermissionAnswer(AnswerKind.SESSION, rules)

    @staticmethod
    def always(*rules: str) -> PermissionAnswer:
        return PermissionAnswer(AnswerKind.ALWAYS, rules)

    @staticmethod
    def deny(reason: str = "") -> PermissionAnswer:
        return PermissionAnswer(AnswerKind.DENY, reason=reason)
