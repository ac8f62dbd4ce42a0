"""A dream's commands see the copy in place of the memory, or not the memory at all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.dreamer import DreamBash
from reverie.permissions.rules import Profile
from reverie.permissions.sandbox.probe import SandboxLayers, find_layers
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.tools.base import ToolContext
from reverie.tools.bash import Bash
from tests.tools.calls import make_context, text

LAYERS = find_layers()
IN_NAMESPACES = pytest.mark.skipif(not LAYERS.namespaces, reason="needs a sandbox with namespaces")


class Night:
    """A memory and its copy, below the private folder of Reverie, and a transcript beside them."""

    def __init__(self, root: Path) -> None:
        home = root / "home" / ".reverie"
        self.memory, self.transcript = home / "project" / "memory", home / "project" / "old.jsonl"
        (self.memory / "logs").mkdir(parents=True)
        for name in ("a.md", "b c.md", "logs/day.md"):
            (self.memory / name).write_text("REAL\n")
        (home / "key").write_text("REAL\n")
        self.transcript.write_text('{"type": "user"}\n' * 80)
        self.copy = MemoryCopy.make(self.memory, home / "dreams")
        for name in ("a.md", "b c.md", "logs/day.md", "new.md"):
            (self.copy.folder / name).write_text("COPY\n")
        self.home = home
        self.context: ToolContext = make_context(root, profile=Profile.READ_ONLY)
        (self.context.cwd / "link").symlink_to(self.memory)

    def run(self, command: str, sandboxes: Sandboxes) -> str:
        context = replace(self.context, sandboxes=sandboxes, map_path=self.copy.map_path)
        command = command.replace("MEM", str(self.memory)).replace("TALK", str(self.transcript))
        return text(asyncio.run(DreamBash(Bash(), self.copy, [self.transcript]).run({"command": command}, context)))


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


SEES = [
    *("cat MEM/a.md", "cat 'MEM/b c.md'", "cat link/a.md", "cat MEM/./logs/../new.md", "cd MEM && cat *.md"),
    *(
        "grep -rh . MEM",
        "m=MEM; cat $m/a.md",
        "find MEM -name '*.md' -exec cat {} +",
        "python3 -c 'print(open(\"MEM/a.md\").read())'",
    ),
]


@IN_NAMESPACES
@pytest.mark.parametrize("command", SEES)
def test_a_command_sees_the_copy_and_never_changes_it(night: Night, command: str) -> None:
    seen = night.run(command, Sandboxes(private=[night.home]))
    assert "COPY" in seen and "REAL" not in seen
    for change in ("rm -rf MEM/*", "echo x > MEM/new.md", "touch MEM/more.md; true"):
        assert "it tried to" in night.run(change, Sandboxes(private=[night.home]))
    assert sorted(night.copy.files()) == ["a.md", "b c.md", "logs/day.md", "new.md"]
    assert (night.memory / "a.md").read_text() == "REAL\n"


@IN_NAMESPACES
def test_nothing_else_of_reverie_is_seen_and_transcripts_are_made_shorter(night: Night) -> None:
    sandboxes = Sandboxes(private=[night.home])
    assert "REAL" not in night.run(f"cat {night.home}/key; ls {night.home}/dreams", sandboxes)
    shown = night.run("cat TALK", sandboxes)
    assert "the last 50 of 80 lines" in shown
    assert night.run("grep -c user TALK", sandboxes) == "80"


@pytest.mark.skipif(not LAYERS.landlock, reason="needs Landlock")
@pytest.mark.parametrize("command", SEES)
def test_without_namespaces_no_command_reads_the_memory(night: Night, command: str) -> None:
    sandboxes = Sandboxes(private=[night.home], layers=SandboxLayers(False, LAYERS.landlock))
    assert "REAL" not in night.run(command, sandboxes)
    assert "use Read, Grep and Glob" in night.run("cat MEM/a.md", sandboxes)


@pytest.mark.parametrize("command", ["cat MEM/a.md", "cat link/a.md", "grep -rh . MEM", "ls -R /", "cat MEM/*.md"])
def test_without_a_sandbox_no_command_reads_the_memory(night: Night, command: str) -> None:
    shown = night.run(command, Sandboxes(wanted=False))
    assert "REAL" not in shown and "use Read, Grep and Glob" in shown
