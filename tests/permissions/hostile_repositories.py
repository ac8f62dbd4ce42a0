"""Builds checkouts that try to act when git prints: every key that names a program, in every place that git reads.

Each program writes a file into `marks`, so a test sees what acted. `clean` builds the same checkout without traps.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

_ENV = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_DATE": "2024-05-01T10:00:00Z",
    "GIT_COMMITTER_DATE": "2024-05-01T10:00:00Z",
}
_BODY = {
    "src/app.py": "import os\n\n\ndef run():\n    return 1\n",
    "src/util.py": "def add(a, b):\n    return a + b\n",
    "docs/guide.md": "# Guide\n",
    "data.json": '{"name": "x", "items": [{"id": 1}]}\n',
    "README.md": "# App\n\nText\n",
}


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, env=_ENV, capture_output=True, text=True, check=True).stdout


def clean(folder: Path) -> Path:
    """A checkout with two commits, a tag, a branch, a remote, a change, and files with new times only."""
    shutil.copytree(Path(_template().name) / "work", folder)
    return folder


@cache
def _template() -> tempfile.TemporaryDirectory[str]:
    """Built once per process, and removed with it."""
    made = tempfile.TemporaryDirectory(prefix="reverie-template-")
    folder = Path(made.name) / "work"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ann")
    git(folder, "config", "user.email", "ann@example.com")
    for name, text in _BODY.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    git(folder, "tag", "v1")
    (folder / "src/app.py").write_text(_BODY["src/app.py"] + "# more\n")
    git(folder, "commit", "-qam", "two")
    git(folder, "branch", "feature/a")
    git(folder, "remote", "add", "origin", "https://example.com/x.git")
    (folder / "src/util.py").write_text(_BODY["src/util.py"] + "x = 1\n")
    os.utime(folder / "README.md", (1_800_000_000, 1_800_000_000))
    return made


def _trap(marks: Path, name: str) -> str:
    return f"touch {marks}/{name};"


def acting_keys(marks: Path) -> str:
    """A configuration in which every key that names a program names a trap."""

    def trap(name: str) -> str:
        return f'"{_trap(marks, name)} cat"'

    return f"""
[core]
	fsmonitor = "{_trap(marks, "fsmonitor")} false"
	hooksPath = {marks.parent}/evil-hooks
	pager = {trap("pager")}
	editor = {trap("editor")}
	sshCommand = {trap("ssh")}
	askPass = {trap("askpass")}
	gitProxy = {trap("proxy")}
	alternateRefsCommand = {trap("alternate")}
	attributesFile = {marks.parent}/evil-attributes
[pager]
	log = {trap("pager-log")}
	status = {trap("pager-status")}
	diff = {trap("pager-diff")}
[diff]
	external = {trap("external")}
	submodule = log
[diff "evil"]
	textconv = {trap("textconv")}
	command = {trap("driver")}
	cachetextconv = true
[filter "evil"]
	clean = {trap("clean")}
	smudge = {trap("smudge")}
	required = true
[gpg]
	program = {trap("gpg")}
[log]
	showSignature = true
[status]
	submoduleSummary = true
[submodule]
	recurse = true
[credential]
	helper = "!{_trap(marks, "credential")}"
[trailer "x"]
	command = {trap("trailer")}
[interactive]
	diffFilter = {trap("difffilter")}
[alias]
	st = "!{_trap(marks, "alias-st")}"
	status = "!{_trap(marks, "alias-status")}"
	log = "!{_trap(marks, "alias-log")}"
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[remote "origin"]
	promisor = true
	partialclonefilter = blob:none
	uploadpack = {trap("uploadpack")}
	url = "ext::sh -c touch% {marks}/ext"
"""


def _write_helpers(folder: Path, marks: Path) -> None:
    """Hooks, attributes, and programs of the project with the names of real ones."""
    (folder / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (marks.parent / "evil-attributes").write_text("* filter=evil diff=evil\n")
    for hooks in (folder / ".git/hooks", marks.parent / "evil-hooks"):
        hooks.mkdir(exist_ok=True)
        for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"):
            (hooks / name).write_text(f"#!/bin/sh\n{_trap(marks, f'hook-{name}')}\n")
            (hooks / name).chmod(0o755)
    for name in ("git", "ls", "sed", "sort", "python3", "node", "cat", "jq", "diff", "which", "cut"):
        (folder / name).write_text(f"#!/bin/sh\n{_trap(marks, f'program-{name}')}\n")
        (folder / name).chmod(0o755)


def in_config(folder: Path, marks: Path) -> None:
    with (folder / ".git/config").open("a") as file:
        file.write(acting_keys(marks))


def in_included_file(folder: Path, marks: Path) -> None:
    (folder / "evil.inc").write_text(acting_keys(marks))
    with (folder / ".git/config").open("a") as file:
        file.write('[include]\n\tpath = ../evil.inc\n[includeIf "gitdir:**"]\n\tpath = ../evil.inc\n')


def in_worktree_config(folder: Path, marks: Path) -> None:
    git(folder, "config", "core.repositoryformatversion", "1")
    git(folder, "config", "extensions.worktreeConfig", "true")
    (folder / ".git/config.worktree").write_text(acting_keys(marks))


def in_submodules(folder: Path, marks: Path) -> None:
    """A submodule and a nested repository without one, both dirty, both with traps of their own."""
    for name in ("sub", "nested"):
        inner = clean(folder / name)
        (inner / "README.md").write_text("changed\n")
        if name == "sub":
            (folder / ".gitmodules").write_text('[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n')
        git(folder, "-c", "advice.addEmbeddedRepo=false", "add", name)
        _write_helpers(inner, marks)
        in_config(inner, marks)
    git(folder, "config", "diff.submodule", "diff")
    git(folder, "config", "status.submoduleSummary", "true")


def in_the_index(folder: Path, marks: Path) -> None:
    """An index that is split, with the extensions of a monitor and an untracked cache."""
    git(folder, "update-index", "--fsmonitor")
    git(folder, "update-index", "--untracked-cache")
    git(folder, "update-index", "--split-index")
    in_config(folder, marks)


def behind_a_file(folder: Path, marks: Path) -> None:
    """The `.git` of the checkout is a file that leads to a repository elsewhere."""
    in_config(folder, marks)
    real = marks.parent / "elsewhere.git"
    (folder / ".git").rename(real)
    (folder / ".git").write_text(f"gitdir: {real}\n")


def as_a_partial_clone(folder: Path, marks: Path) -> None:
    """An object is missing, and the repository says where to fetch it from."""
    in_config(folder, marks)
    git(folder, "config", "core.repositoryformatversion", "1")
    with (folder / ".git/config").open("a") as file:
        file.write("[extensions]\n\tpartialClone = origin\n")
    blob = subprocess.run(
        ["git", "rev-parse", "HEAD~1:docs/guide.md"],
        cwd=folder,
        env={**_ENV},
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    (folder / ".git/objects" / blob[:2] / blob[2:]).unlink()


HOSTILE: dict[str, Callable[[Path, Path], None]] = {
    one.__name__: one
    for one in (
        in_config,
        in_included_file,
        in_worktree_config,
        in_submodules,
        in_the_index,
        behind_a_file,
        as_a_partial_clone,
    )
}


def hostile(folder: Path, marks: Path, trap: Callable[[Path, Path], None]) -> Path:
    marks.mkdir(parents=True, exist_ok=True)
    clean(folder)
    _write_helpers(folder, marks)
    trap(folder, marks)
    for path in marks.iterdir():  # what acted while we built it
        path.unlink()
    return folder


def record(folder: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Everything in a folder, `.git` included: mode, size, time of the last change, and content."""
    found: dict[str, tuple[int, int, int, bytes]] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_size, status.st_mtime_ns, content)
    return found
