"""What a dream reads and what it found: sizes and indexes first, then files and logs.

What the user typed is in the directive, or in a file that it names. Files are read completely, newest first, as many as
fit in a request. A file that was cut or has bytes that are not text is read but never changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from reverie.memory.taxonomy import INDEX, TEAM
from reverie.offline.consolidate.brief import DreamTask, TypedText, read_typed
from reverie.offline.conversation import Done
from reverie.offline.step import Act, PlannedCall
from reverie.quick import dataclass

ROOM: Final = 480_000
"""Bytes of files and logs that one dream reads."""
_UNKNOWN_SIZE: Final = 4_000

_SIZE = re.compile(r"^[ \t]*+(?P<size>\d+) (?P<path>/.+\.md)$", re.MULTILINE)
_NUMBERED = re.compile(r"^ *(?P<number>\d+)\t(?P<text>.*)$")
_CUT = re.compile(r"… \[[\d,]+ more characters in this line\]$")


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything a dream knows when it begins to plan."""

    brief: DreamTask
    texts: Mapping[str, str]
    """Topic files and indexes by relative path."""
    fixed: frozenset[str]
    """Those of them that must not be changed, because they were not seen completely."""
    logs: Mapping[str, str]
    said: tuple[TypedText, ...]
    """Oldest first."""


def look_round(brief: DreamTask) -> Act:
    """The first round: the indexes, and how large the files are."""
    calls = [PlannedCall("Read", {"file_path": brief.path(INDEX)})]
    folders = [f"{_quoted(brief.root)}/*.md"]
    if any(name.startswith(f"{TEAM}/") for name in brief.files):
        calls.append(PlannedCall("Read", {"file_path": brief.path(f"{TEAM}/{INDEX}")}))
        folders.append(f"{_quoted(brief.root)}/{TEAM}/*.md")
    calls.append(PlannedCall("Bash", {"command": f"wc -c {' '.join(folders)} 2>/dev/null"}))
    return Act("First I look at the index and at how much there is.", tuple(calls))


def read_all(brief: DreamTask, done: Sequence[Done], room: int = ROOM) -> Act | None:
    """The second round: files and logs as far as they fit, and earlier messages; None if there is nothing."""
    sizes = {
        match["path"]: int(match["size"]) for one in done if one.tool == "Bash" for match in _SIZE.finditer(one.text)
    }
    calls: list[PlannedCall] = []
    for name in [*brief.logs, *brief.files]:
        room -= sizes.get(brief.path(name), _UNKNOWN_SIZE) + 400
        if room < 0:
            break
        calls.append(PlannedCall("Read", {"file_path": brief.path(name)}))
    if brief.earlier:
        calls.append(PlannedCall("Read", {"file_path": brief.earlier}))
    return Act("Then I read the files, and what the user typed.", tuple(calls)) if calls else None


def collect_seen(brief: DreamTask, done: Sequence[Done]) -> Seen:
    """Collects the results of the calls so far."""
    texts: dict[str, str] = {}
    logs: dict[str, str] = {}
    fixed: set[str] = set()
    said = list(brief.said)
    for one in done:
        if one.tool == "Read" and not one.failed:
            if one.input.get("file_path") == brief.earlier:
                said += read_typed(_file_text(one.text)[0])
                continue
            name = str(one.input.get("file_path", "")).removeprefix(f"{brief.root}/")
            text, is_whole = _file_text(one.text)
            if name in brief.logs:
                logs[name] = text
                continue
            texts[name] = text
            if not is_whole:
                fixed.add(name)
    ordered = sorted(said, key=lambda one: one.day)
    return Seen(brief, texts, frozenset(fixed), logs, tuple(dict.fromkeys(ordered)))


def _file_text(shown: str) -> tuple[str, bool]:
    """A file as Read shows it, and whether that is the complete file except for line ends."""
    lines: list[str] = []
    is_whole = True
    for line in shown.splitlines() if "\x0b" not in shown else shown.split("\n"):
        found = _NUMBERED.match(line)
        if found is None or int(found["number"]) != len(lines) + 1:
            is_whole = is_whole and not line.startswith(("[Lines ", "[Bytes "))
            continue
        is_whole = is_whole and not _CUT.search(line) and "\ufffd" not in line
        lines.append(found["text"])
    return "".join(f"{line}\n" for line in lines), is_whole and bool(lines)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
