"""An index of the tool results in view: the size of each, what follows it, and whether it is outdated; and its marker.

Follows a view record by record, so a round costs only what is new. Starts again when the view was rewritten
(compaction, undo, resume). It only derives data from the view and decides nothing.
"""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import cast

from reverie.layers.l1_tool_results.replacement import READ_TOOL, file_name, holds_image, text_and_form
from reverie.models.features import begins_turn
from reverie.models.tokens import estimate_block, estimate_text
from reverie.moments import parse_time
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry, View
from reverie.types import Json, JsonObject, Message, ToolResultBlock, ToolUseBlock

CLEARABLE = frozenset({"Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write", READ_TOOL})
"""Tools whose results may be cleared: they can run again, or their effect is on disk. Results of other tools may be
cleared in a foreign loop (`any_tool`), after a copy is on disk."""

_AGAIN = {
    "Read": "read the file again if needed.",
    "Bash": "run the command again if needed.",
    "Edit": "the edit was made.",
    "Write": "the file was written.",
}
_FAILED = {**_AGAIN, "Edit": "the edit failed.", "Write": "writing the file failed."}
_OTHERWISE = "run the tool again with the same input if needed."

_WRITERS = ("Edit", "Write")
_RANGE = ("offset", "limit")
_SHORT_LIFE_S = 300
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def render_marker(tool: str, *, kept_in: str | None = None, failed: bool = False) -> str:
    """Returns the marker for a cleared result. It is short, because it stays in the prompt and the call is above it.

    `kept_in` is the file with the whole result, if layer 1 kept one.
    """
    if kept_in is not None:
        return _render(f"all of it is in {kept_in}.")
    return _render((_FAILED if failed else _AGAIN).get(tool, _OTHERWISE))


@cache
def _render(how: str) -> str:
    return render("reverie.layers.l2_microcompact", "cleared.md", {"how": how})


@dataclass(slots=True)
class ClearableResult:
    """A result that could be cleared. `gap`: tokens between it and the next one; `since`: rounds before it came."""

    call_id: str
    tool: str
    about: str
    """The file, command or search that it answers."""
    whole: bool
    tokens: int
    marker: str
    marker_tokens: int
    since: int
    gap: int = 0
    edited: bool = False
    repeated: bool = False
    saves: int = 0
    """Tokens that clearing it removes from the prompt."""
    copy: tuple[Path, str] | None = None
    """The file that must hold this text before it is cleared."""


@dataclass(slots=True)
class ResultIndex:
    """What layer 2 knows about one conversation. `follow` brings it up to date."""

    folder: Path | None = None
    any_tool: bool = False
    held: list[ClearableResult] = field(default_factory=list[ClearableResult])
    rounds: int = 0
    fresh: int = 0
    """Tokens since the last request."""
    answered_at: datetime | None = None
    asked: list[datetime] = field(default_factory=list[datetime])
    """The time of each request, as far as the records say."""
    turn: int = 0
    """Tokens since the turn began; `turn_since` is the number of rounds before it."""
    turn_since: int = 0
    pauses: list[float] = field(default_factory=list[float])
    """Seconds between two requests, if longer than the shortest life of a cache."""
    _entries: list[Entry] | None = None
    _seen: int = 0
    _decided: int = 0
    _response: str | None = None
    _entered_at: datetime | None = None
    _calls: dict[str, ToolUseBlock] = field(default_factory=dict[str, ToolUseBlock])
    _about: dict[str, list[ClearableResult]] = field(default_factory=dict[str, list[ClearableResult]])

    @classmethod
    def of(cls, view: View, folder: Path | None = None, *, any_tool: bool = False) -> ResultIndex:
        """Returns the index of a view. It is kept with the view, so that a round costs only what is new."""
        index = view.derived.get(cls)
        if index is None or index.folder != folder or index.any_tool != any_tool:
            index = view.derived[cls] = cls(folder, any_tool)
        index.follow(view)
        return index

    def follow(self, view: View) -> None:
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
                    for held in self._about.get(subject_of(block), ()):
                        held.edited = held.edited or held.tool == "Read"
            self._pass(estimate_block(block))

    def _ask(self, at: datetime | None) -> None:
        before = self.asked[-1] if self.asked else _EPOCH
        at = max(at or before, before)  # a clock that went back counts as one that stood still
        pause = (at - before).total_seconds() if self.asked else 0.0
        self.pauses += [pause] if pause > _SHORT_LIFE_S else []
        self.asked.append(at)

    def expiries(self, lifetime_s: float) -> int:
        """Returns how often the pause between two requests was longer than the cache lives."""
        return sum(pause > lifetime_s for pause in self.pauses)

    def _result(self, block: ToolResultBlock, view: View) -> None:
        call = self._calls.pop(block.tool_use_id, None)
        if call is None:
            return  # an orphan or a second result: not in view
        replaced = view.replaced.get(block.tool_use_id)
        tokens = estimate_block(block) if replaced is None else estimate_text(replaced)
        text = replaced if replaced is not None else block.text
        kept_in = self._find_kept_file(block.tool_use_id, text)
        copy = None
        if call.name not in CLEARABLE and kept_in is None:
            copy = self._make_copy(block) if replaced is None else None
            kept_in = str(copy[0]) if copy is not None else None
        is_lost = call.name not in CLEARABLE and (kept_in is None or not self.any_tool)
        if is_lost or block.tool_use_id in view.cleared:
            marker = view.cleared.get(block.tool_use_id)
            self._pass(tokens if marker is None else estimate_text(marker))
            return
        marker = render_marker(call.name, kept_in=kept_in, failed=bool(block.is_error))
        subject = subject_of(call)
        held = ClearableResult(
            block.tool_use_id,
            call.name,
            subject,
            _is_whole(call),
            tokens,
            marker,
            estimate_text(marker),
            self.rounds,
            saves=tokens - estimate_text(marker),
            copy=copy,
        )
        if held.saves <= 0:
            self._pass(tokens)
            return
        if subject:
            earlier = self._about.setdefault(subject, [])
            for other in reversed(earlier) if held.whole else ():
                if other.tool == held.tool:
                    if other.repeated:  # so are those before it
                        break
                    other.repeated = True
            earlier.append(held)
        self.held.append(held)
        self.fresh += tokens
        self.turn += tokens

    def _pass(self, tokens: int) -> None:
        """Adds content that stays: it follows the last result that could be cleared."""
        self.fresh += tokens
        self.turn += tokens
        if self.held:
            self.held[-1].gap += tokens

    def _make_copy(self, block: ToolResultBlock) -> tuple[Path, str] | None:
        """Returns the file for a result that cannot be asked for again; None if it cannot be cleared."""
        if not self.any_tool or self.folder is None or not block.content or holds_image(block.content):
            return None
        text, structured = text_and_form(block.content)
        return self.folder / file_name(block.tool_use_id, structured=structured), text

    def _find_kept_file(self, call_id: str, text: str) -> str | None:
        """Returns the file of layer 1 that holds this result. Its name must be in the text and in our folder."""
        if self.folder is None or len(text) > 20_000:
            return None
        for structured in (False, True):
            path = str(self.folder / file_name(call_id, structured=structured))
            if path in text:
                return path
        return None

    def _drop(self, view: View) -> None:
        """Removes results that were cleared meanwhile. Their marker stays (nothing, inside the server's cache)."""
        kept = list[ClearableResult]()
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


def subject_of(call: ToolUseBlock) -> str:
    """Returns the file, command or search that a call is about; empty if its input is unusable."""
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
    """Whether a call shows everything. Reading another range does not outdate an earlier read."""
    return call.name != "Read" or not any(key in call.input for key in _RANGE)
