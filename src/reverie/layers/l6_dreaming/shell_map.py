"""Rewrites a read-only shell command of a dream, so that it sees the copy where it names the memory directory.

Only words that are surely files are rewritten. A command that could reach the real directory in another way (through a
folder above it, a pattern or an option) is refused with advice. The result must pass the read-only check again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.errors import ReverieError
from reverie.permissions.shell.options import Arguments, read_arguments
from reverie.permissions.shell.programs import OPTIONS
from reverie.permissions.shell.read_only import why_not_read_only
from reverie.permissions.shell.words import SimpleCommand, Word, read_words
from reverie.quick import dataclass

_ELSEWHERE = "use Read, Grep or Glob for the memory directory instead"
_WALKS = {
    "grep": frozenset({"-r", "-R", "--recursive", "--dereference-recursive"}),
    "ls": frozenset({"-R", "--recursive"}),
}
_FIND_FILES = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})
_FIND_PATHS = frozenset(
    {"-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname", "-printf"}
)


class NotMapped(ReverieError):
    """The command could reach the real memory directory, or this is unclear; the sentence says what to do."""


@dataclass(frozen=True, slots=True)
class ShellMap:
    """The memory directory and its copy. Relative words start from `cwd`."""

    root: Path
    copy: Path
    cwd: Path
    home: Path

    def command(self, source: str) -> str:
        """Returns the command to run. Raises `NotMapped`. It must have passed the read-only check."""
        source = source.rstrip("\n")
        reading = read_words(source)
        words = [word for command in reading.commands for word in command.words]
        spans = [span for span in reading.spans if span.kind == "word"]
        if len(words) != len(spans):
            raise NotMapped(f"The command cannot be read word by word; {_ELSEWHERE}.")
        places = {id(word): span for word, span in zip(words, spans, strict=True)}
        raw = source.encode()
        new: list[tuple[int, int, bytes]] = []
        for command in reading.commands:
            for word in self._files(command):
                mapped = self._map_word(word)
                if mapped is not None:
                    span = places[id(word)]
                    new.append((span.start, span.end, mapped.encode()))
        for start, end, text in sorted(new, reverse=True):
            raw = raw[:start] + text + raw[end:]
        mapped_source = raw.decode()
        if new and (reason := why_not_read_only(mapped_source)) is not None:
            raise NotMapped(f"{reason} Mapped to the copy it would not be read-only: {_ELSEWHERE}.")
        return mapped_source

    def _files(self, command: SimpleCommand) -> Sequence[Word]:
        program, *rest = command.words
        words = tuple(rest)
        if program.text == "find":
            return self._find(words)
        arguments = read_arguments(program.text, words, OPTIONS[program.text])
        for option, value in arguments.values:
            if option in ("-f", "--file", "--exclude-from") and self._inside(value.text):
                raise NotMapped(f"{program.text} {option} may not name a file of the memory directory: {_ELSEWHERE}.")
        files = _operands(program.text, arguments)
        walks = not arguments.options.isdisjoint(_WALKS.get(program.text, frozenset()))
        walks |= any(o in ("-d", "--directories") and "recurse".startswith(v.text) for o, v in arguments.values)
        walked = files or ((Word(".", ".", frozenset()),) if walks and not command.piped else ())
        for word in walked if walks else ():
            self._refuse_walk(program.text, word)
        if not files and program.text == "ls" and self._inside("."):
            raise NotMapped("Name the folder: ls alone would list the working folder, which is the memory directory.")
        return files

    def _find(self, words: tuple[Word, ...]) -> Sequence[Word]:
        starts: list[Word] = []
        at = 0
        while at < len(words) and words[at].text in ("-H", "-L", "-P", "-O0", "-O1", "-O2", "-O3"):
            at += 1
        while at < len(words) and not (words[at].text.startswith("-") or words[at].text in ("(", ")", "!", ",")):
            starts.append(words[at])
            at += 1
        for name, value in zip(words[at:], words[at + 1 :], strict=False):
            if (name.text in _FIND_FILES or name.text.startswith("-newer")) and self._inside(value.text):
                raise NotMapped(f"find {name.text} may not name a file of the memory directory: {_ELSEWHERE}.")
            if name.text in _FIND_PATHS and (str(self.root) in value.text or value.text.startswith("/")):
                raise NotMapped(f"find {name.text} may not name a whole path here: {_ELSEWHERE}.")
        for word in starts or (Word(".", ".", frozenset()),):
            self._refuse_walk("find", word)
        if not starts and self._inside("."):
            raise NotMapped("Name the folder that find should start from.")
        return starts

    def _refuse_walk(self, program: str, word: Word) -> None:
        """Refuses to walk through a folder above the memory directory, which has the real files."""
        literal, _ = _split(word)
        real = self._real(literal)
        if real != self.root and self.root.is_relative_to(real):
            raise NotMapped(
                f"{program} would walk through the memory directory itself: name that directory, or files next to it "
                "(transcripts end in .jsonl), and not a folder above both."
            )

    def _map_word(self, word: Word) -> str | None:
        literal, rest = _split(word)
        real = self._real(literal)
        if real.is_relative_to(self.root):
            if rest is None:
                return _quote(str(self.copy / real.relative_to(self.root)))
            if "[" in rest.text and any(rest.text[index] == "[" for index in rest.globs):
                raise NotMapped(f"A pattern with brackets cannot be used in the memory directory: {_ELSEWHERE}.")
            return _quote(f"{self.copy / real.relative_to(self.root)}/") + _quote_around_globs(rest)
        if rest is not None and self.root.is_relative_to(real):
            first = rest.text.partition("/")[0]
            below = self.root.relative_to(real).parts[0]
            if fnmatchcase(below, first):
                raise NotMapped(f"{word.raw} may match the memory directory itself: name it, or be more exact.")
        return None

    def _inside(self, text: str) -> bool:
        return self._real(text).is_relative_to(self.root)

    def _real(self, text: str) -> Path:
        if text == "~" or text.startswith("~/"):
            text = f"{self.home}/{text[2:]}"
        return Path(os.path.realpath(self.cwd / text))


def search_patterns(source: str) -> list[str]:
    """The patterns that the searches of a read-only command look for."""
    found = list[str]()
    for program, *rest in (command.words for command in read_words(source).commands):
        if program.text != "grep":
            continue
        arguments = read_arguments(program.text, tuple(rest), OPTIONS[program.text])
        given = [value.text for option, value in arguments.values if option in ("-e", "--regexp")]
        found += given or [word.text for word in arguments.operands[:1]]
    return found


def _operands(program: str, arguments: Arguments) -> tuple[Word, ...]:
    if program == "grep" and arguments.options.isdisjoint({"-e", "--regexp", "-f", "--file"}):
        return arguments.operands[1:]  # the first is the pattern
    return tuple(word for word in arguments.operands if word.text != "-")


def _split(word: Word) -> tuple[str, Word | None]:
    if not word.globs:
        return word.text, None
    cut = word.text.rfind("/", 0, min(word.globs)) + 1
    literal = word.text[:cut]
    rest = Word(word.raw, word.text[cut:], frozenset(index - cut for index in word.globs))
    return literal or ".", rest


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _quote_around_globs(word: Word) -> str:
    parts: list[str] = []
    literal = ""
    for index, char in enumerate(word.text):
        if index in word.globs:
            parts += [_quote(literal)] if literal else []
            parts.append(char)
            literal = ""
        else:
            literal += char
    return "".join([*parts, _quote(literal)] if literal else parts)
