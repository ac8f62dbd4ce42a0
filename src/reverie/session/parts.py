"""Builds the parts of a session: settings, places, lease, log and model.

It runs no turn. An error of the disk becomes a notice, and the conversation still works.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

from reverie import __version__
from reverie.context.accounts import Accounts
from reverie.context.day_book import Caps, DayBook
from reverie.context.prefix import effort_of, render_prefix, thinking_of
from reverie.context.ttl import choose_ttl
from reverie.errors import NoConnection, StorageError, UserError
from reverie.events import Event, Notice, SessionOpened
from reverie.flags import Flags
from reverie.models.base import Model, Ttl
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.registry import (
    EMBEDDED,
    default_model_name,
    doubt_about,
    facts_of,
    model_access,
    open_model,
    trace_requests,
)
from reverie.models.window import WindowSource, limits_of, window_doubt, window_of
from reverie.moments import parse_time
from reverie.paths import Places, check_session_id, make_private
from reverie.paths.repo import current_branch, find_repo
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.hooks import Hooks, hook_rules
from reverie.runtime.parts import Parts
from reverie.settings import Settings, load_settings
from reverie.settings.reach import names_program
from reverie.storage.lease import Lease
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import Clock, SessionLog
from reverie.storage.transcript.sessions import expire_sessions, find_session
from reverie.types import JsonObject

_TTLS: tuple[Ttl, ...] = ("5m", "1h")


@dataclass(slots=True, kw_only=True)
class SessionParts(Parts):
    """The parts of a session."""

    hooks: Hooks
    lease: Lease | None
    resumed: bool
    branch: str
    prompt: str = ""  # replaces Reverie's own system prompt


def gather(
    cwd: Path,
    *,
    model: str | Model | None,
    resume: str | None,
    session_id: str | None,
    overrides: JsonObject,
    settings: Settings | None,
    clock: Clock,
    emit: Callable[[Event], None],
    prompt: str = "",
    own_model: bool = True,
) -> SessionParts:
    """Builds the parts of a session in `cwd`. `resume` is a session id, the start of one, or `last`."""
    settings = settings or load_settings(cwd, overrides=overrides)
    places = Places.of(cwd, settings)
    if not cwd.is_dir() and (cwd.exists() or not places.project.is_dir()):  # that of recorded sessions may be gone
        raise UserError(f"{cwd} is not a folder: give one that exists with --cwd")
    for text in settings.warnings:
        emit(Notice(text, "warning", "settings"))
    found = find_session(places.project, resume) if resume is not None else None
    name = found.id if found is not None else check_session_id(session_id or str(uuid.uuid4()))
    lease = _lease(places, name, emit)
    branch = current_branch(find_repo(places.cwd))
    log = SessionLog(
        places.transcript(name),
        name,
        cwd=places.cwd,
        version=__version__,
        home=places.home,
        git_branch=branch,
        fsync=settings.transcript.fsync,
        clock=clock,
        # Without a lease this was reported already.
        on_storage_error=lambda error: emit(in_memory(error)) if lease is not None else None,
    )
    try:
        if found is not None:
            log.load(found.path)
            _tell_bad_lines(log, emit)
        opened, facts, named = _model(model, settings, log, own=own_model)
    except BaseException:
        if lease is not None:
            lease.release()
        raise
    emit(SessionOpened(name, opened.name, str(places.cwd), found is not None))
    flags = Flags.open(places, settings)
    tell_flag_mistakes(flags, emit)
    expire_sessions(places.project, settings.transcript.expire_days)
    return SessionParts(
        settings=settings,
        places=places,
        flags=flags,
        log=log,
        model=opened,
        facts=facts,
        limits=limits_of(named or opened.name, facts, settings, flags),
        hooks=_hooks(settings, places, name),
        background=BackgroundLog(places.background_log, name, rotate_bytes=settings.background.log_bytes),
        lease=lease,
        resumed=found is not None,
        branch=branch,
        prompt=prompt,
        named=named,
    )


async def look_at_model(parts: SessionParts, emit: Callable[[Event], None]) -> None:
    """Asks the server for the window of a model that nobody described, and reports what is only assumed."""
    name, settings = parts.model_name, parts.settings
    found = window_of(name, parts.facts, settings)
    ask = getattr(parts.model, "window", None) if found.source is WindowSource.UNLISTED else None
    try:
        served = await ask() if ask is not None else None
    except NoConnection:
        return  # the first request says so
    if served is not None:
        parts.facts = replace(parts.facts, window=served, served=True)
        parts.limits = parts.limits_now()
        found = window_of(name, parts.facts, settings)
    catalogue = Catalogue.load(settings.catalogue.files)
    doubts = (doubt_about(parts.model.name, model_access(settings), catalogue), window_doubt(name, found))
    if any(doubts):
        emit(Notice(" ".join(filter(None, doubts)), "warning", "model"))


_CACHE_SECONDS: dict[str, float] = {"5m": 300, "1h": 3_600}


def resume_facts(parts: SessionParts, now: datetime) -> JsonObject:
    """Returns what hooks are told about a session that continues: how old it is, and whether it is still cached."""
    view, facts = parts.log.view, parts.facts
    said = next((one.timestamp for one in reversed(view.entries) if one.message.role == "assistant"), None)
    tokens = view.meter.tokens
    found: JsonObject = {"context_tokens": tokens}
    if said is None or (then := parse_time(said)) is None:
        return found
    seconds = max(0.0, (now - then).total_seconds())
    expired = seconds > _CACHE_SECONDS.get(view.header.ttl if view.header is not None else "5m", 300)
    found |= {"seconds_since_last_response": round(seconds), "prompt_cache_likely_expired": expired}
    if expired and facts.priced:
        found["estimated_cache_write_usd"] = round(tokens * facts.input_price * facts.cache_write_5m / 1e6, 4)
    return found


def tell_flag_mistakes(flags: Flags, emit: Callable[[Event], None]) -> None:
    """Reports each mistake in the flags once, with the session that it concerns."""
    for text in flags.new_warnings():
        emit(Notice(text, "warning", "flags"))


def open_accounts(parts: Parts, emit: Callable[[Event], None], clock: Clock, *, books: Path | None = None) -> Accounts:
    """Opens the session's accounts. `books` is the folder of the daily books, if not the shared one."""
    settings, flags = parts.settings.budget, parts.flags
    book = DayBook(books or parts.places.day_books, clock=clock)
    tokens, dollars = settings.background_tokens_per_day, settings.background_dollars_per_day or 0.0
    return Accounts(
        parts.log,
        Catalogue.load(parts.settings.catalogue.files),
        window=parts.limits.window,
        emit=emit,
        watching=lambda: flags.on("cache_watch"),
        book=book,
        caps=Caps(
            book,
            tokens_per_day=lambda: flags.number("budget.background_tokens_per_day", tokens),
            dollars_per_day=lambda: flags.number("budget.background_dollars_per_day", dollars),
        ),
    )


def new_header(
    parts: SessionParts, tools: tuple[JsonObject, ...], today: date, emit: Callable[[Event], None]
) -> SessionHeader:
    """Renders the prefix of a new conversation once, and chooses the lifetime of its cache."""
    flags = parts.flags.snapshot()
    prefix = render_prefix(
        parts.places,
        parts.settings,
        flags,
        branch=parts.branch,
        today=today,
        tools=[str(tool["name"]) for tool in tools],
        window=parts.limits.window,
        prompt=parts.prompt,
    )
    for text in prefix.warnings:
        emit(Notice(text, "warning", "instructions"))
    own: tuple[Ttl, ...] = parts.model.capabilities.ttls
    if parts.named:  # the model itself is not open: use what the catalogue knows about it
        own = tuple(ttl for ttl in _TTLS if ttl in parts.facts.ttls) if parts.facts.cache_markers else ()
    kept = choose_ttl(parts.places.project, parts.facts, own, skip=parts.log.session_id)
    return SessionHeader(
        model=parts.model_name,
        system=prefix.system,
        tools=tools,
        reminder=prefix.reminder,
        date=today.isoformat(),
        flags=dict(flags.to_json()),
        ttl=kept.ttl,
        ttl_reason=kept.reason,
        thinking=thinking_of(parts.settings.model, parts.facts.max_output),
        effort=effort_of(parts.settings.model),
    )


def _lease(places: Places, session_id: str, emit: Callable[[Event], None]) -> Lease | None:
    folder = places.session(session_id)
    try:
        make_private(folder)
        return Lease.take(folder / Lease.NAME, info={"session": session_id, "socket": str(places.socket(session_id))})
    except StorageError as error:
        emit(in_memory(error))
        return None


def in_memory(error: StorageError) -> Notice:
    """The notice that the disk refuses the transcript."""
    text = str(error).rstrip(".")
    return Notice(f"{text}; the conversation continues in memory and is lost when it ends.", "error", "storage")


def _tell_bad_lines(log: SessionLog, emit: Callable[[Event], None]) -> None:
    if not log.bad:
        return
    shown = ", ".join(f"{bad.number} ({bad.reason})" for bad in log.bad[:5])
    more = f" and {len(log.bad) - 5} more" if len(log.bad) > 5 else ""
    text = f"the transcript has lines that cannot be read; they are kept and skipped: {shown}{more}"
    emit(Notice(text, "warning", "storage"))


def _model(
    wanted: str | Model | None, settings: Settings, log: SessionLog, *, own: bool
) -> tuple[Model, ModelFacts, str]:
    """Returns the model asked for, else that of the log, the settings or the default. Not `own`: the embedded one."""
    catalogue = Catalogue.load(settings.catalogue.files)
    if wanted is not None and not isinstance(wanted, str):
        opened = trace_requests(wanted) if settings.telemetry.otel else wanted
        return opened, facts_of(wanted.name, catalogue), ""
    access = model_access(settings)
    header = log.view.header
    recorded = header.model if header is not None else ""
    if names_program(recorded) and recorded != settings.model.name:
        recorded = ""  # a transcript may come from somebody else
    name = wanted or recorded or settings.model.name or default_model_name(access)
    if not own:
        return open_model(EMBEDDED, access, catalogue), facts_of(name, catalogue), name
    return open_model(name, access, catalogue), facts_of(name, catalogue), ""


def _hooks(settings: Settings, places: Places, session_id: str) -> Hooks:
    rules = {} if settings.session.bare else hook_rules(settings.hooks)
    transcript = places.transcript(session_id)
    return Hooks(rules, places.cwd, session_id, transcript, project_dir=places.checkout)
