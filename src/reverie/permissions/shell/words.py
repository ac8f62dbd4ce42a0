"""A strict reading of a small part of bash: plain words, quotes, three joiners and one redirection.

It is the second of two readings: `shell_tree` asks a full bash grammar, this one follows bash's quoting rules byte by
byte, and a command passes only if both see the same words in the same places. Never guesses: what it does not know, it
refuses. So it does with characters that are not what they seem: a person who approves a command, and a model that wrote
one, both read glyphs; the shell reads bytes. Plain foreign text (a Russian search term) stays allowed.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from reverie.permissions.rules import NotReadOnly

MAX_COMMANDS = 50
_BLANK = " \t"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%^]")
_GLOB = frozenset("*?[")
_NULL_DEVICE = "/dev/null"
_REASONS = {
    "<": "it redirects input (name the file as an argument instead)",
    ">": "it redirects output, and the only redirection allowed is 2>/dev/null",
    "(": "it opens a subshell or a function (escape or quote a literal parenthesis)",
    ")": "it holds an unquoted parenthesis",
    "{": "it holds an unquoted brace, which may expand",
    "}": "it holds an unquoted brace, which may expand",
    "$": "it holds a $ outside single quotes, which may expand",
    "`": "it holds a backtick outside single quotes, which runs a command",
    "!": "it holds a ! outside single quotes, which may be a history expansion",
    "\n": "it holds a line break",
}

SpanKind = Literal["word", "operator", "redirect"]


@dataclass(frozen=True, slots=True)
class Span:
    """One token and the bytes it covers; the tree must report the very same ones."""

    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """One argument: as written, as the program gets it, and which of its characters are live glob characters."""

    raw: str
    text: str
    globs: frozenset[int]

    @property
    def plain(self) -> bool:
        """Written without quotes, escapes or globs."""
        return self.raw == self.text and not self.globs


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program with its arguments. `piped`: its standard input is the program before it."""

    words: tuple[Word, ...]
    piped: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """The commands in order, and every token they came from."""

    commands: tuple[SimpleCommand, ...]
    spans: tuple[Span, ...]


def read_words(source: str) -> Reading:
    """Split a command line; raises `NotReadOnly` at the first thing outside the small language."""
    return _Lexer(source).read()


def anchored_globs(source: str) -> str:
    """The same command with `./` before each word that begins with a glob: `tail *.5` would take `-fs.5` for options.

    For whoever runs a command that passed the check. The files are the same ones, whenever they are created.
    """
    reading = read_words(source.rstrip("\n"))
    words = [word for command in reading.commands for word in command.words]
    spans = [span for span in reading.spans if span.kind == "word"]
    raw = source.encode()
    for word, span in reversed(list(zip(words, spans, strict=True))):
        if 0 in word.globs:
            raw = raw[: span.start] + b"./" + raw[span.start :]
    return raw.decode()


class _Lexer:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._bytes = [0, *accumulate(len(char.encode("utf-8", "surrogatepass")) for char in source)]
        self._spans: list[Span] = []
        self._commands: list[SimpleCommand] = []
        self._words: list[Word] = []
        self._redirected = False
        self._piped = False

    def read(self) -> Reading:
        joiner = ""  # the operator that still waits for a command
        while self._skip_blanks():
            char = self._peek()
            if char in "|&;":
                joiner = self._operator()
            elif char == "#":
                raise NotReadOnly("it holds a comment")
            else:
                self._word_or_redirect()
                joiner = ""
        if joiner in ("|", "&&"):
            raise NotReadOnly(f"it ends in {joiner} with no command behind it")
        self._close_command(required=False)
        if not self._commands:
            raise NotReadOnly("it is empty")
        return Reading(tuple(self._commands), tuple(self._spans))

    def _peek(self, ahead: int = 0) -> str:
        index = self._at + ahead
        return self._source[index] if index < len(self._source) else ""

    def _skip_blanks(self) -> bool:
        while (char := self._peek()) and char in _BLANK:
            self._at += 1
        return bool(char)

    def _span(self, kind: SpanKind, start: int) -> None:
        self._spans.append(Span(kind, self._bytes[start], self._bytes[self._at]))

    def _operator(self) -> str:
        start, source = self._at, self._source
        for name in ("&&", "||", "|&", ";;", "&", "|", ";"):
            if source.startswith(name, start):
                break
        else:  # pragma: no cover - the caller saw one of the characters
            raise AssertionError(source)
        if name not in ("&&", "|", ";"):
            raise NotReadOnly(f"it holds {name}, and commands may be joined by |, && and ; only")
        self._at += len(name)
        self._close_command(required=True)
        self._piped = name == "|"
        self._span("operator", start)
        return name

    def _close_command(self, *, required: bool) -> None:
        if not self._words:
            if required:
                raise NotReadOnly("it joins commands where there is none")
            return
        if len(self._commands) >= MAX_COMMANDS:
            raise NotReadOnly(f"it joins more than {MAX_COMMANDS} commands")
        self._commands.append(SimpleCommand(tuple(self._words), self._piped))
        self._words, self._redirected, self._piped = [], False, False

    def _word_or_redirect(self) -> None:
        start = self._at
        if self._source.startswith("2>", start):
            self._redirect()
            return
        text: list[str] = []
        bare: list[str] = []  # what stands outside quotes
        globs: set[int] = set()
        while (char := self._peek()) and char not in " \t|&;":
            bare += " " if char in "'\"" else char
            if char == "'":
                text += self._single_quoted()
            elif char == '"':
                text += self._double_quoted()
            elif char == "\\":
                text += self._escaped()
            elif char == "~":
                text += self._tilde(at_start=self._at == start)
            elif char == "!":
                text += self._bang(alone=self._at == start)
            elif char in _GLOB:
                globs.add(len(text))
                text += self._take()
            elif char in _PLAIN or char == "#" or (not char.isascii() and not unfit_unquoted(char)):
                text += self._take()
            else:
                raise NotReadOnly(_REASONS.get(char, f"it holds the character U+{ord(char):04X} outside quotes"))
        if passes_for_ascii("".join(bare)):
            raise NotReadOnly("it holds a word of letters that pass for others (quote it)")
        self._words.append(Word(self._source[start : self._at], "".join(text), frozenset(globs)))
        self._span("word", start)

    def _take(self) -> str:
        self._at += 1
        return self._source[self._at - 1]

    def _redirect(self) -> None:
        start = self._at
        if not self._words or self._redirected:
            raise NotReadOnly("it redirects before the program's name or more than once")
        self._at += 2
        self._skip_blanks()
        self._at += len(_NULL_DEVICE)
        whole = self._source[self._at - len(_NULL_DEVICE) : self._at] == _NULL_DEVICE
        if not whole or (self._peek() and self._peek() not in " \t|&;"):
            raise NotReadOnly(_REASONS[">"])
        self._redirected = True
        self._span("redirect", start)

    def _single_quoted(self) -> str:
        end = self._source.find("'", self._at + 1)
        if end < 0:
            raise NotReadOnly("a single quote is never closed")
        inner = self._source[self._at + 1 : end]
        if "\t" in inner:
            raise NotReadOnly("it holds a control character inside quotes")
        self._at = end + 1
        return inner

    def _double_quoted(self) -> str:
        self._at += 1
        text: list[str] = []
        while (char := self._peek()) != '"':
            after = self._peek(1)
            if not char:
                raise NotReadOnly("a double quote is never closed")
            if char == "\t":
                raise NotReadOnly("it holds a control character inside quotes")
            if char == "\\" and after:
                # Inside double quotes a backslash escapes four characters and is itself before any other.
                text += after if after in '$`"\\' else char + after
                self._at += 2
                continue
            # A $ that nothing can follow as a name (end of a regular expression) is literal in bash.
            if (
                char == "`"
                or (char == "$" and after not in ('"', "|", ")"))
                or (char == "!" and after not in (" ", "="))
            ):
                raise NotReadOnly(_REASONS[char])
            text += char
            self._at += 1
        self._at += 1
        return "".join(text)

    def _escaped(self) -> str:
        after = self._peek(1)
        if not after or not after.isascii() or not after.isprintable():
            raise NotReadOnly("a backslash has nothing behind it that it could escape")
        self._at += 2
        return after

    def _tilde(self, *, at_start: bool) -> str:
        after = self._peek(1)
        if at_start and after not in ("", "/", " ", "\t", "|", "&", ";"):
            raise NotReadOnly("it names another user's home with a tilde")
        if not at_start and self._source[self._at - 1] in "=:":
            raise NotReadOnly("it holds a tilde that may expand in the middle of a word")
        return self._take()

    def _bang(self, *, alone: bool) -> str:
        # `!` between blanks is find's negation; everything else is, or looks like, history expansion or negation.
        if not (alone and self._words and self._peek(1) in (" ", "\t")):
            raise NotReadOnly(_REASONS["!"])
        return self._take()


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
