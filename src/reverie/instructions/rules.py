"""Rules: files that apply everywhere, or, with `paths:` in their head, only to the files that match.

A rule with paths is shown when such a file is touched. Patterns are git's ignore patterns plus braces. Pure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.memory.frontmatter import split
from reverie.permissions.path_glob import expand_braces
from reverie.quick import dataclass
from reverie.text.patterns import late

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_PATTERNS = 200

_PATHS = late(r"paths[ \t]*:(?P<value>.*)", re.DOTALL)
_ITEM = late(r"[ \t]*-[ \t]+(?P<value>.*)", re.DOTALL)
_MARK = late(r"[,{}'\"]|[^\s,{}'\"]++")
_COMMENT = late(r"(?:^|[ \t])#.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ConditionalRule:
    """A rule for some files only."""

    path: Path
    base: Path  # the folder that its patterns are relative to
    patterns: tuple[str, ...]
    text: str


def split_rule(text: str) -> tuple[tuple[str, ...], str]:
    """Returns the patterns of a rule (none: it applies everywhere) and its text without the head."""
    front = split(text)
    if not front.present:
        return (), text
    return _patterns(front.lines)[:MAX_PATTERNS], front.body.lstrip("\n")


def match_rules(rules: Iterable[ConditionalRule], touched: Path, shown: Collection[Path] = ()) -> list[ConditionalRule]:
    """Returns the rules for a touched file, without those in `shown`, in order."""
    ways = dict.fromkeys((os.path.normpath(touched), os.path.realpath(touched)))
    found: list[ConditionalRule] = []
    for rule in rules:
        if rule.path in shown:
            continue
        prefix = f"{str(rule.base).rstrip('/')}/"
        inside = [way.removeprefix(prefix) for way in ways if way.startswith(prefix)]
        if any(gitignore(rule.patterns).match_file(name) for name in inside):
            found.append(rule)
    return found


@lru_cache(maxsize=256)
def gitignore(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    """Compiles patterns and expands braces. A pattern that git would not accept matches nothing."""
    from pathspec import GitIgnoreSpec

    good: list[str] = []
    for pattern in patterns:
        try:
            spread = expand_braces(pattern.removeprefix("./"))
            GitIgnoreSpec.from_lines(spread)
        except (ValueError, re.error):  # a range that runs backwards is an error of `re`
            continue
        good += spread
    return GitIgnoreSpec.from_lines(good)


def _patterns(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the patterns under `paths`, even unquoted ones: `*.py` is not valid YAML, but everybody writes it."""
    for number, line in enumerate(lines):
        key = _PATHS.match(line)
        if key is None:
            continue
        value = key["value"].strip()
        if value.startswith("["):
            value = " ".join([value, *map(_scalar, _until_next_key(lines[number + 1 :]))])
            value = _COMMENT.sub("", value).strip().removeprefix("[").removesuffix("]")
        else:
            value = _scalar(value)
        if value.strip():
            return tuple(filter(None, map(_scalar, _commas(value))))
        return tuple(filter(None, _items(lines[number + 1 :])))
    return ()


def _until_next_key(lines: Iterable[str]) -> Iterable[str]:
    return takewhile(lambda line: not re.match(r"[A-Za-z_][\w-]*[ \t]*:", line), lines)


def _items(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        item = _ITEM.match(line)
        if item is None:
            if line.strip() and not line.lstrip().startswith("#"):
                return
            continue
        yield _scalar(item["value"])


def _scalar(text: str) -> str:
    text = text.strip()
    if text[:1] in "'\"" and text[:1]:
        end = text.find(text[0], 1)
        if end > 0 and not _COMMENT.sub("", text[end + 1 :]).strip():
            return text[1:end]
    return _COMMENT.sub("", text).strip()


def _commas(text: str) -> list[str]:
    cuts, depth, quote, is_blank = [-1], 0, "", True
    for found in _MARK.finditer(text):
        char = found[0]
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and is_blank:
            quote = char
        elif char in "{}":
            depth = max(0, depth + (1 if char == "{" else -1))
        is_comma = char == "," and not depth and not quote
        if is_comma:
            cuts.append(found.start())
        is_blank = is_comma
    return [text[start + 1 : end] for start, end in pairwise([*cuts, len(text)])]
