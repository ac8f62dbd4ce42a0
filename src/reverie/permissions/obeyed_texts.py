"""Finds the files that an obeyed text names: `@path` in instructions, `include` in Makefiles, scripts in settings.

Each reader returns too much rather than too little: a word that is not a file of the project does no harm.
`obeyed_links` follows the names.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from enum import Enum, auto
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.permissions.obeyed_files import USUAL_FILES, is_makefile
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.text.patterns import late

_MOST_BYTES = 1_000_000
_MOST_NAMES = 5_000
_MOST_EXPANSIONS = 5

_INSTRUCTIONS = ("*.md", "*.mdc", "*rules", ".clinerules*", ".roorules*", ".goosehints")
# Programs run or read the words of these texts when they start. Other files of these folders are not read.
_SETTINGS = (
    *(".envrc*", ".autoenv*", "settings*.json", "settings*.toml", "hooks*.json", "*mcp*.json", "opencode.json*"),
    *(
        "config.toml",
        "tasks.json",
        "*devcontainer.json",
        "*.code-workspace",
        ".aider*",
        ".pre-commit-*",
        "*lefthook*.*",
    ),
    *(".lintstagedrc*", ".overcommit.yml", "*simple-git-hooks*", ".bash*", ".zsh*", ".profile", ".*vimrc*", "_vimrc"),
    *(".exrc", ".gdbinit", ".lldbinit", ".tmux.conf", "mise*.toml", ".mise*.toml"),
)
_INCLUDE = late(r"(?:^[ \t]*\.?[-sd]?|\$[({]eval[ \t]+[-s]?)include[ \t]+(.+)$", re.MULTILINE)
_OTHER_MAKEFILE = late(r"(?<!\S)(?:-f[ \t]*|--(?:make)?file[= \t])(\S+)")
_ASSIGNMENT = late(
    r"^[ \t]*(?:export[ \t]+|override[ \t]+)*([\w.-]+)[ \t]*(?:\?|\+|:{0,3}|!)=[ \t]*(.*)$", re.MULTILINE
)
_VARIABLE = late(r"\$(?:\(([^()]*)\)|\{([^{}]*)\}|(.))")
_REFERENCE = late(r"@((?:[^\s\\]|\\ )+)")
_JUST = late(r"^[ \t]*(?:import|mod|!include)\??[ \t]+(.+)$", re.MULTILINE)
_WORD = late(r"[^\s\"'`,;:=|&<>()\[\]{}!]+")
_VARIABLE_FOLDER = late(r"\$(?:\w+|\{[^{}]*\}|\([^()]*\))\\?[\"']?/")
_WATCHED = late(r"^[ \t]*watch_(?:file|dir).*$", re.MULTILINE)
_TAIL = ".,;:!?)]}>\"'*_`"


class TooManyNames(Exception):
    """There are too many names or bytes to check in a moment."""


class TextKind(Enum):
    """How a text names other files."""

    INSTRUCTIONS = auto()
    MAKE = auto()
    JUST = auto()
    PIPELINE = auto()
    WORDS = auto()


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path in a text; `*` in it may be anything. `kind`: how to read the named file, if not like the text itself."""

    word: str
    must_exist: bool = False
    kind: TextKind | None = None


def find_text_kind(path: Path) -> TextKind | None:
    """Returns how an obeyed file of this name leads to others; None if it does not."""
    name = path.name.lower()
    if is_makefile(name):
        return TextKind.MAKE
    if name in ("justfile", ".justfile") or name.endswith(".just"):
        return TextKind.JUST
    if any(fnmatchcase(name, pattern) for pattern in _SETTINGS):
        return TextKind.WORDS
    if any(fnmatchcase(name, pattern) for pattern in _INSTRUCTIONS):
        return TextKind.INSTRUCTIONS
    return TextKind.PIPELINE if name.endswith((".yml", ".yaml")) else None


def find_named_paths(text: str, kind: TextKind) -> Iterator[NamedPath]:
    """Yields each path that a text of this kind names, once; raises `TooManyNames` if there are too many."""
    seen = set[NamedPath]()
    for named in _READERS[kind](text):
        if named.word not in ("", ".", "..", "/") and "\0" not in named.word and named not in seen:
            seen.add(named)
            yield named
        if len(seen) > _MOST_NAMES:
            raise TooManyNames


def read_bounded(path: str) -> str:
    """Returns the text of a regular file, empty if there is none; raises `TooManyNames` for a large file."""
    try:
        return read_regular_text(path, _MOST_BYTES, errors="replace")
    except OSError as error:
        if error.errno == errno.EOVERFLOW:
            raise TooManyNames from error
        return ""
    except ValueError:  # not a path on this system
        return ""


def read_git_values(config: Path) -> Iterator[tuple[str, str]]:
    """Yields the keys (in lower case, without their section) and values of a file of git's configuration."""
    for line in read_bounded(str(config)).replace("\\\n", "").split("\n"):
        key, equals, value = re.sub(r"^\s*\[[^\]]*\]", "", line).partition("=")
        if equals:
            yield key.strip().lower(), re.sub(r"\s[#;].*", "", value).strip().strip('"')


def _read_instructions(text: str) -> Iterator[NamedPath]:
    for found in dict.fromkeys(_REFERENCE.findall(text)):
        word = found.replace("\\ ", " ")
        for spelling in (word, word.partition("#")[0]):
            yield NamedPath(spelling.replace("*", "?"))
            bare = spelling.rstrip(_TAIL)
            for end in range(len(bare), min(len(spelling), len(bare) + 4)):
                yield NamedPath(spelling[:end].replace("*", "?"))


def _read_makefile(text: str) -> Iterator[NamedPath]:
    text = text.replace("\\\n", " ")
    values: dict[str, list[str]] = {}
    for name, given in _ASSIGNMENT.findall(text):
        values.setdefault(name, []).append(given.split("#")[0].strip())

    def value(found: re.Match[str]) -> str:
        inner = (found[1] or found[2] or found[3] or "").strip()
        if inner.startswith("wildcard "):
            return inner.removeprefix("wildcard ")
        if inner in values:
            return " ".join(values[inner])
        changed = re.fullmatch(r"[\w.-]+:[^=]*=(.*)", inner)  # $(OBJECTS:.o=.d)
        if changed:
            return "*" + changed[1].strip().lstrip("%")
        changed = re.fullmatch(r"patsubst [^,]*,([^,]*),.*", inner, re.DOTALL)
        return changed[1].strip().replace("%", "*") if changed else "*"

    for line in dict.fromkeys(_INCLUDE.findall(text)):
        line = line.split("#")[0]
        for _ in range(_MOST_EXPANSIONS):
            line = _VARIABLE.sub(value, line)[:_MOST_BYTES]
        # A variable that is still there is nested deeper, so it may be anything.
        for word in _VARIABLE.sub("*", line).split():
            yield NamedPath(re.sub(r"\*+", "*", word.strip("\"'<>)}").replace("%", "*")))
    for word in _OTHER_MAKEFILE.findall(text):
        plain = _VARIABLE.sub("*", word.strip("\"'"))
        if "*" not in plain:
            yield NamedPath(plain, must_exist=True)


def _read_justfile(text: str) -> Iterator[NamedPath]:
    for line in _JUST.findall(text):
        for word in line.split():
            name = word.strip("\"'")
            yield from (NamedPath(name), NamedPath(f"{name}/mod.just"), NamedPath(f"{name}.just"))


def _read_pipeline(text: str) -> Iterator[NamedPath]:
    """Yields other pipelines and the folders of actions; not the scripts, which are half of the project."""
    for word in _WORD.findall(text):
        if word.lower().endswith((".yml", ".yaml")):
            yield NamedPath(word.lstrip("/"), must_exist=True)
    for folder in re.findall(r"uses:\s*[\"']?\./([^\s\"'#]+)", text):
        yield NamedPath(folder)


def _read_words(text: str) -> Iterator[NamedPath]:
    """Yields every word that is the path of a file; a variable at its start counts as the folder of the project."""
    for word in dict.fromkeys(_WORD.findall(_VARIABLE_FOLDER.sub(" ", _WATCHED.sub("", text)))):
        if any(fnmatchcase(word.lower().rsplit("/", 1)[-1], name) for name in USUAL_FILES):
            continue
        yield NamedPath(word.replace("*", "?"), must_exist=True)


_READERS = {
    TextKind.INSTRUCTIONS: _read_instructions,
    TextKind.MAKE: _read_makefile,
    TextKind.JUST: _read_justfile,
    TextKind.PIPELINE: _read_pipeline,
    TextKind.WORDS: _read_words,
}
