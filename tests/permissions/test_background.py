"""What a background writer may do: read, and write Markdown inside the memory directory; the rest is denied."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reverie.permissions.background import BackgroundWriter
from reverie.permissions.rules import Allow, Deny, Profile, ToolCall


def decide(writer: BackgroundWriter, tool: str, **given: Any) -> Allow | Deny:
    call = ToolCall("t1", tool, given, read_only=False, cwd=Path("/"))
    decision = asyncio.run(writer(call))
    assert isinstance(decision, Allow | Deny), "nobody is ever asked"
    return decision


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "team").mkdir()
    (tmp_path / "outside.md").write_text("x")
    (folder / "out.md").symlink_to(tmp_path / "outside.md")
    return folder


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "MEM/a.md"}),
        ("Read", {"file_path": "/etc/hostname"}),
        ("Grep", {"pattern": "x", "path": "MEM"}),
        ("Glob", {"pattern": "*.md", "path": "MEM"}),
        ("Bash", {"command": "ls MEM | head -3"}),
        ("Bash", {"command": "grep -rn x MEM 2>/dev/null"}),
        ("Bash", {"command": "rm -rf MEM"}),  # in the sandbox
        ("Write", {"file_path": "MEM/a.md", "content": "x"}),
        ("Write", {"file_path": "MEM/team/b.md", "content": ""}),
        ("Edit", {"file_path": "MEM/new/deep.md", "old_string": "a", "new_string": "b"}),
    ],
)
def test_allowed(memory: Path, tool: str, given: dict[str, str]) -> None:
    writer = BackgroundWriter(memory)
    named = {key: value.replace("MEM", str(memory)) for key, value in given.items()}
    decision = decide(writer, tool, **named)
    assert decision == Allow(profile=Profile.READ_ONLY if tool == "Bash" else None), "a command never has more rights"
    assert not writer.denied


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/home/u/.ssh/id_rsa"}),
        ("Write", {"file_path": "a.md", "content": "x"}),
        ("Write", {"file_path": "~/a.md", "content": "x"}),
        ("Write", {"file_path": "MEM/../a.md", "content": "x"}),
        ("Write", {"file_path": "MEM-evil/a.md", "content": "x"}),
        ("Write", {"file_path": "MEM/.consolidate-lock", "content": "1"}),
        ("Write", {"file_path": "MEM/.dreams/a.md", "content": "x"}),
        ("Write", {"file_path": "MEM/a.txt", "content": "x"}),
        ("Write", {"file_path": "MEM/out.md", "content": "x"}),
        ("Edit", {"file_path": "MEM", "old_string": "a", "new_string": "b"}),
        ("Write", {"content": "x"}),
        ("Agent", {"prompt": "write it for me"}),
        ("WebFetch", {"url": "https://example.com"}),
        ("mcp__files__write", {"path": "MEM/a.md"}),
    ],
)
def test_denied_with_a_reason_counted_and_told(memory: Path, tool: str, given: dict[str, str]) -> None:
    told: list[tuple[str, str]] = []
    writer = BackgroundWriter(memory, on_denied=lambda name, reason: told.append((name, reason)))
    named = {key: value.replace("MEM", str(memory)) for key, value in given.items()}
    decision = decide(writer, tool, **named)
    assert isinstance(decision, Deny) and len(decision.reason) > 20
    assert told == [(tool, decision.reason)] and writer.denied == {tool: 1}


def test_a_layer_may_refuse_more(memory: Path) -> None:
    writer = BackgroundWriter(
        memory,
        refuse_write=lambda name: "no logs" if name.startswith("logs/") else None,
        refuse_read=lambda call: "no searching" if call.tool == "Grep" else None,
    )
    assert decide(writer, "Write", file_path=f"{memory}/logs/x.md", content="") == Deny("no logs")
    assert decide(writer, "Grep", pattern="x") == Deny("no searching")
    assert decide(writer, "Write", file_path=f"{memory}/x.md", content="") == Allow()
