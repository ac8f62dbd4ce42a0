"""Would a shell command that only reads open a file that holds secrets? The second question after the read-only check.

Listing names (ls, stat, find) is fine; opening a file is not. Operands, globs, files of patterns and the trees that a
recursive grep walks are all held against one list. What cannot be proven to miss every secret counts as reading one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.secret_globs import Budget, Part, TooMuch, expansions, names_secret, parts_of
from reverie.permissions.sensitive import is_sensitive, may_be_sensitive
from reverie.permissions.shell.options import Arguments, read_arguments
from reverie.permissions.shell.programs import OPTIONS, is_recursive, opened_by
from reverie.permissions.shell.words import SimpleCommand, Word, read_words

MOST_NAMES = 50_000
_OPENS = frozenset({"cat", "head", "tail", "wc", "grep"})
_MOST_GLOBS = 50
_INSTEAD = "name the files you need, or use the Grep tool, which passes such files over"


def why_secret(command: str, cwd: Path, most: int = MOST_NAMES) -> str | None:
    """None if a command that passed the read-only check opens no secret file; else one sentence that says which.

    At most so many names are looked at on disk; a command that needs more is not proven to miss every secret.
    """
    try:
        reading = read_words(command.rstrip("\n"))
        words = [word for simple in reading.commands for word in simple.words]
        if sum(bool(word.globs) for word in words) > _MOST_GLOBS:
            return f"The command holds more than {_MOST_GLOBS} globs, so it cannot be told what it would read."
        budget = Budget(most)
        for simple in reading.commands:
            if found := _secret(simple, cwd, budget):
                return f"{simple.words[0].text} would read {found}, which by its name may hold secrets; {_INSTEAD}."
    except TooMuch:
        return f"There are too many files to tell whether the command would read one that holds secrets; {_INSTEAD}."
    except NotReadOnly as refusal:
        return f"It cannot be told what the command would read, because {refusal}."
    return None


def _secret(simple: SimpleCommand, cwd: Path, budget: Budget) -> str | None:
    """What secret one program would open; None if none."""
    program, *rest = simple.words
    if program.text not in _OPENS:
        return None
    arguments = read_arguments(program.text, tuple(rest), OPTIONS[program.text])
    if arguments.only_informs:
        return None
    words = opened_by(program.text, arguments)
    walk = _Walk.of(arguments) if program.text == "grep" and is_recursive(arguments) else None
    if walk is not None and (secret := walk.names_secret()):
        return secret
    for word in words:
        start, parts = _place(word, cwd)
        if names_secret([*map(_literal, start.parts), *parts]):
            return clip(word.raw)
        for path in expansions(start, parts, budget):
            real = Path(os.path.realpath(path))
            if is_sensitive(path) or is_sensitive(real):
                return clip(str(path))
            if walk is not None and (inside := walk.secret_below(real, budget)):
                return clip(inside)
    return None


def _place(word: Word, cwd: Path) -> tuple[Path, list[Part]]:
    """Where a word starts from, and its components from there."""
    text, globs = word.text, word.globs
    if word.raw.startswith("~"):
        home = Path.home()
        return home, parts_of(text[1:], frozenset(index - 1 for index in globs))
    return Path("/") if text.startswith("/") else cwd, parts_of(text, globs)


def _literal(name: str) -> Part:
    return Part(name, name, frozenset())


@dataclass(frozen=True, slots=True)
class _Walk:
    """What a recursive grep looks into. Where its filters are not plain, they are taken to keep nothing out."""

    follows: bool
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    exclude_dir: tuple[str, ...]

    @staticmethod
    def of(arguments: Arguments) -> _Walk:
        def given(option: str) -> tuple[str, ...]:
            return tuple(value.text for name, value in arguments.values if name == option)

        follows = not arguments.options.isdisjoint({"-R", "--dereference-recursive"})
        return _Walk(follows, given("--include"), given("--exclude"), given("--exclude-dir"))

    def names_secret(self) -> str | None:
        """An --include that asks for secrets."""
        for pattern in self.include:
            wild = frozenset(index for index, char in enumerate(pattern) if char in "*?[")
            if names_secret(parts_of(pattern, wild)):
                return clip(f"files like {pattern}")
        return None

    def secret_below(self, root: Path, budget: Budget) -> str | None:
        """A secret file that it would search below a folder; None if there is none, or `root` is no folder."""
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
            for entry in _entries(folder):
                budget.spend()
                if entry.is_symlink() and not self.follows:
                    continue
                if entry.is_dir():
                    if entry.name != ".git" and not _fits(entry.name, self.exclude_dir):
                        waiting.append(entry.path)
                elif self._searches(entry.name) and (all_secret or _is_secret(entry)):
                    return entry.path
        return None

    def _searches(self, name: str) -> bool:
        """With both kinds of filter the order decides, which is more than this wants to know: then it searches."""
        if self.include and not self.exclude:
            return any("[" in pattern or "\\" in pattern for pattern in self.include) or _fits(name, self.include)
        return bool(self.include) or not _fits(name, self.exclude)


def _is_secret(entry: os.DirEntry[str]) -> bool:
    if may_be_sensitive(entry.name) and is_sensitive(Path(entry.path)):
        return True
    return entry.is_symlink() and is_sensitive(Path(os.path.realpath(entry.path)))


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any("[" not in one and "\\" not in one and fnmatchcase(name, one) for one in patterns)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:  # not a folder, or not ours to look into: then grep finds nothing either
        return
