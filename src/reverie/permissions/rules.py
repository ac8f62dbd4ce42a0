"""The values of a permission check: a tool call, and the decision to allow it, to ask the user, or to deny it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from typing import TypeAlias

from reverie.errors import ReverieError
from reverie.quick import dataclass
from reverie.types import JsonObject, Purpose


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
    must_fail: Callable[[JsonObject], str | None] = field(default=lambda _given: None, compare=False, repr=False)
    """Returns the error that the tool would end with for this input, whatever the user answers; None if unknown."""

    @property
    def is_main(self) -> bool:
        return self.purpose is Purpose.MAIN and self.agent_id is None


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run.

    `updated_input`: run it with this input, because one of the user's hooks changed it. `guarded`: nobody was asked, so
    the tool must run it in the way that the check relied on (see `permissions/harmless`).
    """

    updated_input: JsonObject | None = None
    guarded: bool = False


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


class ReadsSecret(NotReadOnly):
    """The command would show a file that may hold secrets."""
