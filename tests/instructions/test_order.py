"""Which files are found, in which order, and what happens to copies, worktrees and unwanted ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.instructions import InstructionScope
from tests.instructions.conftest import Load, git, texts, write
from tests.work import calls


def test_every_place_in_its_order(load: Load, repo: Path, user_home: Path, etc: Path) -> None:
    sub = repo / "sub"
    in_order = [
        etc / "reverie/AGENTS.md",
        etc / "reverie/CLAUDE.md",
        etc / "reverie/rules/a.md",
        etc / "claude-code/CLAUDE.md",
        user_home / ".reverie/AGENTS.md",
        user_home / ".reverie/CLAUDE.md",
        user_home / ".reverie/rules/a.md",
        user_home / ".reverie/rules/b/c.md",
        repo.parent / "CLAUDE.md",
        repo / "AGENTS.md",
        repo / "CLAUDE.md",
        repo / ".reverie/AGENTS.md",
        repo / ".reverie/CLAUDE.md",
        repo / ".claude/AGENTS.md",
        repo / ".claude/CLAUDE.md",
        repo / ".reverie/rules/x.md",
        repo / ".claude/rules/x.md",
        repo / ".claude/rules/y.md",
        repo / "AGENTS.local.md",
        repo / "CLAUDE.local.md",
        sub / "AGENTS.md",
        sub / "CLAUDE.local.md",
    ]
    for number, path in enumerate(in_order):
        write(path, f"text {number}\n")
    write(etc / "claude-code/AGENTS.md", "only CLAUDE.md is read there")
    write(sub / "below/AGENTS.md", "below the working folder")
    found = load(sub)
    assert [file.path for file in found.files] == in_order
    assert texts(found) == [f"text {number}" for number in range(len(in_order))]
    assert found.warnings == ()
    scopes = [file.scope for file in found.files]
    assert scopes[:8] == [InstructionScope.MANAGED] * 4 + [InstructionScope.USER] * 4
    assert scopes[-1] is InstructionScope.LOCAL and scopes[8] is InstructionScope.PROJECT


@pytest.mark.parametrize("how", ["copy", "link", "include", "include_and_space"])
def test_the_same_words_beside_each_other_stand_once(load: Load, repo: Path, how: str) -> None:
    write(repo / "AGENTS.md", "Use tabs.\n")
    if how == "link":
        (repo / "CLAUDE.md").symlink_to("AGENTS.md")
    else:
        text = {"copy": "Use tabs.", "include": "@AGENTS.md\n", "include_and_space": "\n\n@./AGENTS.md  \n\n"}[how]
        write(repo / "CLAUDE.md", text)
    assert [(file.path.name, file.text) for file in load().files] == [("AGENTS.md", "Use tabs.")]


def test_what_an_include_adds_to_its_own_words_stays(load: Load, repo: Path) -> None:
    write(repo / "AGENTS.md", "Use tabs.\n")
    write(repo / "CLAUDE.md", "@AGENTS.md\nAnd be brief.\n")
    assert texts(load()) == ["Use tabs.", "And be brief."]


def test_the_same_words_in_another_folder_are_another_rule(load: Load, repo: Path) -> None:
    write(repo / "AGENTS.md", "Run `make` in this folder.")
    write(repo / "sub" / "AGENTS.md", "Run `make` in this folder.")
    assert len(load(repo / "sub").files) == 2


def test_a_home_on_the_way_is_not_read_twice(load: Load, user_home: Path) -> None:
    write(user_home / ".reverie/AGENTS.md", "mine")
    project = user_home / "project"
    project.mkdir()
    assert texts(load(project)) == ["mine"]


def test_a_worktree_inside_its_repository_speaks_for_itself(load: Load, repo: Path) -> None:
    write(repo / "AGENTS.md", "old words")
    git(repo, "add", "AGENTS.md")
    git(repo, "commit", "-qm", "x")
    git(repo, "worktree", "add", "-q", str(repo / ".trees" / "b"))
    write(repo / ".trees/b/AGENTS.md", "new words")
    write(repo / "AGENTS.local.md", "my own, not in git")
    assert texts(load(repo / ".trees" / "b")) == ["my own, not in git", "new words"]
    assert texts(load(repo)) == ["old words", "my own, not in git"]


def test_a_worktree_elsewhere(load: Load, repo: Path, tmp_path: Path) -> None:
    write(repo / "AGENTS.md", "words")
    git(repo, "add", "AGENTS.md")
    git(repo, "commit", "-qm", "x")
    git(repo, "worktree", "add", "-q", str(tmp_path / "elsewhere"))
    assert texts(load(tmp_path / "elsewhere")) == ["words"]


@pytest.mark.parametrize("pattern", ["CLAUDE.md", "sub/CLAUDE.md", "**/sub/*.md", "/**/repo/sub/CLAUDE.md", "sub/"])
def test_exclusion(load: Load, repo: Path, pattern: str) -> None:
    write(repo / "AGENTS.md", "kept")
    write(repo / "sub/CLAUDE.md", "unwanted")
    assert texts(load(repo / "sub", exclude=[pattern])) == ["kept"]


def test_exclusion_in_the_home_and_never_of_managed_files(load: Load, user_home: Path, etc: Path) -> None:
    write(user_home / ".reverie/AGENTS.md", "mine")
    write(etc / "reverie/AGENTS.md", "the house's")
    assert texts(load(exclude=["~/.reverie/"])) == ["the house's"]
    assert texts(load(exclude=["AGENTS.md"])) == ["the house's"]


def test_nothing_at_all(load: Load) -> None:
    found = load()
    assert (found.files, found.conditional_rules, found.warnings) == ((), (), ())


def test_a_bare_session_reads_nothing(repo: Path, user_home: Path, etc: Path) -> None:
    from reverie.instructions import load_instructions
    from reverie.paths import Places
    from reverie.settings import load_settings

    write(repo / "AGENTS.md", "words")
    settings = load_settings(repo, env={"HOME": str(user_home), "REVERIE_BARE": "1"}, managed_dir=etc / "reverie")
    assert load_instructions(Places.of(repo, settings), settings, managed_dir=etc / "reverie").files == ()


def test_a_deep_tree_of_many_folders_loads_at_once(load: Load, repo: Path) -> None:
    folder = repo
    for number in range(40):
        folder = folder / f"level{number}"
        write(folder / "AGENTS.md", f"Level {number}.\n\nSee @notes.md and write to team@example.org.\n")
        write(folder / "notes.md", f"Notes {number}.\n")
        write(folder / ".claude/rules/r.md", f'---\npaths: "*.py"\n---\nRule {number}.\n')
    found = load(folder)
    assert len(found.files) == 40 and len(found.conditional_rules) == 40
    assert "Notes 39." in found.files[-1].text
    half = calls(lambda: load(folder.parents[19]))
    assert calls(lambda: load(folder)) < 3 * half, "twice the folders, twice the work"


def test_small_windows_have_smaller_limits(load: Load, repo: Path) -> None:
    write(repo / "AGENTS.md", "word " * 2_000)
    assert load().warnings == ()
    assert "characters" in load(window=32_000).warnings[0]


def test_folders_that_may_not_be_entered(load: Load, repo: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may enter every folder")
    write(repo / "AGENTS.md", "words")
    write(repo / ".claude/rules/x.md", "rule")
    (repo / ".claude").chmod(0)
    try:
        assert texts(load()) == ["words"]
    finally:
        (repo / ".claude").chmod(0o700)
