"""Which files a text names that is obeyed later: `@path` in instructions, `include` in Makefiles, scripts in settings.

Each reader takes rather too much than too little: a word that names no file of the project does no harm. Nothing here
follows a name; `obeyed_links` does.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.permissions.obeyed import is_makefile
from reverie.regular_files import read_regular_text

_MOST_BYTES = 1_000_000
_MOST_NAMES = 5_000
_MOST_EXPANSIONS = 5

_INSTRUCTIONS = ("*.md", "*.mdc", "*rules", ".clinerules*", ".roorules*", ".goosehints")
# Texts whose words are run or read at a start. Others of the same folders (lists of open files) are not looked into.
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
_INCLUDE = re.compile(r"(?:^[ \t]*\.?[-sd]?|\$[({]eval[ \t]+[-s]?)include[ \t]+(.+)$", re.MULTILINE)
_OTHER_MAKEFILE = re.compile(r"(?<!\S)(?:-f[ \t]*|--(?:make)?file[= \t])(\S+)")
_ASSIGNMENT = re.compile(
    r"^[ \t]*(?:export[ \t]+|override[ \t]+)*([\w.-]+)[ \t]*(?:\?|\+|:{0,3}|!)=[ \t]*(.*)$", re.MULTILINE
)
_VARIABLE = re.compile(r"\$(?:\(([^()]*)\)|\{([^{}]*)\}|(.))")
_REFERENCE = re.compile(r"@((?:[^\s\\]|\\ )+)")
_JUST = re.compile(r"^[ \t]*(?:import|mod|!include)\??[ \t]+(.+)$", re.MULTILINE)
_WORD = re.compile(r"[^\s\"'`,;:=|&<>()\[\]{}!]+")
_VARIABLE_FOLDER = re.compile(r"\$(?:\w+|\{[^{}]*\}|\([^()]*\))\\?[\"']?/")
# Named in many hooks and settings, and edited all the time; decision 0025 says why they are not obeyed.
_OF_THE_PROJECT = (
    *("package*.json", "pyproject.toml", "setup.*", "tox.ini", "*.lock", "requirements*.txt", "tsconfig*.json"),
    *("cargo.toml", "go.mod", "go.sum", "flake.nix", "shell.nix"),
)
_WATCHED = re.compile(r"^[ \t]*watch_(?:file|dir).*$", re.MULTILINE)
_TAIL = ".,;:!?)]}>\"'*_`"


class TooMuch(Exception):
    """There is more to look at than can be done in a moment."""


class Kind(Enum):
    """How a text names other files."""

    INSTRUCTIONS = auto()
    MAKE = auto()
    JUST = auto()
    PIPELINE = auto()
    WORDS = auto()


@dataclass(frozen=True, slots=True)
class Named:
    """A path in a text; `*` in it may be anything. `kind`: how the named file is read, if not like the text itself."""

    word: str
    must_exist: bool = False
    kind: Kind | None = None


def kind_of(path: Path) -> Kind | None:
    """How an obeyed file of this name leads to others; None if it does not."""
    name = path.name.lower()
    if is_makefile(name):
        return Kind.MAKE
    if name in ("justfile", ".justfile") or name.endswith(".just"):
        return Kind.JUST
    if any(fnmatchcase(name, pattern) for pattern in _SETTINGS):
        return Kind.WORDS
    if any(fnmatchcase(name, pattern) for pattern in _INSTRUCTIONS):
        return Kind.INSTRUCTIONS
    return Kind.PIPELINE if name.endswith((".yml", ".yaml")) else None


def named_in(text: str, kind: Kind) -> Iterator[Named]:
    """The paths that a text of this kind names, each once; raises `TooMuch` if there are too many."""
    seen = set[Named]()
    for named in _READERS[kind](text):
        if named.word not in ("", ".", "..", "/") and "\0" not in named.word and named not in seen:
            seen.add(named)
            yield named
        if len(seen) > _MOST_NAMES:
            raise TooMuch


def read_bounded(path: str) -> str:
    """The text of a regular file, empty if there is none; raises `TooMuch` for a large one."""
    try:
        return read_regular_text(path, _MOST_BYTES, errors="replace")
    except OSError as error:
        if error.errno == errno.EOVERFLOW:
            raise TooMuch from error
        return ""
    except ValueError:  # no path of this system
        return ""


def git_values(config: Path) -> Iterator[tuple[str, str]]:
    """The keys (in lower case, without their section) and values of one of git's files."""
    for line in read_bounded(str(config)).replace("\\\n", "").split("\n"):
        key, equals, value = re.sub(r"^\s*\[[^\]]*\]", "", line).partition("=")
        if equals:
            yield key.strip().lower(), re.sub(r"\s[#;].*", "", value).strip().strip('"')


def _instructions(text: str) -> Iterator[Named]:
    for found in dict.fromkeys(_REFERENCE.findall(text)):
        word = found.replace("\\ ", " ")
        for spelling in (word, word.partition("#")[0]):
            yield Named(spelling.replace("*", "?"))
            bare = spelling.rstrip(_TAIL)
            for end in range(len(bare), min(len(spelling), len(bare) + 4)):
                yield Named(spelling[:end].replace("*", "?"))


def _make(text: str) -> Iterator[Named]:
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
        # What is left is deeper than that, so it may be anything.
        for word in _VARIABLE.sub("*", line).split():
            yield Named(re.sub(r"\*+", "*", word.strip("\"'<>)}").replace("%", "*")))
    for word in _OTHER_MAKEFILE.findall(text):
        plain = _VARIABLE.sub("*", word.strip("\"'"))
        if "*" not in plain:
            yield Named(plain, must_exist=True)


def _just(text: str) -> Iterator[Named]:
    for line in _JUST.findall(text):
        for word in line.split():
            name = word.strip("\"'")
            yield from (Named(name), Named(f"{name}/mod.just"), Named(f"{name}.just"))


def _pipeline(text: str) -> Iterator[Named]:
    """Further files of the same kind, and the folders of actions; not the scripts, which are half of the project."""
    for word in _WORD.findall(text):
        if word.lower().endswith((".yml", ".yaml")):
            yield Named(word.lstrip("/"), must_exist=True)
    for folder in re.findall(r"uses:\s*[\"']?\./([^\s\"'#]+)", text):
        yield Named(folder)


def _words(text: str) -> Iterator[Named]:
    """Every word that is the path of a file; a variable in front is taken for the folder of the project."""
    for word in dict.fromkeys(_WORD.findall(_VARIABLE_FOLDER.sub(" ", _WATCHED.sub("", text)))):
        if any(fnmatchcase(word.lower().rsplit("/", 1)[-1], name) for name in _OF_THE_PROJECT):
            continue
        yield Named(word.replace("*", "?"), must_exist=True)


_READERS = {
    Kind.INSTRUCTIONS: _instructions,
    Kind.MAKE: _make,
    Kind.JUST: _just,
    Kind.PIPELINE: _pipeline,
    Kind.WORDS: _words,
}
