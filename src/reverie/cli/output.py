"""Formatting for all commands: colour, width, tables, numbers, and text that is safe for a terminal.

Text from a model, a tool or a file cannot steer the terminal (see `screen`). `printable` keeps lines, `one_line` makes
one line, `exact` also names invisible characters.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from functools import partial, partialmethod
from typing import TYPE_CHECKING, TextIO

import click

from reverie.cli.screen import CLEAR_LINE, STYLE, json_text, name_character, printable, style
from reverie.quick import dataclass
from reverie.settings.loading import wants_colour
from reverie.text.columns import cut, width
from reverie.text.columns import table as columns_of_text

if TYPE_CHECKING:
    from reverie.settings import Settings

MOST_COLUMNS = 120
_INVISIBLE = re.compile(
    r"[\u00ad\u115f\u1160\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e007f]"
)
_UNITS = ("bytes", "KB", "MB", "GB", "TB")


_ON_WHITE = {"33": "35", "36": "34"}


@dataclass(frozen=True, slots=True)
class Paint:
    """Styles by meaning, in the terminal's own palette, so that they suit light and dark."""

    on: bool
    light: bool = False
    """Blue and magenta instead of cyan and yellow, which many palettes show pale on white."""

    def _style(self, text: str, code: str) -> str:
        return style(text, _ON_WHITE.get(code, code) if self.light else code) if self.on and text else text

    bold = partialmethod(_style, code="1")
    dim = partialmethod(_style, code="2")
    italic = partialmethod(_style, code="3")
    underlined = partialmethod(_style, code="4")
    bad = partialmethod(_style, code="31")
    good = partialmethod(_style, code="32")
    warning = partialmethod(_style, code="33")
    accent = partialmethod(_style, code="36")


def paint_for(stream: TextIO) -> Paint:
    """The styles for this stream (see `wants_colour`)."""
    return Paint(wants_colour(stream.isatty()))


def get_paint(*, err: bool = False) -> Paint:
    """The styles for standard output or standard error."""
    return paint_for(sys.stderr if err else sys.stdout)


def get_theme(settings: Settings, theme: str | None) -> Paint:
    """The styles of the chat: as `theme` says, else as the settings say."""
    return replace(get_paint(), light=(theme or settings.chat.theme) == "light")


def say(text: str = "", *, err: bool = False) -> None:
    click.echo(text, err=err, color=get_paint(err=err).on)


def say_all(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def answer(as_json: bool, value: object, *lines: str) -> None:
    """Prints one JSON document for a program, or lines for the user."""
    say_all([json_text(value, indent=2)] if as_json else lines)


def warn(text: str) -> None:
    """Prints a wrapped warning on standard error."""
    say(wrap_hanging(text, f"{get_paint(err=True).warning('!')} ", 2), err=True)


def wrap(text: str, indent: int = 0, *, breaks: bool = True) -> list[str]:
    """The text in lines that fit the terminal behind an indent. `breaks`: break words that are too long."""
    import textwrap

    room = max(20, columns(100) - indent)
    return textwrap.wrap(one_line(text), room, break_on_hyphens=False, break_long_words=breaks) or [""]


def wrap_hanging(text: str, first: str, indent: int, *, breaks: bool = True) -> str:
    """A wrapped text that begins with `first`; the other lines are indented."""
    return first + f"\n{' ' * indent}".join(wrap(text, indent, breaks=breaks))


def diff_line(line: str, paint: Paint) -> str:
    """A line of a diff in its colour."""
    if line.startswith(("---", "+++", "@@")):
        return paint.dim(line)
    return paint.good(line) if line.startswith("+") else paint.bad(line) if line.startswith("-") else line


def say_dim(text: str, indent: int = 0) -> None:
    """Prints a wrapped text, dim and indented."""
    say_all(get_paint().dim(" " * indent + line) for line in wrap(text, indent))


def show_progress(text: str, *, ends_line: bool = False) -> None:
    """Replaces the progress line on standard error. Without a terminal, only the last text of a line is written."""
    if ends_line or sys.stderr.isatty():
        click.echo(CLEAR_LINE + text, nl=ends_line, err=True)


def can_ask() -> bool:
    """Whether a user at a terminal can answer a question."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def has_terminal() -> bool:
    """Whether one of the standard streams is a terminal."""
    return any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def read_key(question: str) -> str:
    """Shows a question on the terminal and waits for one key. Keys that were pressed before do not answer it. Empty at
    the end of the input."""
    import os
    import termios
    import tty

    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)  # throws away what was typed before
        click.echo(question, nl=False, color=get_paint().on)
        return os.read(fd, 16).decode("utf-8", "replace").lower()
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def line_width(elsewhere: int = 10_000) -> int:
    """How long a line may be: as wide as the terminal, or `elsewhere` in a file or a pipe."""
    return columns() if sys.stdout.isatty() else elsewhere


def columns(most: int = MOST_COLUMNS) -> int:
    """The width of the terminal, at most `most`, because long lines are hard to read."""
    return max(20, min(shutil.get_terminal_size((80, 24)).columns, most))


def one_line(text: str, most: int = 10_000) -> str:
    """The text as `printable`, on one line, cut to `most` columns."""
    return cut(" ".join(printable(text[: most * 4 + 100]).split()), most)


def exact(text: str) -> str:
    """A text that the user is asked to approve: as `printable`, with invisible characters named too."""
    return _INVISIBLE.sub(name_character, printable(text))


def pad(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width(text))


def visible_width(text: str) -> int:
    """The columns of a text that may have styles."""
    return width(STYLE.sub("", text))


table = partial(columns_of_text, measure=visible_width)


def keep_end(text: str, most: int) -> str:
    """At most `most` columns; an ellipsis shows that the beginning is missing."""
    return text if width(text) <= most else "…" + text[-(most - 1) :]


def format_seconds(duration: float) -> str:
    """A duration: `0.2 s`, `14 s`, `3 min 5 s`."""
    if duration < 9.95:
        return f"{duration:.1f} s"
    whole = round(duration)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def format_age(moment: float, now: float | None = None) -> str:
    """How long ago: `5 s`, `3 h`, `12 d`."""
    passed = max(0.0, (time.time() if now is None else now) - moment)
    for size, name in ((86_400 * 365, "y"), (86_400 * 30, "mo"), (86_400, "d"), (3_600, "h"), (60, "min")):
        if passed >= size:
            return f"{int(passed // size)} {name}"
    return f"{int(passed)} s"


def format_size(count: int) -> str:
    """A number of bytes: `12 bytes`, `1.5 KB`."""
    number, unit = float(count), 0
    while number >= 1_000 and unit < len(_UNITS) - 1:
        number, unit = number / 1_000, unit + 1
    return f"{count} {_UNITS[0]}" if unit == 0 else f"{number:.{0 if number >= 10 else 1}f} {_UNITS[unit]}"


def format_tokens(count: int) -> str:
    """A number of tokens: `950`, `12.3k`, `1.2M`."""
    for size_, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size_:
            number = count / size_
            return f"{number:.0f}{unit}" if number >= 100 or number.is_integer() else f"{number:.1f}{unit}"
    return str(count)


def plural(count: int, noun: str, many: str = "") -> str:
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"
