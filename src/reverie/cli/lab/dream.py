"""`reverie lab dream`: how well a mind puts memory in order, and what asking whether to dream costs a turn."""

from __future__ import annotations

import json
from pathlib import Path

import click

from reverie.cli.screen import CLEAR_LINE, json_text

_MINDS = ("right", "wrong", "idle", "deletes", "contradicts", "invents", "misdates", "obeys", "leaks")


@click.command("dream")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("-m", "--model", metavar="NAME", help="Who dreams.  [default: the settings']")
@click.option(
    "--mind",
    type=click.Choice(_MINDS),
    help="Who dreams instead of a model: a mind made for each scenario from its own checks.",
)
@click.option("--gates", is_flag=True, help="Measure what each closed gate costs a turn instead.")
@click.option(
    "--files",
    type=click.IntRange(1, 5_000),
    metavar="N",
    help="Measure how long the embedded model dreams over N files.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def dream(
    folder: Path | None, model: str | None, mind: str | None, gates: bool, files: int | None, as_json: bool
) -> None:
    """Dream about every scenario in DIR and check what comes out.

    A scenario is a folder with before/, transcripts/, now.txt, check.json and perhaps mtimes.json; it is copied, never
    written to. With `--model scripted:FILE`, `{scenario}` in the file's name stands for the scenario's, and in the
    script `{memory}` and `{transcripts}` stand for its folders. A model that is no script dreams a second time: files
    that this changes are told.

    \b
    Minds that know the checks, played through the real dream:
      right        makes the edits that the checks ask for
      idle         does nothing
      deletes      empties every file
      contradicts  keeps what was disproved beside what is true
      invents      adds what nobody said
      misdates     counts relative dates from now
      obeys        stores what a tool result tells it to
      leaks        moves private notes to the team, secrets into memories
      wrong        all of the six before, each where it has something to do wrong

    \b
    Examples:
      reverie lab dream scenarios --mind right
      reverie lab dream scenarios --model anthropic:claude-sonnet-5-5
      reverie lab dream tests/data/dream-own/tune --model embedded --json
      reverie lab dream --gates
      reverie lab dream --files 150
    """
    from reverie.errors import UserError

    if sum((gates, folder is not None, files is not None)) != 1:
        raise UserError("Name one thing to measure: a folder of scenarios, --gates, or --files.")
    if files is not None:
        from reverie.lab.dream.speed import measure_speed

        speed = measure_speed(files)
        text = (
            f"{speed['files']} files, {speed['bytes']:,} bytes: {speed['first_s']:.2f} s ({speed['left']} files left)"
        )
        again = f"a second dream: {speed['second_s']:.2f} s, {speed['second']}"
        click.echo(json.dumps(speed) if as_json else f"{text}; {again}")
        return
    if gates:
        from reverie.lab.dream.gates import measure_gates

        found = measure_gates()
        if as_json:
            click.echo(json.dumps(found))
            return
        for gate, taken in found["microseconds"].items():
            click.echo(f"{gate:<12} {taken:>9.1f} µs")
        return
    if model is not None and mind is not None:
        raise UserError("Name one who dreams: --model or --mind.")
    from reverie.lab.dream.minds import Kind
    from reverie.lab.dream.run import measure, measure_wrong, scenarios, summary, table

    assert folder is not None
    folders = scenarios(folder)

    def progress(done: int, name: str) -> None:
        click.echo(f"{CLEAR_LINE}{done} of {len(folders)}: {name:<40}", nl=done == len(folders), err=True)

    if mind == "wrong":
        scored = measure_wrong(folders, progress=progress)
    else:
        scored = measure(folders, model if mind is None else Kind(mind), progress=progress)
    click.echo(json_text(summary(scored)) if as_json else table(scored))
