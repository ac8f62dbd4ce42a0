"""The memory inbox: statements that the user did not say, and conclusions against what the user confirmed. One JSON
file per item in a hidden folder of the memory directory: scans skip it and agents cannot write it. Accepting writes the
memory as the user's own; rejecting removes the item. It never holds a secret, and it reports when it is full."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

from reverie.errors import ReverieError, UserError
from reverie.memory.changes import Change, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.lines import body_parts, take_out
from reverie.memory.secrets.scan import redact
from reverie.memory.taxonomy import is_topic
from reverie.memory.topic_file import TopicFile
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.storage.atomic import create_exclusive, make_private_dir, storage_error, write_atomic
from reverie.storage.history.versions import Version
from reverie.text.cutting import shorten
from reverie.text.folding import fold_statement

FOLDER: Final = ".inbox"
CONFLICT: Final = "conflict"
"""Why an item waits: a sync found two versions of a memory."""
LIMIT: Final = 200
"""Most items that can wait."""
_EXCERPT: Final = 300
_SHORT_ID: Final = 8
_LONGEST_TEXT: Final = 60_000


class InboxFull(ReverieError):
    """The inbox is full; the user has to look through it first."""


@dataclass(frozen=True, slots=True)
class ItemSource:
    """A block of the conversation, shortened."""

    origin: str
    excerpt: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that waits for the user."""

    why: str
    """`evidence` (the user did not say it), `contradiction` (the user confirmed something else), `removal` (it would
    take out what the user said) or `conflict` (this machine and another one changed it)."""
    file: str
    """The memory it was meant for, relative to the memory directory."""
    text: str
    """The whole proposed file."""
    statements: tuple[str, ...]
    """The statements in question."""
    question: str = ""
    """The question to the user; empty: whether to remember it."""
    removes: tuple[str, ...] = ()
    """Statements that would be gone."""
    reason: str = ""
    """Why it waits, as the end of a sentence."""
    before: str = ""
    """Digest of the file it would replace; empty if it is new."""
    sources: tuple[ItemSource, ...] = ()
    writer: str = ""
    session: str = ""
    message: str = ""
    time: str = ""
    """When, in ISO form."""
    id: str = field(default="")
    other: str = ""
    """Of a conflict: the file with the version of this machine; `file` has the other one."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def folded(self) -> tuple[str | tuple[str, ...], ...]:
        """What makes two items one: everything that accepting writes, apart from white space."""
        removes = tuple(map(fold_statement, self.removes))
        statements = tuple(map(fold_statement, self.statements))
        return self.why, self.file, self.other, fold_statement(self.text), statements, removes

    def other_lines(self) -> tuple[str, ...]:
        """The lines of the proposed file that are not among the statements in question: accepting writes them too."""
        topic = TopicFile.parse(self.text)
        said = set(self.statements)
        shown = fold_statement(" ".join(self.statements))
        head = [one for one in (topic.name, topic.description) if fold_statement(one).rstrip("…") not in shown]
        body = topic.body.splitlines()
        parts = {line: [bare for _, bare in body_parts(line)] for line in body if line.strip()}
        return (*head, *(line for line, bare in parts.items() if not said.issuperset(bare or [line])))


class MemoryInbox:
    """The inbox of one memory directory. The first item makes its folder."""

    def __init__(self, memory: Path, *, limit: int = LIMIT, now: Callable[[], datetime] | None = None) -> None:
        self.folder = memory / FOLDER
        self._limit = limit
        self._now = now or (lambda: datetime.now(UTC))

    def add(self, item: Item) -> str:
        """Adds an item and returns its id; an equal proposal is the same item. `InboxFull` if it is full."""
        clean = replace(
            item,
            text=redact(item.text)[:_LONGEST_TEXT],
            statements=tuple(redact(one) for one in item.statements),
            removes=tuple(redact(one) for one in item.removes),
            question=redact(item.question),
            sources=tuple(replace(one, excerpt=shorten(redact(one.excerpt), _EXCERPT)) for one in item.sources),
            time=item.time or self._now().isoformat(timespec="seconds"),
        )
        key = hashlib.sha256(json.dumps(clean.folded()).encode()).hexdigest()
        length = _SHORT_ID
        while (path := self._path(key[:length])).exists():
            waiting = self._read(path)
            if waiting is not None and waiting.folded() == clean.folded():
                return waiting.id
            length += 1  # another item has this id
        clean = replace(clean, id=path.stem)
        if len(self._names()) >= self._limit:
            raise InboxFull(
                f"{self._limit} things wait in the inbox; look through them with `reverie memory inbox` first."
            )
        make_private_dir(self.folder)
        create_exclusive(
            path, (json.dumps(clean.to_json(), ensure_ascii=False, indent=1) + "\n").encode(errors="replace")
        )
        return clean.id

    def list(self) -> list[Item]:
        """Everything that waits, oldest first; other files are left out."""
        found = [item for name in self._names() if (item := self._read(self.folder / name)) is not None]
        return sorted(found, key=lambda item: (item.time, item.id))

    def count(self) -> int:
        return len(self._names())

    def show(self, spec: str) -> Item:
        """An item by its id or the beginning of it; `UserError` if there is none, or more than one."""
        found = [item for item in self.list() if spec and item.id.startswith(spec.strip().lower())]
        if len(found) == 1:
            return found[0]
        if found:
            raise UserError(f"{spec!r} begins {len(found)} items of the inbox; give more of the id.")
        raise UserError(f"Nothing in the inbox begins with {spec[:20]!r}; `reverie memory inbox` lists what waits.")

    def accept(self, spec: str, memory: MemoryDirectory, *, text: str | None = None) -> Version | None:
        """Writes the item as the user's own, confirmed, and removes it. `text` replaces the proposal. If the file has
        changed meanwhile, only the statements in question are added to it."""
        item = self.show(spec)
        if item.why == CONFLICT:
            return self.choose(item, memory, own=True)
        why = f"Accepted from the inbox ({item.id})."
        info = WriteInfo(Writer.USER, why, item.session, item.message, confirms=True)
        if not is_topic(item.file):
            version = memory.append(item.file, "".join(f"- {one}\n" for one in item.statements), info)
        elif not memory.exists(item.file):
            version = memory.create(item.file, TopicFile.parse(text or item.text), info) if text or item.text else None
        else:
            now = memory.read(item.file)
            is_same = now.digest == item.before
            proposed = text or (item.text if is_same else _change_statements(now.text, item))
            if TopicFile.parse(proposed).body.strip():
                version = memory.update(item.file, TopicFile.parse(proposed), info, base=now.digest)
            else:
                version = memory.remove(item.file, info, base=now.digest)
        self._remove(item.id)
        return version

    def choose(self, item: Item, memory: MemoryDirectory, *, own: bool) -> Version | None:
        """Ends a conflict: the chosen version gets the name of the memory, and the other one is removed."""
        info = WriteInfo(Writer.USER, f"Chosen in the inbox ({item.id}).", confirms=own)
        version = None
        if memory.exists(item.other):
            text = memory.read(item.other)
            changes = [Change(item.other, None, text.digest)]
            version = memory.transaction([*changes, *([Change(item.file, text.text)] if own else [])], info).version
        self._remove(item.id)
        return version

    def reject(self, spec: str) -> Item:
        """Removes an item without writing it, and returns it. Of a conflict both versions stay."""
        item = self.show(spec)
        self._remove(item.id)
        return item

    def replace_everywhere(self, change: Callable[[str], str]) -> int:
        """Applies `change` to every item's file (a purge); returns how many changed."""
        changed = 0
        for name in self._names():
            path = self.folder / name
            try:
                before = read_regular_text(path, errors="surrogateescape")
            except OSError as error:
                raise storage_error(error, path, "read") from error
            after = change(before)
            if after != before:
                write_atomic(path, after.encode("utf-8", "surrogateescape"))
                changed += 1
        return changed

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _names(self) -> Sequence[str]:
        try:
            return sorted(entry.name for entry in self.folder.iterdir() if entry.name.endswith(".json"))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise storage_error(error, self.folder, "read the inbox at") from error

    def _read(self, path: Path) -> Item | None:
        try:
            raw: Any = load_json(read_regular_text(path, errors="replace"))
        except (OSError, ValueError):
            return None
        return parse_item(cast("dict[str, Any]", raw)) if isinstance(raw, dict) else None

    def _remove(self, name: str) -> None:
        try:
            self._path(name).unlink(missing_ok=True)
            with suppress(OSError):
                self.folder.rmdir()  # an empty inbox does not need a folder
        except OSError as error:
            raise storage_error(error, self._path(name), "remove") from error


def parse_item(raw: dict[str, Any]) -> Item | None:
    """An item from its JSON; None if it is not one."""
    names = [one.name for one in fields(Item) if one.type == "str"]
    given = {name: value for name in names if isinstance(value := raw.get(name, ""), str)}
    said, removes = _texts(raw.get("statements")), _texts(raw.get("removes"))
    if len(given) != len(names) or not given["id"] or not given["file"]:
        return None
    return Item(
        **given,
        statements=said,
        removes=removes,
        sources=tuple(
            ItemSource(str(one.get("origin", "")), str(one.get("excerpt", "")), str(one.get("message", "")))
            for one in _objects(raw.get("sources"))
        ),
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in cast("list[Any]", value)) if isinstance(value, list) else ()


def _objects(value: Any) -> list[dict[str, Any]]:
    return (
        [cast("dict[str, Any]", one) for one in cast("list[Any]", value) if isinstance(one, dict)]
        if isinstance(value, list)
        else []
    )


def _change_statements(now: str, item: Item) -> str:
    topic = TopicFile.parse(now)
    body = take_out(topic.body, item.removes) if item.removes else topic.body
    added = "\n".join(f"- {one}" for one in item.statements)
    return topic.with_changes(body=f"{body.rstrip()}\n\n{added}\n" if added else body).text
