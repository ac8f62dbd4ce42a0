"""Items of a transcript as data for pages and programs: who wrote what, calls with results, pictures by address.

Long texts are shown in part, with the address of the whole. Nothing here reads a file, except for the size of results
on disk.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote, urlencode

from reverie.agents.messages.message import sender_and_text
from reverie.cli.sessions.text import LABELS
from reverie.cli.tool_lines import call_text, result_note
from reverie.layers.l1_tool_results.replacement import file_name
from reverie.layers.l4_compaction.survival import describe_survival
from reverie.models.wire import model_id
from reverie.origins import strip_tags
from reverie.quick import dataclass
from reverie.storage.transcript import records as r
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    Json,
    JsonObject,
    Message,
    Origin,
    Record,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)
from reverie.web.rendering import segment
from reverie.web.sessions.items import Item, Transcript, anchor
from reverie.web.visit import Data

TEXT_SHOWN: Final = 6_000
RESULT_SHOWN: Final = 1_500
_INPUT_SHOWN: Final = 3_000
_LARGEST_IMAGE: Final = 20_000_000
_RASTER: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_CLEARED_BY: Final = {"economic": "it paid to clear it", "time": "after a long pause", "server cache": "in the cache"}


@dataclass(frozen=True, slots=True)
class Reader:
    """What the items of one page have in common."""

    session: str
    agent: str
    """The agent whose conversation it is; empty for the session's own."""
    transcript: Transcript
    folder: Path
    """The session's own folder, with results on disk."""
    cwd: Path | None
    memory: str
    """The project whose memory was shown."""
    whole: bool = False

    def address(self, *parts: str, **query: str) -> str:
        path = "/".join(["/sessions", *(segment(part) for part in (self.session, *parts))])
        given = ({"agent": self.agent} if self.agent else {}) | query
        return f"{path}?{urlencode(given, errors='replace')}" if given else path

    def describe(self, item: Item) -> Data:
        """One item. `here` is the address of the page that has it."""
        found = self._describe(item)
        to = {"to": f"{self.address(at=found['to'])}#message-{found['to']}"} if found.get("to") else {}
        return {**found, "here": f"{self.address(at=item.id)}#message-{item.id}", **to}

    def _describe(self, item: Item) -> Data:
        match item.kind:
            case "message":
                return self._message(item)
            case "compaction":
                return self._compaction(item)
            case "branch":
                count = sum(1 for record in item.records if record.message is not None)
                text = next((m.text for one in item.records if (m := one.message) is not None and m.text.strip()), "")
                given = {"messages": count, "text": strip_tags(text)[:400], "address": self.address(branch=item.id)}
                return {"kind": "branch", "id": item.id, "at": item.at, **given}
            case "event":
                return {"kind": "event", "id": item.id, "at": item.at, **self._event(item.payload)}

    # -- messages

    def _message(self, item: Item) -> Data:
        first = item.records[0]
        message = first.message
        assert message is not None
        usage = _usage(item.records)
        failed = bool(first.data.get("isApiErrorMessage"))
        return {
            "kind": "message",
            "id": item.id,
            "at": item.at,
            "role": message.role,
            "author": "error" if failed else "model" if message.role == "assistant" else _author(message, first),
            "model": model_id(str(message.fields.get("model") or "")) if message.role == "assistant" else "",
            "prompt_tokens": usage.prompt if usage is not None else None,
            "output_tokens": usage.output_tokens if usage is not None else None,
            "parts": list(self._parts(item)),
            "address": self.address("messages", item.id),
        }

    def _parts(self, item: Item) -> Iterator[Data]:
        number = 0
        for record in item.records:
            message = record.message
            for block in message.content if message is not None else ():
                number += 1
                made = self._part(item, number - 1, block, message, record)
                if made is not None:
                    yield made

    def _part(self, item: Item, number: int, block: Block, message: Message | None, record: Record) -> Data | None:
        match block:
            case TextBlock():
                if not block.text.strip():
                    return None
                given = message is not None and message.role == "assistant"
                is_said = given or (block.origin.is_given and not record.data.get("isMeta"))
                letter = sender_and_text(block)
                label = "" if is_said else f"from {letter[0]}" if letter else LABELS.get(block.origin, "inserted")
                if block.origin in (Origin.PASTED, Origin.PIPED):
                    label = block.origin.value
                text = letter[1] if letter else strip_tags(block.text)
                return {"type": "text", "label": label, "origin": block.origin.value, **self._cut(text, TEXT_SHOWN)}
            case ThinkingBlock():
                if not block.thinking.strip():
                    return None
                return {"type": "thinking", **self._cut(block.thinking, TEXT_SHOWN)}
            case ToolUseBlock():
                return self._call(block)
            case ToolResultBlock():
                if block.tool_use_id in self.transcript.calls:
                    return None  # shown with its call
                return {"type": "result", "result": self._result(block.tool_use_id, block, record)}
            case ImageBlock():
                return self._image(block, f"{item.id}.{number}")
            case DocumentBlock():
                return {"type": "file", "name": _file_name(block.source, "document")}
            case _:
                shown = json.dumps(block.wire(), ensure_ascii=False, default=str)
                return {"type": "other", **self._cut(shown, RESULT_SHOWN)}

    def _cut(self, text: str, most: int) -> Data:
        is_cut = not self.whole and len(text) > most
        return {"text": text[:most] if is_cut else text, "length": len(text), "is_cut": is_cut}

    def _call(self, call: ToolUseBlock) -> Data:
        found = self.transcript.results.get(call.id)
        agent = next((name for name, of in self.transcript.agents.items() if of == call.id), "")
        return {
            "type": "call",
            "id": call.id,
            "name": call.name,
            "summary": call_text(call.name, call.input, self.cwd),
            "input": [self._field(key, value) for key, value in _fields(call.input)],
            "result": self._result(call.id, *found) if found is not None else None,
            "agent": self.address(agent=agent) if agent else "",
        }

    def _field(self, key: str, value: Json) -> Data:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)
        return {"key": key, **self._cut(text, _INPUT_SHOWN)}

    def _result(self, call: str, result: ToolResultBlock, _record: Record) -> Data:
        text = result.text
        kept = self.kept_file(call)
        images = [
            self._image(block, f"call.{call}.{at}")
            for at, block in enumerate(result.content if isinstance(result.content, tuple) else ())
            if isinstance(block, ImageBlock)
        ]
        state = "cleared" if call in self.transcript.cleared else "on disk" if kept is not None else ""
        if call in self.transcript.replaced and not state:
            state = "replaced"
        return {
            "state": state,
            "why": _CLEARED_BY.get(self.transcript.cleared.get(call, ""), self.transcript.cleared.get(call, "")),
            "is_error": bool(result.is_error),
            "note": result_note(text, bool(result.is_error)),
            "size": kept.stat().st_size if kept is not None else len(text.encode("utf-8", "replace")),
            "images": images,
            "address": self.address("results", call),
            **self._cut(text, RESULT_SHOWN),
        }

    def kept_file(self, call: str) -> Path | None:
        """The file with a result that layer 1 put on disk: only in the session's own folder, never behind a link."""
        for structured in (False, True):
            path = self.folder / "tool-results" / file_name(call, structured=structured)
            if path.is_file() and not path.is_symlink() and not path.parent.is_symlink():
                return path
        return None

    def _image(self, block: ImageBlock, name: str) -> Data:
        _, kind = decode_image(block)
        address = self.address("images", name) if kind else ""
        return {"type": "image", "address": address, "name": _file_name(block.source, "image")}

    # -- compactions and decisions

    def _compaction(self, item: Item) -> Data:
        boundary = item.payload
        assert isinstance(boundary, r.CompactBoundary)
        summary, brought = list[str](), list[Data]()
        for record in item.records:
            for block in record.message.content if record.message is not None else ():
                if not isinstance(block, TextBlock) or not block.text.strip():
                    continue
                if record.data.get("isCompactSummary") or block.origin in (Origin.SUMMARY, Origin.NOTES):
                    summary.append(strip_tags(block.text))
                else:
                    label = LABELS.get(block.origin, "inserted")
                    brought.append({"label": label, **self._cut(strip_tags(block.text), RESULT_SHOWN)})
        survival = item.survival
        return {
            "kind": "compaction",
            "id": item.id,
            "at": item.at,
            "trigger": boundary.trigger,
            "writer": boundary.writer,
            "tokens_before": boundary.tokens_before,
            "tokens_after": survival.tokens_after if survival is not None else None,
            "is_undone": item.undone,
            "summary": self._cut("\n\n".join(summary), TEXT_SHOWN),
            "brought": brought,
            "kept": self._kept(boundary),
            "survival": None if survival is None else _survival(survival),
            "address": self.address("messages", item.id),
        }

    def _kept(self, boundary: r.CompactBoundary) -> Data | None:
        if boundary.preserved is None:
            return None
        first, _, last = (self.transcript.at(anchor(name)) for name in boundary.preserved)
        if first is None or last is None:
            return None
        id = self.transcript.items[first].id
        return {"first": id, "address": f"{self.address(at=id)}#message-{id}", "messages": last - first + 1}

    def _event(self, payload: r.Payload | None) -> Data:
        match payload:
            case r.Rewind():
                to = anchor(payload.head) if payload.head else ""
                what = "The conversation was cleared" if payload.head is None else "The conversation was taken back"
                return {"event": "rewind", "text": f"{what} ({payload.reason}).", "to": to}
            case r.Undo():
                return {"event": "undo", "text": "A compaction was undone.", "to": anchor(payload.boundary)}
            case r.Clears():
                why = _CLEARED_BY.get(payload.strategy, payload.strategy)
                saved = f", about {payload.tokens:,} tokens" if payload.tokens else ""
                return _calls_event("clears", f"Layer 2 cleared {_results(payload.cleared)}{saved} ({why}).", payload)
            case r.CacheEdits():
                text = f"Layer 2 cleared {_results(payload.references)} in the cache of the server."
                return {"event": "clears", "text": text}
            case r.AppliedEdits():
                return {"event": "clears", "text": "The server cleared old results by itself."}
            case r.Surfaced():
                memories = [
                    {"name": name, "address": f"/memory/{segment(self.memory)}/{quote(name, errors='replace')}"}
                    for name in payload.names
                ]
                return {"event": "recall", "text": f"Memories shown to the model (by {payload.by}):", "links": memories}
            case r.Pin():
                return {"event": "pin", "text": "A pin was removed." if payload.removed else f"Pinned: {payload.text}"}
            case r.Fold():
                text = f"A part of the conversation is shown to the model as one text ({payload.strategy})."
                return {"event": "fold", "text": text, "to": anchor(payload.first)}
            case r.LayerFailure():
                return {"event": "failure", "text": f"{payload.layer} could not do its work: {payload.why}"}
            case r.CacheBreak():
                price = f", ${payload.cost:.4f}" if payload.cost else ""
                text = f"Cache break ({payload.cause}): {payload.lost_tokens:,} tokens paid again{price}."
                return {"event": "break", "text": f"{text} {payload.detail}".strip()}
            case r.SessionHeader():
                return {"event": "model", "text": f"From here on the model is {model_id(payload.model)}."}
            case _:
                return {"event": "other", "text": ""}


def _calls_event(event: str, text: str, payload: r.Clears) -> Data:
    return {"event": event, "text": text, "calls": list(payload.cleared)}


def _results(calls: Any) -> str:
    return f"{len(calls)} result{'' if len(calls) == 1 else 's'}"


def _survival(found: r.Survival) -> Data:
    lost = {kind: [str(one) for one in cast(list[Json], items)][:20] for kind, items in found.lost.items() if items}
    return {"text": describe_survival(found), "kept": found.kept, "total": found.total, "lost": lost}


def _author(message: Message, record: Record) -> str:
    origins = {block.origin for block in message.content if isinstance(block, TextBlock)}
    if not record.data.get("isMeta") and (any(one.is_given for one in origins) or not origins):
        return "you"
    return "agent" if origins & {Origin.AGENT, Origin.TEAM} else "added"


def _usage(records: list[Record]) -> Usage | None:
    found = [one.message.usage for one in records if one.message is not None and one.message.usage is not None]
    return max(found, key=lambda one: one.output_tokens) if found else None


def _fields(given: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(given, dict):
        yield from cast(JsonObject, given).items()
    elif given not in (None, ""):
        yield "input", given


def _file_name(source: Json, otherwise: str) -> str:
    given = cast(JsonObject, source) if isinstance(source, dict) else {}
    kind = str(given.get("media_type") or "")
    name = str(given.get("name") or given.get("title") or given.get("url") or "")
    return " ".join(filter(None, (name or otherwise, f"({kind})" if kind else "")))


def decode_image(block: ImageBlock) -> tuple[bytes, str]:
    """The bytes of a picture and its type by its first bytes; an empty type for anything but PNG, JPEG, GIF, WebP."""
    given: Json = block.source
    source: JsonObject = cast(JsonObject, given) if isinstance(given, dict) else {}
    data = source.get("data")
    if source.get("type") != "base64" or not isinstance(data, str) or len(data) > _LARGEST_IMAGE:
        return b"", ""
    try:
        raw = base64.b64decode(data[:64] if len(data) > 64 else data, validate=False)
    except (binascii.Error, ValueError):
        return b"", ""
    kind = next((kind for magic, kind in _RASTER if raw.startswith(magic)), "")
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        kind = "image/webp"
    try:
        return (base64.b64decode(data), kind) if kind else (b"", "")
    except (binascii.Error, ValueError):
        return b"", ""
