"""An index of the tool results in view: how large each is, what stands behind it, whether it was overtaken since.

Follows a view record by record, so that a round costs what is new in it, and begins anew when the view was rewritten
(compaction, undo, resume). It only remembers what the view already says: two indexes of one view are equal. It
decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from reverie.layers.l1_tool_results.replacement import file_name
from reverie.layers.l2_microcompact.marker import CLEARABLE, cleared
from reverie.models.features import begins_turn
from reverie.models.tokens import estimate_block, estimate_text
from reverie.moments import parse_time
from reverie.storage.transcript.view import Entry, View
from reverie.types import Json, JsonObject, Message, ToolResultBlock, ToolUseBlock

_WRITERS = ("Edit", "Write")
_RANGE = ("offset", "limit")
_SHORT_LIFE_S = 300
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Held:
    """One result that could be cleared. `gap`: tokens between it and the next one; `since`: rounds before it came."""

    call_id: str
    tool: str
    about: str
    """The file, command or search it answers."""
    whole: bool
    tokens: int
    marker: str
    marker_tokens: int
    since: int
    gap: int = 0
    edited: bool = False
    """The file was changed since."""
    repeated: bool = False
    """The same was read or run again since."""
    saves: int = 0
    """Tokens that clearing it takes out of the prompt."""


@dataclass(slots=True)
class ResultIndex:
    """What layer 2 knows of one conversation. `follow` brings it up to date."""

    folder: Path | None = None
    """Where layer 1 puts results of this session."""
    held: list[Held] = field(default_factory=list[Held])
    rounds: int = 0
    """Responses so far."""
    fresh: int = 0
    """Tokens that came since the last request was made."""
    answered_at: datetime | None = None
    asked: list[datetime] = field(default_factory=list[datetime])
    """When each request was made, as far as the records say."""
    turn: int = 0
    """Tokens that came since the turn began, and `turn_since` rounds before it."""
    turn_since: int = 0
    pauses: list[float] = field(default_factory=list[float])
    """Seconds between two requests, where that was longer than the shortest life of a cache."""
    _entries: list[Entry] | None = None
    _seen: int = 0
    _decided: int = 0
    _response: str | None = None
    _entered_at: datetime | None = None
    _calls: dict[str, ToolUseBlock] = field(default_factory=dict[str, ToolUseBlock])
    _about: dict[str, list[Held]] = field(default_factory=dict[str, list[Held]])

    @classmethod
    def of(cls, view: View, folder: Path | None = None) -> ResultIndex:
        """The index of a view, kept with it so that a round costs only what is new."""
        index = view.derived.get(cls)
        if index is None or index.folder != folder:
            index = view.derived[cls] = cls(folder)
        index.follow(view)
        return index

    def follow(self, view: View) -> None:
        """Takes in what the view holds by now."""
        if view.entries is not self._entries:
            self._begin(view)
        for entry in view.entries[self._seen :]:
            self._take(entry, view)
        self._seen = len(view.entries)
        decided = len(view.cleared) + len(view.cache_edits)
        if decided != self._decided:
            self._decided = decided
            self._drop(view)

    def _begin(self, view: View) -> None:
        self.held, self.rounds, self.fresh = [], 0, 0
        self.answered_at, self.asked, self.pauses = None, [], []
        self.turn = self.turn_since = 0
        self._entries, self._seen, self._decided = view.entries, 0, 0
        self._response = self._entered_at = None
        self._calls, self._about = {}, {}

    def _take(self, entry: Entry, view: View) -> None:
        at = parse_time(entry.timestamp)
        if entry.message.role == "assistant":
            self._respond(entry.message, at)
            return
        self._entered_at = at or self._entered_at
        if begins_turn(entry.message):
            self.turn, self.turn_since = 0, self.rounds
        for block in entry.message.content:
            if isinstance(block, ToolResultBlock):
                self._result(block, view)
            else:
                self._pass(estimate_block(block))

    def _respond(self, message: Message, at: datetime | None) -> None:
        if message.id is None or message.id != self._response:
            self._response = message.id
            self.rounds += 1
            self.fresh = 0
            self._ask(self._entered_at or at)
        self.answered_at = at or self.answered_at
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                self._calls[block.id] = block
                if block.name in _WRITERS:
                    for held in self._about.get(_subject(block), ()):
                        held.edited = held.edited or held.tool == "Read"
            self._pass(estimate_block(block))

    def _ask(self, at: datetime | None) -> None:
        before = self.asked[-1] if self.asked else _EPOCH
        at = max(at or before, before)  # a clock that went back is taken for one that stood still
        pause = (at - before).total_seconds() if self.asked else 0.0
        self.pauses += [pause] if pause > _SHORT_LIFE_S else []
        self.asked.append(at)

    def expiries(self, lifetime_s: float) -> int:
        """How often so much time passed between two requests that the cache was gone."""
        return sum(pause > lifetime_s for pause in self.pauses)

    def _result(self, block: ToolResultBlock, view: View) -> None:
        call = self._calls.pop(block.tool_use_id, None)
        if call is None:
            return  # an orphan or a second answer: not in view
        replaced = view.replaced.get(block.tool_use_id)
        tokens = estimate_block(block) if replaced is None else estimate_text(replaced)
        if call.name not in CLEARABLE or block.tool_use_id in view.cleared:
            marker = view.cleared.get(block.tool_use_id)
            self._pass(tokens if marker is None else estimate_text(marker))
            return
        text = replaced if replaced is not None else block.text
        marker = cleared(call.name, kept_in=self._kept_in(block.tool_use_id, text), failed=bool(block.is_error))
        subject = _subject(call)
        held = Held(
            block.tool_use_id,
            call.name,
            subject,
            _is_whole(call),
            tokens,
            marker,
            estimate_text(marker),
            self.rounds,
            saves=tokens - estimate_text(marker),
        )
        if held.saves <= 0:
            self._pass(tokens)
            return
        if subject:
            earlier = self._about.setdefault(subject, [])
            for other in earlier:
                other.repeated = other.repeated or (other.tool == held.tool and held.whole)
            earlier.append(held)
        self.held.append(held)
        self.fresh += tokens
        self.turn += tokens

    def _pass(self, tokens: int) -> None:
        """Something that stays: it stands behind the last result that could be cleared."""
        self.fresh += tokens
        self.turn += tokens
        if self.held:
            self.held[-1].gap += tokens

    def _kept_in(self, call_id: str, text: str) -> str | None:
        """The file of layer 1 that holds this result. A result that merely looks as if it was kept is not believed."""
        if self.folder is None or len(text) > 20_000:
            return None
        for structured in (False, True):
            path = str(self.folder / file_name(call_id, structured=structured))
            if path in text:
                return path
        return None

    def _drop(self, view: View) -> None:
        """Takes out what was decided meanwhile; the marker (nothing, inside the server's cache) stays in its place."""
        kept = list[Held]()
        for held in self.held:
            if held.call_id in view.cleared or held.call_id in view.cache_edits:
                left = held.marker_tokens if held.call_id in view.cleared else 0
                if kept:
                    kept[-1].gap += held.gap + left
                if held.since >= self.turn_since:
                    self.turn -= held.tokens - left
            else:
                kept.append(held)
        self.held = kept


def _subject(call: ToolUseBlock) -> str:
    """What a call is about: the file of those that name one, else the whole input."""
    given: Json = call.input
    if not isinstance(given, dict):
        return ""
    fields = cast(JsonObject, given)
    if call.name in ("Read", *_WRITERS):
        return f"file {fields.get('file_path', '')}"
    if call.name == "Bash":
        return f"command {fields.get('command', '')}"
    return f"{call.name} {sorted((key, str(value)) for key, value in fields.items())}"


def _is_whole(call: ToolUseBlock) -> bool:
    """Whether a call shows all there is: reading another range does not overtake what was read before."""
    return call.name != "Read" or not any(key in call.input for key in _RANGE)
