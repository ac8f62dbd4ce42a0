"""`reverie pin`: texts that stay in a conversation's context through every compaction, word for word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import click

from reverie.cli.screen import json_text
from reverie.cli.sessions.action import act, action_options


@click.command("pin")
@click.argument("text", nargs=-1)
@click.option("--remove", metavar="ID", help="Take this pin away: its number, or the beginning of its text.")
@action_options
def command(text: tuple[str, ...], remove: str | None, session: str, cwd: Path, as_json: bool) -> None:
    """Pin TEXT, so that it survives every compaction word for word. Without TEXT, list the pins.

    \b
    Examples:
      reverie pin "Never touch the generated files"
      reverie pin
      reverie pin --remove 1
    """
    cwd = cwd.resolve()
    if remove is not None:
        if text:
            raise click.UsageError("give a text to pin, or --remove ID, not both.")
        answer = act(session, cwd, {"do": "unpin", "id": remove})
        click.echo(json.dumps(answer) if as_json else f"No longer pinned: {answer['unpinned']}")
    elif text:
        answer = act(session, cwd, {"do": "pin", "text": " ".join(text)})
        click.echo(json.dumps(answer) if as_json else f"Pinned as {answer['pin']}.")
    else:
        pins = cast(dict[str, str], act(session, cwd, {"do": "pins"})["pins"])
        if as_json:
            click.echo(json_text(pins))
            return
        for name, pinned in pins.items():
            click.echo(f"{name:>3}  {pinned}")
        if not pins:
            click.echo("Nothing is pinned.", err=True)
