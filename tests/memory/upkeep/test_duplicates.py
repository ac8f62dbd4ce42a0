"""Where a statement is written down already: only in the same words, and cheap among many memories."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.memory.topic_file import statements_of
from reverie.memory.upkeep.duplicates import MemoryTexts, find_written
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
        ("Kiln slot is on 2026-04-09. Glaze tests must be finished first, casting later", "project_kiln.md"),
        ("the slot  cannot be moved.", "project_kiln.md"),
        (TUNNEL, "project_kiln.md"),
        ("The glaze recipes are in the studio wiki, page Glazes.", "team/reference_wiki.md"),
    ],
)
def test_a_memory_with_the_same_words_is_found(standing: MemoryTexts, memory: str, where: str) -> None:
    assert find_written(statements_of(memory), standing, {}) == where


@pytest.mark.parametrize(
    "memory",
    [
        "Kiln slot is on 2026-04-16.",
        "kiln slot is on 2026-04-09.",
        "Kiln slot is on 2026-04-09, glaze tests must be finished first.",
        "Glaze tests must be finished last, casting later.",
        "The glaze recipes are in the studio wiki page, Glazes.",
    ],
)
def test_other_words_are_another_statement(standing: MemoryTexts, memory: str) -> None:
    assert not find_written(statements_of(memory), standing, {})


def test_the_file_itself_and_files_that_go_do_not_count(standing: MemoryTexts) -> None:
    assert not find_written(statements_of(TUNNEL), standing, {}, without=["project_kiln.md"])


def test_a_rule_of_the_instruction_files_is_found(standing: MemoryTexts) -> None:
    rules = {"AGENTS.md": AGENTS}
    assert find_written(["Package manager: uv only, never pip or poetry."], standing, rules) == "AGENTS.md"
    assert not find_written(["Package manager: pip only, never uv or poetry."], standing, rules)


def test_changes_on_disk_are_seen(standing: MemoryTexts, tmp_path: Path) -> None:
    new = ["Casting happens in the annex, Thursdays, with Ivo."]
    assert not find_written(new, standing, {})
    (tmp_path / "project_casting.md").write_text(new[0])
    assert find_written(new, standing, {}) == "project_casting.md"
    (tmp_path / "project_casting.md").unlink()
    assert not find_written(new, standing, {})


def test_real_memories_are_no_doubles_of_each_other(many_memories: Path) -> None:
    standing = MemoryTexts(many_memories)
    texts = standing.texts()
    doubled = [name for name, text in texts.items() if find_written(statements_of(text), standing, {}, without=[name])]
    assert len(texts) > 35
    assert len(doubled) <= 0.02 * len(texts), doubled
    unseen = [name for name, text in texts.items() if not find_written(statements_of(text), standing, {})]
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
    first, again = (calls(lambda: find_written(new, standing, {})) for _ in range(2))
    assert again < first / 2 and again < 100 * files, "no file is read again"
    assert not find_written(new, standing, {})
