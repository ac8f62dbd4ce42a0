"""How memory is doing, for `reverie doctor`: switch, place, index, files, inbox, versions, refusals. Looks only."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from reverie.cli.doctor.checks import Check
from reverie.cli.output import age, plural, size
from reverie.memory.opening import OpenedMemory, open_memory
from reverie.paths import Places, memory_switch
from reverie.settings import Settings

_VERSIONS = 200
_RECENT = timedelta(days=7)


def memory_checks(settings: Settings, places: Places) -> Iterator[Check]:
    """Every check of the memory that a session here would use."""
    switch = memory_switch(settings)
    if not switch.on:
        yield Check("memory", "ok", f"off ({switch.rule})")
        return
    memory = open_memory(settings, places)
    root = memory.directory.root
    there = next(folder for folder in (root, *root.parents) if folder.exists())
    why = "not a folder" if not there.is_dir() else "" if os.access(there, os.W_OK) else "permission denied"
    if why:
        yield Check("memory", "broken", f"{root} cannot be written: {there}: {why}", "choose another folder")
        return
    new = "" if root.exists() else ", nothing there yet"
    yield Check("memory", "ok", f"on ({switch.rule}), {root} ({memory.place.rule}{new})")
    if root.exists():
        yield from _files(memory)
        yield from _index(memory)
        yield from _inbox(memory)
        yield from _history(memory)
        yield from _refusals(places)


def _files(memory: OpenedMemory) -> Iterator[Check]:
    from reverie.memory.scan import scan

    found = scan(memory.directory.root, newest=None)
    if found.failed:
        yield Check("memories", "broken", found.failed)
        return
    kinds = Counter(entry.type.value if entry.type else "untyped" for entry in found.entries)
    listed = f" ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))})" if kinds else ""
    yield Check("memories", "ok", plural(found.total, "file") + listed)
    for problem in found.skipped[:3]:
        yield Check("memories", "warning", problem)
    broken = [entry.name for entry in found.entries if entry.problems]
    if broken:
        text = f"{plural(len(broken), 'file')} with broken frontmatter: {', '.join(broken[:3])}"
        yield Check("memories", "warning", text, "`reverie memory check --fix` puts it right")


def _index(memory: OpenedMemory) -> Iterator[Check]:
    from reverie.memory.index import load_index
    from reverie.memory.taxonomy import INDEX, TEAM

    for team, name in ((False, INDEX), (True, f"{TEAM}/{INDEX}")):
        if team and not memory.directory.exists(name):
            continue
        index = load_index(memory.directory.index(team=team))
        text = f"{name}: {plural(index.lines, 'line')}, {size(index.bytes)}"
        over = f"{text}, over the limit of {index.fired}: the model does not see its end"
        todo = "`reverie memory check` says what to shorten"
        yield Check("index", "warning", over, todo) if index.fired else Check("index", "ok", text)


def _inbox(memory: OpenedMemory) -> Iterator[Check]:
    if waiting := len(memory.inbox.list()):
        yield Check("inbox", "warning", f"{plural(waiting, 'item')} waiting for you", "`reverie memory inbox`")
    else:
        yield Check("inbox", "ok", "nothing waits")


def _history(memory: OpenedMemory) -> Iterator[Check]:
    versions = list(islice(memory.directory.log(), _VERSIONS))
    if not versions:
        yield Check("versions", "ok", "none yet")
        return
    last = versions[0]
    who = Counter(version.info.writer for version in versions)
    undone = sum(bool(version.info.reverses) for version in versions)
    many = f"the last {_VERSIONS}" if len(versions) == _VERSIONS else str(len(versions))
    by = ", ".join(f"{count} by {writer}" for writer, count in who.most_common())
    share = f"; {undone} undone ({undone / len(versions):.0%})" if undone else ""
    when = age(last.when.timestamp())
    yield Check("versions", "ok", f"last {when} ago by {last.info.writer}; of {many}: {by}{share}")


def _refusals(places: Places) -> Iterator[Check]:
    from reverie.runtime.background_log import BackgroundLog

    entries = BackgroundLog(places.background_log).read(since=datetime.now(UTC) - _RECENT, kind="memory_refused")
    if entries:
        kinds = Counter(str(entry.fields.get("refused", "?")) for entry in entries)
        named = ", ".join(f"{count} for {kind}" for kind, count in kinds.most_common())
        yield Check("write gate", "ok", f"{plural(len(entries), 'write')} refused in 7 days: {named}")
