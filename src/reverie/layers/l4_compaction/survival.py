"""Reports what survived a compaction: names, paths, numbers, constraints and requests that are in the new context.

Counted by code, so the report does not depend on the writer of the summary. The most important losses are listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from reverie.layers.l4_compaction.requests import UserRequest
from reverie.storage.transcript.records import Survival
from reverie.text.patterns import late
from reverie.text.sentences import sentences
from reverie.types import Block, Json, Message, TextBlock, ToolResultBlock, ToolUseBlock

_PATH = late(r"(?<![\w/.@+-])(?:~|\.{1,2})?/?(?:[\w.@+-]{1,80}/){1,20}[\w.@+-]{0,80}\w")
_WORD = late(r"\w+")
_NAME = late(
    r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+|(?:[A-Z][a-z0-9]+){2,}|[A-Z][A-Z0-9]*_[A-Z0-9_]+"
)
_NUMBER = late(r"\d(?<![\w.]\d)[\d,._]{0,60}\d(?!\w)")
_LINE_NUMBER = late(r"^[ \t]*\d+(?:\t|→)", re.MULTILINE)
_LIMITING = late(
    r"\b(?:must|never|always|don't|do not|only|without|at most|at least|no more than|avoid|keep)\b", re.IGNORECASE
)
_MOST_NAMES, _LOST_SHOWN, _LINE, _SENTENCE_LENGTH = 400, 12, 160, 500
Inventory: TypeAlias = dict[str, list[str]]
KINDS = ("requests", "constraints", "paths", "names", "numbers")


def texts_of(messages: Iterable[Message]) -> str:
    """Returns everything that a model would read in these messages."""
    return "\n".join(_text(block) for message in messages for block in message.content)


def inventory(text: str, requests: Sequence[UserRequest]) -> Inventory:
    """Returns what an old context mentions, by kind, the most frequent first."""
    text = _LINE_NUMBER.sub("", text)
    said = (part for one in requests for part in sentences(one.own, is_chat=True))
    constraints = [part for part in said if len(part) <= _SENTENCE_LENGTH and _LIMITING.search(part)]
    return {
        "requests": [one.words for one in requests],
        "constraints": list(dict.fromkeys(constraints)),
        "paths": _ranked(_paths(text))[:_MOST_NAMES],
        "names": [name for name in _ranked(_WORD.findall(text)) if _NAME.fullmatch(name)][:_MOST_NAMES],
        "numbers": _ranked(_NUMBER.findall(text))[:_MOST_NAMES],
    }


def survival(
    old: dict[str, list[str]],
    new: str,
    *,
    boundary: str,
    writer: str,
    tokens_before: int,
    tokens_after: int,
    limit: int,
) -> Survival:
    """Makes the report. A request counts as kept if it is whole, or is over `limit` bytes and its excerpt is there."""
    flat = " ".join(new.split())
    words = {*_WORD.findall(new), *_paths(new), *_NUMBER.findall(new)}
    kept, total, lost = dict[str, int](), dict[str, int](), dict[str, list[str]]()
    for kind in KINDS:
        items = old[kind]
        missing = [item for item in items if not _is_kept(kind, item, flat, words, limit)]
        kept[kind], total[kind] = len(items) - len(missing), len(items)
        if missing:
            lost[kind] = [" ".join(item.split())[:_LINE] for item in missing[:_LOST_SHOWN]]
    return Survival(boundary, writer, tokens_before, tokens_after, kept, total, lost)


def describe_survival(report: Survival) -> str:
    """Describes the report in one line."""
    names = {"constraints": "limits"}
    shares = [
        f"{report.kept[kind]} of {report.total[kind]} {names.get(kind, kind)}"
        for kind in KINDS
        if report.total.get(kind)
    ]
    return f"kept after compaction: {', '.join(shares)}" if shares else "there was nothing to lose"


def _is_kept(kind: str, item: str, flat: str, words: set[str], limit: int) -> bool:
    if kind in ("requests", "constraints"):
        whole = " ".join(item.split())
        if whole in flat:
            return True
        head = " ".join(item.encode("utf-8", "replace")[: limit // 2].decode("utf-8", "ignore").split())
        return len(item.encode("utf-8", "replace")) > limit and head in flat
    return item in words or item in flat


def _paths(text: str) -> list[str]:
    """Looks only at lines with a slash, which are few: no path goes beyond its line."""
    return _PATH.findall("\n".join(line for line in text.split("\n") if "/" in line))


def _ranked(found: list[str]) -> list[str]:
    return [item for item, _ in Counter(found).most_common()]


def _text(block: Block) -> str:
    match block:
        case TextBlock():
            return block.text
        case ToolUseBlock():
            given: Json = block.input
            return " ".join(map(str, given.values())) if isinstance(given, dict) else str(given)  # pyright: ignore
        case ToolResultBlock():
            return block.text
        case _:
            return ""
