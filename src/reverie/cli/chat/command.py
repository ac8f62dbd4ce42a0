"""`reverie chat`: a conversation in the terminal, or one turn per line of a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from reverie.cli.options import examples
from reverie.cli.output import Paint, can_ask, get_theme, say_all
from reverie.cli.session_opening import Opening, make_opening, session_options

if TYPE_CHECKING:
    from reverie.cli.chat.input import ChatInput
    from reverie.cli.chat.live import LiveRegion
    from reverie.cli.chat.loop import Chat
    from reverie.cli.event_loop import CommandSignals


@examples(
    "reverie chat",
    "reverie chat --continue",
    "reverie chat --model openai:gpt-5.5 --allow 'Bash(npm test:*)'",
    "printf 'Which port is used?\\n/cost\\n' | reverie chat",
)
@click.command("chat")
@click.option("--theme", type=click.Choice(["terminal", "light"]), help="Colours for a light background.")
@session_options
@click.option("--plain", is_flag=True, help="For screen readers: whole lines, words instead of symbols, no colour.")
def command(theme: str | None, plain: bool, **options: Any) -> int:
    """Talk to the agent in this folder.

    Enter sends the message; while the agent works, it waits. Esc stops the agent, Ctrl-C twice or Ctrl-D leaves. A
    slash shows the commands, @ finds files, !COMMAND runs a command of yours. /help lists all keys. If standard input
    is not a terminal, each of its lines is one turn, the answers go to standard output, and tool calls that need
    permission are refused.

    Exit codes: 0: done; 2: wrong usage; 3: the session is open in another process. If the input comes from a pipe, the
    exit code is that of the first turn that failed.
    """
    from reverie.cli.event_loop import run_async
    from reverie.settings.loading import is_simple_terminal

    wanted = make_opening(**options)
    if can_ask():
        from reverie.cli.trust import ask_once

        ask_once(wanted.cwd)
    plain |= is_simple_terminal()
    return run_async(lambda signals: _chat(signals, wanted, plain=plain, theme=theme))


async def _chat(signals: CommandSignals, wanted: Opening, *, plain: bool, theme: str | None) -> int:
    from reverie.cli.chat.figures import closing_lines
    from reverie.cli.chat.folding import KeptOutputs
    from reverie.cli.chat.live import LiveRegion
    from reverie.cli.chat.loop import Chat
    from reverie.cli.chat.plain import PlainView
    from reverie.cli.chat.view import ChatView

    terminal, live, outputs = can_ask(), LiveRegion(), KeptOutputs()
    session = await wanted.open(interactive=terminal)
    paint = Paint(False) if plain else get_theme(session.parts.settings, theme)
    cwd = session.places.cwd
    view = PlainView(cwd, outputs) if plain and terminal else ChatView(cwd, paint, live, outputs)
    chat = Chat(session, wanted, view, signals, outputs)
    try:
        await chat.talk(_input(chat, live, paint, terminal=terminal, plain=plain))
    finally:
        await chat.close()
        if terminal:
            say_all(paint.dim(line) for line in closing_lines(chat.session))
    return chat.code


def _input(chat: Chat, live: LiveRegion, paint: Paint, *, terminal: bool, plain: bool) -> ChatInput:
    if not terminal:
        from reverie.cli.chat.input import PipedInput

        return PipedInput()
    if plain:
        from reverie.cli.chat.plain import PlainInput

        return PlainInput()
    from reverie.cli.chat.prompt import TerminalInput

    return TerminalInput(chat, live, paint)
