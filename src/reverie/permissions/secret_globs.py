"""Whether a shell glob may match a secret file, by the files on disk and by the list of secret names.

The disk alone is not enough (the file may appear a moment later), and the list alone would stop `cat src/*`. So a glob
that spells out part of a secret name always counts, and a wide glob counts if it matches such a file now. Brackets may
be read as wider than they are, never as narrower.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase, translate
from functools import cache
from pathlib import Path

from reverie.permissions.sensitive import SENSITIVE_NAMES, SENSITIVE_PATHS, is_sensitive_name
from reverie.quick import dataclass

_LONGEST = 20
_SPELLED = 2  # a glob with this many characters of a secret name means that name
_SIMPLE_BRACKET = re.compile(r"\[[A-Za-z0-9._-]+\]")
# Many files have these endings, so the ending of `secrets.json` does not count.
_ORDINARY = re.compile(r"\.(?:json|toml|ya?ml|y\*ml|xml|csv|ini|conf|cfg|txt|properties|db|dat|cnf|\*)\Z")
_MANY, _ONE, _SOME = "*", "?", "["


@dataclass(slots=True)
class Budget:
    """How many names on disk may be checked for one command."""

    left: int

    def spend(self) -> None:
        """Uses one; raises `TooMuch` when none is left."""
        self.left -= 1
        if self.left < 0:
            raise TooMuch


class TooMuch(Exception):
    """There are more files than can be checked quickly."""


@dataclass(frozen=True, slots=True)
class Part:
    """One component of a path: `tokens` are literal characters, or wildcards marked in `wild` at the same place."""

    text: str
    tokens: str
    wild: frozenset[int]

    @property
    def is_glob(self) -> bool:
        return bool(self.wild)

    def can_become(self, name: str) -> bool:
        """Whether the shell can expand it to this name, or it is this name."""
        if not self.is_glob:
            return name == self.text
        first = self.tokens[0] if 0 in self.wild else ""
        if name.startswith(".") and first in (_MANY, _ONE) and first:
            return False  # only a literal dot matches a dot at the beginning
        return _compile_part(self).match(name) is not None

    def may_name_secret(self) -> bool:
        """Whether it spells out part of a secret name and can become that name."""
        return any(self.count_spelled(name) >= _SPELLED for name in SENSITIVE_NAMES)

    def count_spelled(self, name: str) -> int:
        """Counts the most characters of a secret name that it can spell out; -1 if it cannot become that name."""
        if not self.is_glob:
            return len(name) if fnmatchcase(self.text.lower(), name) else -1
        first = self.tokens[0] if 0 in self.wild else ""
        if name.startswith(".") and first in (_MANY, _ONE) and first:
            return -1
        found = -1 if self._is_ruled_out(name) else _count_overlap(self.tokens.lower(), self.wild, name)
        # A literal dot at the beginning is enough: few files begin with one.
        return max(found, _SPELLED) if found > 0 and self.tokens[0] == "." and name.startswith(".") else found

    def _is_ruled_out(self, name: str) -> bool:
        """Rules out quickly: another first or last letter, or a letter that is not in the name."""
        last = len(self.tokens) - 1
        ends = ((0, 0), (last, -1))
        if any(at not in self.wild and name[end] not in ("*", self.tokens[at].lower()) for at, end in ends):
            return True
        return "*" not in name and any(
            char.lower() not in name for index, char in enumerate(self.tokens) if index not in self.wild
        )


def split_parts(text: str, globs: frozenset[int]) -> list[Part]:
    """Splits a word into components as the shell reads it; `globs` are the places of its active glob characters."""
    parts: list[Part] = []
    start = 0
    for piece in text.split("/"):
        live = frozenset(index - start for index in globs if start <= index < start + len(piece))
        start += len(piece) + 1
        if piece not in ("", "."):
            parts.append(_read_part(piece, live))
    return parts


def expand(folder: Path, parts: list[Part], budget: Budget) -> Iterator[Path]:
    """Yields the existing paths that the shell can expand these components to."""
    if not parts:
        yield folder
        return
    part, *rest = parts
    if not part.is_glob:
        if rest or os.path.lexists(folder / part.text):
            yield from expand(folder / part.text, rest, budget)
        return
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return
    for name in names:
        budget.spend()
        if part.can_become(name):
            yield from expand(folder / name, rest, budget)


def may_name_secret(parts: list[Part]) -> bool:
    """Whether the components spell out a secret name, whatever is on disk."""
    if any(part.may_name_secret() if part.is_glob else is_sensitive_name(part.text) for part in parts):
        return True
    for path in SENSITIVE_PATHS:
        wanted = [name or "/" for name in path.split("/")]
        for start in range(len(parts) - len(wanted) + 1):
            pairs = list(zip(parts[start:], wanted, strict=False))
            spelled = [part.count_spelled(name) for part, name in pairs]
            needed = [min(_SPELLED, len(name.replace("*", ""))) for name in wanted]
            if all(found >= least for found, least in zip(spelled, needed, strict=True)):
                return True
    return False


def _read_part(piece: str, live: frozenset[int]) -> Part:
    tokens: list[str] = []
    wild: set[int] = set()
    at = 0
    while at < len(piece):
        if at in live:
            wild.add(len(tokens))
            bracket = _SIMPLE_BRACKET.match(piece, at) if piece[at] == "[" else None
            if piece[at] == "[" and bracket is None:  # the rest may belong to the bracket
                tokens.append(_MANY)
                break
            tokens.append(_SOME if bracket else piece[at])
            at = bracket.end() if bracket else at + 1
        else:
            tokens.append(piece[at])
            at += 1
    if len(tokens) > 2 * _LONGEST:  # wider than the original, which is safe for names this short
        cut = len(tokens) - _LONGEST
        wild = (
            {index for index in wild if index < _LONGEST}
            | {_LONGEST}
            | {i - cut + _LONGEST + 1 for i in wild if i >= cut}
        )
        tokens = [*tokens[:_LONGEST], _MANY, *tokens[cut:]]
    return Part(piece, "".join(tokens), frozenset(wild))


@cache
def _compile_part(part: Part) -> re.Pattern[str]:
    shape = "".join(
        ("*" if char == _MANY else "?") if index in part.wild else f"[{char}]" if char in "*?[" else char
        for index, char in enumerate(part.tokens)
    )
    return re.compile(translate(shape), re.IGNORECASE)


def _count_overlap(tokens: str, wild: frozenset[int], name: str) -> int:
    """Counts the most characters of `name` (may contain `*`) that `tokens` spell out in a text both match; or -1."""
    ordinary = _ORDINARY.search(name)
    telling = ordinary.start() if ordinary else len(name)
    best = [[-1] * (len(name) + 1) for _ in range(len(tokens) + 1)]
    best[-1][-1] = 0
    for i in range(len(tokens), -1, -1):
        for j in range(len(name), -1, -1):
            many_here = i < len(tokens) and i in wild and tokens[i] == _MANY
            many_there = j < len(name) and name[j] == "*"
            found = best[i][j]
            if many_here:
                found = max(found, best[i + 1][j])
            if many_here and j < len(name):
                found = max(found, best[i][j + 1])
            if many_there:
                found = max(found, best[i][j + 1])
            if many_there and i < len(tokens):
                found = max(found, best[i + 1][j])
            if i < len(tokens) and j < len(name) and not many_here and not many_there:
                is_wild = i in wild
                if (is_wild or tokens[i] == name[j]) and best[i + 1][j + 1] >= 0:
                    spelled = not (is_wild and tokens[i] == _ONE) and j < telling
                    found = max(found, best[i + 1][j + 1] + spelled)
            best[i][j] = found
    return best[0][0]
