"""The form of a file's text: encoding, byte order mark and line ends. An edit keeps all three.

Bytes that are not valid in the encoding stay the same. Never guesses an old code page.
"""

from __future__ import annotations

import codecs
import re

from reverie.errors import UserError
from reverie.quick import dataclass

_LONE = re.compile("[\ud800-\udfff]")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class TextForm:
    """The form of a file's text. `valid` is False if some bytes are not valid in this encoding."""

    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str = "\n"
    valid: bool = True


def find_encoding(start: bytes) -> tuple[bytes, str]:
    """Returns the byte order mark of a file, if it has one, and its encoding (without a mark: UTF-8)."""
    return next(((mark, name) for mark, name in _MARKS if start.startswith(mark)), (b"", "utf-8"))


def looks_binary(start: bytes) -> bool:
    """Whether the first bytes of a file are binary: they hold a NUL byte and no mark of UTF-16."""
    mark, encoding = find_encoding(start)
    return b"\0" in start and not (mark and encoding.startswith("utf-16"))


def decode(data: bytes) -> tuple[str, TextForm]:
    """Returns the text and its form. Bytes that are not UTF-8 become lone surrogates; `encode` reverses that."""
    mark, encoding = find_encoding(data)
    try:
        text = data[len(mark) :].decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
    except UnicodeDecodeError as error:
        raise UserError(f"its mark says {encoding.upper()}, but it is not (byte {error.start + len(mark)})") from error
    windows = text.count("\r\n")
    newline = "\r\n" if windows > text.count("\n") - windows else "\n"
    return text, TextForm(encoding, mark, newline, is_clean(text))


def encode(text: str, form: TextForm) -> bytes:
    """Returns the bytes of a text in the form of a file; raises UserError for a lone surrogate."""
    try:
        return form.mark + text.encode(form.encoding, "strict" if form.valid else "surrogateescape")
    except UnicodeEncodeError as error:
        raise UserError(
            f"The text holds half a character (U+{ord(text[error.start]):04X} at position {error.start}), "
            "which cannot be stored; send it again without that."
        ) from error


def with_newlines(text: str, newline: str) -> str:
    """Returns the text with one kind of line end."""
    plain = text.replace("\r\n", "\n")
    return plain if newline == "\n" else plain.replace("\n", newline)


def is_clean(text: str) -> bool:
    """Whether the text can be written as UTF-8."""
    return text.isascii() or _LONE.search(text) is None


def replace_surrogates(text: str) -> str:
    """Replaces every lone surrogate (a byte that is not UTF-8) with U+FFFD."""
    return text if is_clean(text) else _LONE.sub("\ufffd", text)
