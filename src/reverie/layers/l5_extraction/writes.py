"""The memory writes of a run: through the directory and its gate, with an index line, one version per file.

The gate judges what is added; this judges what is removed. A file is emptied or loses statements only if the new
messages mention its subject, and only a few files per run. So a model that deletes everything deletes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from reverie.errors import ReverieError, StorageError
from reverie.memory.changes import ABSENT, Evidence, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.evidence import EvidenceText, assess, other_language, typed_text
from reverie.memory.gate.privacy import is_shared, why_private
from reverie.memory.gate.reversal import explain_reversal, find_reversal
from reverie.memory.gate.write_gate import Refused
from reverie.memory.index import entries
from reverie.memory.taxonomy import MemoryType, index_of, is_index, is_log, is_topic
from reverie.memory.topic_file import TopicFile, decode, statements_of
from reverie.permissions.memory_paths import PermissionRefused, check_memory_write
from reverie.storage.history.objects import blob_id
from reverie.text.sameness import StatementIndex
from reverie.text.sentences import statements
from reverie.text.words import content_terms

Done = Literal["added", "updated", "forgotten"]
VERBS: Mapping[Done, str] = {"added": "remembered", "updated": "updated", "forgotten": "forgot"}
_SPOKEN_OF = 2  # words of a file's subject that the user must have typed


class WriteRefused(ReverieError):
    """A write that the gate allows but that removes too much."""


@dataclass(frozen=True, slots=True)
class RunSource:
    """The basis of a run: the session, the last new message, and every new text with its origin."""

    session: str
    message: str
    evidence: tuple[Evidence, ...]


@dataclass(eq=False)
class MemoryWrites:
    """The writes of one run. `done` lists what happened to each topic file, `refused` why others were not written."""

    directory: MemoryDirectory
    source: RunSource
    _: KW_ONLY
    keeps_index: bool
    most_losses: int
    report: Callable[[str], None] = lambda _reason: None
    done: dict[str, Done] = field(default_factory=dict[str, Done], init=False)
    refused: list[str] = field(default_factory=list[str], init=False)
    unstored: StorageError | None = field(default=None, init=False)
    """The disk refused a write: the messages must be looked at again."""
    _losses: set[str] = field(default_factory=set[str], init=False)

    def keeper(self, path: Path) -> Callable[[bytes, bytes | None], bool] | None:
        """Returns the function that writes a file of the memory directory; None for any other file."""
        root = self.directory.root
        try:
            real = check_memory_write(str(path), root)
        except PermissionRefused:
            return None  # the permission function has refused the call already
        name = real.relative_to(root).as_posix()

        def keep(data: bytes, before: bytes | None) -> bool:
            try:
                self._write(name, decode(data), before)
            except ReverieError as error:
                self.refused.append(str(error))
                self.unstored = error if isinstance(error, StorageError) else self.unstored
                self.report(f"{name}: {_kind(error)}")
                raise
            return real.exists()

        return keep

    def _write(self, name: str, text: str, stood: bytes | None) -> None:
        directory = self.directory
        before = None if stood is None else decode(stood)
        base = ABSENT if stood is None else blob_id(stood)
        info = WriteInfo(
            Writer.EXTRACTION,
            "learnt from the conversation",
            session=self.source.session,
            message=self.source.message,
            evidence=self.source.evidence,
        )
        if is_log(name):
            raise WriteRefused(f"{name} is a daily log: only the main agent adds to it.")
        if is_index(name):
            _check_index(name, before or "", text, directory)
        if is_shared(name) and (private := why_private(name, text, before, self._private_texts())) is not None:
            raise WriteRefused(private)
        gone = is_topic(name) and not text.strip("\ufeff \t\r\n")
        if is_topic(name) and before is not None:
            self._check_losses(name, before, text)
        elif is_topic(name) and not gone:
            _check_head(name, text)
        if is_topic(name) and self.keeps_index:
            topic = TopicFile.parse("") if gone else self._with_trust(text, before)
            changed = directory.update(name, topic, info, base=base)
        else:
            changed = directory.apply_tool_write(str(directory.root / name), text, info, base=base)
        if changed is not None and is_topic(name):
            new = self.done.get(name, "added") == "added" and before is None
            self.done[name] = "forgotten" if gone else "added" if new or self.done.get(name) == "added" else "updated"

    def _with_trust(self, text: str, before: str | None) -> TopicFile:
        """Sets the trust: a new memory gets what it deserves, a changed one keeps what it had."""
        topic = TopicFile.parse(text)
        if before is not None:
            return topic.with_changes(trust=TopicFile.parse(before).trust)
        return topic.with_changes(trust=assess(statements_of(text), self.source.evidence).trust)

    def _private_texts(self) -> list[str]:
        return [text for name, text in self._texts().items() if not is_shared(name)]

    def _texts(self) -> dict[str, str]:
        return {name: self.directory.read(name).text for name in self.directory.names()}

    def _check_losses(self, name: str, before: str, after: str) -> None:
        if (turned := find_reversal(after, before, self._ground, lambda: self._texts().values())) is not None:
            raise WriteRefused(explain_reversal(name, *turned))
        lost = lost_statements(before, after)
        if not lost:
            return
        quoted = f"“{' '.join(lost[0].split())[:100]}”" + (f" and {len(lost) - 1} more" if len(lost) > 1 else "")
        is_meant = speaks_of(self._ground, before)
        if not is_meant and not other_language(before, self._spoken):
            raise WriteRefused(
                f"{name}: not written, because it would take out {quoted}, and nothing the user said speaks of that "
                "memory. Leave it as it is, or keep its statements and add to them."
            )
        most = self.most_losses if is_meant else min(1, self.most_losses)
        if len(self._losses | {name}) > most:
            raise WriteRefused(
                f"{name}: not written, because it would take out {quoted}, and one look at a conversation may shorten "
                f"or remove at most {most} memories. Leave it as it is."
            )
        self._losses.add(name)

    @cached_property
    def _spoken(self) -> str:
        return typed_text(self.source.evidence)

    @cached_property
    def _ground(self) -> EvidenceText:
        return EvidenceText([self._spoken])


def lost_statements(before: str, after: str) -> list[str]:
    """Returns the statements of the old body that the new body does not repeat in most of their words."""
    kept = StatementIndex(statements(TopicFile.parse(after).body))
    return [statement for statement in statements(TopicFile.parse(before).body) if not kept.has(statement)]


def speaks_of(ground: EvidenceText, text: str) -> bool:
    """Returns whether the typed text mentions a memory: half of the words of its name, or two words of its text."""
    topic = TopicFile.parse(text)
    title = content_terms(topic.name)
    if title and 2 * sum(ground.has(term) for term in title) >= len(title):
        return True
    terms = content_terms(f"{topic.name} {topic.description} {topic.body}")
    return sum(ground.has(term) for term in terms) >= min(_SPOKEN_OF, len(terms))


def _check_head(name: str, text: str) -> None:
    topic = TopicFile.parse(text)
    parts = {"name": topic.name, "description": topic.description, f"type ({', '.join(MemoryType)})": topic.type}
    missing = [part for part, given in parts.items() if not given]
    if missing:
        raise WriteRefused(
            f"{name}: not written, because its head lacks {' and '.join(missing)}; begin the file with a head between "
            "two lines of `---`."
        )


def _check_index(name: str, before: str, after: str, directory: MemoryDirectory) -> None:
    """An index may be reworded, but must name every existing file and keep the user's own lines."""
    named = {entry.file for entry in entries(after)}
    for entry in entries(before):
        if entry.file not in named and directory.exists(_beside(name, entry.file)):
            raise WriteRefused(f"{name}: not written, because {entry.file} would no longer be listed in it.")
    own = {entry.text for entry in entries(before)}
    missing = [line for line in before.splitlines() if line.strip() and line not in own and line not in after]
    if missing:
        raise WriteRefused(f"{name}: not written, because “{missing[0].strip()[:80]}” would be gone from it.")


def _beside(index: str, file: str) -> str:
    folder = index.rpartition("/")[0]
    name = f"{folder}/{file}" if folder else file
    return name if index_of(name) == index else file


def _kind(error: ReverieError) -> str:
    """Returns what may be logged of a refusal. Our sentences quote the memory, so only the kind."""
    return error.refusal.kind if isinstance(error, Refused) else type(error).__name__
