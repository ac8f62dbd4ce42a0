"""Whether the history of a repository holds files with the names of secrets: a kernel cannot hide a part of an object.

The answer is kept until a reference of the repository changes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from reverie.errors import ReverieError
from reverie.paths.programs import make_bare_environment, system_program
from reverie.paths.repo import find_repo
from reverie.permissions.sensitive import is_sensitive_tracked
from reverie.regular_files import read_head
from reverie.runtime.bounded import bounded

_SECONDS = 20
_MOST_BYTES = 1_000_000
_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
}
_State: TypeAlias = tuple[tuple[object, ...], ...]
_known: dict[str, tuple[_State, bool]] = {}
_tracked: dict[tuple[str, ...], tuple[_State, frozenset[str]]] = {}
_blobs: dict[str, tuple[tuple[int, ...], str]] = {}


def holds_secrets(project: Path) -> bool:
    """Whether some commit, on any branch or in the reflog, has a file with the name of a secret; yes if git fails."""
    repo = find_repo(project)
    if repo.git_dir is None:
        return False
    git = system_program("git")
    if git is None:
        return False
    key, state = str(repo.git_dir), _references(repo.git_dir)
    if (known := _known.get(key)) is not None and known[0] == state:
        return known[1]
    listed = _run(git, repo.git_dir, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects")
    answer = listed is None or _names_secret(listed)
    _known[key] = (state, answer)
    return answer


def _names_secret(listed: str) -> bool:
    names = {name for line in listed.splitlines() if (name := line.partition(" ")[2])}
    folders = {name.rpartition("/")[0] for name in names}
    return any(is_sensitive_tracked(Path(name)) for name in names - folders)


def tracked_folders(project: Path, folders: Iterable[str]) -> frozenset[str]:
    """Those of the folders in which git tracks a file: source code, whatever they are called."""
    wanted = sorted(folder for folder in folders if not folder.rpartition("/")[2].startswith("."))
    repo, git = find_repo(project), system_program("git")
    if not wanted or repo.git_dir is None or git is None:
        return frozenset()
    key, state = (str(repo.git_dir), *wanted), _states([str(repo.git_dir / "index")])
    if (known := _tracked.get(key)) is not None and known[0] == state:
        return known[1]
    listed = _run(git, repo.git_dir, f"--work-tree={repo.checkout}", "ls-files", "-z", "--full-name", "--", *wanted)
    names = [f"{repo.checkout}/{name}" for name in (listed or "").split("\0") if name]
    tracked = frozenset(folder for folder in wanted if any(name.startswith(f"{folder}/") for name in names))
    _tracked[key] = state, tracked
    return tracked


def object_stores(project: Path) -> frozenset[str]:
    """The folders with the objects of a repository, wherever they are: worktrees and clones share them."""
    git_dir = find_repo(project).git_dir
    if git_dir is None:
        return frozenset()
    found, waiting = set[str](), [str(_common(git_dir) / "objects")]
    while waiting:
        store = os.path.realpath(waiting.pop())
        if store in found or not os.path.isdir(store):
            continue
        found.add(store)
        with suppress(OSError):
            lines = os.fsdecode(read_head(Path(store, "info/alternates"), _MOST_BYTES)).splitlines()
            waiting += [os.path.join(store, line) for line in lines if line and not line.startswith("#")]
    return frozenset(found)


def holds_content(project: Path, secrets: Iterable[str]) -> bool:
    """Whether the objects hold one of these files as it is now, under whatever name: added, and taken back."""
    stores = object_stores(project)
    for path in secrets if stores else ():
        blob = _blob(path)
        if blob and any(os.path.lexists(f"{store}/{blob[:2]}/{blob[2:]}") for store in stores):
            return True
    return False


def _blob(path: str) -> str:
    """The name that git gives the content of a file; empty if there is no such file."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= _MOST_BYTES:
            return ""
        state = (status.st_ino, status.st_size, status.st_ctime_ns)
        if (known := _blobs.get(path)) is not None and known[0] == state:
            return known[1]
        content = read_head(path, _MOST_BYTES)
    except (OSError, ReverieError):
        return ""
    name = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    _blobs[path] = state, name
    return name


def _common(git_dir: Path) -> Path:
    with suppress(OSError):
        return Path(os.path.realpath(git_dir / os.fsdecode(read_head(git_dir / "commondir", 4_096)).strip()))
    return git_dir


def _references(git_dir: Path) -> _State:
    """What changes when a reference, the index or a log does: git replaces files, so their folders change."""
    common = _common(git_dir)
    places = [f"{git_dir}/{name}" for name in ("HEAD", "index", "logs/HEAD", "refs")]
    places += [f"{common}/{name}" for name in ("packed-refs", "HEAD", "logs/HEAD", "logs/refs/stash", "worktrees")]
    places += [folder for top in {f"{common}/refs", f"{git_dir}/refs"} for folder, _, _ in os.walk(top)]
    return _states(places)


def _states(paths: Iterable[str]) -> _State:
    states = list[tuple[object, ...]]()
    for path in paths:
        try:
            status = os.stat(path)
            states.append((path, status.st_ino, status.st_size, status.st_ctime_ns))
        except OSError:
            states.append((path,))
    return tuple(states)


def _run(git: Path, git_dir: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            bounded([git, f"--git-dir={git_dir}", "-c", "core.fsmonitor=false", *words]),
            capture_output=True,
            timeout=_SECONDS,
            check=True,
            cwd="/",
            # Objects that are missing are not fetched: the repository says with which program.
            env={**make_bare_environment(), **_ALONE},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(done.stdout)
