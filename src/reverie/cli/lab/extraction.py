"""`reverie lab extraction`: how well a model learns from conversations, and what a closed gate costs a turn."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click

from reverie.cli.screen import CLEAR_LINE, json_text
from reverie.errors import UserError


@click.command("extraction")
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("-m", "--model", metavar="NAME", help="Who extracts; `embedded` needs no key.  [default: the settings']")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Cases at once.")
@click.option("--split", metavar="NAME", help="Only the cases of this part of the file, such as `held`.")
@click.option("--gates", is_flag=True, help="Measure what each closed gate costs a turn instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
def extraction(file: Path | None, model: str | None, jobs: int, split: str | None, gates: bool, as_json: bool) -> None:
    """Measure what extraction remembers of labelled conversations, and what it should not have.

    FILE holds one case a line. Each is played through the real layer in a home of its own; the files afterwards are
    compared with the labels: precision by files, recall by expected memories, dates of those that are there, and on
    how many conversations without anything to keep nothing was written; and what a turn took. Every miss is shown.

    \b
    Examples:
      reverie lab extraction tests/data/extraction-own.jsonl --model embedded
      reverie lab extraction --gates
    """
    if gates == (file is not None):
        raise UserError("Name one thing to measure: a file of cases, or --gates.")
    if file is None:
        from reverie.lab.extraction.gates import measure_gates
        from reverie.lab.extraction.gates import table as gate_table

        taken = measure_gates()
        click.echo(json.dumps(taken) if as_json else gate_table(taken))
        return
    from reverie.lab.extraction.cases import read_cases
    from reverie.lab.extraction.run import measure
    from reverie.lab.extraction.score import summary, table

    cases = [case for case in read_cases(file) if split is None or case.split == split]
    if not cases:
        raise UserError(f"No case of {file} belongs to the part {split!r}: look at the field `split` of its lines.")

    def progress(done: int) -> None:
        click.echo(f"{CLEAR_LINE}{done} of {len(cases)} cases", nl=done == len(cases), err=True)

    found = summary(asyncio.run(measure(cases, model, jobs=jobs, progress=progress)))
    click.echo(json_text(found) if as_json else table(found))
