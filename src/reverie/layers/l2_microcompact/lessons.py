"""What a session has taught layer 2: which results were requested again after they had left the view.

Follows the whole history, so the lessons survive a compaction and a resume. Such a result then stays for a long time,
its kind counts as needed more often, and several in a row stop economic clearing for a while. It decides nothing else.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from reverie.layers.l2_microcompact.results import CLEARABLE, subject_of
from reverie.models.wire import as_object
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry, View
from reverie.types import ToolUseBlock

KEPT_ROUNDS = 30
"""A result that was requested again stays for this many rounds; for twice as many each time it happens again."""
SEVERAL = 3
IN_A_ROW = 4
"""This many requests for cleared results within this many rounds stop clearing."""
REST_ROUNDS = 10
"""For this many rounds; for twice as many each time."""
EXPECTED = 0.2
"""The share of cleared results that recorded sessions requested again."""


@dataclass(slots=True)
class Lessons:
    """The lessons of one conversation. `follow` brings them up to date."""

    any_tool: bool = False
    rounds: int = 0
    again: Counter[str] = field(default_factory=Counter[str])
    """How often a cleared result was requested again, by tool."""
    cleared: Counter[str] = field(default_factory=Counter[str])
    kept: dict[str, int] = field(default_factory=dict[str, int])
    """What was requested again (see `subject_of`), and the round until which it stays."""
    resting_until: int = 0
    """Nothing is cleared before this round."""
    _rests: int = 0
    _missed: list[int] = field(default_factory=list[int])
    _times: Counter[str] = field(default_factory=Counter[str])
    _seen: int = 0
    _response: str | None = None
    _tools: dict[str, str] = field(default_factory=dict[str, str])
    _last: dict[str, str] = field(default_factory=dict[str, str])
    _about: dict[str, str] = field(default_factory=dict[str, str])
    _counted: int = 0

    @classmethod
    def of(cls, view: View, *, any_tool: bool = False) -> Lessons:
        """Returns the lessons of a view. They are kept with the view, so that a round costs only what is new."""
        lessons = view.derived.get(cls)
        if lessons is None:
            lessons = view.derived[cls] = cls(any_tool)
        lessons.follow(view)
        return lessons

    def follow(self, view: View) -> None:
        history = view.history
        for at in range(self._seen, len(history)):
            if history[at].message.role == "assistant":
                self._take(history[at], at, view)
        self._seen = len(history)
        if len(view.cleared) != self._counted:
            self._counted = len(view.cleared)
            self.cleared = Counter(self._tools[call] for call in view.cleared if call in self._tools)

    @property
    def is_resting(self) -> bool:
        """Whether nothing may be cleared now, because several results in a row were requested again."""
        return self.rounds < self.resting_until

    def is_kept(self, about: str, *, new_turn: bool) -> bool:
        """Whether a result about this stays because it was requested again; once is not enough in a new turn."""
        return self.rounds < self.kept.get(about, 0) and (not new_turn or self._times[about] > 1)

    def raises(self, tool: str) -> float:
        """Returns by which factor results of this tool are needed more often than expected."""
        return max(1.0, (self.again[tool] + 1) / (self.cleared[tool] * EXPECTED + 1))

    def _take(self, entry: Entry, at: int, view: View) -> None:
        message = entry.message
        if message.id is None or message.id != self._response:
            self._response = message.id
            self.rounds += 1
        for call in message.tool_uses:
            if call.name not in CLEARABLE and not self.any_tool:
                continue
            self._tools[call.id] = call.name
            about = self._read_back(call) or subject_of(call)
            self._about[call.id] = about
            before, self._last[about] = self._last.get(about), call.id
            if before is not None and view.gone_at.get(before, at + 1) <= at:
                self._learn(about, call.name, was_cleared=before in view.cleared)

    def _read_back(self, call: ToolUseBlock) -> str:
        """What a call is about that reads the file of a cleared result; empty for other calls."""
        given = as_object(call.input).values() if self.any_tool else ()
        names = (value.rpartition("/")[2].partition(".")[0] for value in given if isinstance(value, str))
        return next((self._about[name] for name in names if name in self._about), "")

    def _learn(self, about: str, tool: str, *, was_cleared: bool) -> None:
        self.kept[about] = self.rounds + KEPT_ROUNDS * 2 ** min(self._times[about], 8)
        self._times[about] += 1
        if not was_cleared:
            return  # a compaction took it
        self.again[tool] += 1
        self._missed = [*(one for one in self._missed if one > self.rounds - IN_A_ROW), self.rounds]
        if len(self._missed) >= SEVERAL:
            self.resting_until = self.rounds + REST_ROUNDS * 2 ** min(self._rests, 8)
            self._rests += 1
            self._missed = []
