"""The messages since the cursor, with the origin of every text, and whether the agent saved something itself. Pure.

Only what the user typed may become a memory. All other texts keep their origin, so that the write gate can judge them.
A turn in which the main agent changed a memory is skipped: it is saved already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Final, TypeGuard

from reverie.memory.changes import Evidence
from reverie.memory.evidence import gather_evidence
from reverie.models.wire import as_object
from reverie.moments import local_day
from reverie.permissions.memory_paths import is_inside
from reverie.permissions.shell_commands import all_commands
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.types import Block, Message, TextBlock, ToolResultBlock, ToolUseBlock


@dataclass(frozen=True, slots=True)
class MessageSpan:
    """New messages in order. `before` is the answer right before them, which a "yes" refers to."""

    entries: tuple[Entry, ...]
    before: Entry | None = None

    @property
    def end(self) -> str | None:
        """The last message with a uuid: the farthest place for a cursor."""
        return next((entry.uuid for entry in reversed(self.entries) if entry.uuid is not None), None)

    @property
    def messages(self) -> int:
        """The number of messages as a model sees them: records of one role in a row are one message."""
        roles = [entry.message.role for entry in self.entries if entry.message.content]
        return sum(role != before for before, role in zip([None, *roles], roles, strict=False))

    @property
    def has_person(self) -> bool:
        return bool(self.typed)

    def evidence(self, older: Sequence[Entry] = ()) -> tuple[Evidence, ...]:
        """Returns every text with its origin: the new ones, the answer before them, which they may confirm, and as not
        new what came earlier."""
        own = self.entries if self.before is None else (self.before, *self.entries)
        known = {entry.uuid for entry in own if entry.uuid is not None}
        earlier = [entry for entry in older if entry.uuid not in known]
        return gather_evidence([*earlier, *own], len(own))

    @property
    def typed(self) -> list[tuple[str, Entry]]:
        """What the user wrote, each text with its message."""
        return [(block.text, entry) for entry in self.entries for block in entry.message.content if _is_typed(block)]

    def days(self) -> list[tuple[date, str]]:
        """Returns the local days on which the user wrote, each with the first words of that day."""
        found = dict[date, str]()
        for entry in self.entries:
            day = local_day(entry.timestamp)
            typed = next((block.text for block in entry.message.content if _is_typed(block)), "")
            if day is not None and typed:
                found.setdefault(day, typed)
        return list(found.items())

    def wrote_memory(self, is_write: Callable[[ToolUseBlock], bool]) -> bool:
        """Returns whether the agent itself changed a memory successfully. `is_write` judges a call."""
        wrote = {call.id for entry in self.entries for call in entry.message.tool_uses if is_write(call)}
        return bool(wrote) and any(
            result.tool_use_id in wrote and not result.is_error
            for entry in self.entries
            for result in entry.message.tool_results
        )


def new_since(entries: Sequence[Entry], cursors: Iterable[str | None]) -> MessageSpan:
    """Returns what came after the newest cursor that is still there; after a compaction, everything since the boundary.

    `cursors` come newest first. What a compaction brought along is never new.
    """
    at = _place(entries, cursors)
    fresh = tuple(entry for entry in entries[at + 1 :] if not entry.brought)
    last = entries[at] if at >= 0 else None
    return MessageSpan(fresh, last if last is not None and last.message.role == "assistant" else None)


def _place(entries: Sequence[Entry], cursors: Iterable[str | None]) -> int:
    places: dict[str | None, int] | None = None
    for cursor in cursors:
        if cursor is None:
            continue
        if places is None:  # usually near the end: look there before indexing everything
            for at in range(len(entries) - 1, -1, -1):
                if entries[at].uuid == cursor:
                    return at
            places = {entry.uuid: at for at, entry in enumerate(entries)}
        elif cursor in places:
            return places[cursor]
    return -1


def with_short_results(entries: Iterable[Entry], characters: int) -> list[Entry]:
    """Cuts long tool results: they are not evidence, and they cost tokens where nothing is cached."""
    return [replace(entry, message=_short(entry.message, characters)) for entry in entries]


def _short(message: Message, characters: int) -> Message:
    if not any(len(result.text) > characters for result in message.tool_results):
        return message
    blocks = (
        replace(block, content=f"{block.text[:characters]}…")
        if isinstance(block, ToolResultBlock) and len(block.text) > characters
        else block
        for block in message.content
    )
    return replace(message, content=tuple(blocks))


def _is_typed(block: Block) -> TypeGuard[TextBlock]:
    return isinstance(block, TextBlock) and block.origin.is_users and bool(block.text.strip())


_READERS: Final = frozenset(
    {"ls", "find", "grep", "rg", "cat", "stat", "wc", "head", "tail", "less", "diff", "sort", "file", "echo", "printf"}
)
"""Programs that change none of their files. Their output may still be redirected into one."""
_SAVING: Final = frozenset({"remember", "forget"})
_INTO = re.compile(r">[>|]?\s*(?:'([^']*)'|\"([^\"]*)\"|([^\s;&|<>()]+))")


@dataclass(frozen=True, slots=True)
class OwnWrites:
    """Recognises them by the memory directory and by the folder that relative paths start from."""

    root: Path
    cwd: Path
    home: Path

    def is_one(self, call: ToolUseBlock) -> bool:
        """Returns whether this call changed a memory, if it succeeded."""
        return self.is_by_tool(call) or self.is_by_shell(call)

    def is_by_tool(self, call: ToolUseBlock) -> bool:
        """The same for the tools that write files."""
        return call.name in ("Write", "Edit") and self._is_inside(str(as_object(call.input).get("file_path")))

    def is_by_shell(self, call: ToolUseBlock) -> bool:
        """The same for shell commands."""
        return call.name == "Bash" and self._changes(str(as_object(call.input).get("command") or ""))

    def _changes(self, command: str) -> bool:
        if not self._may_name_memory(command):
            return False
        if any(
            self._is_inside(self._expand_home(found[1] or found[2] or found[3])) for found in _INTO.finditer(command)
        ):
            return True
        at = self.cwd
        for program, *rest in _commands(command):
            words = [at / self._expand_home(word) for word in rest if word]
            if program == "reverie":
                if _SAVING & set(rest[:1]):
                    return True
            elif program == "cd":
                at = words[0] if words else self.home
            elif program not in _READERS and any(self._is_inside(str(path)) for path in (at, *words)):
                return True
        return self._is_inside(str(at)) and ">" in command

    def _may_name_memory(self, command: str) -> bool:
        """A cheap check first: a turn may have hundreds of commands."""
        return self.root.name in command or "reverie" in command or self.cwd.is_relative_to(self.root)

    def _expand_home(self, word: str) -> str:
        for short in ("~", "$HOME", "${HOME}"):
            if word == short or word.startswith(f"{short}/"):
                return f"{self.home}{word.removeprefix(short)}"
        return word

    def _is_inside(self, path: str) -> bool:
        return bool(path) and is_inside(str(self.cwd / path), self.root)


def _commands(command: str) -> Iterator[list[str]]:
    """Yields each simple command as its program's name and its words; words that only the shell knows are empty."""
    for one in all_commands(command):
        program, *rest = [word or "" for word in one.words] or [""]
        yield [program.rsplit("/", 1)[-1], *rest]
