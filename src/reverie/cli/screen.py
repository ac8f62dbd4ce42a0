"""The only way to the terminal, so that text from a file, a model or a server cannot steer it.

`guard` replaces standard output and standard error with a writer that makes control characters, escape sequences and
direction marks visible. It lets through those of `style` and `CLEAR_LINE`: they carry a random number of this process,
which nobody else can know. See decision 0027.
"""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import b64encode
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

from reverie.text.patterns import late

_CONTROL: Final = late(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e00ff]"
)
_KEY: Final = str(10**8 + int.from_bytes(os.urandom(4)) % (9 * 10**8))
_OURS: Final = late(rf"\x1b\[(?:(?P<style>[0-9]{{1,2}});{_KEY}m|{_KEY}K)")

STYLE: Final = late(rf"\x1b\[[0-9]{{1,2}};{_KEY}m")
"""What `style` puts around a text; it takes no columns."""
CLEAR_LINE: Final = f"\x1b[{_KEY}K"
"""Clears the line and moves to its beginning."""

HOLD: Final = "\x1b[?2026h"
"""A terminal that knows this shows nothing until `SHOW`, so that no half-drawn screen is seen."""
SHOW: Final = "\x1b[?2026l"


def erase_rows(count: int) -> str:
    """Moves up so many rows and erases them, one by one: tmux would keep a whole screen that is erased."""
    return "\r" + "\x1b[A\x1b[2K" * count


_MOST_COPIED: Final = 100_000  # characters of base64 that terminals take


def clipboard_sequence(text: str) -> str:
    """Puts a text into the clipboard of the terminal (OSC 52), also over SSH; empty if it is too long."""
    data = b64encode(text.encode("utf-8", "replace")).decode()
    return f"\x1b]52;c;{data}\x07" if len(data) <= _MOST_COPIED else ""


def style(text: str, code: str) -> str:
    """The text in one of the terminal's own styles."""
    return f"\x1b[{code};{_KEY}m{text}\x1b[0;{_KEY}m"


def printable(text: str) -> str:
    """The text with control characters made visible; line breaks and tabs stay."""
    return _CONTROL.sub(name_character, text.replace("\r\n", "\n"))


def name_character(found: re.Match[str]) -> str:
    """A sign or the number of an invisible character."""
    char = found[0]
    if char < "\x20":
        return chr(0x2400 + ord(char))
    return f"<U+{ord(char):04X}>"


def clean(text: str) -> str:
    """The text for the terminal: our own styles as escape sequences, the rest as `printable`."""
    if _KEY not in text:
        return printable(text)
    out, at = list[str](), 0
    for found in _OURS.finditer(text):
        out.append(printable(text[at : found.start()]))
        out.append("\r\x1b[K" if found["style"] is None else f"\x1b[{found['style']}m")
        at = found.end()
    return "".join([*out, printable(text[at:])])


class CleanStream:
    """A text stream that cleans what is written to it. It gives no access to the bytes below."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.raises: tuple[type[OSError], ...] = (OSError,)
        """Errors that end the command at once. Others are kept in `lost`, and the command finishes its work."""
        self.lost: OSError | None = None

    def write(self, text: str | bytes) -> int:
        """Writes text, or UTF-8 bytes: click writes completions as bytes."""
        shown = clean(text if isinstance(text, str) else text.decode("utf-8", "replace"))
        self._attempt(lambda: self.stream.write(shown))
        return len(text)

    def flush(self) -> None:
        self._attempt(self.stream.flush)

    def _attempt(self, act: Callable[[], object]) -> None:
        if self.lost is not None:
            return
        try:
            act()
        except OSError as error:
            if isinstance(error, self.raises):
                raise
            self.lost = error

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.stream, name)


def guard() -> None:
    """Cleans from now on all text for standard output and standard error."""
    sys.stdout, sys.stderr = (cast(TextIO, CleanStream(raw_stream(stream))) for stream in (sys.stdout, sys.stderr))


def end_only_on(raises: tuple[type[OSError], ...]) -> None:
    """Lets only these output errors end the command from now on; after others it finishes its work."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, CleanStream):
            stream.raises = raises


def output_error() -> OSError | None:
    """The error of standard output, if there was one."""
    return sys.stdout.lost if isinstance(sys.stdout, CleanStream) else None


@contextmanager
def guard_streams() -> Generator[None]:
    """The same within a `with`, where another library has replaced the streams."""
    before = sys.stdout, sys.stderr
    guard()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw_stream(stream: TextIO) -> TextIO:
    """The stream below, for a library that draws the screen itself. Give it only cleaned text."""
    return stream.stream if isinstance(stream, CleanStream) else stream


def drop_output() -> None:
    """Drops output that cannot be written, so that Python does not report it again at exit."""
    stream = raw_stream(sys.stdout)
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def write_document(text: str) -> None:
    """Writes a text unchanged to a file or a pipe, cleaned to a terminal."""
    (sys.stdout if sys.stdout.isatty() else raw_stream(sys.stdout)).write(text)


def json_text(value: object, *, indent: int | None = None) -> str:
    """Readable JSON in which control characters are escaped."""
    return _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], json.dumps(value, ensure_ascii=False, indent=indent))
