"""Work trees: made for an agent, gone when nothing came of it, kept and named when something did."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from reverie.agents.worktree import Worktree
from reverie.errors import UserError
from reverie.session import Session
from tests.agents.talk import results, said_to_main
from tests.sessions import in_session, script, turn


def git(folder: Path, *words: str) -> str:
    who = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    env = {**os.environ, **who}
    return subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("alpha\n")
    git(folder, "add", "a.txt")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def trees(repo: Path) -> list[str]:
    listed = git(repo, "worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]


def branches(repo: Path) -> list[str]:
    return git(repo, "branch", "--format=%(refname:short)").split()


def made(repo: Path, name: str, folder: Path) -> Worktree:
    return asyncio.run(Worktree.make(name, repo, folder, dict(os.environ)))


def test_an_unchanged_one_goes_with_its_branch(repo: Path, tmp_path: Path) -> None:
    tree = made(repo, "one", tmp_path / "trees")
    assert (tree.path / "a.txt").read_text() == "alpha\n" and branches(repo) == ["main", "reverie/one"]
    assert asyncio.run(tree.leave()) == ""
    assert not tree.path.exists() and branches(repo) == ["main"] and trees(repo) == [str(repo)]


@pytest.mark.parametrize("committed", [False, True])
def test_a_changed_one_is_kept_and_named(repo: Path, tmp_path: Path, committed: bool) -> None:
    tree = made(repo, "one", tmp_path / "trees")
    (tree.path / "b.txt").write_text("beta\n")
    if committed:
        git(tree.path, "add", "b.txt")
        git(tree.path, "commit", "-q", "-m", "second")
    told = asyncio.run(tree.leave())
    assert str(tree.path) in told and "reverie/one" in told and (tree.path / "b.txt").exists()
    assert ("its own commits" if committed else "not committed") in told
    assert not (repo / "b.txt").exists()


def test_names_that_are_taken_get_a_number(repo: Path, tmp_path: Path) -> None:
    first = made(repo, "one", tmp_path / "trees")
    second = made(repo, "one", tmp_path / "trees")
    assert (second.path.name, second.branch) == ("one-2", "reverie/one-2") and first.path != second.path


def test_no_repository_and_no_commit_are_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not in a git repository"):
        made(tmp_path, "one", tmp_path / "trees")
    git(tmp_path, "init", "-q")
    with pytest.raises(UserError, match="has no commit yet"):
        made(tmp_path, "one", tmp_path / "trees")


PLAY = """
call Agent {"description": "idle one", "prompt": "Look.", "subagent_type": "general", "isolation": "worktree"}
call Agent {"description": "busy one", "prompt": "Write.", "isolation": "worktree"}
---
say Waiting.
---
say Done.

[agent]
when /Look/
  call Read {"file_path": "a.txt"}
  ---
  say It says: {result}
end
when /Write/
  call Write {"file_path": "made.txt", "content": "by an agent"}
  ---
  say Written.
end
"""


def test_agents_work_in_trees_of_their_own(repo: Path, own_home: Path) -> None:
    async def work(session: Session) -> None:
        await turn(session, "go")
        assert any("alpha" in text for text, _ in results(session))
        told = said_to_main(session)
        assert "Written." in told and "not committed and is kept" in told and "reverie/busy-one" in told

    in_session(work, cwd=repo, model=script(repo.parent, PLAY), overrides={"permissions.mode": "accept_all"})
    assert not (repo / "made.txt").exists(), "the person's own files are left alone"
    (kept,) = [Path(tree) for tree in trees(repo) if tree != str(repo)]
    assert kept.is_relative_to(own_home) and (kept / "made.txt").read_text() == "by an agent"
    assert git(repo, "status", "--porcelain") == "" and branches(repo) == ["main", "reverie/busy-one"]


@pytest.mark.parametrize("wait", [0.05, 0.1, 0.15, 0.2, 0.3])
def test_a_turn_that_ends_while_a_tree_is_put_away_still_gets_the_report(repo: Path, wait: float) -> None:
    play = f"""
call Agent {{"description": "short", "prompt": "Be short.", "isolation": "worktree"}}
---
wait {wait}
say Is there anything?
---
say There is.

[agent]
say Short.
"""

    async def work(session: Session) -> None:
        await turn(session, "go")
        assert "Short." in said_to_main(session)

    in_session(work, cwd=repo, model=script(repo.parent, play), overrides={"permissions.mode": "accept_all"})


def test_git_runs_nothing_that_the_repository_brings(repo: Path, tmp_path: Path) -> None:
    """An unpacked archive may have a `.git` of its own, with hooks."""
    hook = repo / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    (tmp_path / "watch").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "watch").chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(tmp_path / "watch"))
    tree = made(repo, "one", tmp_path / "trees")
    asyncio.run(tree.leave())
    assert not (tmp_path / "ran").exists()
