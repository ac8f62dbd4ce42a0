"""What the helper process knows about one command: how it runs, and what of the machine it sees.

Plain values that travel as JSON. Nothing is decided here.
"""

from __future__ import annotations

import json
from dataclasses import asdict, field
from typing import Any

from reverie.quick import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a command may use. `memory` counts what a process really writes to, not what it reserves."""

    cpu_seconds: int = 600
    memory: int = 8_000_000_000
    file_size: int = 4_000_000_000
    private_size: int = 1_000_000_000
    descriptors: int = 4_096
    processes: int = 4_096


@dataclass(frozen=True, slots=True)
class SandboxView:
    """What a command may use. Paths are absolute and real."""

    landlock: int
    """The version of Landlock to use; 0: without it."""
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    """Folders inside of hidden ones that it sees all the same."""
    writable: tuple[str, ...] = ()
    """Folders in which it may write; empty: only in its private folder."""
    fixed: tuple[str, ...] = ()
    """Parts of those in which it may not."""
    replaced: tuple[tuple[str, str], ...] = ()
    """Folders that are shown instead of others: (shown, in this place). Only with namespaces."""


@dataclass(frozen=True, slots=True)
class SandboxOrder:
    """One command: its words, where it runs, its environment and its view."""

    words: tuple[str, ...]
    cwd: str
    environment: dict[str, str]
    view: SandboxView
    limits: Limits = field(default_factory=Limits)

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode("utf-8", "surrogateescape")

    @staticmethod
    def decode(data: bytes) -> SandboxOrder:
        fields: dict[str, Any] = json.loads(data.decode("utf-8", "surrogateescape"))
        view: dict[str, Any] = fields["view"]
        return SandboxOrder(
            tuple(fields["words"]),
            fields["cwd"],
            fields["environment"],
            SandboxView(
                view["landlock"],
                hidden=tuple(view["hidden"]),
                shown=tuple(view["shown"]),
                writable=tuple(view["writable"]),
                fixed=tuple(view["fixed"]),
                replaced=tuple((shown, target) for shown, target in view["replaced"]),
            ),
            Limits(**fields["limits"]),
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """Something that a command tried and the sandbox does not allow."""

    kind: str
    """write, network, service (a program of this machine), socket (may be harmless: nothing was connected), or more
    (the list is full)."""
    target: str


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """How a command ended. `status`: as `os.waitstatus_to_exitcode`; None: it could not be started, see `error`."""

    status: int | None
    attempts: tuple[Attempt, ...] = ()
    error: str = ""

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode("utf-8", "surrogateescape")

    @staticmethod
    def decode(data: bytes) -> SandboxReport:
        fields: dict[str, Any] = json.loads(data.decode("utf-8", "surrogateescape"))
        attempts = tuple(Attempt(**attempt) for attempt in fields["attempts"])
        return SandboxReport(fields["status"], attempts, fields["error"])
