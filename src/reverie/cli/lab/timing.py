"""`reverie lab startup|screen|web`: measures how long commands take to start, answers to the screen, and web pages."""

from __future__ import annotations

import click

from reverie.cli.options import examples, json_option
from reverie.cli.output import answer, show_progress


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
@click.option("--runs", default=21, show_default=True, type=click.IntRange(min=1), help="Answers.")
@json_option
def screen(runs: int, as_json: bool) -> None:
    """Measure how long the first word of an answer takes to the screen of the chat.

    The chat continues a conversation of 100,000 characters on a terminal of its own.
    """
    from reverie.lab.screen import measure_first_word

    found = measure_first_word(runs)
    answer(as_json, found.summary(), found.table())


@examples("reverie lab web", "reverie lab web --memories 1000 --sessions 100 --rounds 200 --json")
@click.command("web")
@click.option("--memories", default=100_000, show_default=True, type=click.IntRange(min=1), help="Memories to write.")
@click.option("--sessions", default=5_000, show_default=True, type=click.IntRange(min=1), help="Sessions to write.")
@click.option("--rounds", default=5_000, show_default=True, type=click.IntRange(min=1), help="Rounds of the long one.")
@click.option("--runs", default=9, show_default=True, type=click.IntRange(min=1), help="Visits per page.")
@json_option
def web(memories: int, sessions: int, rounds: int, runs: int, as_json: bool) -> None:
    """Measure how fast the pages of the web view are in a large home, compared with an empty one.

    Writes a home with many memories, many sessions and a very long one to a scratch folder, and starts two web views.
    Measures the time to the first byte, and with Chromium and playwright the time to the first paint: of the first
    visit, when nothing was read yet, and of later ones.
    """
    from reverie.lab.web import measure_web

    found = measure_web(memories, sessions, rounds, runs, lambda text: show_progress(text, ends_line=False))
    show_progress("done", ends_line=True)
    answer(as_json, found.summary(), found.table())
