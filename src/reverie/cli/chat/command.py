"""`reverie chat`: a conversation in the terminal, or one turn per line of a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from reverie.cli.options import examples
from reverie.cli.output import can_ask, get_paint, say_all
from reverie.cli.session_opening import Opening, make_opening, session_options

if TYPE_CHECKING:
    from reverie.cli.event_loop import CommandSignals


@examples(
    "reverie chat",
    "reverie chat --continue",
    "reverie chat --model openai:gpt-5.5 --allow 'Bash(npm test:*)'",
    "printf 'Which port is used?\\n/cost\\n' | reverie chat",
)
@click.command("chat")
@click.option("--full-screen", is_flag=True, help="Use the whole screen: blocks that fold, dialogs, search.")
@click.option("--mouse", is_flag=True, help="With --full-screen: click and scroll with the mouse.")
@session_options
def command(full_screen: bool, mouse: bool, **options: Any) -> int:
    """Talk to the agent in this folder.

    Enter sends the message. Alt-Enter, or a backslash at the end, starts a new line. @ completes file names. /help
    lists the commands. Ctrl-C stops the answer; Ctrl-C twice or Ctrl-D leaves. If standard input is not a terminal,
    each of its lines is one turn, the answers go to standard output, and tool calls that need permission are refused.

    Exit codes: 0: done; 2: wrong usage; 3: the session is open in another process. If the input comes from a pipe, the
    exit code is that of the first turn that failed.
    """
    from reverie.cli.event_loop import run_async

    wanted = make_opening(**options)
    if can_ask():
        from reverie.cli.trust import ask_once

        ask_once(wanted.cwd)
    if full_screen and can_ask():
        from reverie.cli.full_screen.run import run_full_screen

        return run_async(lambda signals: run_full_screen(signals, wanted, mouse=mouse))
    return run_async(lambda signals: _chat(signals, wanted))


async def _chat(signals: CommandSignals, wanted: Opening) -> int:
    from reverie.cli.chat.figures import closing_lines
    from reverie.cli.chat.folding import KeptOutputs
    from reverie.cli.chat.input import PipedInput
    from reverie.cli.chat.live import LiveRegion
    from reverie.cli.chat.loop import Chat
    from reverie.cli.chat.view import ChatView

    terminal, paint, live, outputs = can_ask(), get_paint(), LiveRegion(), KeptOutputs()
    session = await wanted.open(interactive=terminal)
    chat = Chat(session, wanted, ChatView(session.places.cwd, paint, live, outputs), signals, outputs)
    try:
        if terminal:
            from reverie.cli.chat.prompt import TerminalInput

            await chat.talk(TerminalInput(chat, live, paint))
        else:
            await chat.talk(PipedInput())
    finally:
        await chat.close()
        if terminal:
            say_all(paint.dim(line) for line in closing_lines(chat.session))
    return chat.code
