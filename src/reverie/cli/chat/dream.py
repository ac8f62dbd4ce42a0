"""`/dream` in the chat: begin one, see how it goes, and have the last word. The same things exist as commands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.layers.l6_dreaming.dreaming import Dreaming

_WORDS = {
    "status": "when the last one was, and why the next is not yet",
    "review": "what waits for you, or what the last one changed",
    "accept": "let what waits become memory",
    "reject": "drop what waits",
    "undo": "take back the last one",
    "kill": "end a running one",
    "dry-run": "see what one would change",
}


async def dream(chat: Chat, rest: str) -> None:
    """Begins a dream, or does what the word says."""
    dreaming = chat.session.dreaming
    if dreaming is None:
        raise UserError("Memory is off, so nothing is dreamt.")
    word, _, id = rest.partition(" ")
    match word:
        case "" | "now" | "dry-run":
            dreaming.shown = None
            task = dreaming.start(dry_run=word == "dry-run")
            chat.view.tell(f"Dreaming in the background ({task.id}); /dream status shows how it goes.")
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
            chat.view.tell(f"Took back {undone.short}: {', '.join(change.name for change in undone.files)}.")
        case "kill":
            await _kill(chat)
        case _:
            raise UserError(f"Write /dream, or /dream with one of {', '.join(_WORDS)}.")


def words(_chat: Chat) -> Iterable[tuple[str, str]]:
    """What can follow /dream."""
    return _WORDS.items()


def _status(chat: Chat, dreaming: Dreaming) -> None:
    from reverie.cli.dream.look import look

    if dreaming.running is not None:
        chat.view.say(f"  {dreaming.running.line()}")
    for line in look(dreaming.memory, chat.session.parts.flags).lines(chat.view.paint):
        chat.view.say(f"  {line}")


def _review(chat: Chat, dreaming: Dreaming, id: str) -> None:
    from reverie.cli.dream.show import landed_version, show_proposal, show_version

    view = chat.view
    waiting = [one for one in dreaming.proposals.list() if one.id.startswith(id.lower())]
    tried = [dreaming.shown] if dreaming.shown is not None and not id and not waiting else []
    view.say_all(line for proposal in (*waiting, *tried) for line in show_proposal(proposal, view.paint))
    if waiting:
        view.tell("/dream accept makes it memory, /dream reject drops it.")
    elif tried:
        view.tell("That was a dry run: nothing was changed. /dream does it.")
    else:
        view.say_all(show_version(dreaming.directory, landed_version(dreaming.directory, id), view.paint))


async def _accept(chat: Chat, dreaming: Dreaming, id: str) -> None:
    from reverie.cli.dream.show import landed_lines
    from reverie.layers.l6_dreaming.landing import accept

    _, landed = await asyncio.to_thread(accept, dreaming.directory, dreaming.proposals, id)
    chat.view.say_all(landed_lines(landed, chat.view.paint))


async def _kill(chat: Chat) -> None:
    from reverie.types import Purpose

    running = [info for info in chat.session.tasks.running if info.purpose is Purpose.DREAM]
    if not running:
        raise UserError("No dream is running in this session.")
    for info in running:
        ended = await chat.session.tasks.kill(info.id)
        chat.view.tell(f"{ended.id}: {ended.state.value}")
