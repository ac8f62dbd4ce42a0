"""Opens a learner of recorded conversations: it has its own model, memory directory and accounts, and no session."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path

from reverie import __version__
from reverie.agents.fork import ForkPoint
from reverie.context.conversation import Conversation
from reverie.events import Event
from reverie.flags import Flags
from reverie.layers.l5_extraction.recordings import Learner
from reverie.memory.directory import MemoryDirectory
from reverie.models.base import Model
from reverie.models.catalogue import Catalogue
from reverie.models.registry import default_model_name, facts_of, model_access, open_model
from reverie.models.request_log import RequestLog
from reverie.models.sending import RetryPolicy
from reverie.models.window import limits_of, output_caps
from reverie.paths import Places
from reverie.permissions.rules import Decision, Deny, ToolCall
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.hooks import Hooks
from reverie.session.parts import SessionParts, new_header, open_accounts
from reverie.settings import Settings
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.session_log import SessionLog, utc_now
from reverie.tools.base import Caller, ReadCache, ToolContext
from reverie.tools.registry import list_schemas, make_builtin_tools


@asynccontextmanager
async def open_learner(
    cwd: Path,
    settings: Settings,
    memory: MemoryDirectory,
    *,
    model: str | Model | None = None,
    addressed: Path | None = None,
    in_background: bool = False,
) -> AsyncGenerator[Learner]:
    """Opens a learner that writes to `memory`. `addressed` is the path the model knows, if `memory` is a copy.

    `in_background`: nobody asked for it now, so it counts against the daily budget of background work.
    """
    places = Places.of(cwd, settings)
    catalogue = Catalogue.load(settings.catalogue.files)
    access = model_access(settings)
    name = model if isinstance(model, str) else settings.model.name or default_model_name(access)
    opened = open_model(name, access, catalogue) if model is None or isinstance(model, str) else model
    facts = facts_of(opened.name, catalogue)
    flags = Flags.open(places, settings)
    session = str(uuid.uuid4())
    parts = SessionParts(
        settings=settings,
        places=places,
        flags=flags,
        log=SessionLog(None, session, cwd=places.cwd, version=__version__),
        model=opened,
        facts=facts,
        limits=limits_of(opened.name, facts, settings, flags),
        hooks=Hooks({}, places.cwd, session, places.transcript(session)),
        background=BackgroundLog(places.background_log, session),
        lease=None,
        resumed=False,
        branch="",
    )
    tools = make_builtin_tools(settings.tools, window=parts.limits.window)
    schemas = list_schemas(tools)
    log_to = settings.debug.request_log
    cap, _ = output_caps(settings, facts, parts.limits.window)
    with tempfile.TemporaryDirectory(prefix="reverie-book-") as books:
        accounts = open_accounts(parts, _unheard, utc_now, books=None if in_background else Path(books))

        def fork(log: SessionLog) -> ForkPoint:
            talk = Conversation(
                log=log,
                model=opened,
                thresholds=parts.limits,
                emit=_unheard,
                retry=RetryPolicy.of(settings),
                request_log=RequestLog(log_to) if log_to is not None else None,
                account=accounts.main(),
            )
            context = ToolContext(
                cwd=places.cwd,
                caller=Caller(),
                permission=_nobody_asks,
                read_cache=ReadCache(),
                sandboxes=Sandboxes(wanted=settings.permissions.sandbox, private=[places.home]),
                shown=(addressed or memory.root,),
                keep_dir=places.tool_results(session),
            )
            return ForkPoint(talk, {tool.name: tool for tool in tools}, context, cap, cap)

        def header(day: date) -> SessionHeader:
            return new_header(parts, schemas, day, _unheard)

        try:
            yield Learner(parts, memory, fork=fork, header=header, addressed=addressed)
        finally:
            await opened.close()
            await asyncio.to_thread(flags.close)


async def _nobody_asks(_call: ToolCall) -> Decision:
    return Deny("only a run of its own calls tools here")


def _unheard(_event: Event) -> None:
    pass
