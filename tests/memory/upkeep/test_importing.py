"""Memories from elsewhere: what becomes of each piece, nothing overwritten, sources untouched, one version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.errors import UserError
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.opening import OpenedMemory, open_memory
from reverie.memory.taxonomy import MemoryType
from reverie.memory.upkeep.importing import ImportPiece, carry_out, plan_import, read_pieces
from reverie.paths import Places
from reverie.settings import load_settings
from tests.shared_data import sources

INFO = WriteInfo(Writer.IMPORT, "test")


@pytest.fixture
def memory(tmp_path: Path) -> OpenedMemory:
    work = tmp_path / "work"
    work.mkdir()
    settings = load_settings(work)
    return open_memory(settings, Places.of(work, settings))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere" / "memory"
    folder.mkdir(parents=True)
    (folder / "MEMORY.md").write_text(
        "# Memory\n\n- [Tabs](feedback_tabs.md) — my own hook\n\n## Machines\n- otter builds, badger tests releases\n"
    )
    tabs = folder / "feedback_tabs.md"
    tabs.write_text(
        "---\nname: tabs\ndescription: Indent with tabs\nmetadata:\n  type: feedback\n---\n\nIndent with tabs.\n"
    )
    os.utime(tabs, (1_700_000_000, 1_700_000_000))
    (folder / "ports.md").write_text("Staging answers on port 8417.\n")
    return folder


def test_a_memory_directory_comes_with_hooks_ages_and_its_own_prose(memory: OpenedMemory, elsewhere: Path) -> None:
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in elsewhere.iterdir()}
    planned = plan_import(memory, [elsewhere.parent])[0]
    assert not memory.directory.names(), "looking writes nothing"
    assert [(one.action, one.name) for one in planned] == [
        ("add", "feedback_tabs.md"),
        ("add", "project_ports.md"),
        ("add", "project_machines.md"),
    ]
    version = carry_out(memory, planned, INFO)
    assert version is not None and len(list(memory.directory.log())) == 1
    assert version.info.writer == "import" and "elsewhere" in version.info.reasons["feedback_tabs.md"]
    assert "- [tabs](feedback_tabs.md) — my own hook" in memory.directory.index()
    tabs = memory.directory.read("feedback_tabs.md")
    assert tabs.content == before["feedback_tabs.md"][0] and tabs.modified == 1_700_000_000
    assert memory.directory.read("project_ports.md").topic.type is MemoryType.PROJECT
    assert "badger" in memory.directory.read("project_machines.md").text
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in elsewhere.iterdir()} == before


def test_the_same_twice_is_known(memory: OpenedMemory, elsewhere: Path) -> None:
    carry_out(memory, plan_import(memory, [elsewhere])[0], INFO)
    again = plan_import(memory, [elsewhere])[0]
    assert {one.action for one in again} == {"known"} and carry_out(memory, again, INFO) is None


def test_nothing_is_overwritten(memory: OpenedMemory, elsewhere: Path) -> None:
    own = "---\nname: mine\ndescription: Spaces of width four\ntype: feedback\n---\n\nFour spaces here.\n"
    memory.directory.transaction([], INFO)
    memory.directory.root.mkdir(parents=True, exist_ok=True)
    (memory.directory.root / "feedback_tabs.md").write_text(own)
    carry_out(memory, plan_import(memory, [elsewhere])[0], INFO)
    assert memory.directory.read("feedback_tabs.md").text == own
    assert "Indent with tabs" in memory.directory.read("feedback_tabs_2.md").text


def test_a_secret_stays_outside_and_the_rest_comes(memory: OpenedMemory, elsewhere: Path) -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    (elsewhere / "deploys.md").write_text(f"Deploy with token {token} on Mondays.\n")
    planned = plan_import(memory, [elsewhere])[0]
    refused = [one for one in planned if one.action == "refused"]
    assert len(refused) == 1 and "deploys.md" in refused[0].piece.source and token not in refused[0].reason
    carry_out(memory, planned, INFO)
    assert len(memory.directory.names()) == 3
    assert all(token not in memory.directory.read(name).text for name in memory.directory.names())


NOTES = """# My project

## Commands
- `make test` runs everything

```sh
# not a heading
## not one either
```

## Style
Never use tabs in YAML.

## Empty
"""


def test_notes_are_taken_apart_at_their_headings(memory: OpenedMemory, tmp_path: Path) -> None:
    notes = tmp_path / "AGENTS.md"
    notes.write_text(NOTES)
    found = [one for one in read_pieces([notes]) if isinstance(one, ImportPiece)]
    assert [one.topic.name for one in found] == ["Commands", "Style"]
    assert "not one either" in found[0].topic.body
    assert found[1].topic.type is MemoryType.FEEDBACK and found[1].topic.description == "Style: Never use tabs in YAML."
    plain = tmp_path / "thoughts.md"
    plain.write_text("Releases are cut from the branch stable.\n")
    (one,) = read_pieces([plain])
    assert isinstance(one, ImportPiece)
    assert one.name == "project_thoughts.md" and one.topic.body.startswith("Releases")


def test_what_the_instruction_files_say_is_known(memory: OpenedMemory) -> None:
    notes = memory.places.cwd / "AGENTS.md"
    notes.write_text(
        "## Style\nNever use tabs in YAML files of this project.\n\n## Build\nRun make build before a push.\n"
    )
    assert {one.action for one in plan_import(memory, [notes])[0]} == {"known"}


def test_what_is_not_there_is_said(memory: OpenedMemory, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        plan_import(memory, [tmp_path / "nothing"])
    (tmp_path / "empty").mkdir()
    assert plan_import(memory, [tmp_path / "empty"])[0] == []


@pytest.mark.parametrize("source", sources("memory-dir/.claude/memory"))
def test_a_real_directory_comes_whole(memory: OpenedMemory, source: Path) -> None:
    carry_out(memory, plan_import(memory, [source])[0], INFO)
    for path in source.glob("*_*.md"):
        assert memory.directory.read(path.name).topic.body == path.read_text().partition("\n---\n")[2].lstrip("\n")
