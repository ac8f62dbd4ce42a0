"""What the rest of a session went on to use of what it knew, and how much of that a text still holds. Pure.

Only what stood before the cut can survive it: what first came up afterwards does not count. What is looked for is
found here by rules of its own, not by those of the writer it judges; only which calls failed is read as it does.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import cast

from reverie.layers.l4_compaction.by_code import Operation, operations
from reverie.layers.l4_compaction.requests import requests_in
from reverie.storage.transcript.view import Entry
from reverie.types import Json, TextBlock, ToolResultBlock, ToolUseBlock

REQUEST_BYTES = 2_000
_OPENING = 120
_COMMAND = 120
_FILE_TOOLS = ("read", "write", "edit")
_PATHLIKE = re.compile(r"(?<![\w.:/@$*])(?:~?/)?(?:[\w.@+-]+/)*[\w.@+-]*\w\.[a-z][a-z0-9]{0,7}(?![\w/.*(:@-])")
_HOST = re.compile(r"^[\w-]+(?:\.[\w-]+)*\.(?:com|org|io|net|dev)(?:/|$)")
_WORD = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]{2,}|(?<!\w)[^\W\d]\w{3,59}|\b[0-9a-f]{7,40}\b|\b[A-Z]{2,6}-\d+\b")
_ESCAPED = re.compile(r"\\[nrt]")
_LOOKS_LIKE_CODE = re.compile(r"^--|_\w|[a-z][A-Z]|[A-Z]{2}[a-z]|\d")


@dataclass(frozen=True, slots=True)
class Used:
    """What was known before the cut and used behind it, and what was known at all."""

    files: frozenset[str]
    identifiers: frozenset[str]
    failed_commands: frozenset[str]
    requests: tuple[str, ...]
    known_files: frozenset[str]
    known_identifiers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Held:
    """How much of it a text holds: `kept` of `total` a kind, and what it lists beside."""

    kept: dict[str, int]
    total: dict[str, int]
    listed: int
    listed_and_used: int
    lost: dict[str, list[str]]


def used_again(before: Sequence[Entry], after: Sequence[Entry], cwd: str) -> Used:
    """What to look for: see docs/layers/work-by-code.md for each definition."""
    done, later = operations(before), operations(after)
    known = set(files_touched(done, cwd))
    touched = set(files_touched(later, cwd, known))
    in_paths = identifiers("\n".join(known | touched))
    everything = "\n".join(_text(block) for entry in before for block in entry.message.content)
    before_names = identifiers(everything) - in_paths
    failed = {o.target for o in done if o.kind == "run" and not o.ok}
    run_later = {o.target for o in later if o.kind == "run"}
    return Used(
        files=frozenset(known & touched),
        identifiers=frozenset(before_names & identifiers(_made(after))),
        failed_commands=frozenset((failed & run_later) - {""}),
        requests=tuple(dict.fromkeys(request.words for request in requests_in(before))),
        known_files=frozenset(known),
        known_identifiers=frozenset(before_names),
    )


class Text:
    """A context to look things up in."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def flat(self) -> str:
        return " ".join(self.text.split())

    @cached_property
    def identifiers(self) -> set[str]:
        return identifiers(self.text)

    @cached_property
    def names(self) -> set[str]:
        """Every file name in it."""
        return set(re.findall(r"[\w.@+-]*[\w@+-]", self.text))

    def names_file(self, path: str) -> bool:
        return PurePosixPath(path).name in self.names

    def quotes(self, request: str) -> bool:
        """Word for word; of one that is longer than is shown whole, its beginning."""
        whole = " ".join(request.split())
        if len(request.encode("utf-8", "replace")) > REQUEST_BYTES:
            return whole[:_OPENING] in self.flat
        return whole in self.flat


def held(used: Used, context: str) -> Held:
    """Looks everything up in a context."""
    text = Text(context)
    lost = {
        "files": [path for path in used.files if not text.names_file(path)],
        "requests": [request for request in used.requests if not text.quotes(request)],
        "failed_commands": [one for one in used.failed_commands if one[:_COMMAND] not in text.flat],
        "identifiers": sorted(used.identifiers - text.identifiers),
    }
    total = {kind: len(getattr(used, kind)) for kind in lost}
    listed_files = {path for path in used.known_files if text.names_file(path)}
    listed_names = used.known_identifiers & text.identifiers
    return Held(
        kept={kind: total[kind] - len(lost[kind]) for kind in total},
        total=total,
        listed=len(listed_files) + len(listed_names),
        listed_and_used=len(listed_files & used.files) + len(listed_names & used.identifiers),
        lost={kind: sorted(items) for kind, items in lost.items()},
    )


def files_touched(done: Iterable[Operation], cwd: str, known: Iterable[str] = ()) -> list[str]:
    """Paths of read, written and edited files and those in commands, the one touched last at the end."""
    found = dict.fromkeys(known)
    order = dict[str, None]()
    for operation in done:
        names = list[str]()
        if operation.kind in _FILE_TOOLS and operation.target:
            names = [operation.target]
        elif operation.kind == "run":
            known_names = {PurePosixPath(path).name for path in found}
            names = [m for m in _PATHLIKE.findall(operation.target) if _is_path(m, known_names)]
        for name in names:
            path = _resolved(name, cwd, found)
            found[path] = None
            order.pop(path, None)
            order[path] = None
    return list(order)


def _is_path(word: str, known_names: set[str]) -> bool:
    """Whether a word of a command names a file: by its folders, or because a file of that name was touched before."""
    return word in known_names or ("/" in word and not _HOST.match(word))


def _resolved(name: str, cwd: str, known: Iterable[str]) -> str:
    """A relative path is the known file it ends like, since commands change folders; else it is under the cwd."""
    if name.startswith(("/", "~")):
        return os.path.normpath(name)
    tail = "/" + os.path.normpath(name).lstrip("./")
    return next((path for path in known if path.endswith(tail)), os.path.normpath(f"{cwd}/{name}"))


def identifiers(text: str) -> set[str]:
    """Words that only code has (inner capitals, underscores, digits), options, tickets and hashes."""
    plain = _ESCAPED.sub(" ", text)
    return {word for word in _WORD.findall(plain) if _LOOKS_LIKE_CODE.search(word) and not word.isdigit()}


def _made(entries: Iterable[Entry]) -> str:
    """What the model wrote: its answers and the inputs of its calls. What tools printed is not its doing."""
    return "\n".join(
        _text(block)
        for entry in entries
        if entry.message.role == "assistant"
        for block in entry.message.content
        if isinstance(block, TextBlock | ToolUseBlock)
    )


def _text(block: object) -> str:
    match block:
        case TextBlock() | ToolResultBlock():
            return block.text
        case ToolUseBlock():
            return "\n".join(_strings(block.input))
        case _:
            return ""


def _strings(value: Json) -> list[str]:
    if isinstance(value, dict):
        return [text for item in cast(dict[str, Json], value).values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in cast(list[Json], value) for text in _strings(item)]
    return [str(value)]
