"""Conversations of other agents are taken in and gone on with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.shared_data import sources

PI = [
    {"type": "session", "id": "abc-1", "cwd": "/p"},
    {
        "type": "message",
        "message": {"role": "user", "content": [{"type": "text", "text": "my boat is called Halcyon"}]},
    },
    {"type": "message", "message": {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]}},
]


def test_a_pi_session_is_listed_shown_and_gone_on_with(reverie: Command) -> None:
    file = reverie.work / "pi.jsonl"
    file.write_text("\n".join(json.dumps(entry) for entry in PI))
    before = file.read_bytes()
    assert "2 messages" in reverie("sessions", "import", str(file)).stdout
    assert "nothing new" in reverie("sessions", "import", str(file)).stdout
    assert "my boat is called Halcyon" in reverie("sessions", "list").stdout
    assert "Halcyon" in reverie("run", "--resume", "abc-1", "What is my boat called?").stdout
    again = reverie("sessions", "import", str(file), code=2)
    assert "you have continued" in again.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize("root", sources(""))
def test_recorded_sessions_of_both_kinds_are_taken_in(reverie: Command, root: Path) -> None:
    files = [str(sorted((root / kind).glob("*.jsonl"))[0]) for kind in ("pi-sessions", "transcripts")]
    assert reverie("sessions", "import", *files).stdout.count("messages") == 2


def test_a_file_without_a_conversation_is_one_sentence(reverie: Command) -> None:
    (reverie.work / "odd.jsonl").write_text("[]\n")
    assert "no conversation" in reverie("sessions", "import", "odd.jsonl", code=2).stderr
