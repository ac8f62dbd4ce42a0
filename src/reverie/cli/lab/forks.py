"""`reverie lab forks`: what the children of one message pay for the prompt they share."""

from __future__ import annotations

import json

import click


@click.command("forks")
@click.option("--children", default=8, show_default=True, type=click.IntRange(1, 10), help="Forks of one message.")
@click.option(
    "--tokens", default=100_000, show_default=True, type=click.IntRange(1_000, 140_000), help="About how long it was."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def forks(children: int, tokens: int, as_json: bool) -> None:
    """Measure what fork children cost, against as many fresh agents with the same context.

    A session over HTTP against the simulator reads files until the conversation is long, then forks itself. Costs are
    in tokens of fresh input. The first child pays for the message they were forked from, the others for their
    directive.

    \b
    Example:
      reverie lab forks --children 4 --json
    """
    from reverie.lab.forks import measure_forks, table

    found = measure_forks(children, tokens)
    click.echo(json.dumps(found.summary()) if as_json else table(found))
