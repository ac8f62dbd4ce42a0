"""Who may do what: one function decides every tool call before it runs: allow, ask a person, or deny with a reason.

The decision is a value; asking, logging and running are somebody else's work.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from reverie.errors import ReverieError
from reverie.types import JsonObject, Purpose


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the permission function sees it. `paths` are the absolute paths it would touch, before mapping."""

    id: str
    tool: str
    input: JsonObject
    read_only: bool
    cwd: Path
    purpose: Purpose = Purpose.MAIN
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class Allow:
    """It may run. `updated_input`: with this input instead, because a hook of the user's changed it."""

    updated_input: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    reason: str


@dataclass(frozen=True, slots=True)
class Deny:
    reason: str


Decision: TypeAlias = Allow | Ask | Deny


def clip(text: str) -> str:
    """A piece of somebody's input, short enough for a sentence."""
    return text if len(text) <= 60 else f"{text[:60]}…"


class NotReadOnly(ReverieError):
    """The command is not provably read-only; `str(error)` says why in one sentence."""
