"""A strict parser for a small part of bash: plain words, quotes, three joiners and one redirection.

`tree` uses a full bash grammar, this parser follows bash's quoting rules byte by byte. A command passes only if both
find the same words in the same places. Everything else is refused, and so are characters that look like others: users
and models read glyphs, the shell reads bytes. Plain foreign text stays allowed.
"""

from __future__ import annotations

import unicodedata
from itertools import accumulate
from typing import Literal

from reverie.permissions.rules import NotReadOnly
from reverie.quick import dataclass
from reverie.text.patterns import late

MAX_COMMANDS = 50
_BLANK = " \t"
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+@%^]")
_GLOB = frozenset("*?[")
_NULL_DEVICE = "/dev/null"
PLAIN_VARIABLE = late(r"\$(?:\?|(?:HOME|USER|LOGNAME|PWD)(?![A-Za-z0-9_]))")
"""Variables that the wider language knows: none of them holds a secret, or more than one line."""
_REVISION = late(r"@\{[A-Za-z0-9]{1,20}\}")
"""`HEAD@{1}` and `@{u}`: without a comma or dots, bash does not expand braces."""
HARMLESS_REDIRECT = late(r"(?:2>&1|1?>&2|(?:[12]?|&)>[ \t]*/dev/null)(?=[ \t|&;]|\Z)")
"""Redirections between streams and to nowhere, for the wider language."""
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
class TokenSpan:
    """One token and its bytes; the grammar must find the same ones."""

    kind: SpanKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """One argument: as written, as the program gets it, and the positions of its active glob characters."""

    raw: str
    text: str
    globs: frozenset[int]
    expands: bool = False
    """It holds a variable, so `text` is not what the program gets."""

    @property
    def plain(self) -> bool:
        """Written without quotes, escapes or globs."""
        return self.raw == self.text and not self.globs and not self.expands


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program with its arguments. `piped`: its input is the output of the program before it."""

    words: tuple[Word, ...]
    piped: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """The commands in order, and all their tokens."""

    commands: tuple[SimpleCommand, ...]
    spans: tuple[TokenSpan, ...]


def read_words(source: str, *, wide: bool = False) -> Reading:
    """Splits a command line; raises `NotReadOnly` for anything outside the small language.

    `wide`: also accepts the joiner `||`, redirections between streams and to /dev/null, a few variables, and `@{1}`.
    """
    return _Lexer(source, wide=wide).read()


def anchor_globs(source: str) -> str:
    """Puts `./` before each word that begins with a glob: a file `-fs.5` is then not an option of `tail *.5`.

    For commands that passed the check. The glob still matches the same files.
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
    def __init__(self, source: str, *, wide: bool) -> None:
        self._source = source
        self._wide = wide
        self._at = 0
        self._bytes = [0, *accumulate(len(char.encode("utf-8", "surrogatepass")) for char in source)]
        self._spans: list[TokenSpan] = []
        self._commands: list[SimpleCommand] = []
        self._words: list[Word] = []
        self._redirected = False
        self._piped = False
        self._expands = False

    def read(self) -> Reading:
        joiner = ""  # the operator that still waits for a command
        while self._skip_blanks():
            char = self._peek()
            if self._wide and (found := HARMLESS_REDIRECT.match(self._source, self._at)):
                self._take_redirect(found.end())
            elif char in "|&;":
                joiner = self._read_operator()
            elif char == "#":
                raise NotReadOnly("it holds a comment")
            else:
                self._read_word_or_redirect()
                joiner = ""
        if joiner in ("|", "&&", "||"):
            raise NotReadOnly(f"it ends in {joiner} without a command after it")
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

    def _note_span(self, kind: SpanKind, start: int) -> None:
        self._spans.append(TokenSpan(kind, self._bytes[start], self._bytes[self._at]))

    def _read_operator(self) -> str:
        start = self._at
        names = ("&&", "||", "|&", ";;", "&", "|", ";")
        name = next(name for name in names if self._source.startswith(name, start))
        if name not in ("&&", "|", ";") and not (self._wide and name == "||"):
            raise NotReadOnly(f"it holds {name}, and commands may be joined by |, && and ; only")
        self._at += len(name)
        self._close_command(required=True)
        self._piped = name == "|"
        self._note_span("operator", start)
        return name

    def _close_command(self, *, required: bool) -> None:
        if not self._words:
            if required:
                raise NotReadOnly("it joins commands where a command is missing")
            return
        if len(self._commands) >= MAX_COMMANDS:
            raise NotReadOnly(f"it joins more than {MAX_COMMANDS} commands")
        self._commands.append(SimpleCommand(tuple(self._words), self._piped))
        self._words, self._redirected, self._piped = [], False, False

    def _read_word_or_redirect(self) -> None:
        start = self._at
        if self._source.startswith("2>", start):
            self._read_redirect()
            return
        text: list[str] = []
        bare: list[str] = []  # the text outside quotes
        globs: set[int] = set()
        while (char := self._peek()) and char not in " \t|&;":
            bare += " " if char in "'\"" else char
            if char == "'":
                text += self._read_single_quotes()
            elif char == '"':
                text += self._read_double_quotes()
            elif char == "\\":
                text += self._read_escape()
            elif char == "~":
                text += self._read_tilde(at_start=self._at == start)
            elif char == "!":
                text += self._read_bang(alone=self._at == start)
            elif (variable := self._read_variable()) is not None:
                text += variable
            elif self._wide and (revision := _REVISION.match(self._source, self._at)):
                text += revision[0]
                self._at = revision.end()
            elif char in _GLOB:
                globs.add(len(text))
                text += self._take()
            elif char in _PLAIN or char == "#" or (not char.isascii() and not needs_quotes(char)):
                text += self._take()
            else:
                raise NotReadOnly(_REASONS.get(char, f"it holds the character U+{ord(char):04X} outside quotes"))
        if looks_like_ascii("".join(bare)):
            raise NotReadOnly("it holds a word whose letters look like others (quote it)")
        self._words.append(Word(self._source[start : self._at], "".join(text), frozenset(globs), self._expands))
        self._expands = False
        self._note_span("word", start)

    def _take(self) -> str:
        self._at += 1
        return self._source[self._at - 1]

    def _take_redirect(self, end: int) -> None:
        if not self._words:
            raise NotReadOnly("it redirects before the program's name")
        start, self._at = self._at, end
        self._note_span("redirect", start)

    def _read_redirect(self) -> None:
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
        self._note_span("redirect", start)

    def _read_variable(self) -> str | None:
        found = PLAIN_VARIABLE.match(self._source, self._at) if self._wide else None
        if found is None:
            return None
        self._at, self._expands = found.end(), True
        return found[0]

    def _read_single_quotes(self) -> str:
        end = self._source.find("'", self._at + 1)
        if end < 0:
            raise NotReadOnly("a single quote is never closed")
        inner = self._source[self._at + 1 : end]
        if "\t" in inner:
            raise NotReadOnly("it holds a control character inside quotes")
        self._at = end + 1
        return inner

    def _read_double_quotes(self) -> str:
        self._at += 1
        text: list[str] = []
        while (char := self._peek()) != '"':
            after = self._peek(1)
            if not char:
                raise NotReadOnly("a double quote is never closed")
            if char == "\t":
                raise NotReadOnly("it holds a control character inside quotes")
            if (variable := self._read_variable()) is not None:
                text += variable
                continue
            if char == "\\" and after:
                # Inside double quotes a backslash escapes only these four characters.
                text += after if after in '$`"\\' else char + after
                self._at += 2
                continue
            # A $ without a name after it (the end of a regular expression) is literal in bash.
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

    def _read_escape(self) -> str:
        after = self._peek(1)
        if not after or not after.isascii() or not after.isprintable():
            raise NotReadOnly("a backslash has nothing after it to escape")
        self._at += 2
        return after

    def _read_tilde(self, *, at_start: bool) -> str:
        after = self._peek(1)
        if at_start and after not in ("", "/", " ", "\t", "|", "&", ";"):
            raise NotReadOnly("it names another user's home with a tilde")
        if not at_start and self._source[self._at - 1] in "=:":
            raise NotReadOnly("it holds a tilde that may expand in the middle of a word")
        return self._take()

    def _read_bang(self, *, alone: bool) -> str:
        # `!` between blanks is find's negation; any other is, or looks like, history expansion or negation.
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
# A name in these scripts does not need quotes. Right-to-left scripts need them, because they change the visible order.
_SCRIPTS = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "DEVANAGARI", "CYRILLIC", "GREEK")
_LATIN_EXTRA = frozenset("ßæøœđłþðÆØŒĐŁÞÐẞ")
_QUOTE_TWINS = frozenset("'\"`$\\")
_RUN = late(r"[^\W\d_]+")


def is_invisible(char: str) -> bool:
    """Whether a non-ASCII character is invisible, looks blank, or controls the text around it."""
    return (
        unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"} or char in "\u115f\u1160\u3164\uffa0"
    )


def find_deception(text: str) -> str | None:
    """Returns what is wrong with non-ASCII characters in a command, even in quotes; None if nothing is."""
    if text.isascii():
        return None
    for char in text:
        if char.isascii():
            continue
        if is_invisible(char):
            return f"it holds the invisible or control character U+{ord(char):04X}"
        folded = unicodedata.normalize("NFKC", char)
        # "Nl": Roman numerals and similar.
        if folded.isascii() and (folded in _QUOTE_TWINS or unicodedata.category(char).startswith(("L", "Nl"))):
            return f"it holds U+{ord(char):04X}, a look-alike of {folded}"
    for run in _RUN.findall(text):
        if any(char.isascii() for char in run) and (twin := next((char for char in run if char in _TWINS), None)):
            return f"it mixes ASCII letters with the look-alike U+{ord(twin):04X}"
    return None


def needs_quotes(char: str) -> bool:
    """Whether a non-ASCII character is allowed only in quotes: all except plain letters of common scripts."""
    # Old shells on macOS treat these two bytes as blanks, even inside a UTF-8 character, and split the word there.
    if not {0x85, 0xA0}.isdisjoint(char.encode()):
        return True
    if unicodedata.category(char) == "Mn":  # an accent on the letter before it, as in file names of macOS
        return unicodedata.combining(char) == 0
    if unicodedata.category(char)[0] != "L" or unicodedata.normalize("NFKC", char) != char:
        return True
    if char in _LATIN_EXTRA:
        return False
    base = unicodedata.normalize("NFD", char)
    if len(base) > 1 and base[0].isascii() and base[0].isalpha():
        return False
    return not unicodedata.name(char, "").startswith(_SCRIPTS)


def looks_like_ascii(text: str) -> bool:
    """Whether unquoted text has a run of letters that all look like ASCII letters."""
    return not text.isascii() and any(all(char in _TWINS for char in run) for run in _RUN.findall(text))
