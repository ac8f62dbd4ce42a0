"""What `reverie doctor` looks at, one small function a matter. Each says what it found and what to do about it.

Looks and writes nothing but a file it removes again. A check never raises: what is wrong is what it returns.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from reverie import __version__
from reverie.cli.output import plural, size
from reverie.errors import ReverieError
from reverie.paths import Places, find_repo
from reverie.paths.repo import current_branch
from reverie.settings import Settings, load_settings
from reverie.storage.atomic import cause_of

State = Literal["ok", "warning", "broken"]
_LITTLE_SPACE = 1_000_000_000
_NO_SPACE = 20_000_000
_RECENT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `todo` is what to do about it, empty if nothing need be done."""

    name: str
    state: State
    found: str
    todo: str = ""


def examine(cwd: Path) -> Iterator[Check]:
    """Every check, in the order they are shown."""
    from reverie.cli.doctor.memory import budget_check, memory_checks, writer_checks

    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("version", "ok", f"Reverie {__version__}, Python {python}, {sys.platform}")
    try:
        settings = load_settings(cwd)
        places = Places.of(cwd, settings)
    except ReverieError as error:
        yield Check("settings", "broken", str(error), "correct it; nothing else can be checked before")
        return
    yield from _settings(settings, places)
    matters: tuple[tuple[str, Callable[[Settings, Places], Iterator[Check]]], ...] = (
        ("home", _home),
        ("disk", _disk),
        ("model", _model),
        ("memory", memory_checks),
        ("search", _search),
        ("flags", _flags),
        ("git", _git),
        ("live", _live),
        ("cache", _cache),
        ("writers", writer_checks),
        ("budget", budget_check),
        ("background", _background),
        ("dream", _dream),
    )
    for name, look in matters:
        try:
            yield from look(settings, places)
        except ReverieError as error:
            yield Check(name, "broken", str(error))


def _settings(settings: Settings, places: Places) -> Iterator[Check]:
    files = dict.fromkeys(
        str(source.file.path) for sources in settings.sources.values() for source in sources if source.file is not None
    )
    variables = [s.variable for sources in settings.sources.values() for s in sources if s.variable]
    said = [*files, *(f"{name} (variable)" for name in dict.fromkeys(variables) if name != "HOME")]
    yield Check("settings", "ok", ", ".join(said) or "no files, no variables: all defaults")
    for warning in settings.warnings:
        yield Check("settings", "warning", warning)
    acting = [part for part in settings.parts if part.can_be_trusted]
    if acting and not any(part.ignored for part in acting):
        yield Check("trust", "ok", f"{places.checkout} is trusted; `reverie trust --status` shows what can act")


def _home(_settings: Settings, places: Places) -> Iterator[Check]:
    home = places.home
    if not home.exists():
        above = next(folder for folder in home.parents if folder.exists())
        if why := _unwritable(above):
            found = f"{home} cannot be made in {above}: {why}"
            yield Check("home", "broken", found, "set REVERIE_HOME to a folder of yours")
        else:
            yield Check("home", "ok", f"{home} (made when first needed)")
        return
    mode = stat.S_IMODE(home.stat().st_mode)
    if why := _unwritable(home):
        yield Check("home", "broken", f"{home} cannot be written: {why}", "conversations would be lost at exit")
    elif mode & 0o077:
        yield Check("home", "warning", f"{home} is open to others (mode {mode:o})", f"chmod 700 {home}")
    else:
        yield Check("home", "ok", f"{home} (writable, mode {mode:o})")


def _unwritable(folder: Path) -> str:
    """Why nothing can be written there; empty if it can."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".reverie-doctor-", buffering=0) as file:
            file.write(b"written to see whether files can be\n")
            os.fsync(file.fileno())
            return ""
    except OSError as error:
        return cause_of(error)


def _disk(_settings: Settings, places: Places) -> Iterator[Check]:
    there = next(folder for folder in (places.home, *places.home.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    state: State = "broken" if free < _NO_SPACE else "warning" if free < _LITTLE_SPACE else "ok"
    yield Check("disk", state, f"{size(free)} free", "" if state == "ok" else "free some space")


def _model(settings: Settings, _places: Places) -> Iterator[Check]:
    from reverie.models.catalogue import Catalogue
    from reverie.models.registry import default_model_name, model_access, open_model, split_name
    from reverie.models.window import limits_of, window_of

    access, catalogue = model_access(settings), Catalogue.load(settings.catalogue.files)
    name = settings.model.name or default_model_name(access)
    source = ", ".join(map(str, settings.sources.get("model.name", ())))
    why = f"set by {source}" if settings.model.name else _why_default(name)
    try:
        provider, bare = split_name(name, catalogue)
        open_model(name, access, catalogue)  # starts nothing but an import, which ends with us
    except ReverieError as error:
        yield Check("model", "broken", str(error))
        return
    facts = catalogue.facts(bare)
    known = "" if facts.known or provider == "scripted" else "; the catalogue does not know it, so figures are generic"
    yield Check("model", "ok", f"{name} ({why}){known}")
    window, limits = window_of(name, facts, settings), limits_of(name, facts, settings)
    text = (
        f"{window.tokens:,} tokens ({window.source}): warning at {limits.warning:,}, compaction at "
        f"{limits.autocompact:,}, full at {limits.blocking:,}"
    )
    changed = [key for key in settings.sources if key.startswith("window.")]
    yield Check("window", "ok", text + (f"; changed by {', '.join(changed)}" if changed else ""))


def _why_default(name: str) -> str:
    if name == "embedded":
        return "no key is set: ANTHROPIC_API_KEY or OPENAI_API_KEY would choose a model that thinks"
    return f"{'OPENAI_API_KEY' if name.startswith('openai') else 'an Anthropic key'} is set"


def _search(_settings: Settings, _places: Places) -> Iterator[Check]:
    from reverie.tools.ripgrep import find_ripgrep

    yield Check("search", "ok", f"ripgrep at {find_ripgrep()}")


def _flags(settings: Settings, places: Places) -> Iterator[Check]:
    from reverie.flags import FLAGS, Flags

    with closing(Flags.open(places, settings)) as flags:
        found = {name: on for name, (on, _) in flags.all().items() if on != FLAGS[name].default}
        warnings = flags.warnings
    changed = [f"{name} is {'on' if on else 'off'}" for name, on in found.items()]
    where = settings.flags.provider or (str(places.flags_file) if places.flags_file.exists() else "no file")
    yield Check("flags", "ok", f"{where}: {', '.join(changed) or 'all as shipped'}")
    for warning in warnings:
        yield Check("flags", "warning", warning)


def _git(_settings: Settings, places: Places) -> Iterator[Check]:
    repo = find_repo(places.cwd)
    found = f"{repo.root}, branch {current_branch(repo) or '(detached)'}"
    alone = f"{places.cwd} is not in a repository: memory goes by this folder"
    yield Check("git", "ok", found if repo.git_dir is not None else alone)


def _live(_settings: Settings, places: Places) -> Iterator[Check]:
    from reverie.runtime.live_client import live_sessions

    found = live_sessions(places.projects)
    named = ", ".join(f"{live.id[:8]} (PID {live.pid})" for live in found[:5])
    yield Check("live", "ok", f"{plural(len(found), 'session')} open{': ' + named if found else ''}")


def _cache(settings: Settings, places: Places) -> Iterator[Check]:
    """How well the prompt cache works here, of the main conversations and of what ran beside them."""
    from reverie.context.ledger import Ledger
    from reverie.models.catalogue import Catalogue

    since = (datetime.now(UTC) - _RECENT).timestamp()
    transcripts = sorted(places.project.glob("*.jsonl")) if places.project.is_dir() else []
    ledger = Ledger.of_transcripts(transcripts, Catalogue.load(settings.catalogue.files), since=since)
    main, beside = ledger.main, ledger.beside
    if not main.requests:
        yield Check("cache", "ok", "no requests from here in the last 7 days")
        return
    found = [one.broken for one in ledger.breaks if one.broken.announcement is None]
    announced = len(ledger.breaks) - len(found)
    rates = f"{main.hit_rate:.0%} of {plural(main.requests, 'request')} read from the cache in 7 days"
    forks = f", {beside.hit_rate:.0%} beside the conversation" if beside.requests else ""
    breaks = f"; breaks: {announced} announced, {len(found)} not"
    state = "warning" if found else "ok"
    yield Check("cache", state, rates + forks + breaks, "`reverie cost` names their causes" if found else "")


def _background(_settings: Settings, places: Places) -> Iterator[Check]:
    from reverie.runtime.background_log import BackgroundLog

    since = datetime.now(UTC) - _RECENT
    log = BackgroundLog(places.background_log)
    told_twice = "dream_failed"  # its task failed too
    failed = [entry for entry in log.read(since=since) if entry.kind.endswith("_failed") and entry.kind != told_twice]
    if not failed:
        yield Check("background", "ok", "nothing failed in the last 7 days")
        return
    last = failed[-1]
    what = last.fields.get("purpose") or last.fields.get("stage") or last.kind
    text = f"{plural(len(failed), 'failure')} in 7 days, last {what}: {last.fields.get('error', '')}"
    yield Check("background", "warning", text, "`reverie log --kind task_failed` shows them")


def _dream(settings: Settings, places: Places) -> Iterator[Check]:
    from reverie.cli.doctor.memory import spent_on
    from reverie.cli.dream.look import look_closed
    from reverie.memory.opening import open_memory
    from reverie.types import Purpose

    memory = open_memory(settings, places)
    if not memory.switch.on:
        return
    found = look_closed(memory)
    state: State = "warning" if (found.state.failures_in_a_row >= 3 or found.lock.stale or found.lock.ahead) else "ok"
    spent = spent_on(places.day_books, Purpose.DREAM)
    cost = f"; in 7 days {spent.told()}" if spent.requests else ""
    todo = "check this machine's clock; the next dream dates the lock right" if found.lock.ahead else ""
    todo = todo or ("`reverie dream log` shows what went wrong" if state == "warning" else "")
    yield Check("dream", state, found.line() + cost, todo)
