"""The memory writes of a run: through the directory and its gate, one version per file, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from reverie.errors import ReverieError, StorageError
from reverie.memory.changes import Evidence, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.removal import find_lost
from reverie.memory.gate.rule import Standing
from reverie.memory.taxonomy import is_log, is_topic
from reverie.memory.tool_writes import write_by_tool
from reverie.memory.topic_file import body_statements, decode
from reverie.permissions.memory_paths import PermissionRefused, check_memory_write
from reverie.quick import dataclass
from reverie.tools.base import Keeper, Kept
from reverie.types import ToolUseBlock

Done = Literal["added", "updated", "forgotten"]
VERBS: Mapping[Done, str] = {"added": "remembered", "updated": "updated", "forgotten": "forgot"}


class WriteRefused(ReverieError):
    """A write to a file that this writer may not change."""


@dataclass(frozen=True, slots=True)
class RunSource:
    """The basis of a run: the session, the last new message, and every new text with its origin."""

    session: str
    message: str
    evidence: tuple[Evidence, ...]


@dataclass(eq=False)
class MemoryWrites:
    """The writes of one run. `done` lists what happened to each topic file, `held` what waits for the user, `refused`
    why others were not written."""

    directory: MemoryDirectory
    source: RunSource
    most_losses: int = 3
    """How many memories may lose statements in one run, so that a model that deletes everything deletes little."""
    report: Callable[[str], None] = lambda _reason: None
    done: dict[str, Done] = field(default_factory=dict[str, Done], init=False)
    held: list[str] = field(default_factory=list[str], init=False)
    refused: list[str] = field(default_factory=list[str], init=False)
    unstored: StorageError | None = field(default=None, init=False)
    """The disk refused a write: the messages must be looked at again."""
    _losses: set[str] = field(default_factory=set[str], init=False)
    _is_open: bool = field(default=False, init=False)
    """A write was not carried out, and its answer says which file to change instead."""

    def are_enough(self, calls: Sequence[ToolUseBlock]) -> bool:
        """Returns whether the run is over after these calls, which all succeeded: they were writes, and each was
        carried out or waits for the user."""
        is_open, self._is_open = self._is_open, False
        return not is_open and all(call.name in ("Write", "Edit") for call in calls)

    def keeper(self, path: Path) -> Keeper | None:
        """Returns the function that writes a file of the memory directory; None for any other file."""
        root = self.directory.root
        try:
            real = check_memory_write(str(path), root)
        except PermissionRefused:
            return None  # the permission function has refused the call already
        name = real.relative_to(root).as_posix()

        def keep(data: bytes, before: bytes | None) -> Kept:
            try:
                return self._write(name, real, data, before)
            except ReverieError as error:
                self.refused.append(str(error))
                self.unstored = error if isinstance(error, StorageError) else self.unstored
                self.report(f"{name}: {_kind(error)}")
                raise

        return keep

    def _write(self, name: str, path: Path, data: bytes, before: bytes | None) -> Kept:
        if is_log(name):
            raise WriteRefused(f"{name} is a daily log: only the main agent adds to it.")
        if before is not None and is_topic(name) and find_lost(_standing(name, before), _standing(name, data)):
            if len(self._losses | {name}) > self.most_losses:
                raise WriteRefused(
                    f"{name}: not changed, because one look at a conversation may shorten or remove at most "
                    f"{self.most_losses} memories. Leave it as it is."
                )
            self._losses.add(name)
        info = WriteInfo(
            Writer.EXTRACTION,
            "learnt from the conversation",
            session=self.source.session,
            message=self.source.message,
            evidence=self.source.evidence,
        )
        kept, outcome = write_by_tool(self.directory, path, data, before, info)
        self.held += outcome.held
        self._is_open |= bool(outcome.version is None and not outcome.held and outcome.note)
        if outcome.version is not None and is_topic(name):
            stored = outcome.name_of(name)
            is_gone = not (self.directory.root / stored).exists()
            is_new = before is None or self.done.get(stored) == "added"
            self.done[stored] = "forgotten" if is_gone else "added" if is_new else "updated"
        return kept


def _standing(name: str, data: bytes) -> list[Standing]:
    return [Standing(one, name, None) for one in body_statements(decode(data))]


def _kind(error: ReverieError) -> str:
    """Returns what may be logged of a refusal. Our sentences quote the memory, so only the kind."""
    from reverie.memory.gate.write_gate import Refused

    return error.refusal.kind if isinstance(error, Refused) else type(error).__name__
