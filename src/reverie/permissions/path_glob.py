"""Path patterns: `*`, `?`, `[a-z]`, `{a,b}` and `**` for any number of folders. Never looks at the disk.

The Glob tool and the permission rules share them. Matching works component by component, so its time stays linear for
any pattern that a model may send.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate

from reverie.quick import dataclass

MAX_ALTERNATIVES = 256
MAX_PATTERN = 4_096
"""In characters: a path cannot be longer."""
_MAGIC = frozenset("*?[{")
_ANY_DEPTH = "**"
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A compiled pattern; `matches` takes a relative path with `/` between its components."""

    alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]

    def matches(self, path: str) -> bool:
        components = path.split("/")
        return any(_match_components(parts, components) for parts in self.alternatives)


def compile_glob(pattern: str, *, anchored: bool | None = None) -> PathGlob:
    """Compiles a pattern that is relative to some folder; ValueError if it means more than `MAX_ALTERNATIVES` patterns.

    A pattern without a slash matches at any depth, as in .gitignore, unless `anchored` says otherwise.
    """
    if not ("/" in pattern if anchored is None else anchored):
        pattern = f"{_ANY_DEPTH}/{pattern}"
    expanded = expand_braces(pattern.removeprefix("./").lstrip("/"))
    return PathGlob(tuple(_compile_parts(one.split("/")) for one in expanded))


def split_literal(pattern: str) -> tuple[str, str]:
    """Splits a pattern into its first folders without wildcards and the rest: `/a/b/*.py` is (`/a/b`, `*.py`)."""
    components = pattern.split("/")
    magic = (at for at, component in enumerate(components[:-1]) if _MAGIC & set(component))
    index = next(magic, len(components) - 1)
    folder = "/".join(components[:index])
    return ("/" if pattern.startswith("/") and not folder else folder, "/".join(components[index:]))


def _compile_parts(parts: Sequence[str]) -> tuple[re.Pattern[str] | None, ...]:
    """One regular expression per component; None means `**`."""
    if parts[-1] == "":  # `src/` means everything in it
        parts = [*parts[:-1], _ANY_DEPTH]
    out: list[re.Pattern[str] | None] = []
    for part in parts:
        if part == _ANY_DEPTH:
            if not out or out[-1] is not None:
                out.append(None)
        else:
            out.append(re.compile(translate(part.replace("[^", "[!"))))
    if out[-1] is None:  # `src/**` means everything in the folder, not the folder itself
        out.append(re.compile(translate("*")))
    return tuple(out)


def _match_components(parts: tuple[re.Pattern[str] | None, ...], components: Sequence[str]) -> bool:
    """Greedy, with one step back: the last `**` may always take one more component, like `*` in a string."""
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
    """Returns every pattern that a pattern with `{a,b}` means; ValueError for more than `MAX_ALTERNATIVES`."""
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"it is longer than {MAX_PATTERN:,} characters")
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop(0)
        group = _find_group(one)
        if group is None:
            done.append(one)
        else:
            start, end, choices = group
            waiting = [one[:start] + choice + one[end:] for choice in choices] + waiting
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ValueError(f"its braces mean more than {MAX_ALTERNATIVES} patterns")
    return done


def _find_group(text: str) -> tuple[int, int, list[str]] | None:
    """The first `{a,b}` with its bounds and choices. Braces without an end or without a comma are plain text."""
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
