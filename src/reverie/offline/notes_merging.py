"""Merges old and new text of one section of the notes: newer lines first, older ones about other things kept. Pure.

A section has titles (lines that end in a colon), bullets, and fenced excerpts below them. Never longer than its limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.layers.l4_compaction.by_code.limits import bounded
from reverie.models.tokens import encoded

_SPAN = re.compile(r"`[^`]+`")
_BULLET = re.compile(r"^[-*] ")
_TITLE_LINE = re.compile(r"^(?![-*] )(.{3,80}?)(?: \(\d+ of \d+\))?:$")
_LISTED = re.compile(r"^(- (?:\S+/: )?)(\S+\.\w+(?: \([^)]*\))?(?:, \S+\.\w+(?: \([^)]*\))?)*)$")
_PASSING = re.compile(r"^\[… cut to fit\]$|^- \(\d+ earlier messages\)$")
_CLEARED = "[Cleared to save room"
_TITLE, _STANDS, _ASKED, _RESULT = 0, 1, 2, 8

_Part = dict[str, str]


def merge_section(kind: int, old: str, new: str, limit: int) -> str:
    """Merges a section of this kind (its place among our ten). What the new text does not mention is kept."""
    if kind == _TITLE:
        return old or new
    if kind in (_STANDS, _RESULT):
        return bounded(new or old, limit)
    before, now = _parts(old), _parts(new)
    if not before and (kind != _ASKED or len(encoded(new)) <= limit):
        return bounded(new, limit)
    if kind == _ASKED:
        asked = {key: item for part in now.values() for key, item in part.items()}  # titles mean nothing here
        old_items = [(key, item) for part in before.values() for key, item in part.items()]
        known = {item for _, item in old_items}  # what is there already replaces nothing again
        replaced = {key for key, item in asked.items() if item not in known}
        kept = [item for key, item in old_items if key not in replaced and item not in asked.values()]
        return _newest([*kept, *asked.values()], limit)
    texts = dict[str, list[str]]()
    for title, items in now.items():
        was = before.get(title, {})
        texts[title] = [was.get(key, item) if _CLEARED in item else item for key, item in items.items()]
    room = limit - len(encoded(_joined(texts)))
    for title, items in before.items():
        for key, item in items.items():
            left = "" if key in now.get(title, {}) else _without_known(item, new)
            size = len(encoded(left)) + 1 + (0 if title in texts else len(encoded(title)) + 3)
            if left and size <= room:
                texts.setdefault(title, []).append(left)
                room -= size
    return bounded(_joined(texts), limit)


def _joined(texts: dict[str, list[str]]) -> str:
    parts = ["\n".join([f"{title}:", *items] if title else items) for title, items in texts.items() if items]
    return "\n\n".join(parts)


def _parts(text: str) -> dict[str, _Part]:
    """The items of a text by subject, below their title (without one: empty)."""
    found: dict[str, _Part] = {}
    title, lines, fenced = "", list[str](), False

    def close() -> None:
        if lines and not _PASSING.match(lines[0]):
            part = found.setdefault(title, {})
            key = about = _about(lines[0])
            number = 1
            while key in part:  # numbered per subject, so that a second merge finds the same keys
                number += 1
                key = f"{about} #{number}"
            part[key] = "\n".join(lines)
        lines.clear()

    for line in text.splitlines():
        if not fenced and (not line.strip() or _BULLET.match(line) or _TITLE_LINE.match(line)):
            close()
        if not fenced and (named := _TITLE_LINE.match(line)):
            title = named[1]
        elif line.strip() or fenced:
            lines.append(line)
        fenced = fenced != line.lstrip().startswith("```")
    close()
    return found


def _about(line: str) -> str:
    """What a line is about: a list of files as a whole; otherwise up to the first backquoted text, arrow or colon."""
    bare = _BULLET.sub("", line)
    if _LISTED.match(line):
        return bare
    span = _SPAN.search(bare)
    if span:
        return bare[: span.end()]
    return re.split(r" → |: | \(", bare, maxsplit=1)[0]


def _without_known(item: str, text: str) -> str:
    """Of a folder's list of files, those that the new text does not name; any other item unchanged."""
    listed = _LISTED.match(item)
    if listed is None:
        return item
    names = [name for name in listed[2].split(", ") if name.split(" (")[0] not in text]
    return listed[1] + ", ".join(names) if names else ""


def _newest(items: Sequence[str], limit: int) -> str:
    """As many as fit, counted from the last."""
    kept, used = list[str](), 0
    for item in reversed(items):
        used += len(encoded(item)) + 1
        if used > limit:
            break
        kept.append(item)
    return "\n".join(reversed(kept))
