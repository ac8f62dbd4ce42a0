"""A transcript as readable text: messages, and one line per tool call.

Also reads transcripts of Claude Code. `--full` adds tool results, thinking and messages that Reverie added.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

from reverie.agents.messages.message import sender_and_text
from reverie.cli.output import Paint, one_line
from reverie.cli.screen import printable
from reverie.cli.tool_lines import call_text, result_line
from reverie.quick import dataclass
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import Loaded
from reverie.storage.transcript.records import CompactBoundary, Rewind, SessionHeader, from_record
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    Origin,
    Record,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

LABELS = {  # of text that the user did not write
    Origin.HOOK: "from a hook",
    Origin.RECALLED: "recalled",
    Origin.AGENT: "from an agent",
    Origin.SUMMARY: "summary",
    Origin.PAGE: "from the web",
    Origin.TOOL: "from a tool",
    Origin.PLAN: "plan",
    Origin.NOTES: "notes",
    Origin.TEAM: "from the team",
    Origin.IMPORTED: "imported",
}


def transcript_text(loaded: Loaded, paint: Paint, columns: int, *, full: bool = False) -> Iterator[str]:
    """The conversation, in pieces to print one after the other."""
    records = conversation(loaded.records)
    results = {r.tool_use_id: r for record in records if record.message for r in record.message.tool_results}
    cwd = next((Path(str(record.data["cwd"])) for record in records if record.data.get("cwd")), None)
    reader = _TranscriptReader(paint, columns, full, results, cwd)
    for record in records:
        yield from reader.record(record)
    yield from _problems(loaded, paint)


@dataclass(frozen=True, slots=True)
class _TranscriptReader:
    _paint: Paint
    _columns: int
    _full: bool
    _results: dict[str, ToolResultBlock]
    _cwd: Path | None

    def record(self, record: Record) -> Iterator[str]:
        payload = from_record(record)
        if isinstance(payload, CompactBoundary):
            yield self._rule(f"compacted ({payload.trigger}), {payload.tokens_before:,} tokens before")
        elif isinstance(payload, Rewind):
            yield self._rule(payload.reason)
        elif isinstance(payload, SessionHeader) and self._full:
            yield self._rule(f"header: {payload.model}, {payload.date}, {len(payload.tools)} tools")
        elif record.message is not None:
            for block in record.message.content:
                yield from self._block(block, record.message, bool(record.data.get("isMeta")))

    def _rule(self, text: str) -> str:
        return self._paint.dim(f"── {text} ──\n\n")

    def _inserted(self, kind: str, text: str) -> str:
        return self._paint.dim(indent(f"[{kind}] {printable(text).strip()}", "  ")) + "\n\n"

    def _block(self, block: Block, message: Message, meta: bool) -> Iterator[str]:
        paint = self._paint
        match block:
            case TextBlock() if not block.text.strip():
                return
            case TextBlock() if message.role == "assistant":
                yield printable(block.text).strip() + "\n\n"
            case TextBlock() if block.origin.is_given and not meta:
                yield _quote(printable(block.text), paint) + "\n\n"
            case TextBlock() if not self._full and (found := sender_and_text(block)) is not None:
                yield f"  {paint.accent('✉')} {paint.bold(one_line(found[0]))}: {one_line(found[1], 400)}\n\n"
            case TextBlock() if self._full:
                yield self._inserted(LABELS.get(block.origin, "inserted"), block.text)
            case ThinkingBlock() if self._full and block.thinking.strip():
                yield self._inserted("thinking", block.thinking)
            case ToolUseBlock():
                yield from self._call(block)
            case ImageBlock() | DocumentBlock() if message.role == "user":
                yield paint.dim(f"[{'image' if isinstance(block, ImageBlock) else 'document'}]\n\n")
            case _:
                return

    def _call(self, call: ToolUseBlock) -> Iterator[str]:
        paint, said = self._paint, call_text(call.name, call.input, self._cwd)
        result = self._results.get(call.id)
        if result is None:
            yield f"  {paint.warning('?')} {said}  {paint.dim('no result was recorded')}\n\n"
            return
        line = result_line(said, result.text, bool(result.is_error), None, paint, self._columns - 2)
        yield f"  {line}\n\n"
        if self._full and result.text.strip():
            yield paint.dim(indent(printable(result.text).rstrip(), "    ")) + "\n\n"


def _quote(text: str, paint: Paint) -> str:
    first, *rest = text.strip().split("\n")
    return "\n".join([paint.bold(paint.accent("›") + " " + first), *(paint.bold(f"  {line}") for line in rest)])


def _problems(loaded: Loaded, paint: Paint) -> Iterator[str]:
    for bad in loaded.bad:
        yield paint.warning(f"! line {bad.number} cannot be read and is skipped: {bad.reason}\n")
    if loaded.torn:
        yield paint.warning("! the last line is not complete\n")
