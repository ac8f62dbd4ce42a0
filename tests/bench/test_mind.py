"""`reverie lab mind`: the embedded mind's notes and summaries are as good and as quick as they must be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.mind import measure
from reverie.cli.lab import command
from tests.bench.contract import check_keys
from tests.shared_data import sources


def long_session(folder: Path) -> Path:
    """A recorded session of some 120,000 tokens that goes on afterwards."""
    path = folder / "long.jsonl"
    lines, parent = list[str](), None

    def add(role: str, content: object) -> None:
        nonlocal parent
        uuid = f"u{len(lines)}"
        record = {"type": role, "uuid": uuid, "parentUuid": parent, "cwd": "/repo", "timestamp": "2026-03-02T09:00:00Z"}
        lines.append(json.dumps({**record, "message": {"role": role, "content": content}}))
        parent = uuid

    for number in range(90):
        add("user", f"Step {number}: see to part_{number}.py")
        path_of = f"/repo/src/part_{number}.py"
        add("assistant", [{"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": path_of}}])
        text = "\n".join(f"value_{number}_{k} = compute({k})  # checked by test_value" for k in range(120))
        add("user", [{"type": "tool_result", "tool_use_id": f"t{number}", "content": text}])
        add("assistant", [{"type": "text", "text": f"part_{number}.py is fine."}])
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_minds_texts_are_the_codes_and_take_no_time(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, ["mind", str(long_session(tmp_path)), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    check_keys("mind", found)
    assert found["sessions"] == found["notes_same"] == found["summary_same"] == 1
    assert found["tokens"] > 50_000
    assert found["notes_ms"]["most"] < 2_000, "half a second on an idle machine"
    shown = CliRunner().invoke(command, ["mind", str(tmp_path)]).stdout
    assert shown.splitlines()[1].split()[-2:] == ["yes", "yes"]


@pytest.mark.parametrize(("folder", "least"), sources("transcripts", own=3, shared=20, long=True))
def test_on_every_recorded_session_they_hold_what_code_writes(folder: Path, least: int) -> None:
    written = measure([folder])
    assert len(written) >= least
    assert all(one.notes_same and one.summary_same for one in written)
