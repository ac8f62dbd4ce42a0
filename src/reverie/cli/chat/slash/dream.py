"""`/dream` in the chat: start a dream, watch it, and decide about its changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.layers.l6_dreaming.dreaming import Dreaming

_WORDS = {
    "status": "when the last dream ran, and when the next one runs",
    "review": "the dream that waits for you, or the changes of the last dream",
    "accept": "apply the dream that waits",
    "reject": "drop the dream that waits",
    "undo": "undo the last dream",
    "kill": "end a running dream",
    "dry-run": "show what a dream would change",
}


async def dream(chat: Chat, rest: str) -> None:
    """Starts a dream, or does what the word says."""
    dreaming = chat.session.dreaming
    if dreaming is None:
        raise UserError("Memory is off, so there are no dreams.")
    word, _, id = rest.partition(" ")
    match word:
        case "" | "now" | "dry-run":
            dreaming.shown = None
            task = dreaming.start(dry_run=word == "dry-run")
            chat.view.tell(f"Dreaming in the background ({task.id}); /dream status shows the progress.")
        case "status":
            _status(chat, dreaming)
        case "review":
            _review(chat, dreaming, id.strip())
        case "accept":
            await _accept(chat, dreaming, id.strip())
        case "reject":
            from reverie.layers.l6_dreaming.landing import reject

            chat.view.tell(f"Dropped dream {reject(dreaming.proposals, id.strip()).id}.")
        case "undo":
            from reverie.layers.l6_dreaming.landing import undo

            undone, _ = await asyncio.to_thread(undo, dreaming.directory, id.strip())
            chat.view.tell(f"Undone: {undone.short} ({', '.join(change.name for change in undone.files)}).")
        case "kill":
            await _kill(chat)
        case _:
            raise UserError(f"Write /dream, or /dream with one of {', '.join(_WORDS)}.")


def complete_dream(_chat: Chat) -> Iterable[tuple[str, str]]:
    return _WORDS.items()


def _status(chat: Chat, dreaming: Dreaming) -> None:
    from reverie.cli.dream.status import read_status

    if dreaming.running is not None:
        chat.view.say(f"  {dreaming.running.line()}")
    for line in read_status(dreaming.memory, chat.session.parts.flags).lines(chat.view.paint):
        chat.view.say(f"  {line}")


def _review(chat: Chat, dreaming: Dreaming, id: str) -> None:
    from reverie.cli.dream.display import find_landed, show_proposal, show_version

    view = chat.view
    waiting = [one for one in dreaming.proposals.list() if one.id.startswith(id.lower())]
    tried = [dreaming.shown] if dreaming.shown is not None and not id and not waiting else []
    view.say_all(line for proposal in (*waiting, *tried) for line in show_proposal(proposal, view.paint))
    if waiting:
        view.tell("/dream accept applies it, /dream reject drops it.")
    elif tried:
        view.tell("This was a dry run: nothing was changed. /dream applies changes.")
    else:
        view.say_all(show_version(dreaming.directory, find_landed(dreaming.directory, id), view.paint))


async def _accept(chat: Chat, dreaming: Dreaming, id: str) -> None:
    from reverie.cli.dream.display import show_landed
    from reverie.layers.l6_dreaming.landing import accept

    _, landed = await asyncio.to_thread(accept, dreaming.directory, dreaming.proposals, id)
    chat.view.say_all(show_landed(landed, chat.view.paint))


async def _kill(chat: Chat) -> None:
    from reverie.types import Purpose

    running = [info for info in chat.session.tasks.running if info.purpose is Purpose.DREAM]
    if not running:
        raise UserError("No dream is running in this session.")
    for info in running:
        ended = await chat.session.tasks.kill(info.id)
        chat.view.tell(f"{ended.id}: {ended.state.value}")
