"""One memory with Claude Code: the same folder as it uses, and files as it writes them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from reverie.paths import Places
from reverie.paths.memory import claude_slug, memory_place
from reverie.permissions.memory_paths import check_memory_root
from reverie.settings import load_settings
from tests.connect.conftest import Machine

AS_CLAUDE_WRITES = """---
name: testing-preference
description: User wants pytest with plain asserts, no mocks of own code
metadata:
  node_type: memory
  type: feedback
  originSessionId: 0b5e1a52-6d0c-4b57-9b43-0a2f4c9a7c11
---

Use pytest with plain asserts.

**Why:** mocks hid a bug in May.
**How to apply:** in every new test.
"""


def place(machine: Machine, cwd: Path) -> Path:
    settings = load_settings(cwd)
    return memory_place(Places.of(cwd, settings), settings, check_memory_root).directory


def test_the_folder_is_the_one_that_claude_code_uses(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.connect()
    projects = machine.user / ".claude" / "projects"
    repo, plain = machine.work / "my.repo", machine.work / "döts and ünïcode"
    for folder in (repo / "deep", plain):
        folder.mkdir(parents=True)
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", "../tree"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    (machine.work / "link").symlink_to(repo)
    shared = projects / claude_slug(repo) / "memory"
    assert shared.parent.name.endswith("-my-repo")
    for cwd in (repo, repo / "deep", machine.work / "tree", machine.work / "link"):
        assert place(machine, cwd) == shared
    assert place(machine, plain).parent.name.endswith("-d-ts-and--n-code")
    # The name that Claude Code 2.1.325 made of this path.
    long = Path("/tmp/plugx/w", "a" * 120, "b" * 120)
    assert claude_slug(long) == f"-tmp-plugx-w-{'a' * 120}-{'b' * 66}-d2uu0b"
    machine.settings.write_text(
        json.dumps({**json.loads(machine.settings.read_text()), "autoMemoryDirectory": "~/mem"})
    )
    assert place(machine, repo) == machine.user / "mem"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(machine.user / "other"))
    assert place(machine, repo) == machine.user / "other" / "projects" / claude_slug(repo) / "memory"
    monkeypatch.setenv("REVERIE_MEMORY_PATH", str(machine.user / "mine"))
    assert place(machine, repo) == machine.user / "mine"


def test_a_project_cannot_move_the_memory(machine: Machine) -> None:
    own = place(machine, machine.work)
    for name in ("settings.toml", "settings.local.toml"):
        machine.write(machine.work / ".reverie" / name, '[memory]\nshared_with = "claude-code"\n')
        assert place(machine, machine.work) == own
    machine("connect", "claude-code", "--own-memory", "--yes")
    assert place(machine, machine.work) == own
    machine.connect("claude-code", "--shared-memory")
    machine.write(machine.local, '{"autoMemoryDirectory": "/etc"}')
    assert "/etc" not in str(place(machine, machine.work))
    assert "Claude Code uses /etc in this project" in machine("connect", "--status", code=1)


def test_files_of_claude_code_are_read_kept_and_versioned(machine: Machine) -> None:
    machine.connect()
    folder = place(machine, machine.work)
    machine.write(folder / "testing-preference.md", AS_CLAUDE_WRITES)
    machine.write(folder / "MEMORY.md", "- [Testing](testing-preference.md): pytest, plain asserts\n")
    (one,) = json.loads(machine("memory", "list", "--json"))["memories"]
    assert (one["type"], one["file"]) == ("feedback", "testing-preference.md")
    assert "mocks hid a bug" in machine("memory", "show", "testing-preference")
    machine("remember", "The port of the server is 8080.")
    assert (folder / "testing-preference.md").read_text() == AS_CLAUDE_WRITES
    edited = AS_CLAUDE_WRITES.replace("in May", "in June")
    (folder / "testing-preference.md").write_text(edited)  # by Claude Code, while we look away
    machine("remember", "Deploys happen on Tuesdays.")
    assert (folder / "testing-preference.md").read_text() == edited
    versions = json.loads(machine("memory", "log", "--json"))["versions"]
    by_hand = [one["short"] for one in versions if one["writer"] == "hand"]
    assert len(by_hand) == 2 and "in June" in machine("memory", "diff", by_hand[0])
    index = (folder / "MEMORY.md").read_text()
    assert "testing-preference.md" in index and "8080" in index
    machine("disconnect")
    assert (folder / "testing-preference.md").read_text() == edited


def test_memories_of_before_are_not_lost(machine: Machine) -> None:
    machine("remember", "Deploys happen on Tuesdays.")
    own = place(machine, machine.work)
    said = machine.connect()
    assert "1 memory of this project" in said and f"reverie memory import {own}" in said
    assert f"reverie memory import {own}" in machine("connect", "--status")
    machine("memory", "import", str(own), "--yes")
    assert "Tuesdays" in machine("memory", "list")
    assert "stay in" in machine("disconnect")
    assert place(machine, machine.work) == own and "Tuesdays" in machine("memory", "list")
