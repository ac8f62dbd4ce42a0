"""What a dream reads and what it found: sizes and indexes first, then files, logs and greps of transcripts.

Transcripts are never read completely: only lines that the user typed and that contain a word of a correction, an
instruction or a change, at most the last fifty of each. Files are read completely, newest first, as many as fit in a
request. A file that was cut or has bytes that are not text is read but never changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from reverie.memory.taxonomy import INDEX, TEAM
from reverie.moments import local_day
from reverie.offline.consolidate.brief import DreamTask
from reverie.offline.conversation import Done
from reverie.offline.step import Act, PlannedCall
from reverie.parsing import load_json
from reverie.storage.transcript.foreign import is_injected

MOST_MATCHES: Final = 50
MOST_BYTES: Final = 24_000
"""Characters that the greps of one transcript print: a larger result would be kept on disk."""
ROOM: Final = 480_000
"""Bytes of files and logs that one dream reads."""
_UNKNOWN_SIZE: Final = 4_000

_SIZE = re.compile(r"^[ \t]*+(?P<size>\d+) (?P<path>/.+\.md)$", re.MULTILINE)
_NUMBERED = re.compile(r"^ *(?P<number>\d+)\t(?P<text>.*)$")
_CUT = re.compile(r"… \[[\d,]+ more characters in this line\]$")
_MATCH = re.compile(r'^(?P<line>\d+):"(?P<key>timestamp|content|text)": ?"(?P<value>(?:[^"\\]|\\.)*)"$')

_MARKERS: Final = (
    "never|always|don.t|dont|doesn.t|do not|stop|avoid|instead|actually|remember|from now|for later|for the record"
    "|in future|going forward|please|prefer|rather|wrong|correct|not true|no longer|not any|any ?more|since|switched"
    "|moved|dropped|left|replaced|upgraded|changed|migrated|renamed|retired|sold|gone|it.s|we.re|now|.?no[,.!]|not|must"
    "|only|nie|immer|nicht|kein|künftig|ab jetzt|ab sofort|merk|statt|falsch|stimmt|nunca|siempre|recuerda|ya no|ahora"
    "|prefiero|no uses|不要|不是|别|总是|记住|以后|改|换|现在|しないで|常に|覚え|今後|ではなく|変更"
)
_TYPED: Final = (
    r"""grep -hE '"type": ?"user"' {path}"""
    r""" | grep -vE '"tool_result"|"planContent"|"is(Sidechain|Meta|CompactSummary)": ?true'"""
    rf""" | grep -iE '{_MARKERS}' | tail -n {MOST_MATCHES}"""
    r""" | grep -noE '"timestamp": ?"[^"]*"|"(content|text)": ?"([^"\\]|\\.)*"' | tail -c """
    f"{MOST_BYTES}"
)


@dataclass(frozen=True, slots=True)
class TypedText:
    """Something the user typed, and when."""

    text: str
    day: date


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
    """The second round: files and logs as far as they fit, and the greps; None if there is nothing to look at."""
    sizes = {
        match["path"]: int(match["size"]) for one in done if one.tool == "Bash" for match in _SIZE.finditer(one.text)
    }
    calls: list[PlannedCall] = []
    for name in [*brief.logs, *brief.files]:
        room -= sizes.get(brief.path(name), _UNKNOWN_SIZE) + 400
        if room < 0:
            break
        calls.append(PlannedCall("Read", {"file_path": brief.path(name)}))
    calls += [PlannedCall("Bash", {"command": _TYPED.format(path=_quoted(path))}) for path in brief.transcripts]
    return (
        Act("Then I read the files, and search the transcripts for corrections of the user.", tuple(calls))
        if calls
        else None
    )


def collect_seen(brief: DreamTask, done: Sequence[Done]) -> Seen:
    """Collects the results of the calls so far."""
    texts: dict[str, str] = {}
    logs: dict[str, str] = {}
    fixed: set[str] = set()
    said: list[TypedText] = []
    for one in done:
        if one.tool == "Read" and not one.failed:
            name = str(one.input.get("file_path", "")).removeprefix(f"{brief.root}/")
            text, is_whole = _file_text(one.text)
            if name in brief.logs:
                logs[name] = text
                continue
            texts[name] = text
            if not is_whole:
                fixed.add(name)
        elif one.tool == "Bash":
            said += _said(one.text.splitlines())
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


def _said(lines: Iterable[str]) -> list[TypedText]:
    """What was typed, from greps that print a record's time and texts with the number of its line."""
    records: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        found = _MATCH.match(line)
        if found is not None:
            try:
                value = load_json(f'"{found["value"]}"')
            except ValueError:
                continue
            key = "timestamp" if found["key"] == "timestamp" else "text"
            records.setdefault(found["line"], {}).setdefault(key, []).append(str(value))
    said: list[TypedText] = []
    for record in records.values():
        day = local_day(record.get("timestamp", [""])[-1])
        if day is None:
            continue
        said += [TypedText(text, day) for text in record.get("text", ()) if text.strip() and not is_injected(text)]
    return said


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "'\\''") + "'"
