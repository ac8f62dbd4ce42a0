"""The memory checks of `reverie doctor`: files, index, versions, and the background writers. Reads only."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from reverie.cli.doctor.checks import Check, unwritable
from reverie.cli.output import format_age, format_size, plural
from reverie.context.day_book import Caps, DayBook
from reverie.flags import Flags
from reverie.layers.l3_session_notes.trigger import WRITER as NOTES
from reverie.layers.l5_extraction.gates import WRITER as EXTRACTION
from reverie.memory.age import age_words
from reverie.memory.gate.review import all_statements
from reverie.memory.index import load_index
from reverie.memory.opening import OpenedMemory, open_memory
from reverie.memory.scan import scan
from reverie.memory.taxonomy import INDEX, TEAM, Trust
from reverie.models.prices import format_dollars
from reverie.moments import parse_time, past_time
from reverie.parsing import load_json
from reverie.paths import Places, memory_switch
from reverie.regular_files import read_regular
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.heartbeat import REPORTED_FAILURES, Beat, Heartbeat
from reverie.settings import Settings
from reverie.storage.atomic import cause_of
from reverie.types import JsonObject, Purpose

_VERSIONS = 200
_RECENT = timedelta(days=7)


def memory_checks(settings: Settings, places: Places) -> Iterator[Check]:
    """Every check of the memory that a session here uses."""
    switch = memory_switch(settings)
    if not switch.on:
        yield Check("memory", "ok", f"off ({switch.rule})")
        return
    memory = open_memory(settings, places)
    root = memory.directory.root
    if why := _why_not_written(root):
        yield Check("memory", "broken", f"{root} cannot be written: {why}", "choose another folder")
        return
    new = "" if root.exists() else ", empty"
    yield Check("memory", "ok", f"on ({switch.rule}), {root} ({memory.place.rule}{new})")
    if root.exists():
        yield from _files(memory)
        yield from _index(memory)
        yield from _inbox(memory)
        yield from _history(memory)
        yield from _server(memory)
        yield from _refusals(places)


def _why_not_written(root: Path) -> str:
    """Why the folder cannot be written or made, as the end of a sentence; empty if it can. What it makes to find out,
    it removes again: some file systems only say no when they are asked."""
    try:
        there = next(folder for folder in (root, *root.parents) if folder.exists())
        if not there.is_dir():
            return f"{there}: not a folder"
        if why := unwritable(there):
            return f"{there}: {why}"
        made = list[Path]()
        try:
            for folder in reversed([root, *root.parents][: len(root.parts) - len(there.parts)]):
                folder.mkdir(mode=0o700)
                made.append(folder)
        finally:
            for folder in reversed(made):
                folder.rmdir()
    except OSError as error:
        return f"{error.filename or root}: {cause_of(error)}"
    return ""


def _files(memory: OpenedMemory) -> Iterator[Check]:
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
        yield Check("memories", "warning", text, "`reverie memory check --fix` repairs it")


def _index(memory: OpenedMemory) -> Iterator[Check]:
    for team, name in ((False, INDEX), (True, f"{TEAM}/{INDEX}")):
        if team and not memory.directory.exists(name):
            continue
        index = load_index(memory.directory.index(team=team))
        text = f"{name}: {plural(index.lines, 'line')}, {format_size(index.bytes)}"
        over = f"{text}, over the limit of {index.fired}; the model does not see the rest"
        todo = "`reverie memory check` says what to shorten"
        yield Check("index", "warning", over, todo) if index.fired else Check("index", "ok", text)


def _server(memory: OpenedMemory) -> Iterator[Check]:
    """The memory server, by its last sync: a check sends nothing."""
    if not memory.settings.memory.store:
        return
    from reverie.memory.sharing.store.status import load_status
    from reverie.memory.sharing.store.sync import store_folder

    status, where = load_status(store_folder(memory)), memory.settings.memory.store
    since = f"last sync {age_words(status.done_at, time.time())}" if status.done_at else "not synced yet"
    if status.problem:
        yield Check("memory server", "warning", f"{since}; {status.problem}", "`reverie memory store`")
    elif status.held_back:
        held = plural(len(status.held_back), "file")
        yield Check("memory server", "warning", f"{where}: {since}, {held} held back", "`reverie memory store`")
    else:
        yield Check("memory server", "ok", f"{where}: {since}")


def _inbox(memory: OpenedMemory) -> Iterator[Check]:
    if items := memory.inbox.list():
        held = sum(len(item.statements) for item in items)
        asked = sum(item.why != "evidence" for item in items)
        what = f" ({plural(held, 'statement')} held, {plural(asked, 'question')})"
        yield Check("inbox", "warning", f"{plural(len(items), 'item')} waiting for you{what}", "`reverie memory inbox`")
    else:
        yield Check("inbox", "ok", "empty")
    trusted = Counter(one.trust for one in all_statements(memory.directory))
    counts = [
        (trusted[Trust.CONFIRMED], "confirmed"),
        (trusted[Trust.INFERRED], "inferred"),
        (trusted[None], "unmarked"),
    ]
    text = ", ".join(f"{count} {name}" for count, name in counts if count) or "none"
    todo = "`reverie memory inferred`" if trusted[Trust.INFERRED] else ""
    yield Check("statements", "ok", text, todo)


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
    when = format_age(last.when.timestamp())
    yield Check("versions", "ok", f"last {when} ago by {last.info.writer}; of {many}: {by}{share}")


def _refusals(places: Places) -> Iterator[Check]:
    entries = BackgroundLog(places.background_log).read(since=datetime.now(UTC) - _RECENT, kind="memory_refused")
    if entries:
        kinds = Counter(str(entry.fields.get("refused", "?")) for entry in entries)
        named = ", ".join(f"{count} for {kind}" for kind, count in kinds.most_common())
        yield Check("write gate", "ok", f"{plural(len(entries), 'write')} refused in 7 days: {named}")


_DAYS = 7


def writer_checks(_settings: Settings, places: Places) -> Iterator[Check]:
    """One line per writer: when it last succeeded, or why not."""
    for name, writer, purpose in (("extraction", EXTRACTION, Purpose.EXTRACTION), ("notes", NOTES, Purpose.NOTES)):
        beat = Heartbeat(places.heartbeat(writer)).read()
        parts = [_describe_last_run(beat)]
        if beat.gate:
            parts.append(f"last stopped {_ago(beat.stopped)} ago: {beat.gate}")
        if (spent := sum_spending(places.day_books, purpose)).requests:
            parts.append(f"in {_DAYS} days {spent.describe()}")
        if beat.failures:
            parts.append(f"failed {plural(beat.failures, 'time')} in a row, last: {beat.error}")
        moments = [
            found for one in (beat.succeeded, beat.failed, beat.stopped) if (found := parse_time(one)) is not None
        ]
        ahead = any(past_time(moment.timestamp(), time.time()) is None for moment in moments)
        state = "warning" if ahead or beat.failures >= REPORTED_FAILURES else "ok"
        todo = "`reverie log --kind task_failed` shows them" if beat.failures >= REPORTED_FAILURES else ""
        if ahead:
            todo = f"{places.heartbeat(writer)} has a time in the future; check the clock of this machine"
        yield Check(name, state, "; ".join(parts), todo)


def budget_check(settings: Settings, places: Places) -> Iterator[Check]:
    """What background work has spent today, and its limit."""
    given = settings.budget
    with closing(Flags.open(places, settings)) as flags:
        most = flags.number("budget.background_tokens_per_day", given.background_tokens_per_day)
        dollars = flags.number("budget.background_dollars_per_day", given.background_dollars_per_day or 0.0)
    book = DayBook(places.day_books)
    spent = book.today()
    of = f" of {most:,}" if most else ""
    most_paid = f" of {format_dollars(dollars)}" if dollars else ""
    money = f", {format_dollars(spent.dollars)}{most_paid}" if spent.dollars or dollars else ""
    text = f"background work has used {spent.tokens:,.0f}{of} input tokens{money} today"
    why = Caps(book, tokens_per_day=lambda: most, dollars_per_day=lambda: dollars).may_spend(Purpose.DREAM)
    yield Check("budget", "warning" if why else "ok", f"{why}; it continues tomorrow" if why else text)


def _describe_last_run(beat: Beat) -> str:
    if not beat.succeeded:
        return "never ran"
    run = beat.run
    figures = [plural(int(run[key]), "memory", "memories") for key in ("written", "memories") if key in run]
    if "seconds" in run:
        figures.append(f"{float(run['seconds']):.1f} s")
    if prompt := int(run.get("prompt_tokens", 0)):
        figures.append(f"{float(run.get('cache_read_share', 0.0)):.0%} of {prompt:,} tokens cached")
    return f"last run {_ago(beat.succeeded)} ago" + (f" ({', '.join(figures)})" if figures else "")


def _ago(moment: str) -> str:
    found = parse_time(moment)
    return "some time" if found is None else format_age(found.timestamp())


class PurposeCost(NamedTuple):
    """What a purpose cost in the last days: requests, input tokens, US dollars."""

    requests: int = 0
    tokens: float = 0.0
    dollars: float = 0.0

    def describe(self) -> str:
        cost = f", {format_dollars(self.dollars)}" if self.dollars else ""
        return f"{plural(self.requests, 'request')} worth {self.tokens:,.0f} input tokens{cost}"


def sum_spending(books: Path, purpose: Purpose, *, days: int = _DAYS) -> PurposeCost:
    """The sum over the last days; lines that cannot be read are skipped."""
    today = datetime.now().astimezone().date()
    found = PurposeCost()
    for back in range(days):
        try:
            lines = read_regular(books / f"{today - timedelta(days=back)}.jsonl").splitlines()
        except OSError:
            continue
        for line in lines:
            try:
                raw: Any = load_json(line)
                one = cast(JsonObject, raw)
                if one["purpose"] == purpose.value:
                    found = PurposeCost(found[0] + 1, found[1] + float(one["tokens"]), found[2] + float(one["usd"]))
            except (ValueError, TypeError, KeyError):
                continue
    return found
