"""The data of the window map: columns of a chart over all requests, and the blocks of one request.

Pure: it gets a `WindowLife` and returns what JSON can hold. The drawing is in `web/drawing.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from reverie.context.ledger import BYTES_PER_TOKEN
from reverie.context.window_fill import SOURCES
from reverie.context.window_life import Gone, LifeBlock, LifeEvent, WindowAt
from reverie.layers.l1_tool_results.replacement import file_name
from reverie.models.wire import as_object
from reverie.parsing import load_json
from reverie.regular_files import LARGEST_TEXT, read_regular
from reverie.text.patterns import late
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    Origin,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from reverie.web.visit import Data

COLUMNS = 400
"""The chart has at most so many columns; more requests share one."""
SHOWN = 4_000
"""Characters of a long text before the link to the whole."""
_BEGINNING = 160

_PATH = late(r"(/[^\s;\]]*/tool-results/[^\s;\]]*[^\s;\].,])")

ORIGINS = {
    Origin.TYPED: "you typed it",
    Origin.ENTERED: "you entered it in another program",
    Origin.PASTED: "you pasted it",
    Origin.PIPED: "you piped it in",
    Origin.MODEL: "the model wrote it",
    Origin.TOOL: "a tool returned it",
    Origin.PAGE: "a tool got it from the web",
    Origin.HOOK: "a hook added it",
    Origin.PLAN: "it is a plan",
    Origin.SUMMARY: "a compaction wrote it",
    Origin.NOTES: "the notes of the session",
    Origin.RECALLED: "recall added it from memory",
    Origin.AGENT: "another agent sent it",
    Origin.TEAM: "a team member sent it",
    Origin.IMPORTED: "it came with an imported session",
    Origin.CODE: "Reverie added it",
}


def columns(requests: Sequence[WindowAt], most: int = COLUMNS) -> list[Data]:
    """At most `most` columns. Each shows the fullest of its requests, so that no peak is lost."""
    size = max(1, -(-len(requests) // most))
    found = list[Data]()
    for start in range(0, len(requests), size):
        group = requests[start : start + size]
        top = max(group, key=lambda one: one.used)
        sources = dict[str, int]()
        for share in top.shares:
            sources[share.source] = sources.get(share.source, 0) + share.tokens
        found.append(
            {
                "first": group[0].number,
                "last": group[-1].number,
                "request": top.number,
                "tokens": top.used,
                "sources": sources,
            }
        )
    return found


def event_data(event: LifeEvent, last: int) -> Data:
    """One event; those after the last request belong to the next one."""
    return {
        "kind": event.kind,
        "request": min(event.number, last),
        "at": event.at,
        "what": event.what,
        "tokens": event.tokens,
        "announced": True,
    }


def shares_data(at: WindowAt) -> list[Data]:
    return [
        {
            "source": share.source,
            "label": share.label,
            "tool": share.tool,
            "tokens": share.tokens,
            "blocks": share.blocks,
            "share": share.tokens / at.used if at.used else 0.0,
        }
        for share in at.shares
    ]


def block_line(one: LifeBlock) -> Data:
    """One block in a list."""
    return {
        "number": one.number,
        "source": one.source,
        "label": label(one),
        "tokens": one.tokens,
        "since": one.since,
        "beginning": text_of(one.block)[:_BEGINNING],
        "gone": None if one.gone is None else gone_data(one),
    }


def gone_data(one: LifeBlock) -> Data:
    gone = one.gone or Gone("cleared", 0)
    return {
        "number": one.number,
        "label": label(one),
        "kind": gone.kind,
        "since": gone.number,
        "tokens_before": one.tokens_before
        if gone.kind != "on disk"
        else max(one.tokens_before, gone.size // BYTES_PER_TOKEN),
        "bytes": gone.size,
    }


def label(one: LifeBlock) -> str:
    name = SOURCES[one.source]
    if one.source == "tools":
        return f"{name}: {_tool_name(one.block)}"
    if isinstance(one.block, ToolUseBlock):
        return f"{name}: {one.block.name}"
    return f"{name}: {one.tool}" if one.tool else name


def _tool_name(block: Block) -> str:
    try:
        return str(as_object(load_json(text_of(block))).get("name") or "?")
    except ValueError:
        return "?"


def block_detail(one: LifeBlock, transcript: Path, whole: str) -> Data:
    """All about one block. `whole` names the text that is not shortened: `text`, `before` or `copy`."""
    text = text_of(one.block)
    before = text_of(one.original) if one.original is not None else ""
    path = _copy_path(one, transcript)
    return {
        **block_line(one),
        "origin": one.block.origin.value,
        "who": "the session began with it" if one.source in ("system", "tools") else ORIGINS[one.block.origin],
        "call": one.block.tool_use_id if isinstance(one.block, ToolResultBlock) else getattr(one.block, "id", ""),
        "text": _part(text, whole == "text"),
        "before": _part(before, whole == "before") if before and before != text else None,
        "kept": None if path is None else {"path": str(path), **_copy(path, transcript, whole == "copy")},
        "transcript": str(transcript),
    }


def _part(text: str, whole: bool) -> Data:
    return {"shown": text if whole else text[:SHOWN], "characters": len(text), "is_whole": whole or len(text) <= SHOWN}


def _copy_path(one: LifeBlock, transcript: Path) -> Path | None:
    """The file with the whole result: by the id of the call, or as the text in the window says."""
    if one.gone is None or not isinstance(one.block, ToolResultBlock):
        return None
    folder = transcript.with_suffix("") / "tool-results"
    for structured in (False, True):
        path = folder / file_name(one.block.tool_use_id, structured=structured)
        if path.is_file():
            return path
    found = _PATH.search(one.block.text) or (_PATH.search(one.original.text) if one.original is not None else None)
    return Path(found[1]) if found is not None else None


def _copy(path: Path, transcript: Path, whole: bool) -> Data:
    """The beginning of a copy. Only files of the session itself are read."""
    try:
        if not path.resolve().is_relative_to(transcript.with_suffix("").resolve()):
            return {"text": None, "problem": "It is not in the folder of this session, so it is not shown here."}
        raw = read_regular(path, LARGEST_TEXT)
    except (OSError, ValueError):
        return {"text": None, "problem": "The file is gone, or it cannot be read."}
    return {"text": _part(raw.decode("utf-8", "replace"), whole), "problem": ""}


def text_of(block: Block) -> str:
    """A block as text."""
    match block:
        case TextBlock():
            return block.text
        case ThinkingBlock():
            return block.thinking or "(hidden by the provider)"
        case ToolUseBlock():
            return json.dumps(block.input, ensure_ascii=False, indent=1)
        case ToolResultBlock():
            parts = block.content if isinstance(block.content, tuple) else ()
            other = [part for part in parts if not isinstance(part, TextBlock)]
            return "\n".join(filter(None, (block.text, *(_media(part) for part in other))))
        case _:
            return _media(block)


def _media(block: Block) -> str:
    match block:
        case ImageBlock() | DocumentBlock():
            source = as_object(block.source)
            kind = "image" if isinstance(block, ImageBlock) else "document"
            return f"({kind}, {source.get('media_type') or source.get('type') or 'unknown form'})"
        case OtherBlock():
            return json.dumps(block.raw, ensure_ascii=False, indent=1)
        case _:
            return text_of(block)
