"""Acts on a session from another terminal: through its socket if it is live, else by opening it for a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from reverie.cli.sessions import session_ids
from reverie.types import JsonObject

F = TypeVar("F", bound=Callable[..., Any])
_TIMEOUT_S = 1_800.0


def session_choice(function: F) -> F:
    """Adds `--session`, `--cwd` and `--json`."""
    options = (
        click.option(
            "-s",
            "--session",
            metavar="ID",
            default="last",
            shell_complete=session_ids,
            help="Which session; the beginning of its id is enough.  [default: the newest of this folder]",
        ),
        click.option(
            "-C",
            "--cwd",
            type=click.Path(path_type=Path, exists=True, file_okay=False),
            default=".",
            help="The folder whose session is meant.  [default: this one]",
        ),
        click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def act(session: str, cwd: Path, request: JsonObject, *, asks: bool = False) -> JsonObject:
    """Has the session do what the request says and returns its answer. `asks`: its model, which is then opened."""
    from reverie.live_client import ask_live
    from reverie.paths import Places
    from reverie.settings import load_settings
    from reverie.storage.lease import Lease
    from reverie.storage.sessions import find_session

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
            verbs = {**context_verbs(opened), **agent_verbs(opened)}
            answer.update(await verbs[str(request["do"])](request))
        return 0

    if run_async(main) == CANCELLED:
        raise Cancelled("Cancelled; nothing was changed.")
    return answer
