"""How a file writes its text: encoding, byte order mark and line ends, so that an edit changes nothing but the edit.

Bytes that are not valid in the file's encoding survive a round trip untouched. Never guesses a legacy code page.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from reverie.errors import UserError

_LONE = re.compile("[\ud800-\udfff]")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class TextForm:
    """The form of one file's text. `valid` is False if some bytes are not text in this encoding."""

    encoding: str = "utf-8"
    mark: bytes = b""
    newline: str = "\n"
    valid: bool = True


def find_encoding(start: bytes) -> tuple[bytes, str]:
    """The byte order mark a file begins with, if any, and the encoding it stands for (else UTF-8)."""
    return next(((mark, name) for mark, name in _MARKS if start.startswith(mark)), (b"", "utf-8"))


def looks_binary(start: bytes) -> bool:
    """Whether the first bytes of a file are not text: a NUL byte, unless a mark says UTF-16."""
    mark, encoding = find_encoding(start)
    return b"\0" in start and not (mark and encoding.startswith("utf-16"))


def decode(data: bytes) -> tuple[str, TextForm]:
    """The text and its form. Bytes that are not UTF-8 become lone surrogates, which `encode` turns back."""
    mark, encoding = find_encoding(data)
    try:
        text = data[len(mark) :].decode(encoding, "surrogateescape" if encoding == "utf-8" else "strict")
    except UnicodeDecodeError as error:
        raise UserError(f"its mark says {encoding.upper()}, but it is not (byte {error.start + len(mark)})") from error
    windows = text.count("\r\n")
    newline = "\r\n" if windows > text.count("\n") - windows else "\n"
    return text, TextForm(encoding, mark, newline, is_clean(text))


def encode(text: str, form: TextForm) -> bytes:
    """The bytes of a text in a file's own form; raises UserError for text that is no text (a lone surrogate)."""
    try:
        if form.valid:
            return form.mark + text.encode(form.encoding)
        return form.mark + text.encode(form.encoding, "surrogateescape")
    except UnicodeEncodeError as error:
        raise UserError(
            f"The text holds half a character (U+{ord(text[error.start]):04X} at position {error.start}), "
            "which no file can store; send it again without."
        ) from error


def with_newlines(text: str, newline: str) -> str:
    """The text with one kind of line end."""
    plain = text.replace("\r\n", "\n")
    return plain if newline == "\n" else plain.replace("\n", newline)


def is_clean(text: str) -> bool:
    """Whether the text can be written as UTF-8."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_surrogates(text: str) -> str:
    """The text with every lone surrogate (a byte that was no UTF-8) shown as U+FFFD."""
    return text if is_clean(text) else _LONE.sub("\ufffd", text)
