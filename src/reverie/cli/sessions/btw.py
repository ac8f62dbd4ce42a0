"""`reverie btw`: a question about a conversation, answered beside it, also while its agent is at work."""

from __future__ import annotations

import json
from pathlib import Path

import click

from reverie.cli.sessions.action import act, action_options


@click.command("btw")
@click.argument("question", nargs=-1, required=True)
@action_options
def command(question: tuple[str, ...], session: str, cwd: Path, as_json: bool) -> None:
    """Ask something about a conversation without it noticing.

    The answer rests on what the agent knows already; it calls no tools, and nothing of it is kept. A live session is
    asked while it works.

    \b
    Examples:
      reverie btw "Which file are you changing, and why?"
      reverie btw -s 3f2a "What is left to do?" --json
    """
    answer = act(session, cwd.resolve(), {"do": "aside", "question": " ".join(question)}, asks=True)
    click.echo(json.dumps(answer) if as_json else answer["answer"])
