"""The one way to the terminal: text that came from elsewhere cannot steer it, whatever command prints it.

`guard` puts a writer in the place of standard output and standard error. It makes every control character, escape
sequence and direction mark visible, except the few that `styled` and `CLEAR_LINE` made in this process: those carry a
number that each process draws for itself, so that no file, model or server can write them. See decision 0027.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, TextIO, cast

_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e00ff]"
)
_KEY: Final = str(10**8 + int.from_bytes(os.urandom(4)) % (9 * 10**8))
_OURS: Final = re.compile(rf"\x1b\[(?:(?P<style>[0-9]{{1,2}});{_KEY}m|{_KEY}K)")

STYLE: Final = re.compile(rf"\x1b\[[0-9]{{1,2}};{_KEY}m")
"""What `styled` puts around a text; without it, the text has its width."""
CLEAR_LINE: Final = f"\x1b[{_KEY}K"
"""Back to the beginning of the line, and the line empty: before a line that moves is written again."""


def styled(text: str, code: str) -> str:
    """The text in one of the terminal's own styles, and plain again after it."""
    return f"\x1b[{code};{_KEY}m{text}\x1b[0;{_KEY}m"


def printable(text: str) -> str:
    """Text with everything that would steer a terminal made visible; line breaks and tabs stay."""
    return _CONTROL.sub(named, text.replace("\r\n", "\n"))


def named(found: re.Match[str]) -> str:
    """A character that is not to be seen, by a sign or its number."""
    char = found[0]
    if char < "\x20":
        return chr(0x2400 + ord(char))
    return f"<U+{ord(char):04X}>"


def clean(text: str) -> str:
    """What the terminal gets: our own styles as it knows them, all else as `printable` shows it."""
    if _KEY not in text:
        return printable(text)
    out, at = list[str](), 0
    for found in _OURS.finditer(text):
        out.append(printable(text[at : found.start()]))
        out.append("\r\x1b[K" if found["style"] is None else f"\x1b[{found['style']}m")
        at = found.end()
    return "".join([*out, printable(text[at:])])


class CleanStream:
    """Stands for a text stream: what is written is cleaned first. There is no way past it to the bytes below."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.raises: tuple[type[OSError], ...] = (OSError,)
        """What ends the command at once; any other failure is kept in `lost`, and the command finishes its work."""
        self.lost: OSError | None = None

    def write(self, text: str | bytes) -> int:
        """Bytes, which click writes for completions, are text in UTF-8 here."""
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
    """From now on cleans whatever is written to standard output and standard error, by us or by a library."""
    sys.stdout, sys.stderr = (cast(TextIO, CleanStream(raw_stream(stream))) for stream in (sys.stdout, sys.stderr))


def finish_unread(raises: tuple[type[OSError], ...]) -> None:
    """From now on only these failures of our output end the command; it does its work whatever becomes of the rest."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, CleanStream):
            stream.raises = raises


def lost_output() -> OSError | None:
    """Why standard output could not be written, if it could not."""
    return sys.stdout.lost if isinstance(sys.stdout, CleanStream) else None


@contextmanager
def guarded() -> Generator[None]:
    """The same for a while: inside of something that has put its own streams in their place."""
    before = sys.stdout, sys.stderr
    guard()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw_stream(stream: TextIO) -> TextIO:
    """The stream below: for a library that draws the screen itself, and is given nothing but cleaned text."""
    return stream.stream if isinstance(stream, CleanStream) else stream


def abandon() -> None:
    """Nothing more comes: what standard output cannot take is dropped, so that the end of the process says nothing."""
    stream = raw_stream(sys.stdout)
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def document(text: str) -> None:
    """Writes a text that somebody asked for as it is: cleaned on a terminal, exact to a file or a pipe."""
    (sys.stdout if sys.stdout.isatty() else raw_stream(sys.stdout)).write(text)


def json_text(value: object, *, indent: int | None = None) -> str:
    """JSON that is readable and still safe on a terminal: what would steer it is written as an escape."""
    return _CONTROL.sub(lambda found: json.dumps(found[0])[1:-1], json.dumps(value, ensure_ascii=False, indent=indent))
