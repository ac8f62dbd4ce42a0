"""`reverie lab startup` works in a home of its own, with sessions that are real transcripts."""

from __future__ import annotations

from pathlib import Path

from bench.startup import Startup, measure_startup, write_sessions
from reverie.storage.transcript.file import read_records


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
    figures = Startup(
        bare_ms=10.0, version_ms=25.0, sessions_ms=80.0, remember_ms=95.0, library_ms=30.0, runs=15
    ).summary()
    assert figures["version_ratio"] == 2.5
    assert figures["sessions_ratio"] == 8.0
    assert figures["remember_ratio"] == 9.5
    assert figures["library_ratio"] == 3.0


def test_every_command_is_measured() -> None:
    figures = measure_startup(runs=1).summary()
    assert min(figures["version_ratio"], figures["sessions_ratio"], figures["remember_ratio"]) > 1
    assert figures["library_ratio"] > 0
