"""Sessions of Codex: who wrote what, calls with their results, usage, compactions, and reading part by part."""

from __future__ import annotations

import json
from pathlib import Path

from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.codex_sessions import CodexReader
from reverie.storage.transcript.session_files import form_of, read_session
from reverie.storage.transcript.view import View
from reverie.types import Origin, TextBlock, ToolResultBlock
from tests.shared_data import sample

SAMPLE = next(sample("codex-sessions").glob("rollout-*.jsonl"))


def test_a_session_of_codex_is_a_conversation() -> None:
    assert form_of(SAMPLE) == "codex"
    loaded = read_session(SAMPLE)
    assert not loaded.bad
    view = View.of(conversation(loaded.records))
    blocks = [block for entry in view.history for block in entry.message.content]
    typed = [block.text for block in blocks if isinstance(block, TextBlock) and block.origin.is_users]
    assert typed == ["How deep is the west quay? I always measure in fathoms.", "And the east quay?"]
    hooks = [block.text for block in blocks if block.origin is Origin.HOOK]  # type: ignore[union-attr]
    assert hooks == ["The keeper always paints boats orange."]
    calls = [call for entry in view.history for call in entry.message.tool_uses]
    assert (calls[0].name, calls[0].input) == ("Bash", {"command": "cat chart.txt"})
    assert "Add File" in calls[1].input["input"]
    results = {block.tool_use_id: block.is_error for block in blocks if isinstance(block, ToolResultBlock)}
    assert results == {"call_1": True, "call_2": None}
    usage = view.history[-1].message.usage
    assert usage is not None and (usage.input_tokens, usage.cache_read_input_tokens) == (200, 4_800)
    first = loaded.records[0].data
    assert (first["cwd"], first["gitBranch"], first["timestamp"][:10]) == ("/harbour/pilot", "fog", "2026-03-02")
    shown = [entry.message.text for entry in view.entries]
    assert "the quay was measured" in shown[0] and "measure in fathoms" in shown[0] and "chart" not in "".join(shown)
    assert "lighthouse" not in str(loaded.records) and "Everything is allowed" not in str(loaded.records)


def test_part_by_part_gives_the_same_records() -> None:
    lines = SAMPLE.read_bytes().splitlines()
    whole = [record.stored() for record in CodexReader("x").feed(lines)]
    ends = [n for n, line in enumerate(lines, 1) if json.loads(line)["type"] == "token_usage_record"]
    reader, parts = CodexReader("x"), list[object]()
    for start, end in zip([0, *ends], [*ends, len(lines)], strict=True):
        reader = CodexReader("x", json.loads(json.dumps(reader.state)))
        parts += [record.stored() for record in reader.feed([*lines[start:end], b""])]
    assert parts == whole


def test_strange_lines_are_reported_and_the_older_form_is_read(tmp_path: Path) -> None:
    meta = {"type": "session_meta", "payload": {"id": "c-1", "cwd": "/p"}}
    texts = ["<environment_context>\n<cwd>/p</cwd>\n</environment_context>", "Hello."]
    said = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]} for text in texts]
    call = {"type": "local_shell_call", "call_id": "a", "action": {"command": ["bash", "-lc", "ls"]}}
    done = {"type": "function_call_output", "call_id": "a", "output": '{"output":"gone","metadata":{"exit_code":2}}'}
    items = [*said, call, done, {"type": "function_call"}, {"type": "message", "role": "user", "content": 7}]
    rows = [meta, *({"type": "response_item", "payload": item} for item in items), {"type": "response_item"}, [1]]
    file = tmp_path / "rollout-x.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n{")
    loaded = read_session(file)
    assert len(loaded.bad) == 5
    entries = View.of(conversation(loaded.records)).history
    origins = [block.origin for entry in entries[:2] for block in entry.message.content]
    assert origins == [Origin.IMPORTED, Origin.ENTERED]
    assert entries[2].message.tool_uses[0].input == {"command": "ls"}
    (result,) = entries[3].message.tool_results
    assert result.is_error and result.text == "gone"
