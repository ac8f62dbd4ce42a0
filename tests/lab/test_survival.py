"""`reverie lab survival` on tiny sessions with known answers, and on recorded ones where they are at hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.cli.lab import command
from reverie.errors import UserError
from reverie.lab.survival.measures import SearchedText, find_held, find_used_again, identifiers
from reverie.lab.survival.moments import UNKNOWN_ROOM, load_moments
from reverie.lab.survival.run import compose, make_context, measure, measure_moment, report, write_within
from tests.counts import count
from tests.shared_data import sources

LONG = "Please keep the public API as it is. " * 80
SUMMARY = "The user asked to speed up load_table in table.py. Nothing else is known."


class Recording:
    """Writes a transcript as Claude Code does, line by line."""

    def __init__(self, folder: Path, name: str = "one") -> None:
        self.path = folder / f"{name}.jsonl"
        self.lines = list[dict[str, Any]]()

    def _add(self, record: dict[str, Any]) -> None:
        number = len(self.lines)
        parent = f"u{number - 1}" if number else None
        base = {"uuid": f"u{number}", "parentUuid": parent, "sessionId": "s", "cwd": "/w", "isSidechain": False}
        self.lines.append({**base, "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z", **record})

    def asked(self, text: str) -> None:
        self._add({"type": "user", "message": {"role": "user", "content": text}})

    def said(self, text: str, prompt: int) -> None:
        self._answer([{"type": "text", "text": text}], prompt)

    def did(self, tool: str, given: dict[str, Any], result: str, prompt: int, *, error: bool = False) -> None:
        call = f"t{len(self.lines)}"
        self._answer([{"type": "tool_use", "id": call, "name": tool, "input": given}], prompt)
        answer = {"type": "tool_result", "tool_use_id": call, "content": result, "is_error": error}
        self._add({"type": "user", "message": {"role": "user", "content": [answer]}})

    def _answer(self, content: list[dict[str, Any]], prompt: int) -> None:
        usage = {"input_tokens": prompt, "output_tokens": 5}
        message = {"role": "assistant", "id": f"m{len(self.lines)}", "model": "claude-opus-4-5", "content": content}
        self._add({"type": "assistant", "message": {**message, "usage": usage}})

    def compacted(self, text: str) -> None:
        last = f"u{len(self.lines) - 1}"
        meta = {"trigger": "auto", "preTokens": 150_000}
        boundary = {"type": "system", "subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": last}
        self._add({**boundary, "compactMetadata": meta})
        self._add({"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": text}})

    def save(self) -> Path:
        self.path.write_text("\n".join(json.dumps(line) for line in self.lines) + "\n")
        return self.path


def work(recording: Recording) -> None:
    recording.asked("Speed up load_table, but never touch the wire format")
    recording.asked(LONG)
    recording.did("Read", {"file_path": "/w/src/table.py"}, "def load_table(): return read_rows()", 1_000)
    recording.did("Read", {"file_path": "/w/src/other.py"}, "unused_name = 1", 1_100)
    recording.did("Bash", {"command": "cd /w && make bench"}, "Exit code 2\nerror: no rule", 1_200, error=True)
    recording.did("Bash", {"command": "make lint"}, "Exit code 1\nerror: style", 1_250, error=True)
    recording.did("Bash", {"command": "cat /w/docs/plan.md"}, "use batch_size", 1_300)


def after(recording: Recording, first_prompt: int) -> None:
    recording.did(
        "Edit",
        {"file_path": "/w/src/table.py", "old_string": "a", "new_string": "read_rows(NEW_ONE)"},
        "ok",
        first_prompt,
    )
    recording.did("Bash", {"command": "make bench"}, "ok", 3_500)
    recording.did("Bash", {"command": "cat docs/plan.md"}, "…", 3_600)
    recording.did("Write", {"file_path": "/w/src/fresh.py", "content": "batch_size = 2"}, "ok", 3_700)
    recording.said("Done: load_table is faster.", 3_800)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    recording = Recording(tmp_path)
    work(recording)
    recording.compacted(SUMMARY)
    after(recording, 3_400)
    return recording.save()


def test_what_was_known_and_used_again_is_what_counts(recorded: Path) -> None:
    (moment,) = load_moments([recorded])
    used = find_used_again(moment.before, moment.after, moment.cwd)
    assert used.files == {"/w/src/table.py", "/w/docs/plan.md"}, "fresh.py was not known, other.py not used again"
    assert used.failed_commands == {"make bench"}, "make lint was not run again"
    assert used.identifiers == {"load_table", "read_rows", "batch_size"}, "NEW_ONE first came up afterwards"
    assert used.requests == ("Speed up load_table, but never touch the wire format", LONG)
    assert moment.summary == SUMMARY and moment.room == 3_400 - 1_000


def test_a_context_is_measured_by_what_it_holds(recorded: Path) -> None:
    (moment,) = load_moments([recorded])
    used = find_used_again(moment.before, moment.after, moment.cwd)
    found = find_held(used, SUMMARY)
    assert found.kept == {"files": 1, "requests": 0, "failed_commands": 0, "identifiers": 1}
    assert found.total == {"files": 2, "requests": 2, "failed_commands": 1, "identifiers": 3}
    assert (found.listed_and_used, found.listed) == (2, 2)
    assert found.lost["failed_commands"] == ["make bench"]
    noisy = find_held(
        used,
        "table.py other.py unused_name, `make bench` failed;\n\nSpeed up  load_table, but never touch the\nwire format",
    )
    assert noisy.kept == {"files": 1, "requests": 1, "failed_commands": 1, "identifiers": 1}
    assert (noisy.listed_and_used, noisy.listed) == (2, 4)


def test_figures_of_every_context_and_their_keys(recorded: Path) -> None:
    figures = report(measure([recorded])).figures
    keys = {"files", "requests", "failed_commands", "identifiers", "precision", "tokens"}
    for name in ("recorded", "last10", "notes", "summary", "reverie"):
        assert set(figures[name]) == keys
    assert figures["recorded"]["files"] == 0.5 and figures["recorded"]["identifiers"] == pytest.approx(1 / 3)
    assert figures["last10"]["files"] == 1.0 and figures["last10"]["requests"] == 0.0
    ours = figures["reverie"]
    assert (ours["files"], ours["requests"], ours["failed_commands"], ours["identifiers"]) == (1.0, 1.0, 1.0, 1.0)
    assert ours["tokens"] <= 2_400 and figures["over_room"] == 0
    assert figures["compactions"] == {"real": 1, "simulated": 0}
    assert set(figures["equal_tokens"]) == {"recorded", "reverie"}


def test_a_name_inside_another_is_not_that_name() -> None:
    text = SearchedText("see my_table.py and table.pyc, read_rows_fast")
    assert not text.names_file("/w/table.py") and "read_rows" not in text.identifiers
    assert SearchedText("src/: table.py, x").names_file("/w/src/table.py")


def test_words_and_escapes_are_not_identifiers() -> None:
    assert identifiers("Some Words here, \\nNext 0o644 1234567 camelCase --dry-run ENT-12 v1.2 a_b") == {
        "camelCase",
        "--dry-run",
        "ENT-12",
    }


def test_a_long_request_is_held_by_its_beginning_a_short_one_word_for_word() -> None:
    assert SearchedText(f"1. {LONG[:900]} … rest in requests/x.txt").quotes(LONG)
    assert not SearchedText("Please keep").quotes(LONG)
    assert not SearchedText("Do it now").quotes("Do it now, please")


def test_long_sessions_without_a_compaction_are_cut_where_they_grew(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    work(recording)
    after(recording, 3_400)
    recording.did("Read", {"file_path": "/w/src/table.py"}, "x", 4_000)
    recording.save()
    (moment,) = load_moments([tmp_path], simulated_at=1_200)
    assert moment.summary is None and moment.room == UNKNOWN_ROOM
    assert make_context("recorded", moment) is None
    assert moment.before and moment.after
    figures = report([measure_moment(moment)]).figures
    assert "recorded" not in figures and figures["reverie"]["files"] == 1.0
    with pytest.raises(UserError, match="lower --at"):
        load_moments([tmp_path], simulated_at=500_000)


def test_a_budget_that_cannot_be_told_is_the_usual_one(tmp_path: Path) -> None:
    for name, first in (("a", 3_400), ("b", 3_000), ("c", 900)):
        recording = Recording(tmp_path, name)
        work(recording)
        recording.compacted(SUMMARY)
        after(recording, first)
        recording.save()
    rooms = {moment.session: moment.room for moment in load_moments([tmp_path])}
    assert rooms == {"a": 2_400, "b": 2_000, "c": 2_200}


@settings(max_examples=count(10, 100), deadline=None)
@given(room=st.integers(700, 12_000))
def test_the_whole_context_never_exceeds_its_room(tmp_path_factory: pytest.TempPathFactory, room: int) -> None:
    folder = tmp_path_factory.getbasetemp()
    recording = Recording(folder, "room")
    work(recording)
    for i in range(60):
        given = {
            "file_path": f"/w/pkg{i % 7}/mod_{i}.py",
            "old_string": "x",
            "new_string": f"def made_{i}(): call_{i}()",
        }
        recording.did("Edit", given, "ok", 1_400 + i)
    recording.compacted(SUMMARY)
    after(recording, 3_400)
    (moment,) = load_moments([recording.save()])
    text = write_within(moment, room, compose)
    assert moment.tokens(text) <= room
    used = find_used_again(moment.before, moment.after, moment.cwd)
    assert find_held(used, text).kept["requests"] == 2
    assert text == write_within(moment, room, compose)


def test_the_command_prints_figures_for_people_and_programs(recorded: Path) -> None:
    shown = CliRunner().invoke(command, ["survival", str(recorded)])
    assert shown.exit_code == 0 and "1 recorded compactions" in shown.output and "reverie" in shown.output
    printed = CliRunner().invoke(command, ["survival", str(recorded), "--json"])
    assert json.loads(printed.output)["reverie"]["files"] == 1.0
    missing = CliRunner().invoke(command, ["survival", str(recorded.parent / "no.jsonl")])
    assert isinstance(missing.exception, UserError)


@pytest.mark.parametrize(("folder", "more"), sources("transcripts", own=1.1, shared=1.5, long=True))
def test_recorded_sessions_keep_what_they_go_on_to_use(folder: Path, more: float) -> None:
    some = ("09", "10", "11") if more < 1.5 else ("03", "04", "84", "df")
    found = measure([path for path in sorted(folder.glob("*.jsonl")) if path.stem[:2] in some])
    figures = report(found).figures
    ours, recorded = figures["reverie"], figures["recorded"]
    assert ours["files"] >= 0.98 and ours["requests"] == 1.0 and figures["over_room"] == 0
    assert ours["identifiers"] >= more * recorded["identifiers"]


def test_many_requests_still_fit_and_the_newest_stand_word_for_word(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    for i in range(80):
        recording.asked(f"Request number {i}: " + f"change thing_{i} and say why it was so before. " * 4)
        recording.said("Done.", 1_000 + i)
    recording.compacted(SUMMARY)
    after(recording, 4_000)
    (moment,) = load_moments([recording.save()])
    text = write_within(moment, moment.room, compose)
    assert moment.tokens(text) <= moment.room == 3_000
    assert SearchedText(text).quotes(moment.before[-2].message.text)
    assert "all are word for word in" in text
