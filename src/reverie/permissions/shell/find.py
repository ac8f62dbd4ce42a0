"""find's expression language: its tests and printing actions, each with the number of words it takes.

find is the one program on the list that can write, delete and run other programs, so its words are read by its own
grammar and a writing predicate is refused wherever it stands, even as the value of another one. No glob may stand in it
at all: a file called -delete would become an action.
"""

from __future__ import annotations

import re

from reverie.permissions.refusal import NotReadOnly, clip
from reverie.permissions.shell.options import check_format, check_regex
from reverie.permissions.shell.words import Word


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
