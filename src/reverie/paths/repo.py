"""Finds the repository of a folder from git's own files, without a git process, in microseconds.

All worktrees share one root. A `.git` file counts only if its repository points back, so no archive can imitate one.
"""

from __future__ import annotations

import os
from pathlib import Path

from reverie.quick import dataclass
from reverie.regular_files import read_head

_LINK_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Repo:
    """`root` is shared by all worktrees, `checkout` is the top of this one. Outside git both are the folder."""

    root: Path
    checkout: Path
    git_dir: Path | None = None  # where the index of this checkout is; None outside git


def find_repo(cwd: Path) -> Repo:
    """Returns the repository around `cwd`, or `cwd` alone if there is none."""
    start = Path(os.path.realpath(cwd))
    for folder in (start, *start.parents):
        marker = folder / ".git"
        if marker.is_dir():
            if (marker / "HEAD").is_file():
                return Repo(folder, folder, marker)
        elif marker.is_file():
            git_dir = _link(marker, "gitdir:")
            if git_dir is not None and git_dir.is_dir():
                return Repo(_shared_root(folder, git_dir), folder, git_dir)
    return Repo(start, start)


def _shared_root(checkout: Path, git_dir: Path) -> Path:
    """Returns the main checkout of a worktree's repository; `checkout` itself if it is not a worktree."""
    common = _link(git_dir / "commondir")
    back = _link(git_dir / "gitdir")
    if common is None or back is None or git_dir.parent != common / "worktrees":
        return checkout
    if not same(back, checkout / ".git"):
        return checkout
    if common.name == ".git":
        return common.parent
    main = _core_worktree(common)
    if main is None:
        return common
    # The named folder must point back: anybody can name a folder of somebody else.
    return main if _link(main / ".git", "gitdir:") == common or same(main / ".git", common) else checkout


def _core_worktree(common: Path) -> Path | None:
    """Returns where a submodule's git directory says its files are."""
    for line in _head(common / "config").splitlines():
        name, _, value = line.partition("=")
        if name.strip().lower() == "worktree":
            return Path(os.path.realpath(common / value.strip().strip('"')))
    return None


def _link(file: Path, prefix: str = "") -> Path | None:
    """Returns the path that git wrote into `file`; relative paths start at its folder."""
    text = _head(file).strip()
    if not text.startswith(prefix) or "\n" in text or "\0" in text or text == prefix:
        return None
    return Path(os.path.realpath(file.parent / text[len(prefix) :].strip()))


def _head(file: Path) -> str:
    try:
        return os.fsdecode(read_head(file, _LINK_BYTES))
    except OSError:
        return ""


def current_branch(repo: Repo) -> str:
    """Returns the current branch, a short commit name without one, or empty text outside git."""
    head = _head(repo.git_dir / "HEAD").strip() if repo.git_dir is not None else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:12]


def same(one: Path, other: Path) -> bool:
    """Whether two paths are the same place after links are resolved; they do not have to exist."""
    return os.path.realpath(one) == os.path.realpath(other)
