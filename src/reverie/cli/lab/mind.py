"""`reverie lab mind`: how fast the embedded mind writes notes and summaries, and that they hold what code writes."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("mind")
@click.argument("paths", metavar="FILES...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--at",
    default=100_000,
    show_default=True,
    type=click.IntRange(min=1),
    help="Tokens at which a session that was never compacted is cut.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def mind(paths: tuple[Path, ...], at: int, as_json: bool) -> None:
    """Measure the embedded mind's notes and summaries on recorded sessions.

    At each compaction: how long it takes to write them, and whether they are what code writes from the same record,
    which is what `reverie lab survival` measures.

    \b
    Example:
      reverie lab mind ~/.claude/projects/my-project/*.jsonl
    """
    from reverie.lab.mind import measure, summary, table

    written = measure(paths, at)
    click.echo(json.dumps(summary(written)) if as_json else table(written))
