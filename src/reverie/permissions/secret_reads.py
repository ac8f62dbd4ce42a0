"""Checks whether a read-only shell command would open a file with secrets. It runs after the read-only check.

Listing names (ls, stat, find) is fine; opening a file is not. Operands, globs, pattern files and the trees of a
recursive grep are all compared with one list. A command that may reach a secret counts as reading one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.secret_globs import Budget, Part, TooMuch, expand, may_name_secret, split_parts
from reverie.permissions.sensitive import is_sensitive, may_be_sensitive
from reverie.permissions.shell.options import Arguments, read_arguments
from reverie.permissions.shell.programs import OPTIONS, is_recursive, opened_by
from reverie.permissions.shell.words import SimpleCommand, Word, read_words
from reverie.quick import dataclass
from reverie.regular_files import special_kind

MOST_NAMES = 50_000
_OPENS = frozenset({"cat", "head", "tail", "wc", "grep"})
_MOST_GLOBS = 50
_NULL = Path(os.devnull)
_INSTEAD = "name the files you need, or use the Grep tool, which skips such files"


def why_secret(command: str, cwd: Path, most: int = MOST_NAMES) -> str | None:
    """Returns one sentence that names the secret file a read-only command would open; None if there is none.

    At most `most` names are checked on disk. A command that needs more counts as reading a secret.
    """
    try:
        reading = read_words(command.rstrip("\n"))
        words = [word for simple in reading.commands for word in simple.words]
        if sum(bool(word.globs) for word in words) > _MOST_GLOBS:
            return f"The command has more than {_MOST_GLOBS} globs, so it is not clear what it would read."
        budget = Budget(most)
        for simple in reading.commands:
            if found := find_secret(simple, cwd, budget):
                return explain_secret(simple.words[0].text, found)
    except TooMuch:
        return f"There are too many files to check whether the command would read one with secrets; {_INSTEAD}."
    except NotReadOnly as refusal:
        return f"It is not clear what the command would read, because {refusal}."
    return None


def explain_secret(program: str, found: str) -> str:
    return f"{program} would read {found}, which by its name may hold secrets; {_INSTEAD}."


def find_secret(simple: SimpleCommand, cwd: Path, budget: Budget) -> str | None:
    """Finds the secret that one read-only program would open; None if there is none."""
    program, *rest = simple.words
    if program.text not in _OPENS:
        return None
    arguments = read_arguments(program.text, tuple(rest), OPTIONS[program.text])
    if arguments.only_informs:
        return None
    words = opened_by(program.text, arguments)
    walk = Walk.of(arguments) if program.text == "grep" and is_recursive(arguments) else None
    if walk is not None and (secret := walk.find_named_secret()):
        return secret
    return find_secret_word(words, cwd, budget, walk)


def find_secret_word(words: Sequence[Word], cwd: Path, budget: Budget, walk: Walk | None = None) -> str | None:
    """Finds a word that names a secret file, or a folder with one that `walk` would read; None if there is none.

    Raises `NotReadOnly` for a device or a pipe, also behind a link: reading it may never end.
    """
    for word in words:
        start, parts = _split_word(word, cwd)
        if may_name_secret([*map(_make_literal, start.parts), *parts]):
            return clip(word.raw)
        for path in expand(start, parts, budget):
            real = Path(os.path.realpath(path))
            if is_sensitive(path) or is_sensitive(real):
                return clip(str(path))
            if real != _NULL and (kind := special_kind(real)) is not None:
                raise NotReadOnly(f"{clip(str(path))} leads to {kind}")
            if walk is not None and (inside := walk.find_secret_below(real, budget)):
                return clip(inside)
    return None


def _split_word(word: Word, cwd: Path) -> tuple[Path, list[Part]]:
    """Splits a word into the folder where it starts and its components from there."""
    text, globs = word.text, word.globs
    if word.raw.startswith("~"):
        home = Path.home()
        return home, split_parts(text[1:], frozenset(index - 1 for index in globs))
    return Path("/") if text.startswith("/") else cwd, split_parts(text, globs)


def _make_literal(name: str) -> Part:
    return Part(name, name, frozenset())


@dataclass(frozen=True, slots=True)
class Walk:
    """The files that a recursive grep searches. Filters that are not simple count as if they let everything through."""

    follows: bool
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    exclude_dir: tuple[str, ...] = ()

    @staticmethod
    def of(arguments: Arguments) -> Walk:
        def list_values(option: str) -> tuple[str, ...]:
            return tuple(value.text for name, value in arguments.values if name == option)

        follows = not arguments.options.isdisjoint({"-R", "--dereference-recursive"})
        return Walk(follows, list_values("--include"), list_values("--exclude"), list_values("--exclude-dir"))

    def find_named_secret(self) -> str | None:
        """Finds an --include that asks for secrets."""
        for pattern in self.include:
            wild = frozenset(index for index, char in enumerate(pattern) if char in "*?[")
            if may_name_secret(split_parts(pattern, wild)):
                return clip(f"files like {pattern}")
        return None

    def find_secret_below(self, root: Path, budget: Budget) -> str | None:
        """Finds a secret file below `root` that grep would search; None if there is none or `root` is not a folder."""
        seen = set[str]()
        waiting = [str(root)]
        while waiting:
            folder = waiting.pop()
            if self.follows:
                real = os.path.realpath(folder)
                if real in seen:
                    continue
                seen.add(real)
            all_secret = is_sensitive(Path(folder))
            for entry in _list_entries(folder):
                budget.spend()
                if entry.is_symlink() and not self.follows:
                    continue
                if entry.is_dir():
                    if entry.name != ".git" and not _is_match(entry.name, self.exclude_dir):
                        waiting.append(entry.path)
                elif self._may_search(entry.name) and (all_secret or _is_secret(entry)):
                    return entry.path
        return None

    def _may_search(self, name: str) -> bool:
        """Whether grep may search this file. With both kinds of filter the order decides, so the answer is yes."""
        if self.include and not self.exclude:
            return any("[" in pattern or "\\" in pattern for pattern in self.include) or _is_match(name, self.include)
        return bool(self.include) or not _is_match(name, self.exclude)


def _is_secret(entry: os.DirEntry[str]) -> bool:
    if may_be_sensitive(entry.name) and is_sensitive(Path(entry.path)):
        return True
    return entry.is_symlink() and is_sensitive(Path(os.path.realpath(entry.path)))


def _is_match(name: str, patterns: Sequence[str]) -> bool:
    return any("[" not in one and "\\" not in one and fnmatchcase(name, one) for one in patterns)


def _list_entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:  # not a folder or not readable, so grep cannot search it either
        return
