"""The contexts that are compared: the recording's own summary, a list of files, and what our layers would write.

Written by code, without a model, from what stood before the cut alone. `whole` is the one place that knows what a
compaction puts into the new context; files restored from disk and kept messages are left out, since a recording has no
disk: what it holds is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from reverie.lab.survival.measures import files_touched
from reverie.lab.survival.moments import Moment
from reverie.layers.l3_session_notes.numbers import NoteNumbers
from reverie.layers.l3_session_notes.writer import default_template
from reverie.layers.l4_compaction.by_code import Limits, operations, write_notes, write_summary
from reverie.layers.l4_compaction.compose import Beside, Prose, Scope, summary_blocks
from reverie.layers.l4_compaction.numbers import CompactionNumbers
from reverie.layers.l4_compaction.requests import requests_in
from reverie.models.tokens import PROSE_BYTES
from reverie.types import TextBlock

_Writer = Callable[[Moment, int], str]

NAMES = ("recorded", "last10", "notes", "summary", "reverie")
_LAST = 10
_FOR_REQUESTS = 0.7
"""Of the room, at most: what the person said goes before everything else."""

_STEPS = 8
_LESS, _MORE = 0.6, 1.25
_AIM, _FULL = 0.985, 0.96


def context(name: str, moment: Moment) -> str | None:
    """The new context by this name, within the moment's room; None where there is none (no recorded summary)."""
    match name:
        case "recorded":
            return moment.summary
        case "last10":
            return "\n".join(files_touched(operations(moment.before), moment.cwd)[-_LAST:])
        case "notes":
            return _within(moment, moment.room, _notes)
        case "summary":
            return _within(moment, moment.room, _summary)
        case "reverie":
            return whole(moment, moment.room)
        case _:
            raise ValueError(f"there is no context called {name}")


def whole(moment: Moment, room: int) -> str:
    """What our compaction would put into the new context, at most `room` tokens."""
    return _within(moment, room, _composed)


def _within(moment: Moment, room: int, write: _Writer) -> str:
    """The longest text of this writer that fits: asked for less while it is too long, for more while there is room."""
    asked, best = float(room), ("", -1)
    for _ in range(_STEPS):
        text = write(moment, int(asked))
        size = moment.tokens(text)
        if size <= room and size > best[1]:
            best = (text, size)
        elif size <= room:
            break  # it has no more to say
        if _FULL * room <= size <= room:
            break
        asked *= min(_MORE, max(_LESS, _AIM * room / max(1, size)))
    return best[0] if best[1] >= 0 else write(moment, 0)


def _notes(moment: Moment, tokens: int) -> str:
    numbers = NoteNumbers()
    limits = Limits.for_tokens(min(tokens, numbers.total_tokens))
    limits = replace(limits, section=min(limits.section, numbers.section_tokens * PROSE_BYTES))
    return write_notes(moment.before, default_template(), limits, cwd=moment.cwd)


def _summary(moment: Moment, tokens: int) -> str:
    most = CompactionNumbers().summary_tokens
    return write_summary(moment.before, Limits.for_tokens(min(tokens, most)), cwd=moment.cwd)


def _composed(moment: Moment, tokens: int) -> str:
    usual = CompactionNumbers()
    usual = replace(usual, requests_tokens=min(usual.requests_tokens, max(1, int(_FOR_REQUESTS * tokens))))
    bare = replace(usual, ledger_characters=1, names=0)
    left = tokens - moment.tokens(_joined(moment, "", bare))
    limits = Limits.for_tokens(max(0, left))
    numbers = replace(
        usual,
        ledger_characters=min(usual.ledger_characters, max(1, limits.ledger)),
        names=min(usual.names, limits.names),
    )
    prose = replace(limits, total=max(0, limits.total - limits.ledger - limits.names * 15))
    return _joined(moment, write_summary(moment.before, prose, cwd=moment.cwd, alone=False), numbers)


def _joined(moment: Moment, prose: str, numbers: CompactionNumbers) -> str:
    beside = Beside(
        requests=requests_in(moment.before),
        requests_folder=Path("requests"),
        all_requests=Path("requests/all.txt"),
        unsaved=frozenset(),
        pins={},
        transcript=Path(f"{moment.session}.jsonl"),
        cwd=moment.cwd,
    )
    blocks = summary_blocks(Scope("whole", moment.before), Prose(prose, "code"), beside, numbers)
    return "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock))
