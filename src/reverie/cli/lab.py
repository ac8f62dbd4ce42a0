"""`reverie lab`: measurements on recorded work. Each sub-command loads what it measures only when it is run."""

from __future__ import annotations

import json
from pathlib import Path

import click

from reverie.cli.lab_recall import recall


@click.group(name="lab")
def command() -> None:
    """Measure Reverie on recorded work.

    \b
    Example:
      reverie lab tokens ~/.claude/projects --json
    """


@command.command("tokens")
@click.argument("paths", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def tokens(paths: tuple[Path, ...], as_json: bool) -> None:
    """Measure how well token growth is estimated, on Claude Code transcripts.

    Over stretches of at least 10,000 real tokens: the fixed rule, and the estimate that calibrates itself from the
    responses before the stretch. Exit code 2 if there is nothing to measure.

    \b
    Example:
      reverie lab tokens ~/.claude/projects/my-project
    """
    from reverie.lab.tokens import measure_folder, summary, table

    sessions = measure_folder(paths)
    figures = summary(sessions)
    click.echo(json.dumps(figures) if as_json else table(sessions))


@command.command("startup")
@click.option("--runs", default=15, show_default=True, type=click.IntRange(min=1), help="Runs of each command.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def startup(runs: int, as_json: bool) -> None:
    """Measure how long commands take to start, against the bare interpreter.

    Starts `python -c pass`, `reverie --version` and `reverie sessions list` in turn and compares the medians.

    \b
    Example:
      reverie lab startup --runs 31
    """
    from reverie.lab.startup import measure_startup

    found = measure_startup(runs)
    if as_json:
        click.echo(json.dumps(found.summary()))
        return
    click.echo(f"python -c pass         {found.bare_ms:7.1f} ms")
    click.echo(f"reverie --version      {found.version_ms:7.1f} ms   {found.version_ms / found.bare_ms:5.2f}×")
    click.echo(f"reverie sessions list  {found.sessions_ms:7.1f} ms   {found.sessions_ms / found.bare_ms:5.2f}×")


command.add_command(recall)
