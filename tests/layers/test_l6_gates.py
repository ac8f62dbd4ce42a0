"""The gates of dreaming: their order, what each costs in looks at the disk, and what opens them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reverie.layers.l6_dreaming.gates import (
    Circumstances,
    Closed,
    DreamGate,
    GateNumbers,
    Gates,
    Open,
    changed_transcripts,
)
from reverie.layers.l6_dreaming.lock import ConsolidationLock
from reverie.layers.l6_dreaming.state import StateFile

NOW = datetime(2026, 11, 15, 3, tzinfo=UTC)


class Place:
    def __init__(self, folder: Path, transcripts: int = 6) -> None:
        self.memory, self.project = folder / "memory", folder / "project"
        self.memory.mkdir()
        self.project.mkdir()
        for number in range(transcripts):
            self.touch(f"s{number}", hours=1)
        self.asked: list[str] = []
        self.around = Circumstances(
            is_on=lambda: True,
            daily_log=lambda: False,
            is_remote=lambda: False,
            numbers=GateNumbers,
            folders=(self.project,),
            current=lambda: "current",
            waiting=lambda: 0,
            may_spend=lambda: None,
        )

    def touch(self, name: str, *, hours: float) -> None:
        path = self.project / f"{name}.jsonl"
        path.write_text("{}\n")
        moment = NOW.timestamp() - hours * 3_600
        os.utime(path, (moment, moment))

    def slept(self, *, hours: float) -> None:
        path = self.memory / ".consolidate-lock"
        path.write_bytes(b"")
        moment = NOW.timestamp() - hours * 3_600
        os.utime(path, (moment, moment))

    def gates(self, around: Circumstances | None = None) -> Gates:
        return Gates(ConsolidationLock(self.memory), StateFile(self.memory), around or self.around)


def shut(found: Open | Closed) -> DreamGate:
    assert isinstance(found, Closed), found
    return found.gate


def test_never_dreamt_and_enough_sessions_opens_every_gate(tmp_path: Path) -> None:
    found = Place(tmp_path).gates().look(NOW)
    assert isinstance(found, Open) and len(found.transcripts) == 6


def test_the_first_closed_gate_answers_and_nothing_behind_it_is_asked(tmp_path: Path) -> None:
    """Everything is shut; one gate after the other is opened, and each time the next one answers."""
    place = Place(tmp_path, transcripts=2)
    place.slept(hours=1)
    asked: list[str] = []

    def tell(name: str, answer: object) -> Callable[[], object]:
        def told() -> object:
            asked.append(name)
            return answer

        return told

    shut_all = Circumstances(
        is_on=tell("switch", False),  # type: ignore[arg-type]
        daily_log=tell("daily_log", True),  # type: ignore[arg-type]
        is_remote=tell("remote", True),  # type: ignore[arg-type]
        numbers=GateNumbers,
        folders=(place.project,),
        current=lambda: "",
        waiting=tell("waiting", 1),  # type: ignore[arg-type]
        may_spend=tell("budget", "spent"),  # type: ignore[arg-type]
    )
    assert shut(place.gates(shut_all).look(NOW)) is DreamGate.SWITCH and asked == ["switch"]
    around = replace(shut_all, is_on=lambda: True)
    assert shut(place.gates(around).look(NOW)) is DreamGate.DAILY_LOG
    around = replace(around, daily_log=lambda: False)
    assert shut(place.gates(around).look(NOW)) is DreamGate.REMOTE
    around = replace(around, is_remote=lambda: False)
    assert shut(place.gates(around).look(NOW)) is DreamGate.TIME
    place.slept(hours=25)
    StateFile(place.memory).change(failures_in_a_row=1, last_attempt=NOW.timestamp() - 60)
    assert shut(place.gates(around).look(NOW)) is DreamGate.RETRY
    StateFile(place.memory).change(failures_in_a_row=0)
    assert shut(place.gates(around).look(NOW)) is DreamGate.REVIEW
    around = replace(around, waiting=lambda: 0)
    assert shut(place.gates(around).look(NOW)) is DreamGate.TRANSCRIPTS
    for number in range(5):
        place.touch(f"new{number}", hours=2)
    asked.clear()
    assert shut(place.gates(around).look(NOW)) is DreamGate.BUDGET and asked == ["budget"]
    assert isinstance(place.gates(replace(around, may_spend=lambda: None)).look(NOW), Open)


@pytest.mark.parametrize(("hours", "is_open"), [(23.9, False), (24.1, True)])
def test_a_day_lies_between_two_dreams(tmp_path: Path, hours: float, is_open: bool) -> None:
    place = Place(tmp_path)
    place.slept(hours=hours)
    found = place.gates().look(NOW)
    assert isinstance(found, Open) if is_open else shut(found) is DreamGate.TIME


def test_transcripts_are_looked_at_every_ten_minutes_at_most(tmp_path: Path) -> None:
    place = Place(tmp_path, transcripts=1)
    gates = place.gates()
    assert shut(gates.look(NOW)) is DreamGate.TRANSCRIPTS
    for number in range(9):
        place.touch(f"new{number}", hours=0)
    assert shut(gates.look(NOW + timedelta(minutes=9))) is DreamGate.SCAN
    assert isinstance(gates.look(NOW + timedelta(minutes=10, seconds=1)), Open)


def test_the_current_session_and_agents_do_not_count(tmp_path: Path) -> None:
    place = Place(tmp_path, transcripts=4)
    place.touch("current", hours=0)
    place.touch("agent-7", hours=0)
    (place.project / "notes.txt").write_text("no transcript")
    assert shut(place.gates().look(NOW)) is DreamGate.TRANSCRIPTS


def test_only_what_changed_since_the_last_dream_counts_newest_first(tmp_path: Path) -> None:
    place = Place(tmp_path, transcripts=0)
    for hours in (1, 30, 3, 40):
        place.touch(f"h{hours}", hours=hours)
    since = NOW.timestamp() - 25 * 3_600
    assert [path.stem for path in changed_transcripts([place.project], since)] == ["h1", "h3"]
    assert len(changed_transcripts([place.project, place.project, tmp_path / "none"], None)) == 4


def test_failures_are_tried_again_later_and_later(tmp_path: Path) -> None:
    place = Place(tmp_path)
    state = StateFile(place.memory)
    for failures, hours in ((1, 1), (2, 2), (3, 4), (9, 24)):
        state.change(failures_in_a_row=failures, last_attempt=NOW.timestamp())
        early, late = NOW + timedelta(hours=hours, seconds=-5), NOW + timedelta(hours=hours, seconds=5)
        assert shut(place.gates().look(early)) is DreamGate.RETRY
        assert isinstance(place.gates().look(late), Open)


def test_a_torn_heartbeat_stops_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    state = StateFile(place.memory)
    state.change(failures_in_a_row=2)
    state.path.write_text('{"failures_in_a_row": "many", "rounds": 4')
    assert isinstance(place.gates().look(NOW), Open)
    state.path.write_text('{"failures_in_a_row": "many", "rounds": 4, "told": 1, "strange": []}')
    assert state.read().failures_in_a_row == 0 and state.read().rounds == 4


def test_a_last_dream_in_the_future_counts_as_none(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.slept(hours=-24 * 365 * 70)
    assert isinstance(place.gates().look(NOW), Open)


def test_a_pipe_is_no_transcript(tmp_path: Path) -> None:
    place = Place(tmp_path, transcripts=0)
    os.mkfifo(place.project / "s9.jsonl")
    assert changed_transcripts([place.project], None) == ()
