"""The values of a permission check: a tool call, and the decision to allow it, to ask the user, or to deny it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from reverie.errors import ReverieError
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


@dataclass(frozen=True, slots=True)
class Allow:
    """The call may run. `updated_input`: run it with this input, because one of the user's hooks changed it."""

    updated_input: JsonObject | None = None


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
