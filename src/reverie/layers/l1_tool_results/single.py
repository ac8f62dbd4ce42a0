"""One result, before it is recorded: within its tool's limit it stays, beyond it goes to disk. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reverie.layers.base import WriteFile
from reverie.layers.l1_tool_results.limits import ResultLimits
from reverie.layers.l1_tool_results.replacement import (
    EMPTY,
    capped,
    file_name,
    holds_image,
    persisted,
    text_and_form,
)
from reverie.types import Block


@dataclass(frozen=True, slots=True)
class Judged:
    """What to do with a result. `write` first, then `shown`; if the write fails, `otherwise`."""

    shown: str | tuple[Block, ...]
    write: WriteFile | None = None
    otherwise: str | tuple[Block, ...] = ""


def judge(tool: str, call_id: str, content: str | tuple[Block, ...], limits: ResultLimits, folder: Path) -> Judged:
    """Empty → a note; an image → unchanged; within the limit → unchanged; else to disk."""
    text, structured = text_and_form(content)
    if not content or not text.strip():
        return Judged(EMPTY)
    if holds_image(content):
        return Judged(content)
    limit = limits.of(tool)
    too_long = limit is not None and len(text) > limit
    if not too_long and len(text) * 4 > limits.cap:  # only then can its bytes be over the cap
        too_long = len(text.encode("utf-8", "replace")) > limits.cap
    if not too_long:
        return Judged(content)
    path = folder / file_name(call_id, structured=structured)
    whole = content if len(text.encode("utf-8", "replace")) <= limits.cap else capped(text, limits.cap)
    return Judged(
        shown=persisted(text, path, limits.preview),
        write=WriteFile(path, text.encode("utf-8", "surrogatepass")),
        otherwise=whole,
    )
