"""Characters that are not what they seem: invisible ones, and letters that pass for ASCII.

A person who approves a command, and a model that wrote one, both read glyphs; the shell reads bytes. Where the two can
differ, the shell check refuses. Plain foreign text (a Russian search term, a Japanese file name) stays allowed.
Never normalises anything: it only says what is wrong.
"""

from __future__ import annotations

import re
import unicodedata

# Cyrillic, Greek, Armenian and Cherokee letters that are drawn like an ASCII letter in common fonts.
_TWINS = frozenset(
    "аеорсухіјѕԁһӏԛԝгпкѵүҮАВЕЅІЈКМНОРСТУХӀԌԚԜ"  # Cyrillic
    "οαικνρτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳϹ"  # Greek
    "оօսցհոզԼՕՍ"  # Armenian (and one more Cyrillic o)
    "ᎪᏴᏟᎠᎬᎻᎢᎫᏦᏞᎷᏢᏒᏚᎳᏃ"  # Cherokee
    "ıȷɑɡɩʟꜱᴄᴏᴜᴠᴡᴢ"  # Latin letters that are not ASCII ones
)
# In these a folder or file may be named without quotes (right-to-left ones reorder what is seen, so they need quotes).
_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "DEVANAGARI", "CYRILLIC", "GREEK")
_LATIN_EXTRA = frozenset("ßæøœđłþðÆØŒĐŁÞÐẞ")
_QUOTE_TWINS = frozenset("'\"`$\\")
_RUN = re.compile(r"[^\W\d_]+")


def invisible(char: str) -> bool:
    """Whether a non-ASCII character is drawn as nothing, as blank space, or steers the text around it."""
    return (
        unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"} or char in "\u115f\u1160\u3164\uffa0"
    )


def deceptive_text(text: str) -> str | None:
    """What is wrong with non-ASCII characters anywhere in a command, quoted or not; None if nothing is."""
    if text.isascii():
        return None
    for char in text:
        if char.isascii():
            continue
        if invisible(char):
            return f"it holds the invisible or control character U+{ord(char):04X}"
        folded = unicodedata.normalize("NFKC", char)
        if folded.isascii() and (folded in _QUOTE_TWINS or (unicodedata.category(char)[0] == "L" or _is_roman(char))):
            return f"it holds U+{ord(char):04X}, a look-alike of {folded}"
    for run in _RUN.findall(text):
        if any(char.isascii() for char in run) and (twin := next((char for char in run if char in _TWINS), None)):
            return f"it mixes ASCII letters with the look-alike U+{ord(twin):04X}"
    return None


def unfit_unquoted(char: str) -> bool:
    """Whether a non-ASCII character may not stand outside quotes: only plain letters of common scripts may."""
    # Old shells on macOS take these two bytes for blanks, even inside a UTF-8 character, and split the word there.
    if not {0x85, 0xA0}.isdisjoint(char.encode()):
        return True
    if unicodedata.category(char) == "Mn":  # an accent on the letter before it, as macOS spells file names
        return unicodedata.combining(char) == 0
    if unicodedata.category(char)[0] != "L" or unicodedata.normalize("NFKC", char) != char:
        return True
    if char in _LATIN_EXTRA:
        return False
    base = unicodedata.normalize("NFD", char)
    if len(base) > 1 and base[0].isascii() and base[0].isalpha():
        return False
    return not unicodedata.name(char, "").startswith(_SCRIPTS)


def passes_for_ascii(text: str) -> bool:
    """Whether a run of letters in unquoted text is made of nothing but ASCII look-alikes."""
    return not text.isascii() and any(all(char in _TWINS for char in run) for run in _RUN.findall(text))


def _is_roman(char: str) -> bool:
    return unicodedata.category(char) == "Nl"
