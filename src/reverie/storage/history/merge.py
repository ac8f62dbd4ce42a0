"""Merges two changes of one text line by line, to undo an older change or to merge by hand.

Changes to different lines both count. If both change the same lines, there is no result. Pure: text in, text out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_Edit = tuple[int, int, list[str]]  # lines [first, last) of the base, and the lines that replace them


def merge(base: str, ours: str, theirs: str, *, both_insert: bool = False) -> str | None:
    """Returns `base` with both changes, or None. With `both_insert`, insertions at one place do not contradict."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    lines = _LINES.findall(base)
    one, other = _edits(lines, _LINES.findall(ours)), _edits(lines, _LINES.findall(theirs))
    edits = _interleave(one, other, both_insert)
    if edits is None:
        return None
    out: list[str] = []
    at = 0
    for first, last, text in edits:
        out += [*lines[at:first], *text]
        at = last
    return "".join([*out, *lines[at:]])


def _edits(base: Sequence[str], changed: Sequence[str]) -> list[_Edit]:
    import difflib

    matcher = difflib.SequenceMatcher(None, base, changed, autojunk=False)
    return [(i1, i2, list(changed[j1:j2])) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]


def _interleave(one: list[_Edit], other: list[_Edit], both_insert: bool) -> list[_Edit] | None:
    out: list[_Edit] = []
    ours, theirs = list(one), list(other)
    while ours and theirs:
        mine, yours = ours[0], theirs[0]
        if mine == yours:
            out.append(ours.pop(0))
            theirs.pop(0)
        elif mine[:2] == yours[:2] and mine[0] == mine[1]:  # both insert here
            if not both_insert:
                return None
            out += [ours.pop(0), theirs.pop(0)]
        elif mine[1] <= yours[0]:
            out.append(ours.pop(0))
        elif yours[1] <= mine[0]:
            out.append(theirs.pop(0))
        else:
            return None
    return out + ours + theirs
