"""The scan: what is listed, in which order, and that one bad file hides no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.memory.scan import manifest, scan
from reverie.memory.taxonomy import MemoryType, Trust


def put(root: Path, name: str, text: str = "", *, age: float = 0) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or f"---\nname: {name}\ndescription: about {name}\ntype: user\n---\n\nBody.\n")
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


def test_topic_files_everywhere_but_no_index_no_log_nothing_hidden(tmp_path: Path) -> None:
    for name in ("a.md", "sub/b.md", "team/c.md", "sub/logs/d.md"):
        put(tmp_path, name)
    for name in ("MEMORY.md", "team/MEMORY.md", "logs/2026/11/2026-11-15.md", ".x.md", ".git/y.md", "notes.txt"):
        put(tmp_path, name)
    (tmp_path / "link.md").symlink_to(tmp_path / "a.md")
    assert {entry.name for entry in scan(tmp_path).entries} == {"a.md", "sub/b.md", "team/c.md", "sub/logs/d.md"}


def test_the_newest_200_newest_first(tmp_path: Path) -> None:
    for number in range(205):
        put(tmp_path, f"f{number:03}.md", age=number * 60)
    found = scan(tmp_path)
    assert [entry.name for entry in found.entries] == [f"f{number:03}.md" for number in range(200)]
    assert found.total == 205
    assert len(scan(tmp_path, newest=None).entries) == 205


def test_only_the_first_30_lines_are_the_head(tmp_path: Path) -> None:
    filler = "".join(f"x{number}: 1\n" for number in range(40))
    put(tmp_path, "late.md", f"---\nname: Late\n{filler}description: too late\ntype: user\n---\n")
    put(tmp_path, "early.md", f"---\nname: Early\ndescription: in time\ntype: project\ntrust: confirmed\n{filler}---\n")
    late, early = sorted(scan(tmp_path).entries, key=lambda entry: entry.name, reverse=True)
    assert (late.title, late.description, late.type) == ("Late", "", None)
    assert (early.description, early.type, early.trust) == ("in time", MemoryType.PROJECT, Trust.CONFIRMED)


def test_a_file_that_cannot_be_read_is_skipped_alone(tmp_path: Path) -> None:
    put(tmp_path, "good.md")
    bad = put(tmp_path, "bad.md")
    bad.write_bytes(b"---\nname: caf\xe9\n---\n")
    assert {entry.name for entry in scan(tmp_path).entries} == {"good.md", "bad.md"}
    if os.getuid() == 0:
        pytest.skip("root can read every file")
    bad.chmod(0)
    found = scan(tmp_path)
    assert [entry.name for entry in found.entries] == ["good.md"]
    assert len(found.skipped) == 1 and "bad.md" in found.skipped[0]


def test_a_scan_that_fails_is_empty_and_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    found = scan(tmp_path / "file")
    assert found.entries == () and found.failed and "not a folder" in found.failed
    assert scan(tmp_path / "nothing").failed is None and scan(tmp_path / "nothing").entries == ()


def test_the_manifest_is_one_line_a_file(tmp_path: Path) -> None:
    put(tmp_path, "user_a.md", "---\ndescription: >\n  over two\n  lines\ntype: user\n---\n")
    put(tmp_path, "b.md", "no head\n", age=60)
    assert manifest(scan(tmp_path).entries) == (
        "- [user] user_a.md (2023-11-14T22:13:20Z): over two lines\n- b.md (2023-11-14T22:12:20Z)"
    )


def test_a_title_stands_in_for_a_missing_name(tmp_path: Path) -> None:
    put(tmp_path, "sub/feedback_x.md", "words\n")
    (entry,) = scan(tmp_path).entries
    assert (entry.title, entry.name, entry.size) == ("feedback_x", "sub/feedback_x.md", 6)


def test_a_real_directory(many_memories: Path) -> None:
    found = scan(many_memories)
    assert len(found.entries) == len(list(many_memories.rglob("[!M]*.md"))) > 35 and not found.skipped
    assert all(entry.description for entry in found.entries)


def test_a_name_that_no_tool_can_take_hides_nothing_else(tmp_path: Path) -> None:
    for name in ("a\x1bb.md", "c\nd.md", "good.md"):
        (tmp_path / name).write_text("---\nname: n\n---\ntext\n")
    assert [entry.name for entry in scan(tmp_path).entries] == ["good.md"]
