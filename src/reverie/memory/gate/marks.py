"""The marks of a memory directory: how far each statement is trusted, and the user's words that it rests on. They are
in a hidden file, by the text of the statement, so they follow it through renames, merges and undo, and no file can
claim one for itself. Written under the directory's lock; reading needs none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, cast

from reverie.memory.changes import Mark
from reverie.memory.gate.lines import body_parts, plain
from reverie.memory.secrets.scan import redact
from reverie.memory.taxonomy import Trust
from reverie.memory.topic_file import TopicFile
from reverie.parsing import load_json
from reverie.regular_files import LARGEST, read_regular, read_regular_text
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic
from reverie.text.cutting import shorten
from reverie.text.folding import fold_statement, fold_text, visible

FOLDER: Final = ".trust"
FILE: Final = "marks.jsonl"
_QUOTE: Final = 240
_TEXTS: Final = ("how", "quote", "at", "session", "message", "source", "contradicts")


class Marks:
    """The marks of one memory directory. A file that cannot be read counts as no marks."""

    def __init__(self, root: Path) -> None:
        self.path = root / FOLDER / FILE
        self._stamp: tuple[int, int] | None = None
        self._marks: dict[str, Mark] = {}
        self._exact: dict[tuple[str, str], Mark] = {}
        """By key and form: statements that differ in case share a key, and not a mark."""

    def of(self, statement: str) -> Mark | None:
        """The mark of a statement, in any formatting; None if it has none."""
        return self.of_each((statement,))[0]

    def of_each(self, statements: Iterable[str]) -> list[Mark | None]:
        """The same for each of these, with one look at the file."""
        self._refresh()
        return [self._of(statement_key(one), _form(one)) for one in statements]

    def _of(self, key: str, form: str) -> Mark | None:
        return self._exact.get((key, form)) or self._exact.get((key, ""))  # older marks have no form

    def trust_of(self, statement: str, topic: TopicFile) -> Trust | None:
        """How far a statement of a file is trusted. The file's head can lower it, but not raise it."""
        return trust_by(self.of(statement), topic)

    def by_key(self) -> Mapping[str, Mark]:
        """All marks, by `statement_key`."""
        self._refresh()
        return self._marks

    def lead_trust(self, text: str) -> Trust | None:
        """How far a memory is trusted: as its first statement."""
        topic = TopicFile.parse(text)
        lead = next((bare for _, bare in body_parts(topic.body)), topic.description)
        return self.trust_of(lead, topic) if lead else None

    def add(self, marks: Mapping[str, Mark]) -> None:
        """Stores marks; a later one replaces an earlier one of the same statement."""
        if not marks:
            return
        lines = [
            json.dumps({"id": statement_key(statement), "form": _form(statement), **_fields(mark)}, ensure_ascii=False)
            for statement, mark in marks.items()
        ]
        try:
            before = read_regular(self.path, LARGEST)
        except OSError:
            before = b""
        make_private_dir(self.path.parent)
        write_atomic(self.path, before + "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))

    def replace_everywhere(self, change: Callable[[str], str]) -> int:
        """Applies `change` to the whole file (a purge); returns 1 if it changed."""
        try:
            before = read_regular_text(self.path, errors="surrogateescape")
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise storage_error(error, self.path, "read") from error
        after = change(before)
        if after == before:
            return 0
        write_atomic(self.path, after.encode("utf-8", "surrogateescape"))
        return 1

    def _refresh(self) -> None:
        try:
            status = self.path.stat()
            stamp = status.st_mtime_ns, status.st_size
            if stamp == self._stamp:
                return
            text = read_regular_text(self.path, errors="replace")
        except OSError:
            self._stamp, self._marks, self._exact = None, {}, {}
            return
        found: dict[str, Mark] = {}
        exact: dict[tuple[str, str], Mark] = {}
        for line in text.splitlines():
            try:
                raw: Any = load_json(line)
            except ValueError:
                continue
            if isinstance(raw, dict) and (mark := _mark(cast("dict[str, Any]", raw))) is not None:
                key = str(cast("dict[str, Any]", raw)["id"])
                found[key] = exact[key, str(cast("dict[str, Any]", raw).get("form") or "")] = mark
        self._stamp, self._marks, self._exact = stamp, found, exact


def trust_by(mark: Mark | None, topic: TopicFile) -> Trust | None:
    """How far a statement with this mark is trusted in this file."""
    if mark is None:
        return Trust.INFERRED if topic.trust is Trust.INFERRED else None
    return mark.trust


@lru_cache(maxsize=4_096)
def statement_key(statement: str) -> str:
    """Under which a statement is marked: the same for every formatting of it."""
    bare = fold_text(plain(visible(statement))).rstrip(" .。!！")
    return hashlib.sha256(bare.encode("utf-8", "replace")).hexdigest()[:20]


@lru_cache(maxsize=4_096)
def _form(statement: str) -> str:
    bare = fold_statement(plain(visible(statement)))
    return hashlib.sha256(bare.encode("utf-8", "replace")).hexdigest()[:12]


def _fields(mark: Mark) -> dict[str, Any]:
    given = asdict(mark) | {"quote": shorten(redact(mark.quote), _QUOTE), "span": list(mark.span)}
    return {key: value for key, value in given.items() if value and value != [0, 0]}


def _mark(raw: Mapping[str, Any]) -> Mark | None:
    trust = Trust.read(str(raw.get("trust", "")))
    if trust is None or not isinstance(raw.get("id"), str):
        return None
    span = [one for one in cast("list[Any]", raw.get("span") or []) if isinstance(one, int)]
    texts = {key: str(raw.get(key) or "") for key in _TEXTS}
    return Mark(trust, span=(span[0], span[1]) if len(span) == 2 else (0, 0), **texts)
