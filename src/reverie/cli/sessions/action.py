"""Acts on a session from another terminal: through its socket if it is live, else by opening it for a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from reverie.cli.options import cwd_option, json_option, session_option
from reverie.types import JsonObject

F = TypeVar("F", bound=Callable[..., Any])
_TIMEOUT_S = 1_800.0
_CHANGING = frozenset({"compact", "undo", "rewind", "clear", "pin", "unpin", "notes"})


def action_options(function: F) -> F:
    """Adds `--session`, `--cwd` and `--json`."""
    named = session_option(
        "Which session; the beginning of its id is enough.  [default: the newest session of this folder]"
    )
    return named(cwd_option(json_option(function)))


def act(session: str, cwd: Path, request: JsonObject, *, asks: bool = False) -> JsonObject:
    """Has the session do what the request says and returns its answer. `asks`: its model, which is then opened."""
    from reverie.paths import Places
    from reverie.runtime.live_client import ask_live
    from reverie.settings import load_settings
    from reverie.storage.lease import Lease
    from reverie.storage.transcript.sessions import find_session

    found = find_session(Places.of(cwd, load_settings(cwd)).project, session)
    holder = Lease.holder(found.lease)
    socket = cast(str | None, holder.get("socket")) if holder is not None else None
    if socket:
        return ask_live(Path(socket), request, timeout_s=_TIMEOUT_S)
    return _beside(found.id, cwd, request, asks)


def _beside(session: str, cwd: Path, request: JsonObject, asks: bool) -> JsonObject:
    """The session is not open anywhere: opened, changed and closed."""
    from reverie.cli.running import CANCELLED, Signals, run_async
    from reverie.errors import Cancelled
    from reverie.session.agent_verbs import agent_verbs
    from reverie.session.context_verbs import context_verbs
    from reverie.session.session import Session

    answer: JsonObject = {}

    async def main(_signals: Signals) -> int:
        async with await Session.open(cwd=cwd, resume=session, own_model=asks) as opened:
            verbs = {
                **context_verbs(opened.engine.compactor, opened.engine.notes),
                **agent_verbs(opened.agents.spawner, opened.tasks, opened.ask_aside),
            }
            if str(request["do"]) in _CHANGING and not request.get("preview"):
                opened.log.confirm()  # before a model is asked for something that could not be stored
            answer.update(await verbs[str(request["do"])](request))
            if opened.log.unsaved:
                click.echo("What this cost could not be recorded: the disk refused it.", err=True)
        return 0

    if run_async(main) == CANCELLED:
        raise Cancelled("Cancelled; nothing was changed.")
    return answer
