"""Ranks identifiers by how likely they are needed again, with the file of each.

A name counts by how recently it was in each kind of place (typed by the user, said or written by the model, commands,
results of each tool). A name in many kinds of places is central to the work. Words of prose and hashes do not count.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache
from math import exp, log1p
from pathlib import PurePath
from typing import cast

from reverie.layers.l4_compaction.by_code.operations import call_input, changes_of, path_of
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.text.patterns import late
from reverie.types import Json, Origin, TextBlock, ToolResultBlock, ToolUseBlock

_NAME = late(r"(?<![\w-])--[a-z][a-z0-9-]{2,30}|(?<!\w)[^\W\d]\w{3,59}|\b[A-Z]{2,6}-\d+\b|\b[0-9a-f]{7,40}\b")
_ESCAPED = late(r"\\[nrt]")
_IS_CODE = late(r"^--|\w_\w|[a-z][A-Z]|[A-Z]{2}[a-z]|[^\W\d]\d|[A-Z]-\d")
_NOT_A_NAME = late(r"[a-f]+|\d+|[A-Z]{4,}|[A-Z]\d{1,5}|.*_{4,}.*|[a-z]\d+|REDACTED\w*|__\w+__|0x[0-9a-fA-F]+")
_HASH = late(r"[0-9a-f]{7,40}")
_FADES_OVER = 60.0
"""Messages after which a mention counts about a third."""

_TYPED, _SAID = 1.0, 1.5
_OFTEN = 0.5
_MOST_TEXT = 200_000
_KEPT_TEXT = 50_000


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier, its weight, and the file it was in last (empty: none)."""

    text: str
    weight: float
    file: str = ""


@dataclass(slots=True)
class _Seen:
    latest: dict[str, int] = field(default_factory=dict[str, int])
    blocks: int = 0
    typed: int = 0
    file: str = ""


def ranked_names(entries: Sequence[Entry]) -> list[Name]:
    """Returns every name with its weight, best first; ties by the alphabet, so that the order is stable."""
    seen = dict[str, _Seen]()
    end = len(entries)
    for at, place, text, file in _texts(entries):
        for name in _find_names(text) if len(text) > _KEPT_TEXT else _names_in(text):
            one = seen.setdefault(name, _Seen())
            one.latest[place] = at
            one.blocks += 1
            one.typed += place == "person"
            if file:
                one.file = file
    ranked = [Name(name, _weight(one, end), one.file) for name, one in seen.items() if _is_meant(name, one)]
    return sorted(ranked, key=lambda name: (-name.weight, name.text))


def names_beside(entries: Sequence[Entry], limit: int, beside: str, *, cwd: str = "") -> str:
    """Lists the best names that are not in the text `beside` yet, one line per file."""
    said = set(_NAME.findall(beside))
    chosen = [name for name in ranked_names(entries) if name.text not in said][: max(0, limit)]
    return "\n".join(f"- {line}" for line in names_by_file(chosen, cwd))


def names_by_file(names: Iterable[Name], cwd: str = "") -> list[str]:
    """Returns lines that say which names are in which file, the file with the most important name first."""
    groups = dict[str, list[str]]()
    for name in names:
        groups.setdefault(name.file, []).append(name.text)
    elsewhere = groups.pop("", [])
    lines = [f"{_short(file, cwd)}: {', '.join(found)}" for file, found in groups.items()]
    return [*lines, *([f"elsewhere: {', '.join(elsewhere)}"] if elsewhere else [])]


def _is_meant(name: str, one: _Seen) -> bool:
    """A hash that only tools printed is not a name."""
    return not _HASH.fullmatch(name) or any(not place.startswith("from ") for place in one.latest)


def _weight(one: _Seen, end: int) -> float:
    near = sum((_SAID if place == "said" else 1.0) * exp((at - end) / _FADES_OVER) for place, at in one.latest.items())
    return near + _TYPED * log1p(one.typed) + _OFTEN * log1p(one.blocks)


def _find_names(text: str) -> frozenset[str]:
    found = set(_NAME.findall(_ESCAPED.sub(" ", text[:_MOST_TEXT])))
    return frozenset(filter(_looks_like_code, found))


_names_in = lru_cache(maxsize=1_024)(_find_names)  # notes are written again and again about the same conversation


@lru_cache(maxsize=16_384)
def _looks_like_code(name: str) -> bool:
    return bool(_IS_CODE.search(name)) and not _NOT_A_NAME.fullmatch(name) and not hasattr(builtins, name)


def _texts(entries: Sequence[Entry]) -> Iterator[tuple[int, str, str, str]]:
    calls = dict[str, tuple[str, str]]()
    for at, entry in enumerate(entries):
        for block in entry.message.content:
            match block:
                case TextBlock(text=text, origin=Origin.TYPED | Origin.ENTERED):
                    yield at, "person", text, ""
                case TextBlock(text=text, origin=Origin.MODEL):
                    yield at, "said", text, ""
                case ToolUseBlock():
                    calls[block.id] = (block.name, path_of(block))
                    changes = changes_of(block)
                    for old, new in changes:
                        yield at, "put in", new, path_of(block)
                        yield at, "taken out", old, path_of(block)
                    if not changes:
                        values = [value for key, value in call_input(block).items() if key != "file_path"]
                        yield at, f"given {block.name}", "\n".join(_strings(values)), ""
                case ToolResultBlock():
                    tool, file = calls.get(block.tool_use_id, ("", ""))
                    yield at, f"from {tool}", block.text, file if tool in ("Read", "NotebookRead") else ""
                case _:
                    pass


def _strings(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [text for item in cast(dict[str, Json], value).values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in cast(list[Json], value) for text in _strings(item)]
    return [str(value)]


def _short(path: str, cwd: str) -> str:
    inside = path.removeprefix(cwd.rstrip("/") + "/") if cwd else path
    return "/".join(PurePath(inside).parts[-2:])
