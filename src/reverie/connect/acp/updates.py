"""Events of a session, and what a transcript holds, as updates of the protocol. Pure: it sends nothing.

Text of models, tools and files is data: control characters become visible, and the output of a tool is in a code block
that it cannot close.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from acp import schema
from acp.helpers import (
    ToolCallContentVariant,
    image_block,
    text_block,
    tool_content,
    tool_diff_content,
    update_agent_message,
    update_agent_message_text,
    update_agent_thought_text,
    update_user_message,
    update_user_message_text,
)

from reverie.connect.acp.host import Host
from reverie.connect.acp.markdown import code
from reverie.events import Notice, RoundFinished, ToolFinished, ToolStarted
from reverie.origins import strip_tags
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.tools.changes import find_change
from reverie.types import ImageBlock, Json, JsonObject, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock

Update: TypeAlias = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AvailableCommandsUpdate
    | schema.CurrentModeUpdate
    | schema.ConfigOptionUpdate
    | schema.SessionInfoUpdate
    | schema.UsageUpdate
)

_KINDS: dict[str, schema.ToolKind] = {
    "Read": "read",
    "Edit": "edit",
    "Write": "edit",
    "Bash": "execute",
    "Grep": "search",
    "Glob": "search",
    "Agent": "think",
}
_MOST_SHOWN = 100_000
"""Characters of one output that are sent; an editor shows no more."""
_TITLE_LENGTH = 80
_MARKS = {"warning": "Warning: ", "error": "Error: "}


def note(text: str, level: str = "info") -> schema.AgentMessageChunk:
    """A sentence of Reverie itself: a paragraph of its own, so that it is not taken for the model's words."""
    line = " ".join(text.split())
    return update_agent_message_text(f"\n\n> *Reverie:* {_MARKS.get(level, '')}{line}\n\n")


def progress(id: str, status: schema.ToolCallStatus) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=id, status=status)


def usage(event: RoundFinished, dollars: float | None) -> schema.UsageUpdate:
    """How full the window is, and what the session has cost so far, if that is known."""
    cost = schema.Cost(amount=round(dollars, 6), currency="USD") if dollars is not None else None
    return schema.UsageUpdate(session_update="usage_update", used=event.used, size=event.window, cost=cost)


@dataclass(frozen=True, slots=True)
class Shower:
    """Makes the updates of one session."""

    host: Host
    cwd: Path

    # -- while a turn runs ------------------------------------------------------------------------------------------

    def text(self, text: str) -> schema.AgentMessageChunk:
        return update_agent_message_text(self.host.printable(text))

    def thought(self, text: str) -> schema.AgentThoughtChunk:
        return update_agent_thought_text(self.host.printable(text))

    def notice(self, event: Notice) -> schema.AgentMessageChunk:
        return note(self.host.printable(event.text), event.level)

    def titled(self, said: Sequence[TextBlock]) -> schema.SessionInfoUpdate:
        """The title of a new session: its first words, as in a list of sessions."""
        own = next((block.text for block in said if block.origin.is_users), "")
        line = " ".join(self.host.printable(own[: 10 * _TITLE_LENGTH]).split())
        title = line if len(line) <= _TITLE_LENGTH else f"{line[: _TITLE_LENGTH - 1]}…"
        return schema.SessionInfoUpdate(session_update="session_info_update", title=title or None)

    def started(self, event: ToolStarted) -> schema.ToolCallStart:
        return self._start(event.id, event.name, event.input, "in_progress")

    def finished(self, event: ToolFinished) -> schema.ToolCallProgress:
        return self._end(event.id, event.name, event.text, (), is_error=event.is_error)

    def asked(self, id: str, tool: str, given: Json, cwd: Path, reason: str) -> schema.ToolCallUpdate:
        """The call of a permission question: all of its input, and why it is asked for."""
        about = tool_content(text_block(self.host.printable(reason)))
        return schema.ToolCallUpdate(
            tool_call_id=id,
            title=self.host.title(tool, given, cwd),
            kind=_kind(tool),
            status="pending",
            content=[*self._content(tool, given, cwd), about],
            locations=_locations(tool, given, cwd),
            raw_input=given,
        )

    # -- a conversation that is loaded ------------------------------------------------------------------------------

    def replay(self, entries: Sequence[Entry]) -> Iterator[Update]:
        """The whole conversation: what the user wrote, the answers, thoughts and calls with their results."""
        names = dict[str, str]()
        for entry in entries:
            if entry.brought:
                continue
            for block in entry.message.content:
                yield from self._replay(block, entry, names)

    def _replay(self, block: object, entry: Entry, names: dict[str, str]) -> Iterator[Update]:
        is_answer = entry.message.role == "assistant"
        match block:
            case TextBlock() if is_answer:
                yield self.text(block.text)
            case TextBlock() if block.origin.is_given:
                yield update_user_message_text(self.host.printable(strip_tags(block.text)))
            case ThinkingBlock() if block.thinking:
                yield self.thought(block.thinking)
            case ToolUseBlock():
                names[block.id] = block.name
                yield self._start(block.id, block.name, block.input, "pending", made=True)
            case ToolResultBlock():
                images = block.content if isinstance(block.content, tuple) else ()
                name = names.get(block.tool_use_id, "")
                yield self._end(block.tool_use_id, name, block.text, images, is_error=bool(block.is_error))
            case ImageBlock():
                if picture := _picture(block):
                    yield update_agent_message(picture) if is_answer else update_user_message(picture)
            case _:
                pass

    # -- tool calls -------------------------------------------------------------------------------------------------

    def _start(
        self, id: str, name: str, given: Json, status: schema.ToolCallStatus, *, made: bool = False
    ) -> schema.ToolCallStart:
        return schema.ToolCallStart(
            session_update="tool_call",
            tool_call_id=id,
            title=self.host.title(name, given, self.cwd),
            kind=_kind(name),
            status=status,
            content=self._content(name, given, self.cwd, made=made) or None,
            locations=_locations(name, given, self.cwd),
            raw_input=given,
        )

    def _end(
        self, id: str, name: str, text: str, blocks: Sequence[object], *, is_error: bool
    ) -> schema.ToolCallProgress:
        shown = list[ToolCallContentVariant]()
        if is_error or name not in ("Edit", "Write"):  # of a change, the editor keeps the diff
            text = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}\n… {len(text) - _MOST_SHOWN:,} more"
            shown += [tool_content(text_block(code(self.host.printable(text))))] if text else []
            pictures = (_picture(block) for block in blocks if isinstance(block, ImageBlock))
            shown += [tool_content(picture) for picture in pictures if picture is not None]
        return schema.ToolCallProgress(
            session_update="tool_call_update",
            tool_call_id=id,
            status="failed" if is_error else "completed",
            content=shown or None,
        )

    def _content(self, name: str, given: Json, cwd: Path, *, made: bool = False) -> list[ToolCallContentVariant]:
        """The command, or the change. `made`: it was made long ago, so the file may say anything now."""
        call = _object(given)
        if name == "Bash":
            return [tool_content(text_block(code(self.host.printable(str(call.get("command", ""))))))]
        if name not in ("Edit", "Write") or not call.get("file_path"):
            return []
        change = find_change(name, call, cwd, alone=made)
        if change is not None and len(change.before or "") + len(change.after) > _MOST_SHOWN:
            change = find_change(name, call, cwd, alone=True)
        return [tool_diff_content(str(change.path), change.after, change.before)] if change is not None else []


def _kind(name: str) -> schema.ToolKind:
    return _KINDS.get(name, "other")


def _object(given: Json) -> JsonObject:
    return cast(JsonObject, given) if isinstance(given, dict) else {}


def _locations(name: str, given: Json, cwd: Path) -> list[schema.ToolCallLocation] | None:
    call = _object(given)
    path = call.get("file_path") or (call.get("path") if name in ("Grep", "Glob") else None)
    if not isinstance(path, str):
        return None
    line: Any = call.get("offset")
    return [schema.ToolCallLocation(path=str(cwd / path), line=line if isinstance(line, int) and line > 0 else None)]


def _picture(block: ImageBlock) -> schema.ImageContentBlock | None:
    source = _object(block.source)
    data, kind = source.get("data"), source.get("media_type")
    return image_block(data, kind) if isinstance(data, str) and isinstance(kind, str) else None
