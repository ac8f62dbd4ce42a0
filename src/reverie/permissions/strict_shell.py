"""The short list of commands that provably only read: for machines where the kernel cannot keep a command in a sandbox.

Eight programs, plain words, few options. It denies by default, and may deny what is harmless. Nothing is run or
expanded, and the disk is not looked at. The caller runs the command with a bare environment and without input, and
limits its time and output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import PurePosixPath

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.sensitive import is_sensitive_name, is_sensitive_place
from reverie.quick import dataclass

MAX_COMMAND_CHARACTERS = 4_096
_MOST_NUMBER = 100_000

# A word is quoted as a whole or has only characters that no shell expands, apart from a glob behind a fixed beginning.
_TOKEN = re.compile(
    r"""[ \t]*(?:
    (?P<joiner>&&|;|\|(?!\|))
    |\\(?P<paren>[()])(?=[ \t])
    |(?P<quiet>2>/dev/null(?=[ \t;|&]|\Z))
    |'(?P<single>[ -&(-~]*)'(?=[ \t;|&]|\Z)
    |"(?P<double>[ #%-\[\]^_a-~]*)"(?=[ \t;|&]|\Z)
    |(?P<plain>(?:
        [A-Za-z0-9_./,:@%+^-]
        |(?<=[A-Za-z0-9_./,:@%+^=-])[=\#]
        |(?<=[A-Za-z0-9_./-])[*?]
        |(?<![^ \t])\*(?=\.[A-Za-z0-9]+(?![*?]))
    )+)
    )[ \t]*""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Program:
    """The options that may be used: `flags` are without a value, `counts` a number, `texts` any text."""

    flags: str
    counts: str = ""
    texts: str = ""
    long_flags: str = ""
    long_texts: str = ""


_PROGRAMS: Mapping[str, _Program] = {
    "ls": _Program(
        "aAbBcdFfghiklLmnNopqrRsStuvxX1",
        long_flags="all almost-all color human-readable recursive reverse size",
        long_texts="color time-style sort",
    ),
    "cat": _Program("AbeEnstTuv", long_flags="number number-nonblank show-all squeeze-blank"),
    "stat": _Program("Lft", texts="c", long_flags="dereference terse"),
    "wc": _Program("cmlLw", long_flags="bytes chars lines words"),
    "head": _Program("qvz", counts="nc", long_flags="quiet verbose"),
    "tail": _Program("qvz", counts="nc", long_flags="quiet verbose"),
    "grep": _Program(
        "EFGHILTachilnoqrsvwxyz",
        counts="ABCm",
        texts="e",
        long_flags="count extended-regexp fixed-strings ignore-case invert-match line-number no-filename no-messages"
        " only-matching quiet recursive word-regexp files-with-matches",
        long_texts="include exclude exclude-dir",
    ),
}
_FIND_ALONE = frozenset(
    {"-a", "-and", "-depth", "-empty", "-false", "-ls", "-mount", "-not", "-o", "-or", "-print", "-print0", "-prune"}
    | {"-true", "-xdev", "!", "(", ")"}
)
_FIND_TEXT = frozenset({"-iname", "-ipath", "-name", "-newer", "-newermt", "-path", "-type"})
_FIND_NUMBER = frozenset({"-amin", "-atime", "-cmin", "-ctime", "-maxdepth", "-mindepth", "-mmin", "-mtime", "-size"})
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}[ckMGbw]?")
_REPEATED = re.compile(r"\{(\d*),?(\d*)\\?\}")
_MOST_COMMANDS = 50
_MOST_REPEATED = 3
_MOST_REPETITIONS = 20
_KERNEL = frozenset({"dev", "proc", "sys"})
_STARTS = frozenset({"", "&&", ";"})


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    quoted: bool


_QUIET = _Word("2>/dev/null", quoted=False)


def is_read_only_shell(command: str) -> bool:
    """Whether the command provably only reads, ends by itself and opens no device; see `why_not_read_only`."""
    return why_not_read_only(command) is None


def why_not_read_only(command: str) -> str | None:
    """Returns None if the command may run, else one sentence with the first reason against it."""
    try:
        for words, piped in _read(command.rstrip("\n")):
            _check(words, piped)
    except NotReadOnly as refusal:
        return f"The command is refused because {refusal}."
    return None


def anchor_globs(command: str) -> str:
    """Puts `./` before each word of such a command that begins with a glob: a file `-fs.5` is then not an option."""
    source, position, pieces = command.rstrip("\n"), 0, list[str]()
    while position < len(source) and (token := _TOKEN.match(source, position)):
        if (token["plain"] or "").startswith("*"):
            at = token.start("plain")
            pieces += [source[position:at], "./"]
            position = at
        pieces.append(source[position : token.end()])
        position = token.end()
    return "".join(pieces)


def reads_widely(command: str) -> bool:
    """Whether such a command may open files that it does not name: by a glob, or by searching a folder."""
    try:
        return any(
            (words[0].text == "grep" and {"r", "recursive"} & _sort("grep", _PROGRAMS["grep"], words[1:])[1])
            or any(not word.quoted and ("*" in word.text or "?" in word.text) for word in words)
            for words, _ in _read(command.rstrip("\n"))
        )
    except NotReadOnly:
        return True


def _read(source: str) -> Iterator[tuple[list[_Word], bool]]:
    """Yields each simple command, and whether it reads from a pipe."""
    if len(source) > MAX_COMMAND_CHARACTERS:
        raise NotReadOnly(f"it is longer than {MAX_COMMAND_CHARACTERS:,} characters")
    words, before, position, commands = list[_Word](), "", 0, 1
    while position < len(source):
        token = _TOKEN.match(source, position)
        if token is None:
            raise NotReadOnly(
                f"{clip(source[position:].split()[0] if source[position:].split() else 'its end')} is not plain"
            )
        position = token.end()
        if joiner := token["joiner"]:
            yield [word for word in words if word is not _QUIET], before == "|"
            words, before, commands = [], joiner, commands + 1
            if commands > _MOST_COMMANDS:
                raise NotReadOnly(f"it has more than {_MOST_COMMANDS} commands")
        elif token["quiet"] is not None:
            if not words or words[-1] is _QUIET:
                raise NotReadOnly("2>/dev/null does not follow a command, or stands twice")
            words.append(_QUIET)
        else:
            texts = (token[kind] for kind in ("plain", "single", "double", "paren"))
            words.append(_Word(next((text for text in texts if text), ""), token["plain"] is None))
    yield [word for word in words if word is not _QUIET], before == "|"


def _check(words: list[_Word], piped: bool) -> None:
    if not words or words[0].quoted:
        raise NotReadOnly("it has an empty command, or a quoted program")
    name, *arguments = words
    if name.text == "find":
        _check_find(arguments)
        return
    program = _PROGRAMS.get(name.text)
    if program is None:
        raise NotReadOnly(f"{clip(name.text)} is not one of {', '.join(('find', *_PROGRAMS))}")
    operands, options = _sort(name.text, program, arguments)
    if name.text == "grep":
        if "e" not in options:
            if not operands:
                raise NotReadOnly("grep has no pattern")
            pattern, *operands = operands
            if not pattern.quoted and "*" in pattern.text:
                raise NotReadOnly(f"the pattern {clip(pattern.text)} is a glob (quote it)")
            _check_pattern(pattern.text)
        if not operands and options & {"r", "recursive"}:
            return
    if name.text not in ("ls",) and not operands and not piped:
        raise NotReadOnly(f"{name.text} would wait for input (name a file)")
    for word in operands:
        _check_path(word)


def _sort(name: str, program: _Program, words: list[_Word]) -> tuple[list[_Word], set[str]]:
    """Returns the operands and the options; raises for what is not on the list."""
    operands, options, waiting = list[_Word](), set[str](), ""
    only_operands = False
    for word in words:
        text = word.text
        if waiting:
            _check_value(name, program, waiting, text)
            waiting = ""
        elif only_operands or text == "-" or not text.startswith("-"):
            operands.append(word)
        elif text == "--":
            only_operands = True
        elif text.startswith("--"):
            long_name, equals, value = text[2:].partition("=")
            if equals and long_name in program.long_texts.split() and not (set("*?") & set(value) and not word.quoted):
                _check_width(name, value)
                continue
            if text[2:] not in program.long_flags.split():
                raise NotReadOnly(f"{name} {clip(text)} is not an option known to be harmless")
            options.add(text[2:])
        elif text[1:].isascii() and text[1:].isdigit() and program.counts:
            _check_value(name, program, "n", text[1:])
        else:
            waiting = _read_letters(name, program, text, options)
    if waiting:
        raise NotReadOnly(f"{name} -{waiting} has no value")
    return operands, options


def _read_letters(name: str, program: _Program, text: str, options: set[str]) -> str:
    """Reads `-nA3`; returns the letter whose value is the next word."""
    if "*" in text or "?" in text:
        raise NotReadOnly(f"{clip(text)} is a glob in option position")
    for index, letter in enumerate(text[1:], start=1):
        options.add(letter)
        if letter in program.counts or letter in program.texts:
            if rest := text[index + 1 :]:
                _check_value(name, program, letter, rest)
                return ""
            return letter
        if letter not in program.flags:
            raise NotReadOnly(f"{name} -{letter} is not an option known to be harmless")
    return ""


def _check_value(name: str, program: _Program, letter: str, value: str) -> None:
    if letter in program.texts:
        _check_width(name, value)
        _check_pattern(value)
    elif not re.fullmatch(r"[+-]?[0-9]{1,6}", value) or int(value.lstrip("+-")) > _MOST_NUMBER:
        raise NotReadOnly(f"the value {clip(value)} of {name} is not a plain number")


def _check_width(name: str, value: str) -> None:
    if name in ("stat", "ls") and re.search(r"\d{4}", value):
        raise NotReadOnly("its format has a very large width")


def _check_pattern(text: str) -> None:
    counts = [int(number[:3]) for pair in _REPEATED.findall(text) for number in pair if number]
    if len(counts) > _MOST_REPEATED or any(number > _MOST_REPETITIONS for number in counts):
        raise NotReadOnly("its pattern has many counted repetitions, which can use much memory")


def _check_find(words: list[_Word]) -> None:
    texts = [word.text for word in words]
    for word in words:
        if not word.quoted and ("*" in word.text or "?" in word.text):
            raise NotReadOnly(
                f"{clip(word.text)} is an unquoted glob in find, where a file name could become an action"
            )
    position = 0
    while position < len(texts) and not texts[position].startswith(("-", "(", "!")):
        if texts[position] != "/":
            _check_path(words[position])
        position += 1
    while position < len(texts):
        name = texts[position]
        if name in _FIND_ALONE:
            position += 1
            continue
        if name not in _FIND_TEXT | _FIND_NUMBER or position + 1 >= len(texts):
            raise NotReadOnly(f"find {clip(name)} is not a test or action known to be harmless")
        if name in _FIND_NUMBER and not _NUMBER.fullmatch(texts[position + 1]):
            raise NotReadOnly(f"the value {clip(texts[position + 1])} of find {name} is not a plain number")
        if texts[position + 1].startswith("-") and name in _FIND_TEXT:
            raise NotReadOnly(f"the value {clip(texts[position + 1])} of find {name} reads like an action")
        position += 2


def _check_path(word: _Word) -> None:
    """Refuses devices, process memory and names of secrets, in every spelling; a glob may match any of them."""
    shown = clip(word.text)
    parts = [part for part in word.text.split("/") if part not in ("", ".")]
    rooted = word.text.startswith("/")
    if word.text == "-":
        raise NotReadOnly("it would wait for input (name a file)")
    if rooted and (not parts or ".." in parts):
        raise NotReadOnly(f"{shown} may lead to a device or to a process's memory")
    for before, part in pairwise(["", *(part.lower() for part in parts)]):
        globbed = not word.quoted and ("*" in part or "?" in part)
        if (
            (part in _KERNEL and (rooted or before == ".."))
            or before in _KERNEL
            or (globbed and rooted and before == "")
        ):
            raise NotReadOnly(f"{shown} may lead to a device or to a process's memory")
        if is_sensitive_name(part) or (globbed and part.startswith(".")):
            raise NotReadOnly(f"{shown} may hold keys or passwords")
    if is_sensitive_place(PurePosixPath("/", *parts) if rooted else PurePosixPath(*parts)):
        raise NotReadOnly(f"{shown} may hold keys or passwords")
    if word.text.count("..") > 2 or (parts and parts[-1] == ".." and len(parts) > 2):
        raise NotReadOnly(f"{shown} may lead to a device or to a process's memory")
