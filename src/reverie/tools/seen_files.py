"""Finds the files that a resumed conversation has seen, so that Edit works without a second Read.

Our own results hold a digest of the file. For other results the text is put together from the calls and compared with
the file. Results that were compacted, cleared or moved to disk do not count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.transcript.view import View
from reverie.tools.base import ReadCache, SeenFile
from reverie.tools.files import digest
from reverie.types import Json, JsonObject, Record, ToolResultBlock

SEEN = "seen"
"""The key in a structured result for what was seen of a file."""
_MOST_COMPARED = 100
_MOST_BYTES = 2_000_000
_OTHER = "another"
_NUMBERED = re.compile(r"^ *\d+[\t→](.*)$")


@dataclass(slots=True)
class _KnownFile:
    """One file: the digest of its bytes, or its text."""

    digest: str = ""
    text: str | None = None
    partial: bool = False


def describe_seen_file(seen: SeenFile) -> JsonObject:
    """Makes the part of a structured result that says what was seen of a file."""
    return {SEEN: {"digest": seen.digest, "partial": seen.partial}}


def find_seen_files(view: View, records: Sequence[Record], cwd: Path) -> ReadCache:
    """Returns the files whose content is in view; a changed file gets a digest that never matches."""
    known = dict[Path, _KnownFile]()
    for name, given, block, structured in _list_calls(view, records):
        path = _resolve_path(given, cwd)
        if path is not None:
            before = known.pop(path, None)
            after = _update(name, given, block.text, structured, before)
            if after is not None:
                known[path] = after
    cache = ReadCache()
    compared = 0
    for order, (path, one) in enumerate(known.items(), 1):
        if not one.digest:
            compared += 1
            one.digest = _digest_if_same(path, one.text) if compared <= _MOST_COMPARED else ""
        if one.digest:
            cache.note(path, SeenFile(0, 0, one.digest, one.partial, order))
    return cache


def _list_calls(view: View, records: Sequence[Record]) -> Iterator[tuple[str, JsonObject, ToolResultBlock, Json]]:
    """Yields name, input, result and structured result of every successful call on a file that is shown whole."""
    structured = {record.uuid: record.data.get("toolUseResult") for record in records if "toolUseResult" in record.data}
    calls = {use.id: use for entry in view.entries for use in entry.message.tool_uses}
    decided = view.replaced.keys() | view.cleared.keys() | view.cache_edits.keys()
    for entry in view.entries:
        for block in entry.message.tool_results:
            use = calls.get(block.tool_use_id)
            if use is None or block.is_error or use.name not in ("Read", "Edit", "Write"):
                continue
            if use.name != "Read" or block.tool_use_id not in decided:
                yield use.name, use.input, block, structured.get(entry.uuid)


def _resolve_path(given: Json, cwd: Path) -> Path | None:
    named: Json = as_object(given).get("file_path")
    if not isinstance(named, str) or not named or "\0" in named:
        return None
    try:
        return Path(os.path.realpath(cwd / Path(named).expanduser()))
    except (RuntimeError, OSError):
        return None


def _update(name: str, given: JsonObject, shown: str, structured: Json, before: _KnownFile | None) -> _KnownFile | None:
    """Returns what is known of a file after this call; None if nothing is certain."""
    result = cast(JsonObject, structured) if isinstance(structured, dict) else {}
    noted: Json = result.get(SEEN)
    if isinstance(noted, dict):
        kept = cast(JsonObject, noted)
        same = before is not None and before.digest == kept.get("digest") and not before.partial
        return _KnownFile(str(kept.get("digest") or ""), partial=bool(kept.get("partial")) and not same)
    match name:
        case "Read" if given.get("offset") is None and given.get("limit") is None:
            lines = [found[1] for line in shown.split("\n") if (found := _NUMBERED.match(line))]
            return _KnownFile(text="\n".join(lines) if lines else shown)
        case "Write" if isinstance(given.get("content"), str):
            return _KnownFile(text=str(given["content"]))
        case "Edit" if before is not None and before.text is not None:
            old, new = str(given.get("old_string") or ""), str(given.get("new_string") or "")
            return _KnownFile(text=before.text.replace(old, new, -1 if given.get("replace_all") else 1))
        case _:
            return None


def _digest_if_same(path: Path, text: str | None) -> str:
    """The digest of the file if it still has this text (apart from line ends at the end), else one that never matches.

    Empty if the file cannot be compared.
    """
    if text is None:
        return ""
    try:
        data = read_regular(path, _MOST_BYTES)
    except OSError:
        return ""
    return digest(data) if _normalise(data.decode("utf-8", "replace")) == _normalise(text) else _OTHER


def _normalise(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")
