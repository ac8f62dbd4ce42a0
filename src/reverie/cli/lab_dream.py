"""`reverie lab dream`: how well a mind puts memory in order, and what asking whether to dream costs a turn."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("dream")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("-m", "--model", metavar="NAME", help="Who dreams.  [default: the settings']")
@click.option("--gates", is_flag=True, help="Measure what each closed gate costs a turn instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def dream(folder: Path | None, model: str | None, gates: bool, as_json: bool) -> None:
    """Dream about every scenario in DIR and check what comes out.

    A scenario is a folder with before/, transcripts/, now.txt, check.json and perhaps mtimes.json; it is copied, never
    written to. With `--model scripted:FILE`, `{scenario}` in the file's name stands for the scenario's, and in the
    script `{memory}` and `{transcripts}` stand for its folders.

    \b
    Examples:
      reverie lab dream scenarios --model anthropic:claude-sonnet-5-5
      reverie lab dream scenarios --model 'scripted:minds/{scenario}.script' --json
      reverie lab dream --gates
    """
    from reverie.errors import UserError

    if gates == (folder is not None):
        raise UserError("Name one thing to measure: a folder of scenarios, or --gates.")
    if gates:
        from reverie.lab.dream_gates import measure_gates

        found = measure_gates()
        if as_json:
            click.echo(json.dumps(found))
            return
        for gate, taken in found["microseconds"].items():
            click.echo(f"{gate:<12} {taken:>9.1f} µs")
        return
    from reverie.lab.dream import measure, scenarios, summary, table

    assert folder is not None
    folders = scenarios(folder)

    def progress(done: int, name: str) -> None:
        click.echo(f"\r{done} of {len(folders)}: {name:<40}", nl=done == len(folders), err=True)

    scored = measure(folders, model, progress=progress)
    click.echo(json.dumps(summary(scored), ensure_ascii=False) if as_json else table(scored))
