"""Times no calendar holds, and times to come: nothing raises, nothing waits for them."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reverie.layers.l6_dreaming.gates import retry_after
from reverie.layers.l6_dreaming.lock import ConsolidationLock
from reverie.layers.l6_dreaming.state import DreamState
from reverie.memory.recall.ranker import Ranker
from reverie.memory.scan import manifest, scan
from reverie.moments import iso, local_day, local_minutes, modified_time, parse_time, past_time, to_datetime
from reverie.storage.transcript.sessions import list_sessions

FUTURE = datetime(2099, 1, 1, tzinfo=UTC).timestamp()
STRANGE = [0, -1, -62_000_000_000, 13_600_000_000, 250_000_000_000, 2**33, 10**12]


@pytest.mark.parametrize("seconds", [*STRANGE, 1e300, -1e300, float("inf"), float("-inf"), float("nan")])
def test_any_number_of_seconds_is_a_moment(seconds: float) -> None:
    assert iso(seconds) == to_datetime(seconds).isoformat(timespec="seconds")
    assert local_minutes(seconds) and to_datetime(seconds).astimezone().date()


@pytest.mark.parametrize("text", ["99999-01-01T00:00:00Z", "NaN", "", "0001-01-01T00:00:00+14:00", None, 7, "2026", {}])
def test_any_time_stamp_is_a_moment_or_none(text: object) -> None:
    found = parse_time(text)
    assert found is None or found.astimezone().tzinfo is not None
    assert local_day(text) is None


def test_a_time_stamp_without_a_zone_is_in_utc() -> None:
    assert (
        parse_time("2026-03-01T12:00:00") == parse_time("2026-03-01T12:00:00Z") == datetime(2026, 3, 1, 12, tzinfo=UTC)
    )


def test_what_is_to_come_has_not_happened() -> None:
    assert past_time(FUTURE, 1_000.0) is None and past_time(None, 1_000.0) is None
    assert past_time(1_010.0, 1_000.0) == 1_000.0 and past_time(900.0, 1_000.0) == 900.0


@pytest.mark.parametrize("seconds", STRANGE)
def test_memories_of_any_time_are_listed_and_found(tmp_path: Path, seconds: int) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    (root / "feedback_tests.md").write_text(
        "---\nname: Tests\ndescription: no mocks in tests\n---\nNo mocks in tests.\n"
    )
    try:
        os.utime(root / "feedback_tests.md", (seconds, seconds))
    except (OSError, OverflowError):
        pytest.skip("this file system cannot hold that time")
    assert "feedback_tests.md" in manifest(scan(root).entries)
    for _ in range(2):
        with Ranker.open(root, tmp_path / "index.sqlite", tier="builtin") as ranker:
            assert [one.path for one in ranker.rank("mocks in tests").ranked] == ["feedback_tests.md"]


def test_a_session_from_the_future_is_not_the_newest_for_ever(tmp_path: Path) -> None:
    record = {"type": "user", "uuid": "1", "message": {"role": "user", "content": "hi"}, "timestamp": "99999-01-01"}
    for name in ("old", "new"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(record) + "\n")
        time.sleep(0.02)
    os.utime(tmp_path / "old.jsonl", (FUTURE, FUTURE))
    os.utime(tmp_path / "new.jsonl", (time.time() + 1, time.time() + 1))
    assert [info.id for info in list_sessions(tmp_path)] == ["new", "old"]
    assert modified_time((tmp_path / "old.jsonl").stat()) <= time.time()


def test_a_lock_from_the_future_holds_nobody_up(tmp_path: Path) -> None:
    lock, now = ConsolidationLock(tmp_path), time.time()
    lock.path.write_text(str(os.getppid()))
    os.utime(lock.path, (FUTURE, FUTURE))
    state = lock.state(now)
    assert not state.held and state.ahead and state.last_success is None
    holding = lock.take(now)
    assert holding is not None and holding.succeed(now)
    assert lock.state(now).last_success == pytest.approx(now) and not lock.state(now).ahead


def test_a_failure_in_the_future_delays_nothing() -> None:
    assert retry_after(DreamState(last_attempt=FUTURE, failures_in_a_row=3), 1_000.0) == 0.0
    assert retry_after(DreamState(last_attempt=1_000.0, failures_in_a_row=10**9), 1_000.0) == 86_400.0
