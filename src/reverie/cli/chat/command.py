"""`reverie chat`: a conversation in the terminal, or a line a turn from a pipe."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.opening import Opening, opening, session_options
from reverie.cli.options import examples
from reverie.cli.output import Paint, can_ask, painted

if TYPE_CHECKING:
    from reverie.cli.chat.input import ChatInput
    from reverie.cli.chat.loop import Chat
    from reverie.cli.running import Signals


@click.command(
    "chat",
    epilog=examples(
        "reverie chat",
        "reverie chat --continue",
        "reverie chat --model openai:gpt-5.5 --allow 'Bash(npm test:*)'",
        "printf 'Which port is used?\\n/cost\\n' | reverie chat",
    ),
)
@session_options
def command(**options: Any) -> int:
    """Talk to the agent in this folder.

    Enter sends; Alt-Enter or a backslash at the end begins another line; @ completes files. /help lists the commands.
    Ctrl-C stops the answer, twice leaves; so does Ctrl-D. When standard input is not a terminal, each of its lines is
    a turn, answers go to standard output, and nobody is asked: what would need a permission is refused.

    Exit codes: 0, or from a pipe that of the first turn that was not answered; 2 usage, 3 session busy.
    """
    from reverie.cli.running import run_async

    wanted = opening(**options)
    if can_ask():
        from reverie.cli.trust import ask_once

        ask_once(wanted.cwd)
    return run_async(lambda signals: _chat(signals, wanted))


async def _chat(signals: Signals, wanted: Opening) -> int:
    from reverie.cli.chat.loop import Chat
    from reverie.cli.chat.view import ChatView

    terminal, paint = can_ask(), painted()
    session = await wanted.open(interactive=terminal)
    chat = Chat(session, wanted, ChatView(session.places.cwd, paint), signals)
    try:
        await chat.talk(_input(chat, paint, terminal))
    finally:
        await chat.close()
    return chat.code


def _input(chat: Chat, paint: Paint, terminal: bool) -> ChatInput:
    if not terminal:
        from reverie.cli.chat.input import PipedInput

        return PipedInput()
    from reverie.cli.chat.commands import completions
    from reverie.cli.chat.prompt import TerminalInput

    places = chat.session.places
    slash = partial(completions, chat)
    return TerminalInput(places.cwd, places.chat_history, paint, toolbar=chat.toolbar, slash=slash)
