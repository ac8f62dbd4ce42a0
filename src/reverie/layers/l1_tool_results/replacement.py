"""The limits of layer 1, its decision about one result, and the preview of a result that goes to disk. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from reverie.layers.base import WriteFile
from reverie.models.window import scaled
from reverie.parsing import load_json
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.types import Block, ImageBlock, TextBlock

READ_TOOL = "read_kept_result"
"""The tool with which agents in other loops read kept results back."""
NEVER_PERSISTED = frozenset({"Read", READ_TOOL})
"""Tools that read files: what they return would never be seen if it went to disk again."""
HARD_CAP_BYTES = 400_000
"""No result larger than this is ever sent, whatever the settings."""


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """In characters, except for the preview and the cap, which are bytes."""

    default: int = 50_000
    by_tool: Mapping[str, int] = field(default_factory=lambda: {"Grep": 20_000, "Bash": 30_000})
    message: int = 200_000
    preview: int = 2_000
    cap: int = HARD_CAP_BYTES

    def of(self, tool: str) -> int | None:
        """Returns the limit of a tool's results; None if they stay whole up to the cap."""
        return None if tool in NEVER_PERSISTED else self.by_tool.get(tool, self.default)

    def for_window(self, window: int) -> ResultLimits:
        """Returns the limits for a smaller window: every number shrinks with it."""
        return ResultLimits(
            default=max(1, scaled(self.default, window)),
            by_tool={tool: max(1, scaled(limit, window)) for tool, limit in self.by_tool.items()},
            message=max(1, scaled(self.message, window)),
            preview=max(1, scaled(self.preview, window)),
            cap=max(1, scaled(self.cap, window)),
        )


LimitsNow = Callable[[], ResultLimits]
"""Called at each use, so that a flag changes the limits of running sessions."""


ELLIPSIS = "…"
EMPTY = "(The tool finished and printed nothing.)"
CUT = "\n[… cut here: the result was larger than can be sent, and it could not be put on disk]"
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,120}")


def file_name(call_id: str, *, structured: bool) -> str:
    """Returns `<id>.txt`, or `.json` for structured results. An unsafe id is hashed."""
    safe = call_id if _SAFE_ID.fullmatch(call_id) else hashlib.sha256(call_id.encode("utf-8", "replace")).hexdigest()
    return f"{safe}.{'json' if structured else 'txt'}"


def text_and_form(content: str | tuple[Block, ...]) -> tuple[str, bool]:
    """Returns the text of a result and whether it is structured (JSON, or not one text): then it is kept as JSON."""
    if isinstance(content, str):
        return content, _is_json(content)
    if len(content) == 1 and isinstance(content[0], TextBlock):
        return content[0].text, _is_json(content[0].text)
    return json.dumps([block.wire() for block in content], ensure_ascii=False, indent=1), True


def _is_json(text: str) -> bool:
    """Whether a text is a JSON object or list."""
    ends = text[:1] + text[-1:]
    if ends not in ("{}", "[]"):
        return False  # most results need no closer look
    try:
        load_json(text)
    except ValueError:
        return False
    return True


def holds_image(content: str | tuple[Block, ...]) -> bool:
    return isinstance(content, tuple) and any(isinstance(block, ImageBlock) for block in content)


def render_replacement(text: str, path: Path, preview_bytes: int, *, size: int | None = None) -> str:
    """Renders the replacement of a text that is in `path` now. `size`: of the file, if `text` is only its start."""
    size = len(text.encode("utf-8", "replace")) if size is None else size
    shown = {"size": f"{size:,} bytes", "path": str(path), "preview": preview(text, preview_bytes)}
    return render("reverie.layers.l1_tool_results", "persisted.md", shown)


def preview(text: str, limit: int) -> str:
    """Returns the first `limit` bytes, up to the last newline if that is past the half; never splits a character."""
    start = text[:limit].encode("utf-8", "replace")  # a character is at least a byte: no need to encode all of it
    if len(start) <= limit and len(text) <= limit:
        return text
    cut = start[:limit]
    newline = cut.rfind(b"\n")
    if newline > limit // 2:
        cut = cut[:newline]
    return cut.decode("utf-8", "ignore") + "\n" + ELLIPSIS


def cap_text(text: str, cap: int) -> str:
    """Returns at most `cap` bytes of a text that the disk did not take."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= cap:
        return text
    return raw[: max(0, cap - len(CUT.encode()))].decode("utf-8", "ignore") + CUT


@dataclass(frozen=True, slots=True)
class ResultDecision:
    """What to do with a result: `write` it, then show `shown`; if the write fails, show `otherwise`."""

    shown: str | tuple[Block, ...]
    write: WriteFile | None = None
    otherwise: str | tuple[Block, ...] = ""


def judge(
    tool: str, call_id: str, content: str | tuple[Block, ...], limits: ResultLimits, folder: Path
) -> ResultDecision:
    """Replaces an empty result by a note, sends a too long one to disk, and leaves everything else unchanged."""
    text, structured = text_and_form(content)
    if not content or not text.strip():
        return ResultDecision(EMPTY)
    if holds_image(content):
        return ResultDecision(content)
    limit, raw = limits.of(tool), text.encode("utf-8", "replace")
    if (limit is None or len(text) <= limit) and len(raw) <= limits.cap:
        return ResultDecision(content)
    path = folder / file_name(call_id, structured=structured)
    return ResultDecision(
        shown=render_replacement(text, path, limits.preview),
        write=WriteFile(path, text.encode("utf-8", "surrogatepass")),
        otherwise=content if len(raw) <= limits.cap else cap_text(text, limits.cap),
    )
