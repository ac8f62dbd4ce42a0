"""Finds the files that a command in a folder's settings may run, so that trust ends when one of them changes.

The shell is not parsed: every file of the folder whose name is in the command counts. If a command does not name the
files it runs, all scripts of the folder count too. Limited in files, bytes and time; never raises.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from reverie.regular_files import open_regular

MOST_ENTRIES = 10_000
MOST_TEXT = 20_000
_MOST_BYTES = 8_000_000
_MOST_FILES = 1_000
_MOST_GLOBS = 50
_PROJECT = re.compile(r"\$(?:(?:REVERIE|CLAUDE)_PROJECT_DIR\b|\{(?:REVERIE|CLAUDE)_PROJECT_DIR\})")
_BETWEEN_WORDS = re.compile(r"[\s'\"`;&|<>(){}=,:]+")
_QUOTES = re.compile(r"\\\n|['\"\\]")
_GLOB = re.compile(r"[*?]|\[[^\s\]]+\]")
_NOT_WALKED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__"})
_SHELL_SUFFIXES = frozenset({".sh", ".bash", ".zsh", ".ksh", ".dash", ".fish", ".command"})
_INTERPRETER = re.compile(r"\b(?:python|pypy|node|deno|bun|tsx|ruby|perl|php|lua)[\d.]*\b")
_WRITTEN = re.compile(r'(?<![^\s\d])>>?\|?[ \t]*("?)[^\s"\'`\\$;&|<>()*?\[{]+\1(?=[\s;&|)]|$)')
_MAIN_FILES = frozenset({"__init__", "__main__", "index"})
_UNKNOWN = (
    (re.compile(r"\$\(|`"), "it runs the output of another command"),
    (re.compile(r"\$"), "it uses a variable"),
    (_GLOB, "it uses a pattern for names"),
    (re.compile(r"\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}"), "it uses a pattern for names"),
    (re.compile(r"(?<![\w./-])(?:cd|chdir|pushd)\b"), "it changes the folder"),
    (re.compile(r"(?<![\w./-])(?:eval|xargs|find|parallel|run-parts)\b"), "it starts programs that it finds"),
)


def explain_unchecked(command: str, folder: Path) -> str:
    """Returns why the files that this command runs cannot be known; empty if they are in its text."""
    if len(command) > MOST_TEXT:
        return "it is too long"
    text = _PROJECT.sub(".", command)
    plain = _QUOTES.sub("", text)
    for pattern, why in _UNKNOWN:
        if pattern.search(text) or pattern.search(plain):  # without its quotes `c""d` is `cd`
            return why
    if re.search(r"(?<!\S)\.{1,2}/?(?!\S)", plain) or any(map(os.path.isdir, _find_paths(plain, (folder,), folder))):
        return "it names a folder"
    return ""


def list_run_files(commands: Sequence[str], folder: Path) -> tuple[list[str], bool]:
    """Returns one line per file that these commands may run (path, real path, digest), and whether these are all.

    Paths are relative to the folder, so that the same file in a worktree counts as the same.
    """
    unknown = any(explain_unchecked(command, folder) for command in commands)
    # Hooks run in this folder. A file that a command only writes to does not count.
    text = "\n".join(_WRITTEN.sub(" ", _PROJECT.sub(".", command)) for command in commands)
    wanted = _NameFilter(text[:MOST_TEXT], unknown)
    walked, complete = _walk(folder, wanted.plain)
    found = dict.fromkeys(path for path in _find_paths(text[:MOST_TEXT], (folder,), folder) if os.path.exists(path))  # noqa: PTH110
    found |= dict.fromkeys(folder / path for path in walked if wanted.has(path))
    if unknown:
        found |= dict.fromkeys(folder / path for path in walked if _is_script(folder, path))
    within = complete and len(text) <= MOST_TEXT and len(found) <= _MOST_FILES
    return list(_describe_files(list(found)[:_MOST_FILES], folder)), within


def list_named_files(texts: Iterable[str], folder: Path) -> list[str]:
    """The same for values that name files but are not commands: a relative name is looked up in two folders."""
    text = "\n".join(texts)[:MOST_TEXT]
    return list(_describe_files(dict.fromkeys(_find_paths(text, (folder, folder / ".reverie"), folder)), folder))


class _NameFilter:
    """Decides which files a text may mean."""

    def __init__(self, text: str, unknown: bool) -> None:
        self.plain = _QUOTES.sub("", text).casefold()
        globs = [word for word in re.split(r"[\s;&|<>()=,:]+", self.plain) if unknown and _GLOB.search(word)]
        self._pattern = _join_globs(globs[:_MOST_GLOBS])
        self._words = set(re.split(r"[^\w-]+", self.plain)) if _INTERPRETER.search(self.plain) else set[str]()

    def has(self, path: str) -> bool:
        path = path.casefold()
        parent, _, name = path.rpartition("/")
        if name in self.plain:
            return True
        if self._words:
            # `python -m check` and `node ./check` leave the end of the name out.
            stem = name.split(".")[0]
            if (parent.rpartition("/")[2] if stem in _MAIN_FILES else stem) in self._words:
                return True
        return self._pattern is not None and self._pattern.match(path) is not None


def _join_globs(globs: Iterable[str]) -> re.Pattern[str] | None:
    """Joins globs to one pattern for the ends of paths, because the working folder of a command is not known.

    A glob without letters would match every file and is left out: the scripts of the folder count already.
    """
    ends: list[str] = []
    for one in globs:
        last = one.rpartition("/")[2]
        ends += [end for end in (one.removeprefix("./"), last) if re.search(r"\w", end)]
    try:
        patterns = dict.fromkeys(fnmatch.translate(end) for one in ends for end in (one, f"*/{one}"))
        return re.compile("|".join(patterns)) if patterns else None
    except re.error:
        return None


def _find_paths(text: str, bases: Sequence[Path], folder: Path) -> Iterator[Path]:
    """Yields every word that may be a path in the folder, as written and without its quotes."""
    words = {word for one in (text, _QUOTES.sub("", text)) for word in _BETWEEN_WORDS.split(one)}
    for word in sorted(words):
        for base in bases if word and "\0" not in word and len(word) < 4_096 else ():
            path = base / word
            if path.is_relative_to(folder) and path != folder:
                yield path


def _walk(folder: Path, plain: str) -> tuple[list[str], bool]:
    """Returns the files of a folder as relative paths, those at the top first, and whether these are all.

    Other checkouts, folders of installed programs and links to folders are left out, unless the text names them.
    """
    waiting, seen, files, left = deque([""]), set[tuple[int, int]](), list[str](), MOST_ENTRIES
    while waiting:
        inside = waiting.popleft()
        try:
            at = os.stat(folder / inside)  # noqa: PTH116
            with os.scandir(folder / inside) as entries:
                found = sorted(islice(entries, left + 1), key=lambda entry: entry.name)
        except OSError:
            continue
        is_own = not inside or inside.rpartition("/")[2].casefold() in plain
        if (at.st_dev, at.st_ino) in seen or (not is_own and any(entry.name == ".git" for entry in found)):
            continue
        seen.add((at.st_dev, at.st_ino))
        left -= len(found)
        if left < 0:
            return files, False
        for entry in found:
            path = f"{inside}/{entry.name}" if inside else entry.name
            is_named = entry.name.casefold() in plain
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=is_named):
                    if is_named or entry.name not in _NOT_WALKED:
                        waiting.append(path)
                elif entry.is_file():
                    files.append(path)
    return files, True


def _is_script(folder: Path, path: str) -> bool:
    """Whether a file looks like a script: by its mode, or by its name."""
    suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122
    if not suffix or suffix in _SHELL_SUFFIXES:
        return True
    try:
        return bool(os.stat(f"{folder}/{path}").st_mode & 0o111)  # noqa: PTH116
    except OSError:
        return False


def _describe_files(paths: Iterable[Path], folder: Path) -> Iterator[str]:
    """Yields one line per regular file that can be read: path, real path and digest."""
    left = _MOST_BYTES
    for path in paths:
        try:
            fd = open_regular(path)
        except (OSError, ValueError):
            continue
        with os.fdopen(fd, "rb") as file, suppress(OSError):
            found = os.fstat(fd)
            content = file.read(left)
            # Beyond the limit, size and time count instead of content: this runs with every command.
            rest = f"{found.st_size} {found.st_ctime_ns}" if found.st_size > len(content) else ""
            left -= len(content)
            leads = os.path.relpath(os.path.realpath(path), folder)
            where = os.path.relpath(path, folder)
            yield f"{where} {leads} {hashlib.sha256(content).hexdigest()} {rest}"
