"""Path patterns as people write them: `*`, `?`, `[a-z]`, `{a,b}` and `**` for any number of folders.

The Glob tool and the permission rules use the same ones, so that a pattern means the same everywhere. Matching is done
component by component, which keeps it linear for any pattern a model may send. Never looks at the disk.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate

MAX_ALTERNATIVES = 256
MAX_PATTERN = 4_096
"""Characters: no path is longer."""
_MAGIC = frozenset("*?[{")
_ANY_DEPTH = "**"
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A compiled pattern; `matches` takes a relative path with `/` between its components."""

    alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]

    def matches(self, path: str) -> bool:
        components = path.split("/")
        return any(_matches(parts, components) for parts in self.alternatives)


def compile_glob(pattern: str, *, anchored: bool | None = None) -> PathGlob:
    """Reads a pattern relative to some folder. One without a slash matches at any depth below it, as in .gitignore,
    unless `anchored` says otherwise.

    Raises ValueError when its braces stand for more than `MAX_ALTERNATIVES` patterns.
    """
    if not ("/" in pattern if anchored is None else anchored):
        pattern = f"{_ANY_DEPTH}/{pattern}"
    expanded = expand_braces(pattern.removeprefix("./").lstrip("/"))
    return PathGlob(tuple(_compile_parts(one.split("/")) for one in expanded))


def split_literal(pattern: str) -> tuple[str, str]:
    """Splits a pattern into the folders that hold no magic and the rest: `/a/b/*.py` is (`/a/b`, `*.py`)."""
    components = pattern.split("/")
    magic = (at for at, component in enumerate(components[:-1]) if _MAGIC & set(component))
    index = next(magic, len(components) - 1)
    folder = "/".join(components[:index])
    return ("/" if pattern.startswith("/") and not folder else folder, "/".join(components[index:]))


def _compile_parts(parts: Sequence[str]) -> tuple[re.Pattern[str] | None, ...]:
    """One regular expression a component; None stands for `**`."""
    if parts[-1] == "":  # `src/` means all that is in it
        parts = [*parts[:-1], _ANY_DEPTH]
    out: list[re.Pattern[str] | None] = []
    for part in parts:
        if part == _ANY_DEPTH:
            if not out or out[-1] is not None:
                out.append(None)
        else:
            out.append(re.compile(translate(part.replace("[^", "[!"))))
    if out[-1] is None:  # `src/**` is what lies inside, not the folder itself
        out.append(re.compile(translate("*")))
    return tuple(out)


def _matches(parts: tuple[re.Pattern[str] | None, ...], components: Sequence[str]) -> bool:
    """Greedy with one step back, as for `*` in a string: the last `**` seen may always swallow one component more."""
    part = component = 0
    retry_part, retry_component = -1, 0
    while component < len(components):
        regex = parts[part] if part < len(parts) else _NOTHING
        if regex is None:
            retry_part, retry_component = part, component
            part += 1
        elif regex.match(components[component]):
            part, component = part + 1, component + 1
        elif retry_part >= 0:
            retry_component += 1
            part, component = retry_part + 1, retry_component
        else:
            return False
    return part == len(parts)


def expand_braces(pattern: str) -> list[str]:
    """Every pattern that one with `{a,b}` stands for; ValueError beyond `MAX_ALTERNATIVES`."""
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"it is longer than {MAX_PATTERN:,} characters")
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop(0)
        group = _first_group(one)
        if group is None:
            done.append(one)
        else:
            start, end, choices = group
            waiting = [one[:start] + choice + one[end:] for choice in choices] + waiting
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ValueError(f"its braces stand for more than {MAX_ALTERNATIVES} patterns")
    return done


def _first_group(text: str) -> tuple[int, int, list[str]] | None:
    """The first `{a,b}` with its bounds and choices; braces that do not close, or hold no comma, are plain text."""
    for start, char in enumerate(text):
        if char != "{":
            continue
        depth, cuts = 0, [start]
        for at in range(start, len(text)):
            if text[at] == "{":
                depth += 1
            elif text[at] == "}":
                depth -= 1
            elif text[at] == "," and depth == 1:
                cuts.append(at)
            if depth == 0:
                if len(cuts) == 1:
                    break
                return start, at + 1, [text[a + 1 : b] for a, b in zip(cuts, [*cuts[1:], at], strict=True)]
    return None
