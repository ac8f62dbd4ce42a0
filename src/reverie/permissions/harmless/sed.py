"""Checks that a sed script only prints: addresses, `p`, `=`, `q`, `d`, and `s` without the flags that write or run.

Anything else is refused: `w`, `r`, `e`, `i`, labels, blocks, and delimiters that other seds read differently.
"""

from __future__ import annotations

import re

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.shell.options import check_regex

_REGEX = r"/(?:[^/\\]|\\.)*/I?"
_ADDRESS = rf"(?:\d{{1,9}}(?:~\d{{1,9}})?|\$|{_REGEX})"
_WHERE = rf"(?:{_ADDRESS}(?:\s*,\s*(?:{_ADDRESS}|[+~]\d{{1,9}}))?\s*!?\s*)?"
_SUBSTITUTE = r"s(?P<d>[/|#,:@%])(?:(?!(?P=d))[^\\]|\\.)*(?P=d)(?:(?!(?P=d))[^\\]|\\.)*(?P=d)[gpIi0-9]{0,4}"
_COMMAND = re.compile(rf"\s*{_WHERE}(?:[p=qd]|{_SUBSTITUTE})\s*(?:;|\Z)")


def check_script(script: str) -> None:
    """Raises `NotReadOnly` unless the script only prints."""
    position = 0
    while position < len(script):
        found = _COMMAND.match(script, position)
        if found is None:
            raise NotReadOnly(f"sed {clip(script[position:])} is not known to print only")
        # Some seds let a bracket hide the end of an expression: then the rest would be read differently.
        if any(piece.count("[") != piece.count("]") for piece in re.split(r"(?<!\\)[/|#,:@%]", found[0])):
            raise NotReadOnly("the script of sed has a bracket that may hide the end of an expression")
        position = found.end()
    check_regex(script)
