"""Which repository a folder belongs to, read from git's own files: no git process, so it costs microseconds.

All worktrees of a repository share one root, which is what memory, trust and agent memory go by. A `.git` file is
believed only if the repository it names points back: else an unpacked archive could pass for a project that is trusted.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reverie.regular_files import LARGEST, read_head, read_regular

_LINK_BYTES = 4_096
_ENTRY, _ENTRY_SHA256 = 62, 74
"""Bytes of an index entry before its name."""
_EXTENDED = 0x4000


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
    return _core_worktree(common) or common


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


def is_own_untracked(file: Path, repo: Repo) -> bool:
    """Whether `file`, inside a checkout of `repo`, is the user's own: not another user's, and not committed to git.

    Anybody can commit a file called local; it is believed only if git does not track it. In doubt: no.
    """
    try:
        owner = file.stat().st_uid
    except OSError:
        return True  # nothing there to distrust; whoever opens it will say what is wrong
    if owner not in (os.getuid(), 0):
        return False
    if repo.git_dir is None:
        return True
    top, git_dir = repo.checkout, repo.git_dir
    if not file.is_relative_to(top):
        top = repo.root
        git_dir = _link(repo.git_dir / "commondir") or top / ".git"
    if Path(os.path.realpath(file)) != Path(os.path.realpath(top), file.relative_to(top)):
        return False  # a committed link may lead to a committed file of another name
    if (file.parent / ".git").exists():
        return False  # a submodule: committed there
    try:
        return not _tracks(git_dir, os.fsencode(file.relative_to(top)))
    except OSError:
        return False


def _tracks(git_dir: Path, name: bytes) -> bool:
    """Whether the index has a file of this name, whatever the case of its letters."""
    try:
        indexes = [read_regular(git_dir / "index", LARGEST)]
    except FileNotFoundError:
        return False  # nothing was ever added
    if b"link" in indexes[0]:
        # A split index: what is not in it may stand in the file it links to.
        indexes += [read_regular(shared, LARGEST) for shared in git_dir.glob("sharedindex.*")]
    config = _head((_link(git_dir / "commondir") or git_dir) / "config")
    entry = _ENTRY_SHA256 if "sha256" in config.lower() else _ENTRY
    for raw in indexes:
        # Version 4 writes only how a name differs from the one before; all others write it out.
        if raw[4:8] == b"\0\0\0\4":
            if name.lower() in _compressed_names(raw, entry):
                return True
        elif name.lower() + b"\0" in raw.lower():
            return True
    return False


def _compressed_names(raw: bytes, entry: int) -> set[bytes]:
    """The names in an index of version 4; `entry` is the size of what stands before each."""
    names: set[bytes] = set()
    at, name = 12, b""
    for _ in range(int.from_bytes(raw[8:12], "big")):
        flags = int.from_bytes(raw[at + entry - 2 : at + entry], "big")
        at += entry + (2 if flags & _EXTENDED else 0)
        drop, more = 0, True
        while more:
            byte = raw[at] if at < len(raw) else 0xFF
            more = bool(byte & 0x80)
            drop = drop << 7 | byte & 0x7F
            if drop > len(name):
                raise OSError("the git index has a form this reader does not know")
            drop, at = drop + more, at + 1
        end = raw.find(b"\0", at)
        if end < 0:
            raise OSError("the git index is cut off")
        name = name[: len(name) - drop] + raw[at:end]
        names.add(name.lower())
        at = end + 1
    return names
