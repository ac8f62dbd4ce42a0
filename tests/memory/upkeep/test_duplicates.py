"""Doubles of memories and instruction files: found in other words, not imagined, and cheap among many."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.memory.topic_file import statements_of
from reverie.memory.upkeep.duplicates import MemoryTexts, find_duplicate
from tests.counts import count
from tests.work import calls

TUNNEL = """---
name: Kiln slot
description: when the kiln is ours and what must be ready
type: project
---

Kiln slot is on 2026-04-09. Glaze tests must be finished first, casting later.

**Why:** the slot cannot be moved.
"""
AGENTS = "# Rules\n\n- Package manager: uv only, never pip or poetry.\n- Run `make check` before finishing.\n"


@pytest.fixture
def standing(tmp_path: Path) -> MemoryTexts:
    (tmp_path / "project_kiln.md").write_text(TUNNEL)
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "reference_wiki.md").write_text("The glaze recipes are in the studio wiki, page Glazes.\n")
    return MemoryTexts(tmp_path)


@pytest.mark.parametrize(
    ("memory", "where"),
    [
        ("Kiln slot is on 2026-04-09.", "project_kiln.md"),
        ("The kiln slot: 2026-04-09, so glaze tests first and casting later.", "project_kiln.md"),
        (TUNNEL, "project_kiln.md"),
        ("Glaze recipes are on the page Glazes of the studio wiki.", "team/reference_wiki.md"),
    ],
)
def test_a_memory_that_stands_already_is_found(standing: MemoryTexts, memory: str, where: str) -> None:
    found = find_duplicate(statements_of(memory), standing, {})
    assert found is not None
    assert (found.where, found.is_memory) == (where, True)


@pytest.mark.parametrize(
    "memory",
    [
        "Kiln slot is on 2026-04-16.",
        "The kiln slot on 2026-04-09 is shared with Noor.",
        "Glaze tests are not finished first.",
        "Glaze tests run in the small kiln on Sundays; Ivo loads it.",
        "The studio wiki moves to another host.",
    ],
)
def test_something_else_about_the_same_is_none(standing: MemoryTexts, memory: str) -> None:
    assert find_duplicate(statements_of(memory), standing, {}) is None


def test_the_file_itself_and_files_that_go_do_not_count(standing: MemoryTexts) -> None:
    assert find_duplicate(statements_of(TUNNEL), standing, {}, without=["project_kiln.md"]) is None


def test_a_rule_of_the_instruction_files_is_found(tmp_path: Path) -> None:
    for memory in (
        "Always use uv in this repo.",
        "Use uv, never pip or poetry.",
        "Run make check before finishing work.",
    ):
        found = find_duplicate(statements_of(memory), None, {"AGENTS.md": AGENTS})
        assert found is not None, memory
        assert (found.where, found.is_memory) == ("AGENTS.md", False)
    assert find_duplicate(["Use uv workspaces for the plotting plug-ins."], None, {"AGENTS.md": AGENTS}) is None


def test_changes_on_disk_are_seen(standing: MemoryTexts, tmp_path: Path) -> None:
    new = ["Casting happens in the annex, Thursdays, with Ivo."]
    assert find_duplicate(new, standing, {}) is None
    (tmp_path / "project_casting.md").write_text(new[0])
    assert find_duplicate(new, standing, {}) is not None
    (tmp_path / "project_casting.md").unlink()
    assert find_duplicate(new, standing, {}) is None


def test_real_memories_are_no_doubles_of_each_other(many_memories: Path) -> None:
    standing = MemoryTexts(many_memories)
    texts = standing.texts()
    doubled = [
        name for name, text in texts.items() if find_duplicate(statements_of(text), standing, {}, without=[name])
    ]
    assert len(texts) > 35
    assert len(doubled) <= 0.02 * len(texts), doubled
    unseen = [name for name, text in texts.items() if find_duplicate(statements_of(text), standing, {}) is None]
    assert unseen == [], "every file is a double of itself under another name"


@pytest.mark.soak
def test_many_memories_are_searched_in_a_moment(tmp_path: Path) -> None:
    files = count(1_000, 10_000)
    for number in range(files):
        (tmp_path / f"project_{number}.md").write_text(
            f"---\nname: s{number}\n---\n\nService s{number} is owned by team t{number % 97}; deploys daily.\n"
        )
    standing = MemoryTexts(tmp_path)
    new = ["The billing gateway deploys at noon, owned by Wen."]
    first, again = (calls(lambda: find_duplicate(new, standing, {})) for _ in range(2))
    assert again < first / 2 and again < 100 * files, "no file is read again"
    assert find_duplicate(new, standing, {}) is None
