"""The values of a permission check: a tool call, and the decision to allow it, to ask the user, or to deny it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from reverie.errors import ReverieError
from reverie.quick import dataclass
from reverie.types import JsonObject, Purpose


class Profile(StrEnum):
    """How much of the machine a command may change, least first."""

    READ_ONLY = "read_only"
    """Nothing; no network."""
    WORKSPACE = "workspace"
    """The project, without its repository and without files that a program obeys later; no network."""
    REPOSITORY = "repository"
    """The same, and the repository without its hooks and configuration."""
    FREE = "free"
    """Everything that the user may: outside the sandbox."""

    @property
    def writes_project(self) -> bool:
        return self in (Profile.WORKSPACE, Profile.REPOSITORY)


@dataclass(frozen=True, slots=True)
class Widening:
    """What a call tried and its profile did not allow, and the smallest profile that does."""

    tried: tuple[str, ...]
    profile: Profile
    started: bool = True
    """Parts of the call may have run."""

    @property
    def choices(self) -> tuple[Profile, ...]:
        """The profiles in which it may run again, least first."""
        return (self.profile,) if self.profile is Profile.FREE else (self.profile, Profile.FREE)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the permission function sees it."""

    id: str
    tool: str
    input: JsonObject
    read_only: bool
    cwd: Path
    purpose: Purpose = Purpose.MAIN
    agent_id: str | None = None
    widening: Widening | None = None
    """The call ran in its profile: the question is whether it may run again in a wider one."""
    must_fail: Callable[[JsonObject], str | None] = field(default=lambda _given: None, compare=False, repr=False)
    """Returns the error that the tool would end with for this input, whatever the user answers; None if unknown."""

    @property
    def is_main(self) -> bool:
        return self.purpose is Purpose.MAIN and self.agent_id is None


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run.

    `updated_input`: run it with this input, because one of the user's hooks changed it. `profile`: run it in the
    sandbox with these rights; None: with all that the user has. `may_widen`: ask about what the sandbox refused.
    """

    updated_input: JsonObject | None = None
    profile: Profile | None = None
    may_widen: bool = False
    asked: bool = False
    """The user was asked."""


@dataclass(frozen=True, slots=True)
class Ask:
    reason: str


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


Decision: TypeAlias = Allow | Ask | Deny


def clip(text: str) -> str:
    """Cuts a piece of input so that it fits in a sentence."""
    return text if len(text) <= 60 else f"{text[:60]}…"


class NotReadOnly(ReverieError):
    """The command is not known to be read-only; `str(error)` is the reason."""
