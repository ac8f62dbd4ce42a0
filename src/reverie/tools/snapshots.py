"""Keeps the files of a project as they were before a turn's first command that may write: the turn can be undone.

The files go into a repository of their own, below the session: the configuration and the hooks of the project's
repository are not used. What git ignores is kept as far as it is small. Secrets are not kept; commands in the sandbox
cannot change them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from reverie.errors import ReverieError
from reverie.paths.programs import make_bare_environment, system_program
from reverie.paths.repo import find_repo
from reverie.quick import dataclass

MOST_FILES = 100_000
MOST_IGNORED_FILES = 2_000
MOST_IGNORED_BYTES = 50_000_000
MOST_BYTES = 1_000_000_000
_SECONDS = 120
_NOT_ENTERED = frozenset({".git", "node_modules", ".venv", "target"})
# Bytes are kept as they are, whatever the attributes of the project say.
_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding -diff -merge\n"


class NoSnapshot(ReverieError):
    """The files could not be kept; the sentence says why."""


@dataclass(frozen=True, slots=True)
class RestoredFiles:
    """What an undo changed, as paths in the project. `before` is the snapshot of the state before the undo."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    before: str


class ProjectSnapshots:
    """The snapshots of one project for one session, in `store`."""

    def __init__(self, project: Path, store: Path, hidden: Iterable[str] = (), *, shares: bool = True) -> None:
        """With `shares`, what the project's repository has is not stored again; it must not lose it then."""
        self._project, self._store, self._shares = project, store, shares
        self._hidden = tuple(hidden)
        self._git_dir = store / "files.git"

    def take(self) -> str:
        """Keeps the files as they are now and returns the name of the snapshot. Raises NoSnapshot."""
        self._prepare()
        nested = self._nested()
        self._git("add", "--all", "--", ".", *self._excluded(nested))
        if small := self._small_ignored(nested):
            self._git("add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul", given="\0".join(small))
        trees = [self._git("write-tree").strip()]
        trees += [f"{self._inside(name).take()}\t{name}" for name in nested]
        return "\0".join(trees)

    def restore(self, snapshot: str) -> RestoredFiles:
        """Makes the files as they were. Files that git ignores and that are new stay. Raises NoSnapshot."""
        self._project.mkdir(parents=True, exist_ok=True)
        changes = self.compare(snapshot)
        tree, *nested = snapshot.split("\0")
        self._git("read-tree", "--reset", "-u", tree)
        for line in nested:
            below, _, name = line.rpartition("\t")
            self._inside(name).restore(below)
        return changes

    def compare(self, snapshot: str) -> RestoredFiles:
        """Returns what `restore` would change. Raises NoSnapshot."""
        now = self.take()
        tree, *nested = snapshot.split("\0")
        words = ("diff-tree", "-r", "-z", "--name-status", "--no-renames", tree, now.partition("\0")[0])
        names = self._git(*words).split("\0")
        changes = list(zip(names[::2], names[1::2], strict=False))
        written = [name for status, name in changes if status != "A"]
        removed = [name for status, name in changes if status == "A"]
        for line in nested:
            below, _, name = line.rpartition("\t")
            (self._project / name).mkdir(parents=True, exist_ok=True)
            changed = self._inside(name).compare(below)
            written += [f"{name}/{path}" for path in changed.written]
            removed += [f"{name}/{path}" for path in changed.removed]
        return RestoredFiles(tuple(written), tuple(removed), now)

    def _inside(self, name: str) -> ProjectSnapshots:
        """The snapshots of a repository inside the project: git does not look into it."""
        store = self._store / "inside" / hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        return ProjectSnapshots(self._project / name, store, self._hidden, shares=False)

    def _nested(self) -> list[str]:
        """The repositories in the project that are in no other; not those in folders that tools write."""
        found, waiting = list[str](), [str(self._project)]
        while waiting:
            top = waiting.pop()
            try:
                entries = [entry for entry in os.scandir(top) if entry.is_dir(follow_symlinks=False)]
            except OSError:
                continue
            for entry in entries:
                if os.path.lexists(f"{entry.path}/.git"):
                    found.append(os.path.relpath(entry.path, self._project))
                elif entry.name not in _NOT_ENTERED:
                    waiting.append(entry.path)
        return sorted(found)

    def _prepare(self) -> None:
        if (self._git_dir / "HEAD").exists():
            return
        self._check_size()
        self._store.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._git("init", "--quiet", "--bare", "--template=", str(self._git_dir), bare=True)
        (self._git_dir / "info").mkdir(exist_ok=True)
        (self._git_dir / "info/attributes").write_text(_ATTRIBUTES)
        repo = find_repo(self._project)
        if repo.git_dir is None or not self._shares:
            return
        objects = repo.root / ".git/objects"
        if objects.is_dir() and (repo.git_dir / "index").is_file():
            # What the project's repository has already is not stored again, and unchanged files are not read.
            (self._git_dir / "objects/info").mkdir(parents=True, exist_ok=True)
            (self._git_dir / "objects/info/alternates").write_text(f"{objects}\n")
            if repo.checkout == self._project:
                shutil.copyfile(repo.git_dir / "index", self._git_dir / "index")

    def _check_size(self) -> None:
        """Refuses a folder that is no project, such as a home: it would take long, and much of the disk."""
        files = size = 0
        for folder, folders, names in os.walk(self._project):
            folders[:] = [name for name in folders if name not in _NOT_ENTERED]
            files += len(names)
            for name in names:
                try:
                    size += Path(folder, name).lstat().st_size
                except OSError:
                    continue
            if files > MOST_FILES or size > MOST_BYTES:
                raise NoSnapshot(f"{self._project} has too many files to keep a copy of them.")

    def _excluded(self, nested: Iterable[str]) -> list[str]:
        """What is left out: secrets, and repositories inside. Git refuses to leave out what it ignores anyway."""
        inside = (path for path in self._hidden if path.startswith(f"{self._project}/"))
        names = (*nested, *(os.path.relpath(path, self._project) for path in inside))
        ignored = set(self._git("check-ignore", "-z", "--stdin", given="\0".join(names), fails=1).split("\0"))
        return [f":(exclude,top,literal){name}" for name in names if name not in ignored]

    def _small_ignored(self, nested: list[str]) -> list[str]:
        """Files that git ignores and that somebody may have made by hand: those of folders that are small."""
        listed = self._git("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory").split("\0")
        left_out = {*self._hidden, *(str(self._project / name) for name in nested)}
        kept, size = list[str](), 0
        for name in filter(None, listed):
            path = self._project / name.rstrip("/")
            files, bytes_below = _measure(path)
            if str(path) in left_out or files > MOST_IGNORED_FILES or size + bytes_below > MOST_IGNORED_BYTES:
                continue
            size += bytes_below
            kept.append(name.rstrip("/"))
        return kept

    def _git(self, *words: str, given: str = "", bare: bool = False, fails: int = 0) -> str:
        """Runs git on the project; `fails`: an exit code that is an answer too."""
        git = system_program("git")
        if git is None:
            raise NoSnapshot("git is not installed, so files cannot be kept for an undo.")
        where = [] if bare else [f"--git-dir={self._git_dir}", f"--work-tree={self._project}"]
        settings = ("core.autocrlf=false", "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.symlinks=true")
        options = [text for setting in settings for text in ("-c", setting)]
        try:
            done = subprocess.run(
                [git, *where, *options, *words],
                input=given.encode("utf-8", "surrogateescape"),
                capture_output=True,
                timeout=_SECONDS,
                check=False,
                cwd=self._project,
                env={**make_bare_environment(), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"},
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NoSnapshot(f"The files could not be kept for an undo: {error}.") from error
        if done.returncode not in (0, fails):
            reason = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise NoSnapshot(f"The files could not be kept for an undo: {reason[-1] if reason else 'git failed'}.")
        return os.fsdecode(done.stdout)


def _measure(path: Path) -> tuple[int, int]:
    """How many files are below a path, and their bytes; stops at the limit."""
    if not path.is_dir() or path.is_symlink():
        try:
            return 1, path.lstat().st_size
        except OSError:
            return 0, 0
    files = size = 0
    for folder, _, names in os.walk(path):
        files += len(names)
        if files > MOST_IGNORED_FILES:
            break
        for name in names:
            try:
                size += Path(folder, name).lstat().st_size
            except OSError:
                continue
    return files, size
