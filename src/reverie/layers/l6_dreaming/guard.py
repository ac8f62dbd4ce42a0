"""The guard between a dreamer and the memory: its permissions, its evidence, and the check of each write to the copy.

Every write passes the write gate before it is in the copy, so that the dreamer hears at once what is kept for the user;
the gate decides again when everything lands. Only what the user typed in past sessions supports a new statement; tool
results and pages are read to know what does not. Holds are logged by file, never with the text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError
from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.dreamer import MOST_LINES
from reverie.layers.l6_dreaming.sources import TypedMessage
from reverie.memory.changes import Decision, Evidence, Gate, ProposedWrite, Writer
from reverie.memory.gate.write_gate import Refused
from reverie.memory.taxonomy import is_log, is_topic
from reverie.memory.topic_file import decode, encode
from reverie.permissions.background import BackgroundWriter
from reverie.permissions.patterns import list_paths
from reverie.permissions.rules import ToolCall
from reverie.runtime.background_log import BackgroundLog
from reverie.storage.transcript.file import read_records
from reverie.text.words import content_terms
from reverie.tools.base import Keeper, Kept
from reverie.types import Message, TextBlock, ToolResultBlock

_NARROW: Final = f"Transcripts are searched for narrow terms, at most the last {MOST_LINES} matches, never read whole"


class DreamGuard:
    """The guard of one dream. `on_write` gets the name of each written file."""

    def __init__(
        self,
        copy: MemoryCopy,
        gate: Gate,
        log: BackgroundLog,
        *,
        transcripts: Sequence[Path],
        conversation: Iterable[tuple[Message, str, str]],
        on_write: Callable[[str], None],
        confined: bool = False,
    ) -> None:
        self._copy = copy
        self._gate = gate
        self._log = log
        self._transcripts = transcripts
        self._conversation = conversation
        self._on_write = on_write
        self._confined = confined
        self.held: dict[str, tuple[str, ...]] = {}
        """Statements that were kept for the user, or could not be written, by file."""
        self.waits: dict[str, int] = {}
        """How many statements of a file wait in the inbox."""
        self.permission = BackgroundWriter(
            copy.root, refuse_write=_why_not_write, refuse_read=self._why_not_read, on_denied=self._log_denied
        )

    @cached_property
    def _sessions(self) -> list[tuple[str, list[Evidence]]]:
        return read_sessions(self._transcripts)

    @cached_property
    def _sources(self) -> Sources:
        said = [one for _, texts in self._sessions for one in texts]
        return Sources([*said, *message_evidence(self._conversation)])

    def evidence(self, *texts: str) -> tuple[Evidence, ...]:
        """Returns texts of the sessions of this dream that are near these texts, with their origins."""
        return self._sources.near(*texts)

    def typed(self) -> list[TypedMessage]:
        """Returns what the user typed in the sessions of this dream, oldest first."""
        found = [
            TypedMessage(session[:8], one.at, one.text)
            for session, texts in self._sessions
            for one in texts
            if one.origin.is_users
        ]
        return sorted(found, key=lambda one: one.at)

    def keeper(self, path: Path) -> Keeper | None:
        """Returns the function that writes a file of the memory directory into the copy; None for any other file."""
        name = self._copy.name_of(path)
        if name is None:
            return None

        def keep(data: bytes, before: bytes | None) -> Kept:
            del before
            if is_topic(name) and not data.strip():
                self._copy.write(name, None)
                self._on_write(name)
                return Kept(None, f"Removed {name}.")
            self.held[name] = (decode(data),)  # if it is refused, what was to move here must stay
            try:
                decided = self._decide(name, data)
            except ReverieError as error:
                kind = error.refusal.kind if isinstance(error, Refused) else type(error).__name__
                self._log.write("dream_refused", file=name, refused=kind)
                raise
            self.held.pop(name)
            if decided.item:
                self.waits[name] = len(decided.held)
            if decided.held:
                self.held[name] = decided.held
                self._log.write("dream_held", file=name, statements=len(decided.held))
            text = None if decided.text is None else encode(decided.text)
            note = decided.note
            if not note and text is not None and is_topic(name) and text != data:
                note = (
                    f"Stored {name}, with a title or description of its own text: read it before you change it again."
                )
            self._copy.write(name, text)
            self._on_write(name)
            return Kept(text, note)

        return keep

    def _decide(self, name: str, data: bytes) -> Decision:
        """Asks the gate about a file of the copy. What disappears is judged when everything lands."""
        before = self._copy.base.get(name)
        others = {one.name: None if one.after is None else decode(one.after) for one in self._copy.changes()}
        text = decode(data)
        write = ProposedWrite(
            name=name,
            text=text,
            before=None if before is None else decode(before),
            writer=Writer.DREAM,
            evidence=self.evidence(text),
            together={other: text for other, text in others.items() if other != name},
            is_draft=True,
        )
        return self._gate(write) or Decision(text)

    def _log_denied(self, tool: str, reason: str) -> None:
        self._log.write("dream_denied", tool=tool, reason=reason)

    def _why_not_read(self, call: ToolCall) -> str | None:
        """Refuses to search folders above the memory directory, which have the real files, and to read whole
        transcripts. A confined dream reads nothing else than these two."""
        if self._confined and (reason := self._why_outside(call)):
            return reason
        if call.tool == "Bash":
            return None  # what it shows of transcripts is made shorter
        if call.tool == "Read":
            limit = call.input.get("limit")
            whole = not isinstance(limit, int) or limit > MOST_LINES
            is_transcript = str(call.input.get("file_path", "")).endswith(".jsonl")
            return f"{_NARROW}: give a limit of at most {MOST_LINES} lines." if is_transcript and whole else None
        pattern = str(call.input.get("glob" if call.tool == "Grep" else "pattern") or "")
        folder = list_paths(call)[-1]
        is_above = folder != self._copy.root and self._copy.root.is_relative_to(folder)
        if is_above and not pattern.endswith(".jsonl"):
            what = "glob" if call.tool == "Grep" else "pattern"
            return (
                f"{folder} holds the memory directory: search {self._copy.root} by its own path, or transcripts with a "
                f"{what} that ends in .jsonl."
            )
        return None

    def _why_outside(self, call: ToolCall) -> str | None:
        """Whether a call looks outside of the memory directory and the folders of the transcripts."""
        if call.tool == "Bash":
            return "Bash may not be used here: use Read, Grep and Glob."
        inside = [self._copy.root, *{Path(os.path.realpath(path.parent)) for path in self._transcripts}]
        where = Path(os.path.realpath(list_paths(call)[-1]))
        if any(where.is_relative_to(folder) for folder in inside):
            return None
        return f"Only {self._copy.root} and the transcripts may be read here: name a path in them."


def _why_not_write(name: str) -> str | None:
    return "A daily log is never changed: write what it teaches into a topic file." if is_log(name) else None


MOST_TRANSCRIPTS: Final = 100
MOST_BYTES: Final = 64_000_000
"""A larger transcript is skipped."""
_FOREIGN_CHARACTERS: Final = 4_000
_TYPED_CHARACTERS: Final = 20_000
_ALL_CHARACTERS: Final = 3_000_000
_MOST_NEAR: Final = 300


def read_sessions(paths: Sequence[Path]) -> list[tuple[str, list[Evidence]]]:
    """Returns the texts of these transcripts (given newest first) by session, oldest first; if too much, the newest."""
    found: list[tuple[str, list[Evidence]]] = []
    size = 0
    for path in paths[:MOST_TRANSCRIPTS]:
        try:
            if path.stat().st_size > MOST_BYTES:
                continue
            records = read_records(path).records
        except (OSError, ReverieError):
            continue
        said = [
            one
            for record in records
            if record.message is not None and not record.is_sidechain
            for one in message_evidence([(record.message, record.uuid or "", record.timestamp or "")])
        ]
        size += sum(len(one.text) for one in said)
        if found and size > _ALL_CHARACTERS:
            break
        found.append((path.stem, said))
    return found[::-1]


def message_evidence(messages: Iterable[tuple[Message, str, str]]) -> list[Evidence]:
    """Returns the blocks of messages (each with its uuid and time) as evidence, shortened."""
    found: list[Evidence] = []
    for message, uuid, at in messages:
        for block in message.content:
            text = block.text if isinstance(block, TextBlock | ToolResultBlock) else ""
            most = _TYPED_CHARACTERS if block.origin.is_users else _FOREIGN_CHARACTERS
            if text.strip():
                found.append(Evidence(block.origin, text[:most], uuid, at))
    return found


class Sources:
    """An index of all evidence by words. Judging by all of it would take too long."""

    def __init__(self, evidence: Sequence[Evidence]) -> None:
        self._evidence = tuple(evidence)
        self._holding: dict[str, list[int]] = {}
        for number, one in enumerate(self._evidence):
            for term in content_terms(one.text):
                self._holding.setdefault(term, []).append(number)

    def near(self, *texts: str) -> tuple[Evidence, ...]:
        """Returns the blocks that share two content words with one of these texts, and the user's next words."""
        wanted: set[int] = set()
        for text in texts:
            shared: dict[int, int] = {}
            for term in content_terms(text):
                for number in self._holding.get(term, ()):
                    shared[number] = shared.get(number, 0) + 1
            enough = sorted((-count, number) for number, count in shared.items() if count >= 2)
            wanted |= {number for _, number in enough[:_MOST_NEAR]}
        for number in list(wanted):
            after = number + 1  # a person's yes to what a model said
            if after < len(self._evidence) and self._evidence[after].origin.is_users:
                wanted.add(after)
        return tuple(self._evidence[number] for number in sorted(wanted))
