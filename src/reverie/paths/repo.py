"""Which repository a folder belongs to, read from git's own files: no git process, so it costs microseconds.

All worktrees of a repository share one root, which is what memory, trust and agent memory go by. A `.git` file is
believed only if the repository it names points back: else an unpacked archive could pass for a project that is trusted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reverie.regular_files import read_head

_LINK_BYTES = 4_096


@dataclass(frozen=True, slots=True)
class Repo:
    """`root` is shared by all worktrees, `checkout` is the top of this one. Outside git both are the folder itself."""

    root: Path
    checkout: Path
    git_dir: Path | None = None
    """Where this checkout's index lies; None outside git."""


def find_repo(cwd: Path) -> Repo:
    """The repository around `cwd`, or `cwd` alone if there is none."""
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
    """The main checkout of the repository whose worktree this is; `checkout` itself if it is no worktree."""
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
    # The folder that it names must know it too: anybody can name a folder of somebody else's.
    return main if _link(main / ".git", "gitdir:") == common or same(main / ".git", common) else checkout


def _core_worktree(common: Path) -> Path | None:
    """Where a submodule's git directory says its files are."""
    for line in _head(common / "config").splitlines():
        name, _, value = line.partition("=")
        if name.strip().lower() == "worktree":
            return Path(os.path.realpath(common / value.strip().strip('"')))
    return None


def _link(file: Path, prefix: str = "") -> Path | None:
    """The path that git wrote into `file`, relative ones seen from its folder."""
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
    """The branch that is checked out, a short commit name where none is, empty outside git."""
    head = _head(repo.git_dir / "HEAD").strip() if repo.git_dir is not None else ""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref:") else head[:12]


def same(one: Path, other: Path) -> bool:
    """Whether two paths mean the same place once links are resolved; neither need exist."""
    return os.path.realpath(one) == os.path.realpath(other)
