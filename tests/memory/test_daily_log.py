"""Logs of the day: one file a day, only added to, whoever writes."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import ReverieError, UserError
from reverie.memory import daily_log
from reverie.memory.changes import ProposedWrite, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory

INFO = WriteInfo(Writer.AGENT, "a test")
DAY = datetime(2026, 3, 5, 14, 5, tzinfo=timezone(timedelta(hours=2)))


def gate(write: ProposedWrite) -> None:
    if "SECRET" in write.text:
        raise ReverieError("a secret is not stored; take it out")


def open_memory(root: Path) -> MemoryDirectory:
    return MemoryDirectory.open(root, gate=gate)


def test_entries_of_a_day_stand_below_each_other(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m")
    daily_log.append(memory, "uses tabs", DAY, INFO)
    daily_log.append(memory, "  first line\n\n second line  \n", DAY + timedelta(minutes=61), INFO)
    path = tmp_path / "m" / "logs" / "2026" / "03" / "2026-03-05.md"
    assert path.read_text() == "- 14:05 uses tabs\n- 15:06 first line\n   second line\n"
    assert not (tmp_path / "m" / "MEMORY.md").exists()
    assert len(list(memory.log())) == 2, "each entry is a version that can be undone"


def test_midnight_begins_another_file(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m")
    for hours in (0, 10, 24):
        daily_log.append(memory, f"after {hours}", DAY + timedelta(hours=hours), INFO)
    found = daily_log.list_logs(tmp_path / "m")
    assert [path.stem for path in found] == ["2026-03-05", "2026-03-06"]
    assert daily_log.list_logs(tmp_path / "m", after=date(2026, 3, 5)) == found[1:]
    assert daily_log.list_logs(tmp_path / "m", before=date(2026, 3, 6)) == found[:1]


def test_an_open_last_line_is_closed_first(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m")
    path = tmp_path / "m" / daily_log.log_name(DAY.date())
    path.parent.mkdir(parents=True)
    path.write_text("- 09:00 left open")
    daily_log.append(memory, "next", DAY, INFO)
    assert path.read_text() == "- 09:00 left open\n- 14:05 next\n"


def test_the_gate_is_asked_and_nothing_empty_is_kept(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m")
    with pytest.raises(ReverieError, match="secret"):
        daily_log.append(memory, "SECRET", DAY, INFO)
    with pytest.raises(UserError, match="empty"):
        daily_log.append(memory, " \n ", DAY, INFO)
    assert daily_log.list_logs(tmp_path / "m") == []


def test_an_agent_cannot_rewrite_a_log(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "m")
    daily_log.append(memory, "kept", DAY, INFO)
    name = daily_log.log_name(DAY.date())
    path = str(tmp_path / "m" / name)
    with pytest.raises(UserError, match="entries are added"):
        memory.apply_tool_write(path, "gone", INFO)
    memory.apply_tool_write(path, memory.read(name).text + "- 16:00 more\n", INFO)


def test_what_an_agent_may_write_in_this_mode() -> None:
    today = date(2026, 3, 5)
    name = daily_log.log_name(today)
    assert daily_log.reason_against_write(name, None, "- 1\n", today) is None
    assert daily_log.reason_against_write(name, "- 1\n", "- 1\n- 2\n", today) is None
    for bad in (
        daily_log.reason_against_write(name, "- 1\n", "- 2\n", today),
        daily_log.reason_against_write(name, "- 1\n", None, today),
        daily_log.reason_against_write("MEMORY.md", "a", "ab", today),
        daily_log.reason_against_write("feedback_x.md", None, "x", today),
        daily_log.reason_against_write(daily_log.log_name(date(2026, 3, 4)), "", "x", today),
    ):
        assert bad


@given(st.dates())
def test_names_and_days_are_each_others_inverse(day: date) -> None:
    assert daily_log.day_of(daily_log.log_name(day)) == day


@pytest.mark.parametrize(
    "name",
    [
        "logs/2026/03/2026-04-05.md",
        "logs/2026/13/2026-13-05.md",
        "logs/x.md",
        "2026-03-05.md",
        "logs/2026/3/2026-03-05.md",
    ],
)
def test_other_names_are_no_logs(name: str) -> None:
    assert daily_log.day_of(name) is None


def _append_some(root: str, who: int) -> None:
    memory = open_memory(Path(root))
    for number in range(5):
        daily_log.append(memory, f"entry {who}.{number}", DAY, INFO)


def test_many_processes_append_to_one_day(tmp_path: Path) -> None:
    context = get_context("spawn")
    workers = [context.Process(target=_append_some, args=(str(tmp_path / "m"), who)) for who in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    text = (tmp_path / "m" / daily_log.log_name(DAY.date())).read_text()
    entries = [line for line in text.splitlines() if line.startswith("- ")]
    assert sorted(entries) == sorted(f"- 14:05 entry {who}.{number}" for who in range(3) for number in range(5))
