"""Finds files that are obeyed because an obeyed file leads to them: by a link, an include or the name of a script.

Every check searches the project again, up to a limit, so the result is never out of date. At the limit, or if a name
cannot be known (a variable of make), the answer is yes: then the user is asked. `obeyed_texts` finds the includes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.paths.repo import find_repo
from reverie.permissions.obeyed_files import is_obeyed_entry, is_obeyed_name, is_page_for_agents
from reverie.permissions.obeyed_texts import (
    NamedPath,
    TextKind,
    TooManyNames,
    find_named_paths,
    find_text_kind,
    read_bounded,
    read_git_values,
)

MOST_NAMES = 100_000
_MOST_TEXTS = 3_000
_DEEPEST = 20
_HOOKS = frozenset({"hooks", ".githooks", ".git-hooks", ".husky"})
_INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "AGENTS.local.md", "CLAUDE.local.md", "GEMINI.md")
_AGENTS = (".reverie", ".claude", ".codex", ".gemini")
# Tools write these, with many links and files of strangers. Their names alone make a write ask.
_NOT_ENTERED = frozenset(
    {".git", "node_modules", "venv", ".venv", "site-packages", "__pycache__", ".tox", ".nox", ".cache", "worktrees"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".direnv", ".gradle", ".terraform", ".next"}
)


def find_project(cwd: Path) -> Path:
    """Returns the checkout around the folder, or the folder itself; never the user's home."""
    start = Path(os.path.realpath(cwd))
    home = Path(os.path.realpath(Path.home()))
    for folder in (start, *start.parents):
        if folder == home:
            break
        if os.path.lexists(folder / ".git"):
            return folder
    return start


def is_reached_by_obeyed(paths: Iterable[Path], cwd: Path, most: int = MOST_NAMES) -> bool:
    """Whether an obeyed file in the project around `cwd` leads to one of the paths; yes beyond `most` names."""
    wanted = [os.path.realpath(path) for path in paths if "\0" not in str(path)]
    try:
        return _Project(find_project(cwd), most).leads_to(wanted)
    except TooManyNames:
        return True


class _Project:
    def __init__(self, top: Path, most: int) -> None:
        self._top = str(top)
        self._left = most
        self._texts_left = _MOST_TEXTS
        self._files: list[str] = []
        self._makefiles: list[str] = []
        self._checkouts = {self._top}
        self._found: set[str] = set()
        """Real paths of the files and folders that obeyed files lead to; they may not exist."""
        self._patterns: set[str] = set()
        self._inodes: set[tuple[int, int]] = set()
        self._read: set[tuple[str, TextKind, str]] = set()
        self._walked: set[str] = set()

    def leads_to(self, wanted: list[str]) -> bool:
        self._walk(self._top, obeyed=False)
        for makefile in self._makefiles:  # last: a variable in an include may mean any file that was found
            self._note_text(makefile, TextKind.MAKE, str(Path(makefile).parent))
        for folder in (*Path(self._top).parents, *(Path.home() / name for name in _AGENTS)):
            for name in _INSTRUCTIONS:
                self._note_file(str(folder / name))
        for top in tuple(self._checkouts):
            self._note_git(top)
        return any(self._is_noted(path) for path in wanted)

    def _is_noted(self, path: str) -> bool:
        if any(str(folder) in self._found for folder in (path, *Path(path).parents)):
            return True
        if any(fnmatchcase(path, pattern) for pattern in self._patterns):
            return True
        try:
            found = os.stat(path)  # noqa: PTH116 (of a resolved string)
        except (OSError, ValueError):
            return False
        return (found.st_dev, found.st_ino) in self._inodes

    def _walk(self, top: str, *, obeyed: bool, hooks: bool = False) -> None:
        """Visits every name below a folder; `obeyed`: all of them count. Paths keep the names of links."""
        waiting = [(top, obeyed, 0)]
        while waiting:
            folder, all_obeyed, depth = waiting.pop()
            if depth > _DEEPEST * 5:
                raise TooManyNames
            name = folder.rsplit("/", 1)[-1]
            for entry in _entries(folder):
                self._left -= 1
                if self._left < 0:
                    raise TooManyNames
                if entry.name == ".git":
                    self._checkouts.add(folder)
                counts = all_obeyed or is_obeyed_entry(name, entry.name)
                counts = counts or (folder == self._top and is_page_for_agents(entry.name))
                if entry.is_symlink():
                    if (counts or entry.name.lower() == ".github") and self._note_link(entry):
                        waiting.append((entry.path, True, depth + 1))
                elif entry.is_dir(follow_symlinks=False):
                    if entry.name.lower() not in _NOT_ENTERED:
                        waiting.append((entry.path, counts, depth + 1))
                else:
                    self._files.append(entry.path)
                    if counts:
                        self._note_file(entry.path, hooks=hooks)

    def _note_link(self, entry: os.DirEntry[str]) -> bool:
        """Notes where a link leads; returns whether that is a folder to walk, once."""
        real = os.path.realpath(entry.path)
        if f"{self._top}/".startswith(f"{real}/") and not is_obeyed_name(entry.name) and entry.name not in _AGENTS:
            return False  # a link to the project itself; some build tools make these
        self._found.add(real)
        if not Path(real).is_dir():
            self._note_file(entry.path)
            return False
        if real in self._walked or not self._is_inside(real):
            return False
        self._walked.add(real)
        return True

    def _is_inside(self, path: str) -> bool:
        return path.startswith(f"{self._top.rstrip('/')}/")

    def _note_file(self, path: str, *, hooks: bool = False) -> None:
        """Notes a file that is obeyed because of its name or the name of a link to it."""
        try:
            found = os.stat(path)  # noqa: PTH116 (a string from a walk)
        except (OSError, ValueError):
            return
        if found.st_nlink > 1:
            self._inodes.add((found.st_dev, found.st_ino))
        if os.path.islink(path):  # noqa: PTH114 (a string from a walk)
            self._found.add(os.path.realpath(path))
        kind = TextKind.WORDS if hooks or Path(path).parent.name in _HOOKS else find_text_kind(Path(path))
        if kind is TextKind.MAKE:
            self._makefiles.append(path)
        elif kind is not None:
            self._note_text(path, kind, self._top if kind is TextKind.WORDS else str(Path(path).parent))

    def _note_text(self, path: str, kind: TextKind, base: str, depth: int = 0) -> None:
        """Notes the files that a text names, and so on. `base`: the folder where the program that reads it starts."""
        real = os.path.realpath(path)
        if (real, kind, base) in self._read:
            return
        self._read.add((real, kind, base))
        self._texts_left -= 1
        if self._texts_left < 0 or depth > _DEEPEST:
            raise TooManyNames
        folders = dict.fromkeys((base, str(Path(path).parent), str(Path(real).parent), self._top))
        for named in find_named_paths(read_bounded(real), kind):
            for target in self._find_targets(named, folders):
                self._found.add(target)
                if kind is not TextKind.WORDS:  # a script that a setting names may name half of the project
                    self._note_text(target, named.kind or kind, base, depth + 1)

    def _find_targets(self, named: NamedPath, folders: Iterable[str]) -> Iterator[str]:
        if "*" in named.word:
            word = named.word.lstrip("./")
            # A variable at the start may be any folder, so the pattern fits at any depth.
            pattern = word if word.startswith("*") else None
            for folder in folders:
                whole = pattern or os.path.normpath(f"{folder}/{named.word}")
                self._patterns.add(whole)
                yield from (os.path.realpath(file) for file in self._files if fnmatchcase(file, whole))
            return
        word = os.path.expanduser(named.word)  # noqa: PTH111 (keeps the name of an unknown user)
        for folder in folders:
            target = os.path.realpath(Path(folder, word))
            if self._is_inside(target) and (not named.must_exist or Path(target).is_file()):
                yield target

    def _note_git(self, top: str) -> None:
        """Notes git's hooks and the files its configuration names: scripts, more configuration, a folder of hooks."""
        repo = find_repo(Path(top))
        home = Path.home()
        own = {Path(top, ".git"), repo.root / ".git", repo.git_dir or Path(top, ".git")}
        configs = [*(folder / name for folder in own for name in ("config", "config.worktree"))]
        configs += [home / ".gitconfig", home / ".config/git/config"]
        for folder in own:
            self._note_hooks(str(folder / "hooks"))
        seen = set[Path]()
        while configs:
            config = configs.pop()
            if config in seen:
                continue
            if len(seen) > _DEEPEST:
                raise TooManyNames
            seen.add(config)
            for key, value in read_git_values(config):
                word = os.path.expanduser(value)  # noqa: PTH111 (keeps the name of an unknown user)
                if not word:
                    continue
                if key == "hookspath":
                    self._note_hooks(os.path.realpath(Path(top, word)))
                elif key == "path":
                    configs.append(config.parent / word)
                    self._found.add(os.path.realpath(config.parent / word))
                else:
                    for named in find_named_paths(value, TextKind.WORDS):
                        self._found.update(self._find_targets(named, (top,)))

    def _note_hooks(self, folder: str) -> None:
        self._found.add(os.path.realpath(folder))
        self._walk(folder, obeyed=True, hooks=True)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as found:  # not a folder, or not readable
        yield from found
