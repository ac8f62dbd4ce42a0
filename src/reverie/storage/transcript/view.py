"""What the model sees: a fold over the records of the conversation.

Only `apply` changes a view, in a running session and on resume, so both send the same bytes. The view repairs what the
API would refuse (split responses, open or orphaned calls, blank text, results out of order), always in the same way. It
does not use files or a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from reverie.models.count import ContextMeter
from reverie.origins import fence_block
from reverie.quick import dataclass
from reverie.storage.transcript import records
from reverie.storage.transcript.joined_message import (
    NO_RESULT,
    JoinedMessage,
    calls_of,
    freeze,
    header_message,
    is_blank,
    missing_result,
)
from reverie.types import (
    Block,
    JsonObject,
    Message,
    Origin,
    Record,
    Role,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
)

__all__ = ["NO_RESULT", "OPENING", "Entry", "View"]

OPENING = "(The conversation starts with the assistant's message.)"
_WEB_TOOLS = ("WebFetch", "WebSearch")


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of the conversation. `brought`: a compaction added it."""

    uuid: str | None
    message: Message
    timestamp: str | None = None
    brought: bool = False


class View:
    """The state of a conversation. Layers read it; only records change it."""

    def __init__(self) -> None:
        self.header: records.SessionHeader | None = None
        self.entries: list[Entry] = []
        self.history: list[Entry] = []
        """All messages of the conversation, including those before its compactions."""
        self.replaced: dict[str, str] = {}
        self.kept: set[str] = set()
        self.cleared: dict[str, str] = {}
        self.gone_at: dict[str, int] = {}
        """Calls whose results are out of view, with the length of `history` when they were cleared or compacted."""
        self.cache_edits: dict[str, None] = {}
        self.server_edits: JsonObject = {}
        self.applied_edits: tuple[JsonObject, ...] = ()
        self.rounds = 0  # responses of the whole conversation, including those before a compaction
        self.cursors: dict[str, str | None] = {}
        self.pins: dict[str, str] = {}
        self.surfaced: dict[str, int] = {}
        self.fork_usage: list[records.ForkUsage] = []
        self.last_usage: Usage | None = None
        self.meter = ContextMeter()
        self.boundaries = 0
        self.on_disk: list[int] = []
        """Sizes in bytes of the results of this context that are on disk as a whole."""
        self.cleared_tokens = 0
        self.survival: records.Survival | None = None
        self.undone = False  # the last compaction was taken back, as far as it fits, and there was none since
        self.derived: dict[type, Any] = {}
        """What layers derived from this view, by type; it can be deleted at any time."""
        self._usage_id: str | None = None
        self._joined: list[JoinedMessage] = []
        self._calls: dict[str, str] = {}
        self._asked: set[str] = set()
        """The calls of the last response; only these can get a result."""
        self._answers: dict[str, JoinedMessage] = {}
        self._kept_aside: tuple[str, list[Entry]] | None = None
        self._reminded: tuple[Message, str, Message] | None = None

    @classmethod
    def of(cls, ordered: Iterable[Record]) -> View:
        """Returns the view after these records (in conversation order)."""
        view = cls()
        for record in ordered:
            view.apply(record)
        return view

    # -- folding ------------------------------------------------------------------------------------------------

    def apply(self, record: Record) -> None:
        """Applies one record. Unknown records change nothing."""
        payload = records.from_record(record)
        if payload is not None:
            self._decide(payload)
        elif record.message is not None and not record.data.get("isApiErrorMessage"):
            brought = "compactOf" in record.data or bool(record.data.get("isCompactSummary"))
            entry = Entry(record.uuid, record.message, record.timestamp, brought)
            if not brought:
                self.history.append(entry)
            self._add(entry, counted=not record.data.get("uncounted"))
            if kept := int(record.data.get("keptBytes") or 0):
                self.on_disk.append(kept)
        else:
            return
        self._restore_preserved(record.uuid)

    def _decide(self, payload: records.Payload) -> None:
        match payload:
            case records.SessionHeader():
                first, self.header = self.header is None, payload
                if first and self.entries:  # the count so far was for another agent's prompt; from here on it is ours
                    self._show_only(self.entries, same_prompt=False)
                elif self.last_usage is None:
                    self.meter.append(header_message(payload))
            case records.CompactBoundary():
                self._compact(payload)
            case records.ResultDecisions():
                self.replaced |= {call: text for call, text in payload.replaced.items() if call not in self.kept}
                self.kept |= set(payload.kept) - set(payload.replaced)
                self._refresh(set(payload.replaced))
            case records.Clears():
                self.cleared = payload.cleared | self.cleared  # a marker that was sent stays unchanged
                self.gone_at = dict.fromkeys(payload.cleared, len(self.history)) | self.gone_at
                self._refresh(set(payload.cleared))
                self.cleared_tokens += payload.tokens
            case records.CacheEdits():
                self.cache_edits |= dict.fromkeys(payload.references)
            case records.ServerEdits():
                self.server_edits = payload.management
            case records.AppliedEdits():
                self.applied_edits = payload.edits
            case records.Surfaced():
                self.surfaced |= dict.fromkeys(payload.names, 0)
                if payload.names:
                    self.surfaced[payload.names[-1]] += payload.bytes
            case records.Cursor():
                self.cursors[payload.writer] = payload.uuid
            case records.ForkUsage():
                self.fork_usage.append(payload)
            case records.Pin():
                if payload.removed:
                    self.pins.pop(payload.id, None)
                else:
                    self.pins[payload.id] = payload.text
            case records.Fold():
                self._fold(payload)
            case records.Survival():
                self.survival = payload
            case records.Undo():
                self.undone = True  # the order of the records already skips what was undone
            case records.Rewind():
                pass  # the order of the records already skips what was taken out
            case records.CacheBreak() | records.LayerFailure() | records.TurnCounts() | records.BreakerState():
                pass  # only reported, or read once at a resume
            case records.Handed():
                pass  # for the one who recognises messages
            case records.FileSnapshot():
                pass  # for an undo of files

    def _compact(self, boundary: records.CompactBoundary) -> None:
        entries = self.entries
        self._forget_messages()
        self.surfaced.clear()
        self.boundaries += 1
        self.undone = self.undone and boundary.extent == "up_to"  # as much as fits was taken back
        if boundary.preserved is not None:
            head, anchor, tail = boundary.preserved
            names = [entry.uuid for entry in entries]
            if head in names and tail in names:
                self._kept_aside = (anchor, entries[names.index(head) : names.index(tail) + 1])

    def _restore_preserved(self, uuid: str | None) -> None:
        if self._kept_aside is not None and uuid == self._kept_aside[0]:
            entries = self._kept_aside[1]
            self._kept_aside = None
            for entry in entries:
                self._add(entry, counted=False)

    def _fold(self, fold: records.Fold) -> None:
        names = [entry.uuid for entry in self.entries]
        if fold.first not in names or fold.last not in names:
            return
        start, end = names.index(fold.first), names.index(fold.last) + 1
        text = Message("user", (TextBlock(fold.text, Origin.SUMMARY),))
        shown = [Entry(None, text, brought=True)] if fold.text.strip() else []
        self._show_only([*self.entries[:start], *shown, *self.entries[end:]])

    def _show_only(self, entries: list[Entry], *, same_prompt: bool = True) -> None:
        self._forget_messages(same_prompt=same_prompt)
        if self.header is not None:
            self.meter.append(header_message(self.header))
        for entry in entries:
            self._add(entry, counted=False)

    def _forget_messages(self, *, same_prompt: bool = True) -> None:
        self.entries, self._joined = [], []
        self.on_disk, self.cleared_tokens = [], 0
        self.meter.reset(same_prompt=same_prompt and self.header is not None)
        self.gone_at = dict.fromkeys(self._answers, len(self.history)) | self.gone_at
        self._calls, self._answers, self._asked = {}, {}, set()
        self.last_usage, self._usage_id, self._kept_aside = None, None, None

    def _add(self, entry: Entry, *, counted: bool = True) -> None:
        self.entries.append(entry)
        message = entry.message
        if message.role == "assistant":
            self._add_response(message, counted)
        else:
            self._add_user(message)

    def _add_response(self, message: Message, counted: bool) -> None:
        blocks = [block for block in message.content if not is_blank(block)]
        for block in blocks:
            if isinstance(block, ToolUseBlock):
                self._calls[block.id] = block.name
        usage = message.usage if counted else None
        if usage is not None and usage.total > 0:
            if message.id is None or message.id != self._usage_id:
                self.meter.respond(usage)
            else:
                self.meter.report_output(usage.output_tokens)
            self.last_usage, self._usage_id = usage, message.id
        self.meter.append(Message("assistant", tuple(blocks)))
        earlier = self._earlier_part(message.id)
        if blocks:
            goes_on = earlier is not None or (bool(self._joined) and self._joined[-1].role == "assistant")
            self._asked = self._asked if goes_on else set()
            self._asked.update(block.id for block in blocks if isinstance(block, ToolUseBlock))
        if earlier is not None:
            earlier.blocks += blocks
            earlier.frozen = self._joined[-1].frozen = None
        else:
            self.rounds += counted
            self._join("assistant", blocks, message.id)

    def _earlier_part(self, message_id: str | None) -> JoinedMessage | None:
        if message_id is None:
            return None
        for joined in reversed(self._joined[-2:]):
            if joined.role == "assistant":
                return joined if joined.message_id == message_id else None
        return None

    def _add_user(self, message: Message) -> None:
        shown, answered = list[Block](), set[str]()
        for block in message.content:
            if isinstance(block, ToolResultBlock):
                call = block.tool_use_id
                if call not in self._asked or call in self._answers or call in answered:
                    continue  # an orphan, a late or a second answer: the API refuses them
                answered.add(call)
                if call in self.gone_at and call not in self.cleared:
                    del self.gone_at[call]  # a compaction kept it
                shown.append(self._apply_decision(block))
            elif not is_blank(block):
                raw = block.origin is Origin.IMPORTED  # read from its source: an imported copy already has its tags
                shown.append(fence_block(block) if raw and isinstance(block, TextBlock) else block)
        self.meter.append(Message("user", tuple(shown)))
        self._join("user", shown, None)
        self._answers |= dict.fromkeys(answered, self._joined[-1]) if answered else {}

    def _join(self, role: Role, blocks: list[Block], message_id: str | None) -> None:
        if not blocks:
            return
        last = self._joined[-1] if self._joined else None
        if last is not None and last.role == role:
            last.starts.append(len(last.blocks))
            last.blocks += blocks
            last.frozen = None
            last.message_id = message_id
        else:
            self._joined.append(JoinedMessage(role, blocks, message_id))

    # -- the visible messages -----------------------------------------------------------------------------------

    def visible_blocks(self, entry: Entry) -> Iterator[Block]:
        """Yields the blocks of an entry as the model sees them: decisions applied, deleted results left out."""
        for block in entry.message.content:
            if not isinstance(block, ToolResultBlock):
                yield block
            elif block.tool_use_id not in self.cache_edits:
                yield self._apply_decision(block)

    def _apply_decision(self, block: ToolResultBlock) -> ToolResultBlock:
        call = block.tool_use_id
        if self._calls.get(call) in _WEB_TOOLS and block.origin is Origin.TOOL:
            block = replace(block, origin=Origin.PAGE)
        text = self.cleared.get(call, self.replaced.get(call))
        return block if text is None else replace(block, content=text)

    def _refresh(self, calls: set[str]) -> None:
        for joined in {id(j): j for call in calls if (j := self._answers.get(call)) is not None}.values():
            shown = [self._apply_decision(b) if isinstance(b, ToolResultBlock) else b for b in joined.blocks]
            self.meter.rewrite(joined.blocks, shown)
            joined.blocks, joined.frozen = shown, None

    def messages(self) -> tuple[Message, ...]:
        """Returns the messages to send: alternating, the user first, every call answered, unchanged ones reused."""
        kept, out = [joined.frozen for joined in self._joined], list[Message]()
        for i, message in enumerate(kept):
            if message is None:
                message = self._joined[i].frozen = freeze(self._joined[i], self._joined[i - 1] if i else None)
            out.append(message)
        before = self._joined[-1] if self._joined else None
        if before is not None and before.role == "assistant" and (calls := calls_of(before)):
            out.append(Message("user", tuple(missing_result(call) for call in calls)))
        if out and out[0].role == "assistant":
            out.insert(0, Message("user", (TextBlock(OPENING),)))
        if out and self.header is not None and self.header.reminder:
            out[0] = self._with_reminder(out[0], self.header.reminder)
        return tuple(out)

    def _with_reminder(self, first: Message, reminder: str) -> Message:
        if self._reminded is None or self._reminded[0] is not first or self._reminded[1] != reminder:
            block = TextBlock(reminder, Origin.CODE)
            starts = (1, *(at + 1 for at in first.starts))
            self._reminded = (first, reminder, replace(first, content=(block, *first.content), starts=starts))
        return self._reminded[2]

    @property
    def open_calls(self) -> tuple[ToolUseBlock, ...]:
        """Calls of the last response that have no result yet."""
        for joined in reversed(self._joined[-2:]):
            if joined.role == "assistant":
                return tuple(call for call in calls_of(joined) if call.id not in self._answers)
        return ()

    def fresh_results(self) -> list[ToolResultBlock]:
        """Returns the undecided results after the last response, which were never sent."""
        last = self._joined[-1] if self._joined else None
        if last is None or last.role != "user":
            return []
        return [
            block
            for block in last.blocks
            if isinstance(block, ToolResultBlock)
            and block.tool_use_id not in self.replaced
            and block.tool_use_id not in self.kept
        ]

    def with_unique_calls(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        """Returns the blocks of a new response with unique call ids: some servers count from one."""
        taken, out = set(self._calls), list[Block]()
        for block in blocks:
            if isinstance(block, ToolUseBlock):
                name, number = block.id, 2
                while name in taken:
                    name, number = f"{block.id}-{number}", number + 1
                taken.add(name)
                block = block if name == block.id else replace(block, id=name)
            out.append(block)
        return tuple(out)

    def sent_cache_edits(self) -> JsonObject | None:
        """Returns the deletions in the server's cache that every request names again, in the order first sent."""
        edits = [{"type": "delete", "cache_reference": call} for call in self.cache_edits if call in self._answers]
        return {"edits": edits} if edits else None

    def call_name(self, call_id: str) -> str | None:
        return self._calls.get(call_id)

    def with_entries(self, entries: Iterable[Entry]) -> View:
        """Returns another view that shows only these entries, with the same decisions."""
        twin = self.copy()
        twin._show_only(list(entries))
        return twin

    def copy(self) -> View:
        """Returns an independent view with the same content, for a fork."""
        twin = View()
        for name, value in vars(self).items():
            setattr(twin, name, value.copy() if isinstance(value, list | dict | set) else value)
        twin.derived = {}
        twin.meter = self.meter.copy()
        joined = {id(old): replace(old, blocks=list(old.blocks), starts=list(old.starts)) for old in self._joined}
        twin._joined = [joined[id(old)] for old in self._joined]
        twin._answers = {call: joined[id(old)] for call, old in self._answers.items()}
        return twin
