"""Finds the function, class or type that a piece of code is about, in any language, and its most informative line.

Looks only at the shape of lines, so it works on half a file and on unknown languages. It never guesses a name.
"""

from __future__ import annotations

import re

from reverie.text.patterns import late

_MODIFIERS = (
    r"(?:(?:export|default|pub(?:\([a-z]+\))?|public|private|protected|internal|static|async|abstract|final|sealed|open|"
    r"unsafe|override|inline|virtual|const|extern|partial|data|suspend)\s+)*"
)
_KEYWORD = late(
    r"^\s*(?:@\w+\s+)?"
    + _MODIFIERS
    + r"(?:func|fn|def|defp|function\*?|class|struct|interface|type|enum|trait|impl|module|namespace|sub|proc|fun|"
    r"defmodule|defmacro|record|protocol|extension|object|actor|macro_rules!|(?:CREATE\s+)?(?:TABLE|VIEW|FUNCTION))\s+"
    r"(?:\([^)]*\)\s*)?(?:<[^>]*>\s*)?(?:IF NOT EXISTS\s+)?[`\"]?([^\W\d]\w*(?:(?:\.|::)\w+)*[?!]?)"
)
_ARROW = late(
    r"^\s*(?:export\s+)?(?:const|let|var)\s+(\w+)\b[^=]*=\s*(?:async\s*)?(?:function\b|\([^)]*\)[^=]*=>|\w+\s*=>)"
)
_TYPED = late(r"^\s{0,8}[\w:<>\[\],*&~ ]*[\w>\]*&]\s+\*?((?:\w+::)?~?[^\W\d]\w*)\s*\([^;{}]*\)\s*[\w\s:]*\{\s*$")
_NOT_NAMES = frozenset(
    ("if", "for", "while", "switch", "catch", "return", "else", "elif", "match", "with", "select", "new", "when", "in")
)
_NUMBERED = late(r"^[ \t]*\d+(?:→|\t)", re.MULTILINE)
_LOW = late(r'^(?:[\W_]*|["\'][^"\']*["\'],?|import\b.*|from\b.*import\b.*|use\b.*;|#include.*|package\b.*|else\b.*)$')
_LONGEST, _SHORTEST, _LOOKS_BACK = 400, 8, 400
_COMMENT = late(r"^(?://|#|/?\*|--|<!--|\"\"\"|;)")


def defined_name(line: str) -> str | None:
    """Returns the name that this line defines; None if it defines nothing."""
    if len(line) > _LONGEST:
        return None  # too long for a signature: generated text
    for shape in (_KEYWORD, _ARROW, _TYPED):
        found = shape.match(line)
        if found is not None and found[1] not in _NOT_NAMES:
            return found[1]
    return None


def definitions(text: str) -> list[str]:
    """Returns the names defined in a text, in order, each once."""
    return list(dict.fromkeys(name for line in text.splitlines() if (name := defined_name(line)) is not None))


def without_numbers(shown: str) -> str:
    """Strips the line numbers that a reading tool adds to a file."""
    return _NUMBERED.sub("", shown)


def enclosing(file: str, fragment: str) -> str | None:
    """Returns the definition around a fragment of a file: the nearest one above it that is indented less."""
    at = file.find(fragment) if len(fragment.strip()) >= _SHORTEST else -1
    if at < 0:
        return None
    start = file.rfind("\n", 0, at) + 1
    indent = _indent(next((line for line in file[start:].splitlines() if line.strip()), ""))
    for line in reversed(file[:start].splitlines()[-_LOOKS_BACK:]):
        if line.strip() and (indent == 0 or _indent(line) < indent):
            name = defined_name(line)
            if name is not None:
                return name
            if indent == 0:
                return None  # code at the margin is not inside a definition
    return None


def says_something(text: str) -> bool:
    """Returns whether a piece of code has more than imports, closing brackets and comments."""
    lines = [line.strip() for line in text.splitlines()]
    return any(line and not _LOW.match(line) and not _COMMENT.match(line) for line in lines)


def telling_line(old: str, new: str) -> str:
    """Returns the line of a change that says most: a new definition, else the longest new code line, else a comment."""
    before = {line.strip() for line in old.splitlines()}
    fresh = [line.strip() for line in new.splitlines() if line.strip() and line.strip() not in before]
    code = [line for line in fresh if not _LOW.match(line)]
    made = next((line for line in code if defined_name(line) is not None), None)
    if made is not None:
        return made
    spoken = [line for line in code if not _COMMENT.match(line)]
    best = max(spoken[:12], key=lambda line: min(len(line), 80), default=None)
    return best or next(iter(code), "imports" if fresh else "")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
