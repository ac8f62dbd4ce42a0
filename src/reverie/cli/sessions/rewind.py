"""`reverie rewind`: go on from an earlier message of a conversation; what came after it is left aside."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import click

from reverie.cli.screen import json_text
from reverie.cli.sessions.action import act, action_options


@click.command("rewind", context_settings={"ignore_unknown_options": True})
@click.argument("message", metavar="[MSG]", required=False)
@action_options
def command(message: str | None, session: str, cwd: Path, as_json: bool) -> None:
    """Go back to before one of your messages; without MSG, list them.

    MSG is a message's uuid, the beginning of one, or -1 for your last message. Nothing is deleted, and `reverie compact
    undo` goes forward again. Files on disk do not change.

    \b
    Examples:
      reverie rewind
      reverie rewind -1
    """
    cwd = cwd.resolve()
    if message is None:
        listed = cast(list[dict[str, Any]], act(session, cwd, {"do": "messages"})["messages"])
        if as_json:
            click.echo(json_text(listed))
            return
        for one in listed:
            click.echo(f"{one['back']:>4}  {str(one['uuid'])[:8]}  {one['text']}")
        if not listed:
            click.echo("Nothing was said yet.", err=True)
        return
    answer = act(session, cwd, {"do": "rewind", "message": message})
    click.echo(json_text(answer) if as_json else f"Back to before: {answer['rewound']}")
