"""`reverie memory list|show|search|path`: shows memories to the user or a program. Reads only."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from time import time
from typing import Any

import click

from reverie.cli.memory.opening import TYPES, file_names, show_in_browser, with_memory
from reverie.cli.options import examples, web_option
from reverie.cli.output import answer, format_age, get_paint, line_width, one_line, pad, plural, say, say_dim
from reverie.cli.screen import printable
from reverie.cli.screen import write_document as show_document
from reverie.errors import UserError
from reverie.memory.age import age_days, age_words
from reverie.memory.gate.review import MarkedStatement, list_statements
from reverie.memory.index import load_index
from reverie.memory.lookup import find_file
from reverie.memory.opening import OpenedMemory
from reverie.memory.scan import ScanEntry
from reverie.memory.taxonomy import INDEX, MemoryType, Trust, is_topic
from reverie.memory.topic_file import TopicFile, decode
from reverie.moments import iso
from reverie.text.columns import cut, width

_UNTYPED = "untyped"
_LINES_A_FILE = 3
_VALUE = re.compile(r"^(?:name|description):\s*")


@examples(
    "reverie memory list",
    "reverie memory list --type feedback",
    "reverie memory list --web",
    "reverie memory list --json | jq -r '.memories[].file'",
)
@click.command("list")
@click.option("-t", "--type", "kind", type=click.Choice([*TYPES.choices, _UNTYPED]), help="Only this type.")
@click.option("-n", "--limit", type=click.IntRange(min=1), help="Show only the newest N.", metavar="N")
@web_option
@with_memory
def list_command(kind: str | None, limit: int | None, web: bool, as_json: bool, memory: OpenedMemory) -> None:
    """List memories by type, newest first."""
    if web:
        show_in_browser(memory, "/memory?project={project}" + (f"&type={kind}" if kind else ""))
        return
    found = [entry for entry in memory.directory.list() if kind in (None, entry.type or _UNTYPED)][:limit]
    if as_json:
        listed = [_as_json(entry, _lead(memory, entry)) for entry in found]
        answer(True, {"directory": str(memory.directory.root), "memories": listed})
        return
    if not found:
        what = "memories" if kind is None else f"memories of the type {kind}"
        say(f'There are no {what} in {memory.directory.root} yet; `reverie remember "…"` adds one.', err=True)
        return
    _print_by_type(found, {entry.name: lead.trust for entry in found if (lead := _lead(memory, entry))})
    paint = get_paint()
    index = load_index(memory.directory.index())
    cut_note = f", cut at its limit of {index.fired}" if index.fired else ""
    counted = plural(len(found), "memory", "memories")
    say("\n" + paint.dim(f"{counted}, index of {plural(index.lines, 'line')}{cut_note}"))
    say(paint.dim(str(memory.directory.root)))
    if sys.stdout.isatty():
        say(paint.dim("In commands, any part of a name that no other memory has is enough."))
    if not memory.switch.on:
        say(paint.warning(f"Memory is off ({memory.switch.rule}): sessions do not use these memories."))


def _lead(memory: OpenedMemory, entry: ScanEntry) -> MarkedStatement | None:
    """The first statement of a memory with its mark."""
    text = memory.directory.read(entry.name).text
    return next(iter(list_statements(entry.name, text, memory.gate.marks, entry.modified)), None)


def _print_by_type(found: Sequence[ScanEntry], trust: Mapping[str, Trust | None]) -> None:
    paint, now = get_paint(), time()
    on_terminal = sys.stdout.isatty()
    wide = line_width()
    shown_as = {entry.name: _short_name(entry) if on_terminal else entry.name for entry in found}
    longest = max(map(width, shown_as.values()))
    names = min(longest, 40 if wide < 100 else 60) if on_terminal else longest
    kinds = [kind for kind in [*MemoryType, None] if any(entry.type is kind for entry in found)]
    for number, kind in enumerate(kinds):
        own = [entry for entry in found if entry.type is kind]
        say("\n" * bool(number) + paint.bold(kind.value if kind else _UNTYPED))
        for entry in own:
            old = f"{format_age(entry.modified, now):>6}"
            if any(trust.values()):
                old += f"  {pad(trust.get(entry.name) or '', 9)}"
            room = wide - names - len(old) - 6
            text = entry.description or f"({'; '.join(entry.problems) or 'no description'})"
            name = cut(one_line(shown_as[entry.name]), names)
            shown = f"  {paint.accent(pad(name, names))}  {paint.dim(old)}"
            say(f"{shown}  {cut(one_line(text), room)}" if room >= 16 else shown)


def _short_name(entry: ScanEntry) -> str:
    """The name without the type, which the heading shows. Every command accepts it."""
    prefix = f"{entry.type.value}_" if entry.type else ""
    return entry.name.removeprefix(prefix).removesuffix(".md") or entry.name


def _as_json(entry: ScanEntry, lead: MarkedStatement | None) -> dict[str, Any]:
    return {
        "file": entry.name,
        "name": entry.title,
        **_head_json(entry, lead),
        "modified": iso(entry.modified),
        "age_days": age_days(entry.modified, time()),
        "bytes": entry.size,
        "path": str(entry.path),
        "problems": list(entry.problems),
    }


def _head_json(of: ScanEntry | TopicFile, lead: MarkedStatement | None) -> dict[str, Any]:
    return {
        "description": of.description,
        "type": of.type.value if of.type else None,
        "trust": lead.trust.value if lead and lead.trust else None,
        "evidence": lead.evidence() or None if lead else None,
    }


@examples(
    "reverie memory show feedback_no_mocks",
    "reverie memory show feedback_no_mocks@3f2a",
    "reverie memory show MEMORY.md",
    "reverie memory show feedback_no_mocks --web",
)
@click.command("show")
@click.argument("file", metavar="FILE[@V]", shell_complete=file_names)
@web_option
@with_memory
def show_command(file: str, web: bool, as_json: bool, memory: OpenedMemory) -> None:
    """Show a memory, or an earlier version of it.

    The text goes to standard output. If that is a terminal, the command also shows how old the memory is, how far each
    statement is trusted, and which of your words it rests on; if not, the text is unchanged. MEMORY.md is the index.
    """
    if web:
        from urllib.parse import quote

        name = quote(find_file(memory.directory, file)).replace("{", "{{").replace("}", "}}")
        show_in_browser(memory, f"/memory/{{project}}/{name}")
        return
    given, at, version = file.rpartition("@")
    if at and given and not memory.directory.exists(f"{file.removesuffix('.md')}.md"):
        found = memory.directory.history.find(version)
        known = memory.directory.history.files(found.id)
        name = find_file(memory.directory, given, also=known)
        text, modified, of = decode(memory.directory.history.show(name, found.id)), found.when.timestamp(), found.short
    else:
        document = memory.directory.read(find_file(memory.directory, file))
        name, text, modified, of = document.name, document.text, document.modified, ""
    topic = TopicFile.parse(text)
    said = list_statements(name, text, memory.gate.marks, modified) if is_topic(name) else []
    lead = said[0] if said else None
    if as_json:
        head = {"file": name, "version": of or None, "name": topic.name, **_head_json(topic, lead)}
        head |= {"modified": iso(modified), "statements": [one.to_json() for one in said]}
        path, body = str(memory.directory.root / name), _encodable(topic.body)
        answer(True, {**head, "path": path, "body": body, "problems": list(topic.problems)})
    elif sys.stdout.isatty():
        paint = get_paint()
        trust = [lead.trust.value] if lead and lead.trust else []
        parts = [age_words(modified, time()), *trust, *([f"version {of}"] if of else [])]
        say(f"{paint.bold(one_line(name))}  {paint.dim(' · '.join(parts))}")
        for problem in topic.problems:
            say(f"{paint.warning('!')} {one_line(problem)}")
        say("\n" + printable(text).rstrip("\n"))
        _show_evidence(said)
    else:
        show_document(_encodable(text) + "\n" * (not text.endswith("\n")))


def _show_evidence(said: Sequence[MarkedStatement]) -> None:
    known = [one for one in said if one.trust is not None]
    if known:
        say()
    for one in known:
        say(f"{one.trust}: {cut(one_line(one.text), line_width() - 11)}")
        say_dim(one.evidence() or "nothing is known about its source", 2)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@examples("reverie memory search staging port", 'reverie memory search "smoke test" --json')
@click.command("search")
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@with_memory
def search_command(words: tuple[str, ...], as_json: bool, memory: OpenedMemory) -> int:
    """Find memories that contain all the words, and show the lines.

    The search ignores upper and lower case. `reverie recall` also finds memories that use other words for the same
    thing.

    Exit codes: 0: found; 1: nothing found.
    """
    wanted = [word.casefold() for word in words if word.strip()]
    if not wanted:
        raise UserError("Give at least one word to search for.")
    found = _search(memory, wanted)
    if as_json:
        hits = [
            {"file": name, "lines": [{"line": number, "text": _encodable(text)} for number, text in lines]}
            for name, lines in found
        ]
        answer(True, {"matches": hits})
        return 0 if found else 1
    paint = get_paint()
    mark = re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))), re.IGNORECASE)
    for number, (name, lines) in enumerate(found):
        say("\n" * bool(number) + paint.accent(one_line(name)))
        for at, text in lines[:_LINES_A_FILE]:
            shown = cut(one_line(text), line_width() - 8)
            say(f"  {paint.dim(f'{at:>4}')}  {mark.sub(lambda hit: paint.bold(hit[0]), shown)}")
        if len(lines) > _LINES_A_FILE:
            say(paint.dim(f"        and {plural(len(lines) - _LINES_A_FILE, 'more line')}"))
    if not found:
        say(f"No memory contains {' and '.join(words)}.", err=True)
    return 0 if found else 1


def _search(memory: OpenedMemory, wanted: Sequence[str]) -> list[tuple[str, list[tuple[int, str]]]]:
    """Files that contain every word, with the lines; files with the most hits first, equal lines once."""
    found: list[tuple[int, str, list[tuple[int, str]]]] = []
    indexes = [name for name in (INDEX, f"team/{INDEX}") if memory.directory.exists(name)]
    for name in [*indexes, *memory.directory.names()]:
        text = memory.directory.read(name).text
        whole = f"{name}\n{text}".casefold()
        if not all(word in whole for word in wanted):
            continue
        lines = [
            (number, line)
            for number, line in enumerate(text.splitlines(), 1)
            if any(word in line.casefold() for word in wanted)
        ]
        values = {number: _VALUE.sub("", line).strip() for number, line in lines}
        lines = [
            (at, line) for at, line in lines if values[at] not in [values[other] for other in values if other > at]
        ]
        found.append((-sum(whole.count(word) for word in wanted), name, lines))
    return [(name, lines) for _, name, lines in sorted(found)]


@examples("reverie memory path", 'grep -ri postgres "$(reverie memory path)"')
@click.command("path")
@with_memory
def path_command(as_json: bool, memory: OpenedMemory) -> None:
    """Print the path of the memory directory.

    On a terminal, the command also shows why this directory is used, and where its history is.
    """
    history = memory.directory.history.git_dir
    if as_json:
        place = {"directory": str(memory.directory.root), "rule": memory.place.rule}
        place |= {"exists": memory.directory.root.is_dir(), "history": str(history)}
        answer(True, {**place, "on": memory.switch.on, "on_rule": memory.switch.rule})
        return
    show_document(f"{memory.directory.root}\n")
    if sys.stdout.isatty():
        paint = get_paint(err=True)
        state = "on" if memory.switch.on else "off"
        say(paint.dim(f"by: {memory.place.rule}; memory is {state} ({memory.switch.rule})"), err=True)
        say(paint.dim(f"history: {history}"), err=True)
