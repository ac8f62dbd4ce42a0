"""The eight programs that may run, the options each may be given, and what each does with its operands.

The tables are an allow-list kept by hand from the GNU manuals: an option that writes, waits, follows, runs something or
reads names from elsewhere is left out, and so is every option nobody has looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.shell.options import Arguments, Kind, Options, check_format, check_regex, read_arguments
from reverie.permissions.shell.paths import check_contents
from reverie.permissions.shell.words import SimpleCommand, Word


def _names(text: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in text.split())


def _kinds(**kinds: Kind) -> Mapping[str, Kind]:
    return MappingProxyType({f"--{name.replace('_', '-')}": kind for name, kind in kinds.items()})


def _short(**kinds: Kind) -> Mapping[str, Kind]:
    return MappingProxyType(dict(kinds))


_LS = Options(
    flags="aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
    valued=_short(I="pattern", T="small", w="small"),
    long_flags=_names(
        "all almost-all author escape ignore-backups directory dired file-type full-time group-directories-first"
        " no-group human-readable si dereference-command-line dereference-command-line-symlink-to-dir inode kibibytes"
        " dereference numeric-uid-gid literal hide-control-chars show-control-chars quote-name reverse recursive size"
        " context zero"
    ),
    long_valued=_kinds(
        block_size="choice",
        format="choice",
        hide="pattern",
        ignore="pattern",
        indicator_style="choice",
        quoting_style="choice",
        sort="choice",
        tabsize="small",
        time="choice",
        time_style="format",
        width="small",
    ),
    long_optional=_kinds(color="choice", classify="choice", hyperlink="choice"),
)
_CAT = Options(
    flags="AbeEnstTuv",
    long_flags=_names("show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting"),
)
_STAT = Options(
    flags="Lft",
    valued=_short(c="format"),
    long_flags=_names("dereference file-system terse"),
    long_valued=_kinds(format="format", printf="format", cached="choice"),
)
_WC = Options(
    flags="cmlLw",
    long_flags=_names("bytes chars lines max-line-length words"),
    long_valued=_kinds(total="choice"),
)
_HEAD = Options(
    flags="qvz",
    valued=_short(n="lines", c="bytes"),
    long_flags=_names("quiet silent verbose zero-terminated"),
    long_valued=_kinds(lines="lines", bytes="bytes"),
    number="lines",
)
_TAIL = _HEAD  # tail's other options all follow, wait or retry
_GREP = Options(
    flags="EFGPiywxzsvVbnHhoqaIrRLlcTZU0123456789",
    valued=_short(e="regex", f="file", m="lines", d="choice", D="device_action", A="small", B="small", C="small"),
    long_flags=_names(
        "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case word-regexp line-regexp"
        " null-data no-messages invert-match byte-offset line-number line-buffered with-filename no-filename"
        " only-matching quiet silent text recursive dereference-recursive files-without-match files-with-matches"
        " count initial-tab null no-group-separator binary"
    ),
    long_valued=_kinds(
        regexp="regex",
        file="file",
        max_count="lines",
        label="choice",
        binary_files="choice",
        directories="choice",
        devices="device_action",
        include="pattern",
        exclude="pattern",
        exclude_from="file",
        exclude_dir="pattern",
        before_context="small",
        after_context="small",
        context="small",
        group_separator="pattern",
    ),
    long_optional=_kinds(color="choice", colour="choice"),
    number="small",
)
_READERS = {"cat": _CAT, "head": _HEAD, "tail": _TAIL, "wc": _WC}
OPTIONS: Mapping[str, Options] = MappingProxyType({"ls": _LS, "stat": _STAT, "grep": _GREP, **_READERS})
"""What each program may be given; find has a language of its own."""

PROGRAMS = ("ls", "find", "grep", "cat", "stat", "wc", "head", "tail")


def check_command(command: SimpleCommand) -> None:
    """Raise `NotReadOnly` unless this one program, with these arguments, only reads and comes to an end."""
    name, *rest = command.words
    arguments = tuple(rest)
    if not name.plain or name.text not in PROGRAMS:
        raise NotReadOnly(f"{clip(name.raw)} is not one of {', '.join(PROGRAMS)}, written plainly")
    match name.text:
        case "find":
            check_find(arguments)
        case "ls":
            read_arguments("ls", arguments, _LS)
        case "stat":
            read_arguments("stat", arguments, _STAT)
        case "grep":
            _check_grep(read_arguments("grep", arguments, _GREP), piped=command.piped)
        case reader:
            read = read_arguments(reader, arguments, _READERS[reader])
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
            raise NotReadOnly("grep lacks a pattern")
        pattern, *files = operands
        check_regex(pattern.text)
        if pattern.globs:  # what a glob expands to may be a pattern and further files
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
    """Whether a grep with these arguments walks through folders."""
    return not arguments.options.isdisjoint({"-r", "-R", "--recursive", "--dereference-recursive"}) or any(
        option in ("-d", "--directories") and "recurse".startswith(value.text) for option, value in arguments.values
    )


def opened_by(program: str, arguments: Arguments) -> tuple[Word, ...]:
    """The words that name files whose contents a program reads, and files it reads patterns from.

    A recursive grep that names no file reads the current folder.
    """
    operands, files = arguments.operands, arguments.operands
    if program == "grep" and arguments.options.isdisjoint({"-e", "--regexp", "-f", "--file"}):
        files = operands[1:]
        # What a glob expands to may be a pattern and further files.
        operands = operands if operands and operands[0].globs else files
    if program == "grep" and not files and is_recursive(arguments):  # even behind a pipe
        operands = (*operands, Word(".", ".", frozenset()))
    named = tuple(value for option, value in arguments.values if option in ("-f", "--file", "--exclude-from"))
    return tuple(word for word in (*operands, *named) if word.text != "-")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WRITERS = _set("-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls")
_OPERATORS = _set("( ) ! , -a -and -o -or -not")
_ALONE = _set(
    "-daystart -depth -empty -executable -false -follow -help --help -ignore_readdir_race -ls -mount -nogroup"
    " -noignore_readdir_race -noleaf -nouser -nowarn -print -print0 -prune -quit -readable -true -version --version"
    " -warn -writable -xdev"
)
_WITH_TEXT = _set(
    "-anewer -cnewer -context -fstype -group -ilname -iname -ipath -iwholename -lname -name -newer -path -perm"
    " -regextype -samefile -type -user -wholename -xtype"
)
_WITH_NUMBER = _set("-amin -atime -cmin -ctime -gid -inum -links -maxdepth -mindepth -mmin -mtime -size -uid -used")
_NEWER = re.compile(r"-newer[aBcm][aBcmt]")
_NUMBER = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,9})?[bcwkMG]?")
_START_OPTIONS = frozenset({"-H", "-L", "-P", "-O0", "-O1", "-O2", "-O3"})


def check_find(words: tuple[Word, ...]) -> None:
    """Raise `NotReadOnly` unless every word is a starting folder or part of a reading expression."""
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
        position = _predicate(texts, position)


def _begins_expression(text: str) -> bool:
    return text.startswith("-") or text in ("(", ")", "!", ",")


def _predicate(texts: list[str], position: int) -> int:
    name = texts[position]
    if name in _OPERATORS or name in _ALONE:
        return position + 1
    takes_value = name in _WITH_TEXT or name in _WITH_NUMBER or name in ("-printf", "-regex", "-iregex")
    if not takes_value and not _NEWER.fullmatch(name):
        raise NotReadOnly(f"find {clip(name)} is not a test or action known to be harmless")
    if position + 1 >= len(texts):
        raise NotReadOnly(f"find {name} lacks its value")
    value = texts[position + 1]
    if name in _WITH_NUMBER and not _NUMBER.fullmatch(value):
        raise NotReadOnly(f"the value {clip(value)} of find {name} is not a plain number")
    if name == "-printf":
        check_format("find -printf", value)
    if name in ("-regex", "-iregex"):
        check_regex(value)
    return position + 2
