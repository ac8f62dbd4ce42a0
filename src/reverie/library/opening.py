"""Builds what an engine works with: settings, places, transcript, the facts about the caller's model, and who thinks
beside the conversation. It sends nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from reverie import __version__
from reverie.errors import StorageError, UserError
from reverie.flags import Flags
from reverie.flags.registry import env_name
from reverie.library.prepared import check_given
from reverie.models.base import Capabilities, Model, ModelEvent, Request, Ttl
from reverie.models.catalogue import Catalogue, ModelFacts
from reverie.models.registry import EMBEDDED, facts_of
from reverie.models.window import limits_of
from reverie.paths import Places, check_session_id
from reverie.quick import dataclass
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.hooks import Hooks
from reverie.session.parts import SessionParts
from reverie.settings import Settings
from reverie.storage.transcript.session_log import Clock, SessionLog

_NOT_SAFE = re.compile(r"[^A-Za-z0-9._-]+")


def session_id_of(conversation_id: str) -> str:
    """Returns the session id of a conversation. An id that cannot be a file name gets a hash, so that two ids never
    become one."""
    check_given(conversation_id, str, "conversation_id")
    if not conversation_id.strip():
        raise UserError("a conversation needs an id: any text that names it, for example the id of a ticket")
    with suppress(UserError):
        return check_session_id(conversation_id)
    digest = hashlib.sha256(conversation_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return "-".join(filter(None, (_NOT_SAFE.sub("-", conversation_id)[:60].strip("-._"), digest)))


@dataclass(eq=False, slots=True)
class CallersModel:
    """The caller's model as the layers see it: its name and what its endpoint understands. The caller itself sends the
    requests of the conversation; `beside` answers those of the layers."""

    name: str
    capabilities: Capabilities
    beside: Model
    shares_prefix: bool
    """Whether `beside` is the caller's own model, which has the conversation in its cache."""

    def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        model = request.model if self.shares_prefix else self.beside.name
        able = self.beside.capabilities
        return self.beside.stream(
            replace(
                request,
                model=model,
                markers=request.markers if able.cache_markers else (),
                context_management=None,
                cache_edits=None,
            )
        )

    async def close(self) -> None:
        await self.beside.close()


def callers_capabilities(facts: ModelFacts, *, markers: bool) -> Capabilities:
    """What the caller's endpoint understands. Only the layers here clear and compact, so no edits by the server."""
    if not (markers and facts.cache_markers):
        return Capabilities()
    return Capabilities(cache_markers=True, ttls=tuple[Ttl, ...](ttl for ttl in ("5m", "1h") if ttl in facts.ttls))


def gather_parts(
    conversation_id: str,
    name: str,
    settings: Settings,
    cwd: Path,
    beside: Model,
    *,
    markers: bool,
    is_own: bool,
    window: int | None,
    clock: Clock,
    on_storage_error: Callable[[StorageError], None],
) -> SessionParts:
    """Builds the parts of one conversation, with its transcript loaded if there is one."""
    places = Places.of(cwd, settings)
    catalogue = Catalogue.load(settings.catalogue.files)
    facts = facts_of(name, catalogue)
    if window is not None and window < 1_000:
        raise UserError(f"`window` is {window}: give a number of tokens, at least 1,000")
    if window is not None:
        facts = replace(facts, window=min(window, facts.window) if facts.known else window, known=True)
    flags = Flags.open(places, settings)
    session = session_id_of(conversation_id)
    log = SessionLog(
        places.transcript(session),
        session,
        cwd=places.cwd,
        version=__version__,
        home=places.home,
        fsync=settings.transcript.fsync,
        clock=clock,
        on_storage_error=on_storage_error,
    )
    return SessionParts(
        settings=settings,
        places=places,
        flags=flags,
        log=log,
        model=CallersModel(name, callers_capabilities(facts, markers=markers), beside, is_own),
        facts=facts,
        limits=limits_of(name, facts, settings, flags),
        hooks=Hooks({}, places.cwd, session, places.transcript(session)),
        background=BackgroundLog(places.background_log, session, rotate_bytes=settings.background.log_bytes),
        lease=None,
        resumed=False,
        branch="",
    )


def library_overrides(given: Mapping[str, object], *, thinks: bool) -> dict[str, object]:
    """The settings of an engine: those of the caller, and what a foreign loop fixes. Nothing may change the context
    between two calls, so there are no notes of a model; a model writes a summary when the window is full. Without one,
    code does all the work."""
    by_default: dict[str, object] = {"notes.cadence": "reference"} if thinks else {"background.mind": EMBEDDED}
    return {**by_default, **given, "compaction.idle": False}


def with_flags(settings: Settings, flags: Mapping[str, bool]) -> Settings:
    """The settings with these flags, as if the environment had set them."""
    if not flags:
        return settings
    return replace(settings, flag_env={**settings.flag_env, **{env_name(k): str(v).lower() for k, v in flags.items()}})
