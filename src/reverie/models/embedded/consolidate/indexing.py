"""Puts MEMORY.md in order: one short line a file, no dead or double ones, and no fact that stands only there.

Two steps, so that nothing is lost between them: first what only the index says goes into topic files, then the index
is written to fit the files that are really there. Headings and lines about the list itself are people's own and stay.
An index that is right keeps its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Final

from reverie.memory.evidence import hard_facts
from reverie.memory.index import LINE_CHARACTERS, MAX_BYTES, MAX_LINES, IndexEntry, entries, index_line, with_entry
from reverie.memory.taxonomy import INDEX, TEAM, index_of, pointer_of
from reverie.memory.topic_file import TopicFile
from reverie.models.embedded.consolidate.dating import written_out
from reverie.models.embedded.consolidate.desk import Desk
from reverie.models.embedded.consolidate.learning import learn
from reverie.models.embedded.consolidate.lessons import Kind, Lesson, Source, cleaned, holds_secret
from reverie.models.embedded.consolidate.statements import statements_in, terms_of, with_lines

INDEXES: Final = (INDEX, f"{TEAM}/{INDEX}")
_BULLET = re.compile(r"^\s*[-*+•]\s+")
_LABEL = re.compile(r"^\s*(?:extra|also|note|nb|p\.?s|fyi|info|remember)\s?[:–—-]\s*", re.IGNORECASE)
_ABOUT_THE_LIST = re.compile(
    r"\b(?:this|the) (?:list|index|directory|page|memory)\b|\b(?:memories|index|entries|one line a|listed below|newest"
    r"|sorted|alphabetical|keep (?:it|this) short|diese liste|verzeichnis|esta lista|este índice)\b|索引|目录|一覧",
    re.IGNORECASE,
)
_HOUSEKEEPING = re.compile(
    r"\b(?:see also|last|first|touched|updated|changed|edited|checked|verified|reviewed|seen|used|still|valid"
    r"|current|unclear"
    r"|outdated|stale|ok|to review|to check|to do|todo|needs? (?:review|check)|on|at|by|was|is|ago|date|status|zuletzt"
    r"|geändert|geprüft|revisado)\b|\d{4}-\d\d-\d\d|[\W\d_]",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(r"\]\((?:https?|mailto):|^(?:[-*+]\s+)?https?://\S+$")
_LEAST_TERMS: Final = 3


def keep_detail(desk: Desk) -> None:
    """Moves what only an index says into topic files."""
    for index in INDEXES:
        text = desk.seen.texts.get(index)
        if text is not None:
            _keep_detail_of(desk, index, text)


def _keep_detail_of(desk: Desk, index: str, text: str) -> None:
    listed = {entry.line: entry for entry in entries(text)}
    last: IndexEntry | None = None
    for number, line in enumerate(text.splitlines(), 1):
        entry = listed.get(number)
        if entry is not None:
            last = entry
            if len(entry.text) > LINE_CHARACTERS:
                _into_file(desk, _name(index, entry.file), _pieces(entry.hook))
        elif _is_loose(line):
            said = _plain(line)
            if not said:
                continue
            if line[:1].isspace() and last is not None and _BULLET.match(line):
                _into_file(desk, _name(index, last.file), [said])
            elif index == INDEX:
                day = desk.seen.brief.today
                learn(desk, Lesson(said, _kind_of(said), day, Source.INDEX))


def _kind_of(said: str) -> Kind:
    return (
        Kind.RULE if re.search(r"\b(?:wants?|prefers?|likes?|always|never|must)\b", said, re.IGNORECASE) else Kind.NOTE
    )


def _into_file(desk: Desk, name: str, pieces: Iterable[str]) -> None:
    """Adds to a file what it does not say yet."""
    if name not in desk.texts or not desk.may_change(name):
        return
    new = [piece for piece in pieces if not _is_covered(piece, desk.texts[name]) and not holds_secret(piece)]
    if new:
        lines = [piece if piece.endswith((".", "!", "?", "。")) else f"{piece}." for piece in new]
        desk.write(name, with_lines(desk.texts[name], lines), "has the detail that stood only in the index")


def _pieces(hook: str) -> list[str]:
    """The statements of a hook; the end of one that was cut off in the middle of a word is left out."""
    found = [one.text for one in statements_in(hook.replace("; ", ";\n").replace(" - ", "\n- "))]
    return [cleaned(piece).rstrip(" ;") for piece in found]


def _is_covered(piece: str, file_text: str) -> bool:
    """Whether a file says it: all but a word or two of it, and every number; the last word may be cut off."""
    terms = terms_of(piece)
    whole = terms_of(file_text)
    lower = re.sub(r"\\(.)", r"\1", file_text.lower())
    missing = [term for term in terms if term not in whole and term not in lower]
    facts = [fact for fact in hard_facts(piece) if fact.lower() not in lower]
    words = piece.split()
    if words and not piece.endswith((".", "!", "?", "。", ")", "`")):  # perhaps cut: the beginning of a word counts
        tail = words[-1].lower().strip("`*(\"'")
        missing = [term for term in missing if not tail.startswith(term[:3])] if tail and tail in lower else missing
        facts = [fact for fact in facts if not words[-1].startswith(fact)]
    return not facts and len(missing) <= (0 if len(terms) < _LEAST_TERMS else 0.2 * len(terms))


def _is_loose(line: str) -> bool:
    """Whether a line that points to no file states something."""
    bare = line.strip()
    return bool(bare) and not bare.startswith(("#", ">", "<!--", "```", "---", "|")) and not _ELSEWHERE.search(bare)


def _plain(line: str) -> str:
    """What a loose line states; empty if it is about the list itself, or only about when something was looked at."""
    said = _LABEL.sub("", _BULLET.sub("", line).strip())
    if _is_housekeeping(said) or _ABOUT_THE_LIST.search(said) or len(terms_of(said)) < _LEAST_TERMS:
        return ""
    return said[:1].upper() + said[1:]


def _is_housekeeping(said: str) -> bool:
    return not _HOUSEKEEPING.sub("", said)


def _name(index: str, file: str) -> str:
    return f"{TEAM}/{file}" if index.startswith(f"{TEAM}/") else file


# -- the index itself ---------------------------------------------------------------------------------------------


def tidied(
    index: str, text: str, topics: Mapping[str, str], days: Mapping[str, date], before: Mapping[str, str]
) -> str:
    """An index as it shall be, for the topic files there are; `before`: the files as they were."""
    own = {name: TopicFile.parse(body) for name, body in topics.items() if index_of(name) == index}
    whole = "\n".join(topics.values())
    lines = text.splitlines(keepends=True)
    listed = {entry.line: entry for entry in entries(text)}
    kept: list[str] = []
    seen: set[str] = set()
    dropping = False
    for number, line in enumerate(lines, 1):
        entry = listed.get(number)
        if entry is None:
            is_below = line[:1].isspace() and bool(_BULLET.match(line))
            if is_below and (dropping or _is_said(line, whole)):
                continue
            dropping = dropping and is_below
            if not is_below and _is_loose(line) and _plain(line) and _is_said(line, whole):
                continue
            kept.append(line)
            continue
        name = _name(index, entry.file)
        dropping = name not in own or name in seen
        if dropping:
            continue
        seen.add(name)
        kept.append(_line_for(entry, line, own[name], days.get(name), before.get(name, "")))
    result = "".join(kept)
    for name in sorted(set(own) - seen, key=lambda one: (days.get(one, date.max), one)):
        topic = own[name]
        title = topic.name or name.rpartition("/")[2].removesuffix(".md").replace("_", " ")
        result = with_entry(result, pointer_of(name), title, _hook(topic))
    return _within_limits(result)


def _is_said(line: str, whole: str) -> bool:
    """Whether a loose line can go: it says nothing, or a topic file says it."""
    said = _LABEL.sub("", _BULLET.sub("", line).strip())
    if _is_housekeeping(said):
        return True
    return bool(_plain(line)) and _is_covered(said, whole)


def _line_for(entry: IndexEntry, line: str, topic: TopicFile, day: date | None, before: str) -> str:
    """An entry's line: as it is where it is short and true."""
    hook = written_out(entry.hook, day) if day is not None else entry.hook
    if before and topic.description and TopicFile.parse(before).description != topic.description:
        hook = topic.description
    if len(entry.text) > LINE_CHARACTERS:
        hook = topic.description or hook
    if hook == entry.hook and len(entry.text) <= LINE_CHARACTERS:
        return line
    lead = line[: len(line) - len(line.lstrip())]
    end = line[len(line.rstrip("\r\n")) :]
    return lead + index_line(entry.title, entry.file, hook) + end


def _hook(topic: TopicFile) -> str:
    if topic.description:
        return topic.description
    return next((one.text for one in statements_in(topic.body)), "")


def _within_limits(text: str) -> str:
    """The index within its lines and bytes: blank lines go first, then hooks get shorter."""
    lines = text.splitlines(keepends=True)
    if len(lines) > MAX_LINES:
        lines = [line for line in lines if line.strip()]
    limit = LINE_CHARACTERS
    while len("".join(lines).encode()) > MAX_BYTES and limit > 60:
        limit -= 10
        listed = {entry.line: entry for entry in entries("".join(lines))}
        lines = [
            _cut(listed[number], limit) if number in listed and len(line) > limit else line
            for number, line in enumerate(lines, 1)
        ]
    return "".join(lines)


def _cut(entry: IndexEntry, limit: int) -> str:
    room = limit - len(index_line(entry.title, entry.file, "")) - 4
    hook = entry.hook[: max(0, room)].rpartition(" ")[0].rstrip(" ,;:—-…")
    return index_line(entry.title, entry.file, f"{hook}…" if hook else "") + "\n"
