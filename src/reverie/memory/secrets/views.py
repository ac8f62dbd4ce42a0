"""Other ways to read a text, to find secrets behind encodings, line breaks and invisible characters.

Each view knows the places of its characters in the original text. Nothing is judged here.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from reverie.quick import dataclass
from reverie.text.patterns import late

_UNSEEN = late(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]+|\\$\\{\\s?(?:''|\"\"|``)\\s?\\}|\\{(?:''|\"\")\\}|<!--\\s?-->|\\\\(?=[_*~.\\-#+!|])"
)
_WIDE = late("[\uff01-\uff5e]+")
# A string that is joined from pieces, a continued line, or a token that a line break splits.
_SEAM = late(
    r"[\"'`][ \t]*(?:[+.&]|\.\.)?[ \t]*\\?(?:\r?\n)?[ \t]*(?:[+.&]|\.\.)?[ \t]*[\"'`]|\\\r?\n[ \t]*"
    r"|(?<=[A-Za-z0-9_\-/+=.])[ \t]*\r?\n[ \t>*#/|]*(?=[A-Za-z0-9_\-/+=])"
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}(?![A-Za-z0-9+/_-])")
_HEX = late(r"(?<![0-9A-Za-z])(?:0x)?(?:[0-9A-Fa-f]{2}){12,}(?![0-9A-Za-z])|(?:[0-9A-Fa-f]{2}[ :]){11,}[0-9A-Fa-f]{2}")
_WORD = late(r"\S+")
_ESCAPES = late(r"\\u\{?([0-9A-Fa-f]{4})\}?|\\x([0-9A-Fa-f]{2})|\\([0-7]{3})|\\([\"'/\\nrt])")
_STRAY = late(r"%(?![0-9A-Fa-f]{2})")
_PLAIN_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class View:
    """A way to read a text, with the places of its characters in the original."""

    text: str
    cuts: Sequence[tuple[int, int]] = ()
    """What was removed: (place in this text, total number of removed characters up to there)."""
    span: tuple[int, int] | None = None
    """The place of the whole view, if single characters have no place of their own."""
    above: View | None = None
    """The view that it was made from; None: the original text."""

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Returns the place of [start, end) in the original text."""
        if self.span is not None:
            return self.span
        start, end = self._shift(start), self._shift(end - 1) + 1
        return (start, end) if self.above is None else self.above.locate(start, end)

    def _shift(self, at: int) -> int:
        number = bisect_right(self.cuts, at, key=lambda cut: cut[0]) - 1
        return at + self.cuts[number][1] if number >= 0 else at


def read_plain(text: str) -> View:
    """Reads the text as people see it: no invisible characters, wide letters or Markdown escapes."""
    if not text.isascii():
        text = _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return _remove(View(text), _UNSEEN) or View(text)


def join_pieces(view: View) -> View | None:
    """Joins pieces of strings and broken lines; None if there are none."""
    return _remove(view, _SEAM)


def _remove(view: View, pattern: re.Pattern[str]) -> View | None:
    parts: list[str] = []
    cuts: list[tuple[int, int]] = []
    last = size = gone = 0
    for match in pattern.finditer(view.text):
        parts.append(view.text[last : match.start()])
        size += match.start() - last
        gone += match.end() - match.start()
        cuts.append((size, gone))
        last = match.end()
    if not cuts:
        return None
    parts.append(view.text[last:])
    return View("".join(parts), cuts, above=view)


def decode_parts(view: View) -> Iterator[View]:
    """Decodes base64, hexadecimal, percent signs, entities and escapes, if the result is readable text."""
    text = view.text
    for pattern, read in ((_BASE64, decode_base64), (_HEX, _decode_hex)):
        for match in pattern.finditer(text):
            found = read(match[0])
            if found is not None:
                yield View(found, span=view.locate(match.start(), match.end()))
    if "%" in text or "&" in text or "\\" in text:
        for match in _WORD.finditer(text):
            word = match[0]
            if not ("%" in word or "&" in word or "\\" in word) or len(word) > _LONGEST:
                continue
            found = _unescape(word)
            if found != word:
                yield View(found, span=view.locate(match.start(), match.end()))


def _unescape(word: str) -> str:
    if "\\" in word:
        word = _ESCAPES.sub(_read_escape, word)
    if "&" in word:
        word = html.unescape(word)
    # If one percent sign is not an escape, the others are not either: `%USER%`, `100%`.
    return unquote(word) if "%" in word and not _STRAY.search(word) else word


def _read_escape(match: re.Match[str]) -> str:
    if match[4]:
        return _PLAIN_ESCAPES.get(match[4], match[4])
    return chr(int(match[3], 8) if match[3] else int(match[1] or match[2], 16))


def decode_base64(value: str) -> str | None:
    """Decodes base64; None if it is not base64 or the result is not text."""
    bare = value.rstrip("=")
    if len(bare) % 4 == 1 or len(bare) > _LONGEST:
        return None
    alphabet = bare.replace("-", "+").replace("_", "/")
    try:
        return _decode_text(base64.b64decode(alphabet + "=" * (-len(alphabet) % 4)))
    except binascii.Error:
        return None


def _decode_hex(value: str) -> str | None:
    digits = re.sub(r"^0x|[ :]", "", value)
    return _decode_text(bytes.fromhex(digits)) if len(digits) <= _LONGEST else None


def _decode_text(data: bytes) -> str | None:
    """Decodes bytes as text; None if nobody could have written this text."""
    if len(data) < 8 or any(byte < 9 or 13 < byte < 32 or byte == 127 for byte in data):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
