"""`reverie lab startup|screen`: measures how long commands take to start, and an answer to the screen."""

from __future__ import annotations

import click

from reverie.cli.options import examples, json_option
from reverie.cli.output import answer


@examples("reverie lab startup --runs 31")
@click.command("startup")
@click.option("--runs", default=15, show_default=True, type=click.IntRange(min=1), help="Runs per command.")
@json_option
def startup(runs: int, as_json: bool) -> None:
    """Measure how long commands take to start, compared with Python alone.

    Runs `python -c pass`, three commands and `from reverie import Memory` in turn and compares the medians.
    """
    from reverie.lab.startup import measure_startup

    found = measure_startup(runs)
    answer(as_json, found.summary(), found.table())


@examples("reverie lab screen --runs 21")
@click.command("screen")
@click.option("--runs", default=21, show_default=True, type=click.IntRange(min=1), help="Answers per screen.")
@json_option
def screen(runs: int, as_json: bool) -> None:
    """Measure how long the first word of an answer takes to the screen: full screen and line mode.

    Both continue a conversation of 100,000 characters on a terminal of their own, and answer in turn.
    """
    from reverie.lab.screen import measure_first_word

    found = measure_first_word(runs)
    answer(as_json, found.summary(), found.table())
