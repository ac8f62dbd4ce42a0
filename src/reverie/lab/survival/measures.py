"""What a session used again after a compaction, and how much of that a text still has.

Only what was known before the cut counts. The rules to find it are not those of the writer that is measured.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import PurePosixPath

from reverie.lab.recordings import strings_in
from reverie.layers.l4_compaction.by_code import Operation, operations
from reverie.layers.l4_compaction.requests import requests_in
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.types import TextBlock, ToolResultBlock, ToolUseBlock

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
class UsedAgain:
    """What was known before the cut and used after it, and everything that was known."""

    files: frozenset[str]
    identifiers: frozenset[str]
    failed_commands: frozenset[str]
    requests: tuple[str, ...]
    known_files: frozenset[str]
    known_identifiers: frozenset[str]


@dataclass(frozen=True, slots=True)
class HeldItems:
    """How much a text has of what was used again: `kept` of `total` per kind, and how many items it lists."""

    kept: dict[str, int]
    total: dict[str, int]
    listed: int
    listed_and_used: int
    lost: dict[str, list[str]]


def find_used_again(before: Sequence[Entry], after: Sequence[Entry], cwd: str) -> UsedAgain:
    """What was used again. docs/layers/work-by-code.md has the definitions."""
    done, later = operations(before), operations(after)
    known = set(touched_files(done, cwd))
    touched = set(touched_files(later, cwd, known))
    in_paths = identifiers("\n".join(known | touched))
    everything = "\n".join(_text(block) for entry in before for block in entry.message.content)
    before_names = identifiers(everything) - in_paths
    failed = {o.target for o in done if o.kind == "run" and not o.ok}
    run_later = {o.target for o in later if o.kind == "run"}
    return UsedAgain(
        files=frozenset(known & touched),
        identifiers=frozenset(before_names & identifiers(_model_text(after))),
        failed_commands=frozenset((failed & run_later) - {""}),
        requests=tuple(dict.fromkeys(request.words for request in requests_in(before))),
        known_files=frozenset(known),
        known_identifiers=frozenset(before_names),
    )


class SearchedText:
    """A text in which items are looked up."""

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
        """Every file name in the text."""
        return set(re.findall(r"[\w.@+-]*[\w@+-]", self.text))

    def names_file(self, path: str) -> bool:
        return PurePosixPath(path).name in self.names

    def quotes(self, request: str) -> bool:
        """Whether the text has the request word for word, or the beginning of a long one."""
        whole = " ".join(request.split())
        if len(request.encode("utf-8", "replace")) > REQUEST_BYTES:
            return whole[:_OPENING] in self.flat
        return whole in self.flat


def find_held(used: UsedAgain, context: str) -> HeldItems:
    """Looks up everything that was used again in a context."""
    text = SearchedText(context)
    lost = {
        "files": [path for path in used.files if not text.names_file(path)],
        "requests": [request for request in used.requests if not text.quotes(request)],
        "failed_commands": [one for one in used.failed_commands if one[:_COMMAND] not in text.flat],
        "identifiers": sorted(used.identifiers - text.identifiers),
    }
    total = {kind: len(getattr(used, kind)) for kind in lost}
    listed_files = {path for path in used.known_files if text.names_file(path)}
    listed_names = used.known_identifiers & text.identifiers
    return HeldItems(
        kept={kind: total[kind] - len(lost[kind]) for kind in total},
        total=total,
        listed=len(listed_files) + len(listed_names),
        listed_and_used=len(listed_files & used.files) + len(listed_names & used.identifiers),
        lost={kind: sorted(items) for kind, items in lost.items()},
    )


def touched_files(done: Iterable[Operation], cwd: str, known: Iterable[str] = ()) -> list[str]:
    """The paths of files that were read, written, edited or named in commands, in the order of the last use."""
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
            path = _resolve(name, cwd, found)
            found[path] = None
            order.pop(path, None)
            order[path] = None
    return list(order)


def _is_path(word: str, known_names: set[str]) -> bool:
    """Whether a word of a command is a file: it has folders, or a file of that name was used before."""
    return word in known_names or ("/" in word and not _HOST.match(word))


def _resolve(name: str, cwd: str, known: Iterable[str]) -> str:
    """The absolute path: of the known file with the same end, because commands change folders, or in the cwd."""
    if name.startswith(("/", "~")):
        return os.path.normpath(name)
    tail = "/" + os.path.normpath(name).lstrip("./")
    return next((path for path in known if path.endswith(tail)), os.path.normpath(f"{cwd}/{name}"))


def identifiers(text: str) -> set[str]:
    """Words that only code has (inner capitals, underscores, digits), options, tickets and hashes."""
    plain = _ESCAPED.sub(" ", text)
    return {word for word in _WORD.findall(plain) if _LOOKS_LIKE_CODE.search(word) and not word.isdigit()}


def _model_text(entries: Iterable[Entry]) -> str:
    """What the model wrote: its answers and the inputs of its calls."""
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
            return "\n".join(strings_in(block.input))
        case _:
            return ""
