"""`reverie lab startup` works in a home of its own, with sessions that are real transcripts."""

from __future__ import annotations

from pathlib import Path

from bench.startup import report, startup, write_sessions
from reverie.storage.transcript.file import read_records
from tests.bench.contract import check_keys


def test_its_sessions_are_transcripts(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    write_sessions(tmp_path / "home", work, 5)
    files = sorted((tmp_path / "home" / "projects").glob("*/*.jsonl"))
    assert len(files) == 5
    for file in files:
        loaded = read_records(file)
        assert not loaded.bad
        assert [record.type for record in loaded.records] == ["user", "assistant"] * 2
        assert {record.data["sessionId"] for record in loaded.records} == {file.stem}
        assert [record.parent for record in loaded.records[1:]] == [record.uuid for record in loaded.records[:-1]]


def test_ratios_are_to_the_bare_interpreter() -> None:
    taken = {"bare": 10.0, "version": 25.0, "sessions": 80.0, "remember": 95.0, "library": 30.0}
    figures = report(taken, 15).figures
    assert figures["version_ratio"] == 2.5
    assert figures["sessions_ratio"] == 8.0
    assert figures["remember_ratio"] == 9.5
    assert figures["library_ratio"] == 3.0


def test_every_command_is_measured() -> None:
    figures = startup.measure(runs=1).figures
    check_keys("startup", figures)
    assert min(figures["version_ratio"], figures["sessions_ratio"], figures["remember_ratio"]) > 1
    assert figures["library_ratio"] > 0
