"""The eight programs that may run, their allowed options, and the checks of their operands.

The tables are written by hand from the GNU manuals. They leave out options that write, wait, follow, run something or
read names from elsewhere, and options that were not reviewed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.shell.options import Arguments, Kind, Options, check_format, check_regex, read_arguments
from reverie.permissions.shell.paths import check_contents
from reverie.permissions.shell.words import SimpleCommand, Word


def names(text: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in text.split())


def kinds(**names: str) -> Mapping[str, Kind]:
    """Long options by the kind of their value: `kinds(small="tabsize width")`."""
    return MappingProxyType({f"--{name}": cast("Kind", kind) for kind in names for name in names[kind].split()})


def short(**kinds: Kind) -> Mapping[str, Kind]:
    return MappingProxyType(kinds)


_LS = Options(
    flags="aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
    valued=short(I="pattern", T="small", w="small"),
    long_flags=names(
        "all almost-all author escape ignore-backups directory dired file-type full-time group-directories-first"
        " no-group human-readable si dereference-command-line dereference-command-line-symlink-to-dir inode kibibytes"
        " dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name reverse recursive size"
        " context zero"
    ),
    long_valued=kinds(
        choice="block-size format indicator-style quoting-style sort time",
        pattern="hide ignore",
        small="tabsize width",
        format="time-style",
    ),
    long_optional=kinds(choice="color classify hyperlink"),
)
_CAT = Options(
    flags="AbeEnstTuv",
    long_flags=names("show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"),
)
_STAT = Options(
    flags="Lft",
    valued=short(c="format"),
    long_flags=names("dereference file-system terse"),
    long_valued=kinds(format="format printf", choice="cached"),
)
_WC = Options(
    flags="cmlLw",
    long_flags=names("bytes chars lines max-line-length words"),
    long_valued=kinds(choice="total"),
)
_HEAD = Options(
    flags="qvz",
    valued=short(n="lines", c="bytes"),
    long_flags=names("quiet silent verbose zero-terminated"),
    long_valued=kinds(lines="lines", bytes="bytes"),
    number="lines",
)
_TAIL = _HEAD  # tail's other options all follow, wait or retry
_GREP = Options(
    flags="EFGPiywxzsvVbnHhoqaIrRLlcTZU0123456789",
    valued=short(e="regex", f="file", m="lines", d="choice", D="device_action", A="small", B="small", C="small"),
    long_flags=names(
        "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case word-regexp line-regexp"
        " null-data no-messages invert-match byte-offset line-number line-buffered with-filename no-filename"
        " only-matching quiet silent text recursive dereference-recursive files-without-match files-with-matches"
        " count initial-tab null no-group-separator binary"
    ),
    long_valued=kinds(
        regex="regexp",
        file="file exclude-from",
        lines="max-count",
        choice="label binary-files directories",
        device_action="devices",
        pattern="include exclude exclude-dir group-separator",
        small="before-context after-context context",
    ),
    long_optional=kinds(choice="color colour"),
    number="small",
)
OPTIONS: Mapping[str, Options] = MappingProxyType(
    {"ls": _LS, "stat": _STAT, "grep": _GREP, "cat": _CAT, "head": _HEAD, "tail": _TAIL, "wc": _WC}
)
"""The options of each program; find has its own language."""

PROGRAMS = ("ls", "find", "grep", "cat", "stat", "wc", "head", "tail")


def check_command(command: SimpleCommand) -> None:
    """Raises `NotReadOnly` unless this program, with these arguments, only reads and ends by itself."""
    name, *rest = command.words
    arguments = tuple(rest)
    if not name.plain or name.text not in PROGRAMS:
        raise NotReadOnly(f"{clip(name.raw)} is not one of {', '.join(PROGRAMS)}, written plainly")
    match name.text:
        case "find":
            check_find(arguments)
        case "ls" | "stat" as lister:
            read_arguments(lister, arguments, OPTIONS[lister])
        case "grep":
            _check_grep(read_arguments("grep", arguments, _GREP), piped=command.piped)
        case reader:
            read = read_arguments(reader, arguments, OPTIONS[reader])
            if not read.only_informs:
                _check_inputs(reader, read.operands, piped=command.piped)


def _check_inputs(program: str, operands: tuple[Word, ...], *, piped: bool, recursive: bool = False) -> None:
    if not piped and (not operands or any(word.text == "-" for word in operands)):
        raise NotReadOnly(f"{program} would wait for input (name a file)")
    for word in operands:
        check_contents(word, recursive=recursive)


def _check_grep(arguments: Arguments, *, piped: bool) -> None:
    if arguments.only_informs or "-V" in arguments.options:
        return
    operands = arguments.operands
    if arguments.options.isdisjoint({"-e", "--regexp", "-f", "--file"}):
        if not operands:
            raise NotReadOnly("grep has no pattern")
        pattern, *files = operands
        check_regex(pattern.text)
        if pattern.globs:  # a glob may expand to a pattern and more files
            check_contents(pattern)
        operands = tuple(files)
    for option, value in arguments.values:
        if option in ("-f", "--file", "--exclude-from") and value.text == "-" and not piped:
            raise NotReadOnly("grep would wait for input (name a file)")
    recursive = is_recursive(arguments)
    if recursive and not operands:
        return
    _check_inputs("grep", operands, piped=piped, recursive=recursive)


def is_recursive(arguments: Arguments) -> bool:
    """Whether grep with these arguments searches folders."""
    return not arguments.options.isdisjoint({"-r", "-R", "--recursive", "--dereference-recursive"}) or any(
        option in ("-d", "--directories") and "recurse".startswith(value.text) for option, value in arguments.values
    )


def opened_by(program: str, arguments: Arguments) -> tuple[Word, ...]:
    """Returns the words that name files a program reads, including files of patterns.

    A recursive grep that names no file reads the current folder, even behind a pipe.
    """
    operands, files = arguments.operands, arguments.operands
    if program == "grep" and arguments.options.isdisjoint({"-e", "--regexp", "-f", "--file"}):
        files = operands[1:]
        # A glob may expand to a pattern and more files.
        operands = operands if operands and operands[0].globs else files
    if program == "grep" and not files and is_recursive(arguments):
        operands = (*operands, Word(".", ".", frozenset()))
    named = tuple(value for option, value in arguments.values if option in ("-f", "--file", "--exclude-from"))
    return tuple(word for word in (*operands, *named) if word.text != "-")


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WRITERS = _split("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls")
_OPERATORS = _split("( ) ! , -a -and -o -or -not")
_ALONE = _split(
    "-daystart -depth -empty -executable -false -follow -help --help -ignore_readdir_race -ls -mount -nogroup"
    " -noignore_readdir_race -noleaf -nouser -nowarn -print -print0 -prune -quit -readable -true -version --version"
    " -warn -writable -xdev"
)
_WITH_TEXT = _split(
    "-anewer -cnewer -context -fstype -group -ilname -iname -ipath -iwholename -lname -name -newer -path -perm"
    " -regextype -samefile -type -user -wholename -xtype"
)
_WITH_NUMBER = _split("-amin -atime -cmin -ctime -gid -inum -links -maxdepth -mindepth -mmin -mtime -size -uid -used")
_NEWER = re.compile(r"-newer[aBcm][aBcmt]")
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,9})?[bcwkMG]?")
_START_OPTIONS = frozenset({"-H", "-L", "-P", "-O0", "-O1", "-O2", "-O3"})


def check_find(words: tuple[Word, ...]) -> None:
    """Raises `NotReadOnly` unless every word is a starting folder or part of an expression that only reads."""
    for word in words:
        if word.globs:
            raise NotReadOnly(f"{clip(word.raw)} is an unquoted glob in find, where a file name could become an action")
        if word.text in _WRITERS:
            raise NotReadOnly(f"find {word.text} writes, deletes or runs something")
    texts = [word.text for word in words]
    position = 0
    while position < len(texts) and texts[position] in _START_OPTIONS:
        position += 1
    while position < len(texts) and not _begins_expression(texts[position]):
        position += 1
    while position < len(texts):
        position = _check_predicate(texts, position)


def _begins_expression(text: str) -> bool:
    return text.startswith("-") or text in ("(", ")", "!", ",")


def _check_predicate(texts: list[str], position: int) -> int:
    name = texts[position]
    if name in _OPERATORS or name in _ALONE:
        return position + 1
    takes_value = name in _WITH_TEXT or name in _WITH_NUMBER or name in ("-printf", "-regex", "-iregex")
    if not takes_value and not _NEWER.fullmatch(name):
        raise NotReadOnly(f"find {clip(name)} is not a test or action known to be harmless")
    if position + 1 >= len(texts):
        raise NotReadOnly(f"find {name} has no value")
    value = texts[position + 1]
    if name in _WITH_NUMBER and not _NUMBER.fullmatch(value):
        raise NotReadOnly(f"the value {clip(value)} of find {name} is not a plain number")
    if name == "-printf":
        check_format("find -printf", value)
    if name in ("-regex", "-iregex"):
        check_regex(value)
    return position + 2
