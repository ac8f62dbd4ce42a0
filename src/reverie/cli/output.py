"""What all commands that show something share: colour or none, the width, and text made safe for a terminal.

Text that a model, a tool or a file wrote cannot steer the terminal (`screen`). `printable`, `one_line` and `exact` make
it fit for a place: as lines, on one line, or with nothing in it unseen.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial, partialmethod
from typing import TextIO

import click

from reverie.cli.screen import STYLE, json_text, named, printable, styled
from reverie.settings.loading import wants_colour
from reverie.text.columns import cut, width
from reverie.text.columns import table as columns_of_text

MOST_COLUMNS = 120
_INVISIBLE = re.compile(
    r"[\u00ad\u115f\u1160\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e007f]"
)
_UNITS = ("bytes", "KB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Paint:
    """Styles by meaning. All are names of the terminal's own palette, so they suit light and dark alike."""

    on: bool

    def _styled(self, text: str, code: str) -> str:
        return styled(text, code) if self.on and text else text

    bold = partialmethod(_styled, code="1")
    dim = partialmethod(_styled, code="2")
    bad = partialmethod(_styled, code="31")
    good = partialmethod(_styled, code="32")
    warning = partialmethod(_styled, code="33")
    accent = partialmethod(_styled, code="36")


def paint_for(stream: TextIO) -> Paint:
    """The styles of this stream, or none: see `wants_colour`."""
    return Paint(wants_colour(stream.isatty()))


def painted(*, err: bool = False) -> Paint:
    """The styles of standard output, or of standard error."""
    return paint_for(sys.stderr if err else sys.stdout)


def say(text: str = "", *, err: bool = False) -> None:
    click.echo(text, err=err, color=painted(err=err).on)


def say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def answer(as_json: bool, value: object, *lines: str) -> None:
    """One JSON document for a program, or lines for a person."""
    say_all([json_text(value, indent=2)] if as_json else lines)


def warn(text: str) -> None:
    """Something to know, on standard error, wrapped."""
    say(hanging(text, f"{painted(err=True).warning('!')} ", 2), err=True)


def wrapped(text: str, indent: int = 0, *, breaks: bool = True) -> list[str]:
    """Lines of a text as wide as the terminal, less an indent. `breaks`: also words that are longer than a line."""
    import textwrap

    room = max(20, columns(100) - indent)
    return textwrap.wrap(one_line(text), room, break_on_hyphens=False, break_long_words=breaks) or [""]


def hanging(text: str, first: str, indent: int, *, breaks: bool = True) -> str:
    """A wrapped text behind what its first line begins with; the others are indented by as much."""
    return first + f"\n{' ' * indent}".join(wrapped(text, indent, breaks=breaks))


def diff_line(line: str, paint: Paint) -> str:
    """A line of a difference in its colour."""
    if line.startswith(("---", "+++", "@@")):
        return paint.dim(line)
    return paint.good(line) if line.startswith("+") else paint.bad(line) if line.startswith("-") else line


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def line_width(elsewhere: int = 10_000) -> int:
    """How long a line may be: as wide as the terminal; into a file or a pipe, as long as it is, or `elsewhere`."""
    return columns() if sys.stdout.isatty() else elsewhere


def columns(most: int = MOST_COLUMNS) -> int:
    """How wide to write: the terminal's width, at most `most`, since long lines are hard to read."""
    return max(20, min(shutil.get_terminal_size((80, 24)).columns, most))


def one_line(text: str, most: int = 10_000) -> str:
    """The same on one line, cut to `most` columns."""
    return cut(" ".join(printable(text[: most * 4 + 100]).split()), most)


def exact(text: str) -> str:
    """Text that somebody is asked to approve: as `printable`, and with invisible characters named as well."""
    return _INVISIBLE.sub(named, printable(text))


def pad(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width(text))


def _shown_width(text: str) -> int:
    return width(STYLE.sub("", text))


table = partial(columns_of_text, measure=_shown_width)


def keep_end(text: str, most: int) -> str:
    """At most `most` columns, with an ellipsis where the beginning is missing."""
    return text if width(text) <= most else "…" + text[-(most - 1) :]


def seconds(duration: float) -> str:
    """A duration as people say it: `0.2 s`, `14 s`, `3 min 5 s`."""
    if duration < 9.95:
        return f"{duration:.1f} s"
    whole = round(duration)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def age(moment: float, now: float | None = None) -> str:
    """How long ago, in one unit."""
    passed = max(0.0, (time.time() if now is None else now) - moment)
    for size, name in ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3_600, "h"), (60, "min")):
        if passed >= size:
            return f"{int(passed // size)} {name}"
    return f"{int(passed)} s"


def size(count: int) -> str:
    """Bytes as people say them."""
    number, unit = float(count), 0
    while number >= 1_000 and unit < len(_UNITS) - 1:
        number, unit = number / 1_000, unit + 1
    return f"{count} {_UNITS[0]}" if unit == 0 else f"{number:.{0 if number >= 10 else 1}f} {_UNITS[unit]}"


def tokens(count: int) -> str:
    """Tokens in few characters: 950, 12.3k, 200k, 1.2M."""
    for size_, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size_:
            number = count / size_
            return f"{number:.0f}{unit}" if number >= 100 or number.is_integer() else f"{number:.1f}{unit}"
    return str(count)


def plural(count: int, noun: str, many: str = "") -> str:
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"
