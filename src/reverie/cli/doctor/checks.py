"""`reverie doctor`: checks that Reverie has everything it needs, one small function per subject.

Each check says what it found and what to do. It raises no error, and it only writes a temporary file.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import click

from reverie import __version__
from reverie.cli.dream.status import read_status_from_disk
from reverie.cli.options import examples, folder_options, load_places
from reverie.cli.output import answer, format_size, get_paint, pad, plural, wrap_hanging
from reverie.context.ledger import Ledger
from reverie.errors import ReverieError
from reverie.flags import FLAGS, Flags
from reverie.memory.opening import open_memory
from reverie.models.catalogue import Catalogue
from reverie.models.programs.model import ProgramModel
from reverie.models.registry import default_model_name, facts_of, model_access, open_model, split_name
from reverie.models.window import limits_of, window_doubt, window_of
from reverie.paths import Places, find_repo
from reverie.paths.repo import current_branch
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.live_client import live_sessions
from reverie.settings import Settings
from reverie.settings.sections import WindowSettings
from reverie.storage.atomic import cause_of
from reverie.tools.ripgrep import find_ripgrep
from reverie.types import Purpose

State = Literal["ok", "warning", "broken"]
_LITTLE_SPACE = 1_000_000_000
_NO_SPACE = 20_000_000
_RECENT = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `todo` says what to do; empty if there is nothing to do."""

    name: str
    state: State
    found: str
    todo: str = ""


@examples("reverie doctor", "reverie doctor --json | jq '.checks[] | select(.state != \"ok\")'")
@click.command("doctor")
@folder_options
def command(as_json: bool, cwd: Path) -> int:
    """Check that Reverie has everything it needs.

    Shows the settings, the model and why it was chosen, the memory directory and why it is used, and failures in the
    background. ✓ means fine, `!` means worth a look, ✗ means broken; an arrow says what to do.

    Exit codes: 0: fine; 1: something is broken.
    """
    checks, paint = list(run_checks(cwd)), get_paint()
    healthy = all(check.state != "broken" for check in checks)
    marks = {"ok": paint.good("✓"), "warning": paint.warning("!"), "broken": paint.bad("✗")}
    wide = max(len(check.name) for check in checks) + 2
    lines = list[str]()
    for check in checks:
        head = f"{marks[check.state]} {paint.bold(pad(check.name, wide))}"
        lines.append(wrap_hanging(check.found, head, wide + 2, breaks=False))
        if check.todo:
            lines.append(" " * (wide + 2) + paint.accent("→ ") + check.todo)
    answer(as_json, {"healthy": healthy, "checks": [asdict(check) for check in checks]}, *lines)
    return 0 if healthy else 1


def run_checks(cwd: Path) -> Iterator[Check]:
    """Every check, in the order of the output."""
    from reverie.cli.doctor.connect import connect_checks
    from reverie.cli.doctor.memory import budget_check, memory_checks, writer_checks

    python = ".".join(map(str, sys.version_info[:3]))
    yield Check("version", "ok", f"Reverie {__version__}, Python {python}, {sys.platform}")
    try:
        settings, places = load_places(cwd)
    except ReverieError as error:
        yield Check("settings", "broken", str(error), "correct it first; the other checks need the settings")
        return
    yield from _settings(settings, places)
    subjects: tuple[tuple[str, Callable[[Settings, Places], Iterator[Check]]], ...] = (
        ("home", _home),
        ("disk", _disk),
        ("model", _model),
        ("memory", memory_checks),
        ("search", _search),
        ("sandbox", _sandbox),
        ("flags", _flags),
        ("git", _git),
        ("live", _live),
        ("connect", connect_checks),
        ("mcp", _mcp),
        ("cache", _cache),
        ("writers", writer_checks),
        ("budget", budget_check),
        ("background", _background),
        ("dream", _dream),
    )
    for name, check in subjects:
        try:
            yield from check(settings, places)
        except ReverieError as error:
            yield Check(name, "broken", str(error))


def _settings(settings: Settings, places: Places) -> Iterator[Check]:
    files = dict.fromkeys(
        str(source.file.path) for sources in settings.sources.values() for source in sources if source.file is not None
    )
    variables = [s.variable for sources in settings.sources.values() for s in sources if s.variable]
    sources = [*files, *(f"{name} (variable)" for name in dict.fromkeys(variables) if name != "HOME")]
    yield Check("settings", "ok", ", ".join(sources) or "no files, no variables: all defaults")
    for warning in settings.warnings:
        yield Check("settings", "warning", warning)
    acting = [part for part in settings.parts if part.can_be_trusted]
    if acting and not any(part.ignored for part in acting):
        yield Check("trust", "ok", f"{places.checkout} is trusted; `reverie trust --status` shows its parts")


def _sandbox(settings: Settings, places: Places) -> Iterator[Check]:
    """Which layers keep commands from changing things, found out by running one in them."""
    from reverie.permissions.sandbox.sandboxes import Sandboxes

    layers = Sandboxes(wanted=settings.permissions.sandbox).layers
    works = ["namespaces"] * layers.namespaces + [f"Landlock {layers.landlock}"] * bool(layers.landlock)
    names = " and ".join([*works, "seccomp"])
    if not layers.can_read:
        todo = "set permissions.sandbox = true" if not settings.permissions.sandbox else ""
        found = f"none, because {layers.why_not}: commands ask, apart from eight programs that read plain files"
        yield Check("sandbox", "warning", found, todo)
    elif not layers.can_work:
        found = f"{names}; without namespaces commands cannot write in the project alone ({layers.why_not})"
        yield Check("sandbox", "warning", found, "allow user namespaces, for accept_edits without questions")
    else:
        yield Check("sandbox", "ok", names + (f" ({layers.why_not})" if layers.why_not else ""))


def _mcp(settings: Settings, places: Places) -> Iterator[Check]:
    """The MCP servers of the agent: only what the files say, because a check starts nothing."""
    from reverie.tools.mcp.config import find_servers

    found = find_servers(places, settings)
    names = ", ".join(one.name for one in found.servers if not one.problem)
    if names:
        yield Check("mcp", "ok", f"{names}; `reverie mcp test` starts them and lists their tools")
    for problem in (*found.problems, *(one.problem for one in found.servers if one.problem)):
        yield Check("mcp", "warning", problem)


def _home(_settings: Settings, places: Places) -> Iterator[Check]:
    home = places.home
    if not home.exists():
        above = next(folder for folder in home.parents if folder.exists())
        if why := unwritable(above):
            found = f"{home} cannot be made in {above}: {why}"
            yield Check("home", "broken", found, "set REVERIE_HOME to a folder that you can write")
        else:
            yield Check("home", "ok", f"{home} (is made when it is needed)")
        return
    mode = stat.S_IMODE(home.stat().st_mode)
    if why := unwritable(home):
        yield Check("home", "broken", f"{home} cannot be written: {why}", "conversations are lost at exit")
    elif mode & 0o077:
        yield Check("home", "warning", f"{home} is open to others (mode {mode:o})", f"chmod 700 {home}")
    else:
        yield Check("home", "ok", f"{home} (writable, mode {mode:o})")


def unwritable(folder: Path) -> str:
    """Why the folder cannot be written; empty if it can."""
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
    yield Check("disk", state, f"{format_size(free)} free", "" if state == "ok" else "free some space")


def _model(settings: Settings, _places: Places) -> Iterator[Check]:
    access, catalogue = model_access(settings), Catalogue.load(settings.catalogue.files)
    name = settings.model.name or default_model_name(access)
    source = ", ".join(map(str, settings.sources.get("model.name", ())))
    why = f"set by {source}" if settings.model.name else _why_default(name)
    try:
        provider, _ = split_name(name, catalogue)
        opened = open_model(name, access, catalogue)  # only imports the provider, or finds the program
    except ReverieError as error:
        yield Check("model", "broken", str(error))
        return
    facts = facts_of(name, catalogue)
    known = "" if facts.known or provider == "scripted" else "; not in the catalogue, so figures are generic"
    program = f"; runs {opened.path}" if isinstance(opened, ProgramModel) else ""
    yield Check("model", "ok", f"{name} ({why}){program}{known}")
    window, limits = window_of(name, facts, settings), limits_of(name, facts, settings)
    text = (
        f"{window.tokens:,} tokens ({window.source}): warning at {limits.warning:,}, compaction at "
        f"{limits.autocompact:,}, full at {limits.blocking:,}"
    )
    changed = list[str]()
    for key in (key for key in settings.sources if key.startswith("window.")):
        field = key.removeprefix("window.")
        given = replace(settings.window, **{field: getattr(WindowSettings(), field)})
        without = replace(settings, window=given)
        if (window_of(name, facts, without).tokens, limits_of(name, facts, without)) != (window.tokens, limits):
            changed.append(key)
    text += f"; changed by {', '.join(changed)}" if changed else ""
    doubt = window_doubt(name, window)
    yield Check("window", "warning" if doubt else "ok", text, "set REVERIE_CONTEXT_WINDOW" if doubt else "")


def _why_default(name: str) -> str:
    if name == "embedded":
        return (
            "no key is set; ANTHROPIC_API_KEY or OPENAI_API_KEY selects a real model, and claude-code: or codex: as"
            " model.name uses your subscription"
        )
    return f"{'OPENAI_API_KEY' if name.startswith('openai') else 'an Anthropic key'} is set"


def _search(_settings: Settings, _places: Places) -> Iterator[Check]:
    yield Check("search", "ok", f"ripgrep at {find_ripgrep()}")


def _flags(settings: Settings, places: Places) -> Iterator[Check]:
    with closing(Flags.open(places, settings)) as flags:
        found = {name: on for name, (on, _) in flags.all().items() if on != FLAGS[name].default}
        numbers = {name: value for name, (value, _) in flags.numbers().items()}
        warnings = flags.warnings
    changed = [f"{name} is {'on' if on else 'off'}" for name, on in found.items()]
    changed += [f"{name} is {value:,}" for name, value in numbers.items()]
    where = settings.flags.provider or (str(places.flags_file) if places.flags_file.exists() else "no file")
    yield Check("flags", "ok", f"{where}: {', '.join(changed) or 'all defaults'}")
    for warning in warnings:
        yield Check("flags", "warning", warning)


def _git(_settings: Settings, places: Places) -> Iterator[Check]:
    repo = find_repo(places.cwd)
    found = f"{repo.root}, branch {current_branch(repo) or '(detached)'}"
    alone = f"{places.cwd} is not in a repository; memory belongs to this folder"
    yield Check("git", "ok", found if repo.git_dir is not None else alone)


def _live(_settings: Settings, places: Places) -> Iterator[Check]:
    found = live_sessions(places.projects)
    named = ", ".join(f"{live.id[:8]} (PID {live.pid})" for live in found[:5])
    yield Check("live", "ok", f"{plural(len(found), 'session')} open{': ' + named if found else ''}")


def _cache(settings: Settings, places: Places) -> Iterator[Check]:
    """How well the prompt cache works here, for conversations and for background work."""
    since = (datetime.now(UTC) - _RECENT).timestamp()
    transcripts = sorted(places.project.glob("*.jsonl")) if places.project.is_dir() else []
    ledger = Ledger.of_transcripts(transcripts, Catalogue.load(settings.catalogue.files), since=since)
    main, beside = ledger.main, ledger.beside
    if not main.requests:
        yield Check("cache", "ok", "no requests in the last 7 days")
        return
    found = [one.broken for one in ledger.breaks if one.broken.announcement is None]
    announced = len(ledger.breaks) - len(found)
    rates = f"{main.hit_rate:.0%} of {plural(main.requests, 'request')} read from the cache in 7 days"
    forks = f", {beside.hit_rate:.0%} for background work" if beside.requests else ""
    breaks = f"; breaks: {announced} announced, {len(found)} not"
    state = "warning" if found else "ok"
    yield Check("cache", state, rates + forks + breaks, "`reverie cost` names their causes" if found else "")


def _background(_settings: Settings, places: Places) -> Iterator[Check]:
    since = datetime.now(UTC) - _RECENT
    log = BackgroundLog(places.background_log)
    entries = log.read(since=since)  # a failed dream is also a failed task
    failed = [entry for entry in entries if entry.kind.endswith("_failed") and entry.kind != "dream_failed"]
    if not failed:
        yield Check("background", "ok", "nothing failed in the last 7 days")
        return
    last = failed[-1]
    what = last.fields.get("purpose") or last.fields.get("layer") or last.kind
    text = f"{plural(len(failed), 'failure')} in 7 days, last {what}: {last.fields.get('error', '')}"
    yield Check("background", "warning", text, "`reverie health` shows them by layer and reason")


def _dream(settings: Settings, places: Places) -> Iterator[Check]:
    from reverie.cli.doctor.memory import sum_spending

    memory = open_memory(settings, places)
    if not memory.switch.on:
        return
    found = read_status_from_disk(memory)
    state: State = "warning" if (found.state.failures_in_a_row >= 3 or found.lock.stale or found.lock.ahead) else "ok"
    spent = sum_spending(places.day_books, Purpose.DREAM)
    cost = f"; in 7 days {spent.describe()}" if spent.requests else ""
    todo = "check the clock of this machine; the next dream corrects the lock" if found.lock.ahead else ""
    todo = todo or ("`reverie dream log` shows what went wrong" if state == "warning" else "")
    yield Check("dream", state, found.line() + cost, todo)
