"""What all commands that show something share: colour or none, the width, and text made safe for a terminal.

Text that a model, a tool or a file wrote cannot steer the terminal (`screen`). `printable`, `one_line` and `exact` make
it fit for a place: as lines, on one line, or with nothing in it unseen.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from typing import TextIO

from reverie.cli.screen import named, printable, styled
from reverie.settings.loading import wants_colour

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

    def bold(self, text: str) -> str:
        return self._styled(text, "1")

    def dim(self, text: str) -> str:
        return self._styled(text, "2")

    def italic(self, text: str) -> str:
        return self._styled(text, "3")

    def good(self, text: str) -> str:
        return self._styled(text, "32")

    def bad(self, text: str) -> str:
        return self._styled(text, "31")

    def warning(self, text: str) -> str:
        return self._styled(text, "33")

    def accent(self, text: str) -> str:
        return self._styled(text, "36")


def paint_for(stream: TextIO) -> Paint:
    """The styles of this stream, or none: see `wants_colour`."""
    return Paint(wants_colour(stream.isatty()))


def columns(most: int = MOST_COLUMNS) -> int:
    """How wide to write: the terminal's width, at most `most`, since long lines are hard to read."""
    return max(20, min(shutil.get_terminal_size((80, 24)).columns, most))


def one_line(text: str, most: int = 10_000) -> str:
    """The same on one line, cut to `most` columns."""
    return cut(" ".join(printable(text[: most * 4 + 100]).split()), most)


def exact(text: str) -> str:
    """Text that somebody is asked to approve: as `printable`, and with invisible characters named as well."""
    return _INVISIBLE.sub(named, printable(text))


def cut(text: str, most: int) -> str:
    """At most `most` columns, with an ellipsis where something is missing."""
    if len(text) <= most and (text.isascii() or width(text) <= most):
        return text
    used, kept = 0, list[str]()
    for char in text:
        used += width(char)
        if used > most - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def width(text: str) -> int:
    """Columns that a terminal gives to this text."""
    if text.isascii():
        return len(text)
    # By the standard library's tables: a listing must not pay for a library of its own.
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(char) in ("Mn", "Me", "Cf") else 2 if east_asian_width(char) in "WF" else 1 for char in text
    )


def pad(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width(text))


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
