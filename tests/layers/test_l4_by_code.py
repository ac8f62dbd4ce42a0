"""What code says of a conversation: true to the record, bounded, the same every time."""

from __future__ import annotations

import random
import time

import pytest

from reverie.layers.l4_compaction.by_code import (
    Limits,
    names_in_use,
    operation_ledger,
    operations,
    write_notes,
    write_summary,
)
from reverie.layers.l4_compaction.by_code.written import PARTS
from reverie.storage.chain import conversation
from reverie.storage.transcript import read_records
from reverie.storage.view import Entry
from reverie.types import JsonObject, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock
from tests.shared_data import data


def asked(text: str) -> Entry:
    return Entry(None, Message("user", (TextBlock(text, Origin.PERSON),)))


def said(text: str) -> Entry:
    return Entry(None, Message("assistant", (TextBlock(text, Origin.MODEL),)))


def did(number: int, tool: str, given: JsonObject, result: str, *, error: bool = False) -> list[Entry]:
    name = f"c{number}"
    return [
        Entry(None, Message("assistant", (ToolUseBlock(name, tool, given),))),
        Entry(None, Message("user", (ToolResultBlock(name, result, error or None),))),
    ]


WORK = [
    asked("Fix the failing test in parse_header"),
    *did(1, "Read", {"file_path": "/p/src/parse.py"}, "def parse_header(): ..."),
    *did(2, "Bash", {"command": "pytest -q"}, "Exit code 1\nE  AssertionError: bad header\n1 failed", error=True),
    *did(3, "Edit", {"file_path": "/p/src/parse.py", "old_string": "a", "new_string": "a\nstrip_bom(line)"}, "ok"),
    *did(4, "Bash", {"command": "pytest -q"}, "...\n12 passed in 0.3s"),
    *did(5, "Bash", {"command": "git push"}, "Exit code 128\nfatal: no upstream", error=True),
    *did(6, "Grep", {"pattern": "strip_bom", "path": "/p/src"}, "a\nb"),
    *did(
        7,
        "TodoWrite",
        {"todos": [{"content": "Add a test", "status": "pending"}, {"content": "x", "status": "completed"}]},
        "ok",
    ),
    said("The header is parsed now; pushing failed because there is no upstream."),
]


def test_a_line_says_what_happened() -> None:
    ledger = operation_ledger(operations(WORK), cwd="/p")
    assert "`pytest -q` → exit 1: E AssertionError: bad header; worked later" in ledger
    assert "`git push` → exit 128: fatal: no upstream" in ledger
    assert "src/parse.py: 1 change; last −1 +2: strip_bom(line)" in ledger
    assert "`pytest -q` → 12 passed in 0.3s" in ledger
    assert "Grep strip_bom in src → 2 lines" in ledger.replace("/p/", "")


def test_a_summary_has_all_nine_parts_and_names_what_is_open() -> None:
    summary = write_summary(WORK, cwd="/p")
    positions = [summary.index(f"## {title}") for title in PARTS]
    assert positions == sorted(positions)
    assert "strip_bom" in summary and "Add a test" in summary and "fatal: no upstream" in summary


def test_names_that_people_and_edits_use_come_before_what_was_printed() -> None:
    noise = did(9, "Bash", {"command": "env"}, " ".join(f"printed_name_{i}" for i in range(50)))
    assert names_in_use([*noise, *WORK], 4)[:2] in (["parse_header", "strip_bom"], ["strip_bom", "parse_header"])


TEMPLATE = "\n".join(f"# Section {i}\n_hint {i}_\n" for i in range(1, 11))


def test_notes_keep_headings_and_hints_and_stay_within_their_limits() -> None:
    notes = write_notes(WORK, TEMPLATE, Limits(total=6_000), cwd="/p")
    for i in range(1, 11):
        assert f"# Section {i}\n_hint {i}_\n" in notes
    assert "Fix the failing test" in notes and "12 passed" in notes
    assert len(notes) <= 6_000
    assert write_notes([], TEMPLATE).count("# Section") == 10


@pytest.mark.parametrize("budget", [300, 2_000, 20_000])
def test_the_ledger_never_exceeds_its_budget_and_keeps_failures_longest(budget: int) -> None:
    seed = random.Random(7)
    entries = list[Entry]()
    for i in range(400):
        tool = seed.choice(["Read", "Bash", "Edit", "Grep"])
        given: JsonObject = {"file_path": f"/p/dir{i % 9}/file{i}.py", "command": f"run {i}", "pattern": f"p{i}"}
        entries += did(i, tool, given, "Exit code 2\nerror: no" if i % 5 == 0 else "fine", error=i % 5 == 0)
    ledger = operation_ledger(operations(entries), max_chars=budget, cwd="/p")
    assert len(ledger) <= budget
    if budget >= 2_000:
        assert ledger.startswith("Failed")


def test_hostile_and_odd_calls_are_survived() -> None:
    odd = [
        Entry(None, Message("assistant", (ToolUseBlock("x", "Edit", "not an object"), ToolUseBlock("y", "", None)))),
        Entry(None, Message("user", (ToolResultBlock("x", None), ToolResultBlock("zz", "orphan")))),
        *did(3, "TodoWrite", {"todos": "no list"}, ""),
        *did(4, "TaskUpdate", {"taskId": "99", "status": "completed"}, ""),
        *did(5, "Bash", {"command": "\x00\n" * 900}, "\ud800" * 10),
    ]
    assert write_summary(odd) and write_notes(odd, TEMPLATE) and operation_ledger(operations(odd))


def test_recorded_sessions_are_summarised_quickly_and_the_same_each_time() -> None:
    for path in sorted(data("transcripts").glob("*.jsonl"))[:8]:
        records = conversation(read_records(path).records)
        entries = [Entry(r.uuid, r.message, r.timestamp) for r in records if r.message is not None]
        started = time.perf_counter()
        summary = write_summary(entries)
        assert time.perf_counter() - started < 2.0
        assert summary == write_summary(entries) and len(summary) <= Limits().total
