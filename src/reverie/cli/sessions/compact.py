"""`reverie compact`: make room in a conversation now, look at that beforehand, or take it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import click

from reverie.cli.screen import json_text
from reverie.cli.sessions.action import act, action_options
from reverie.types import JsonObject


@click.command("compact")
@click.argument("text", nargs=-1)
@click.option("--preview", is_flag=True, help="Show what would stand for the conversation; change nothing.")
@click.option("--from", "from_", metavar="MSG", help="Summarise only from this message on; what is earlier stays.")
@click.option("--up-to", metavar="MSG", help="Summarise only up to this message; what is later stays.")
@click.option("--fit", is_flag=True, help="With undo: bring back as much as fits the window.")
@action_options
def command(
    text: tuple[str, ...],
    preview: bool,
    from_: str | None,
    up_to: str | None,
    fit: bool,
    session: str,
    cwd: Path,
    as_json: bool,
) -> None:
    """Summarise a conversation to make room; or take the last compaction back with `undo`.

    TEXT says what the summary is to mind. What you said, what was done and your pins stay word for word. MSG is a
    message's uuid, the beginning of one, or -1 for your last message. A live session does it itself, at the end of the
    round if a turn is running.

    \b
    Examples:
      reverie compact
      reverie compact "Keep everything about the parser"
      reverie compact --preview
      reverie compact --up-to -3
      reverie compact undo
      reverie compact undo --fit
    """
    if text == ("undo",):
        if preview or from_ or up_to:
            raise click.UsageError("undo takes back the last compaction: it goes with --fit only.")
        answer = act(session, cwd.resolve(), {"do": "undo", "fit": fit})
        undone = cast(JsonObject, answer["undone"])
        click.echo(json.dumps(undone) if as_json else undone["notice"])
        return
    if fit:
        raise click.UsageError("--fit goes with undo: `reverie compact undo --fit`.")
    request: JsonObject = {"do": "compact", "text": " ".join(text), "preview": preview}
    request |= {"from": from_} if from_ is not None else {}
    request |= {"up_to": up_to} if up_to is not None else {}
    done = cast(JsonObject, act(session, cwd.resolve(), request, asks=not preview)["compacted"])
    if as_json:
        click.echo(json_text(done))
    elif preview:
        click.echo(done["text"])
        click.echo(f"\n{done['notice']}", err=True)
    else:
        click.echo(done["notice"])
