"""Sessions of the pi coding agent are read as conversations of ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import dump_record, parse_line
from reverie.storage.transcript.joined_message import NO_RESULT
from reverie.storage.transcript.pi_sessions import read_pi_session
from reverie.storage.transcript.session_files import form_of
from reverie.storage.transcript.view import View
from tests.shared_data import sources


@pytest.mark.parametrize("folder", sources("pi-sessions"))
def test_recorded_sessions_load_whole(folder: Path) -> None:
    for path in sorted(folder.glob("*.jsonl")):
        assert form_of(path) == "pi"
        records = read_pi_session(path).records
        given = [json.loads(line) for line in path.read_text().splitlines()]
        compacted = [at for at, entry in enumerate(given) if entry["type"] == "compaction"]
        assert len(records) == len(given) + len(compacted)
        assert [parse_line(dump_record(record))[0] for record in records] == records
        view = View.of(conversation(records))
        held = sum(1 for entry in given if entry["type"] == "message")
        failed = sum(1 for record in records if record.data.get("isApiErrorMessage"))
        assert len(view.history) == held - failed
        assert view.boundaries == len(compacted)
        kept = given[given[compacted[-1]]["firstKeptEntryIndex"] :] if compacted else given
        results = [block for message in view.messages() for block in message.tool_results]
        recorded = sum(1 for e in kept if e.get("message", {}).get("role") == "toolResult")
        assert sum(block.content != NO_RESULT for block in results) == recorded
        assert {view.call_name(block.tool_use_id) for block in results} <= {"Read", "Write", "Edit", "Bash"}


def test_calls_and_results_keep_their_meaning(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    call = {"type": "toolCall", "id": "t1", "name": "edit", "arguments": {"path": "a", "oldText": "x", "newText": "y"}}
    entries = [
        {"type": "session", "id": "abc", "cwd": "/p"},
        {"type": "message", "message": {"role": "user", "content": [{"type": "text", "text": "go"}]}},
        {"type": "message", "message": {"role": "assistant", "content": [call], "stopReason": "toolUse"}},
        {"type": "message", "message": {"role": "toolResult", "toolCallId": "t1", "content": [], "isError": True}},
        {"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 0}},
    ]
    path.write_text("\n".join(json.dumps(entry) for entry in entries))
    messages = View.of(conversation(read_pi_session(path).records)).messages()
    assert messages[1].tool_uses[0].name == "Edit"
    assert messages[1].tool_uses[0].input == {"file_path": "a", "old_string": "x", "new_string": "y"}
    assert messages[2].tool_results[0].is_error and "The user ran `ls`" in messages[2].text


SAMPLE = Path(__file__).parents[2] / "data" / "imported" / "pi-compacted.jsonl"


def test_a_compaction_of_pis_is_one_of_ours() -> None:
    view = View.of(conversation(read_pi_session(SAMPLE).records))
    said = [message.text for message in view.messages()]
    assert "Second summary: the parser is done." in said[0] and "Now the printer." in said[0]
    assert [entry.message.text for entry in view.entries[1:]] == [
        "Now the printer.",
        "The printer is written.",
        "Does it keep comments?",
        "It does.",
    ]
    assert view.entries[0].brought and view.boundaries == 2
    assert [entry.message.text for entry in view.history][:2] == ["Write a parser.", "I begin with the lexer."]
    assert view.meter.tokens == pytest.approx(1_900, abs=100), "what pi's last response reported"


@pytest.mark.parametrize(
    "first", [{"firstKeptEntryId": "m2"}, {"firstKeptEntryIndex": 2}, {"firstKeptEntryIndex": 99}, {}]
)
def test_the_first_kept_entry_is_named_by_place_or_by_id(tmp_path: Path, first: dict[str, object]) -> None:
    path = tmp_path / "s.jsonl"
    entries = [
        {"type": "session", "id": "abc", "cwd": "/p"},
        {"type": "message", "id": "m1", "message": {"role": "user", "content": "one"}},
        {"type": "message", "id": "m2", "message": {"role": "user", "content": "two"}},
        {"type": "compaction", "id": "c1", "summary": "SUM", **first},
        {"type": "message", "id": "m3", "message": {"role": "user", "content": "three"}},
    ]
    path.write_text("\n".join(json.dumps(entry) for entry in entries))
    shown = [entry.message.text for entry in View.of(conversation(read_pi_session(path).records)).entries]
    assert shown[0].endswith("SUM")
    assert shown[1:] == (["two", "three"] if first and 99 not in first.values() else ["three"])


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"type":"session","id":"a","cwd":"/"}\nnope\n')
    assert [one.number for one in read_pi_session(path).bad] == [2]
