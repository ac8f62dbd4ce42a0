"""`reverie lab extraction|dream|recall`: how well memory is filled, put in order and found, and what it costs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from reverie.cli.options import json_option, places_of
from reverie.cli.output import answer
from reverie.cli.screen import CLEAR_LINE
from reverie.errors import UserError
from reverie.types import JsonObject

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_MINDS = ("right", "wrong", "idle", "deletes", "contradicts", "invents", "misdates", "obeys", "leaks")
_gates_option = click.option("--gates", is_flag=True, help="Measure what each closed gate costs a turn instead.")


def _progress(done: int, of: int, what: str) -> None:
    click.echo(f"{CLEAR_LINE}{done} of {of}{what}", nl=done == of, err=True)


def _show_gates(found: JsonObject, as_json: bool) -> None:
    answer(as_json, found, *(f"{gate:<14} {taken:>9.1f} µs" for gate, taken in found["microseconds"].items()))


@click.command("extraction")
@click.argument("file", metavar="[FILE]", required=False, type=_FILE)
@click.option("-m", "--model", metavar="NAME", help="Who extracts; `embedded` needs no key.  [default: the settings']")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Cases at once.")
@click.option("--split", metavar="NAME", help="Only the cases of this part of the file, such as `held`.")
@_gates_option
@json_option
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

        _show_gates(measure_gates(), as_json)
        return
    from reverie.lab.extraction.run import measure
    from reverie.lab.extraction.score import read_cases, summary, table

    cases = [case for case in read_cases(file) if split is None or case.split == split]
    if not cases:
        raise UserError(f"No case of {file} belongs to the part {split!r}: look at the field `split` of its lines.")
    scored = measure(cases, model, jobs=jobs, progress=lambda done: _progress(done, len(cases), " cases"))
    found = summary(asyncio.run(scored))
    answer(as_json, found, table(found))


@click.command("dream")
@click.argument("folder", metavar="[DIR]", required=False, type=_FOLDER)
@click.option("-m", "--model", metavar="NAME", help="Who dreams.  [default: the settings']")
@click.option(
    "--mind",
    type=click.Choice(_MINDS),
    help="Who dreams instead of a model: a mind made for each scenario from its own checks.",
)
@_gates_option
@click.option(
    "--files",
    type=click.IntRange(1, 5_000),
    metavar="N",
    help="Measure how long the embedded model dreams over N files.",
)
@json_option
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
    if sum((gates, folder is not None, files is not None)) != 1:
        raise UserError("Name one thing to measure: a folder of scenarios, --gates, or --files.")
    if files is not None:
        from reverie.lab.dream.gates import measure_speed

        speed = measure_speed(files)
        size = f"{speed['files']} files, {speed['bytes']:,} bytes"
        again = f"a second dream: {speed['second_s']:.2f} s, {speed['second']}"
        answer(as_json, speed, f"{size}: {speed['first_s']:.2f} s ({speed['left']} files left); {again}")
        return
    if folder is None:
        from reverie.lab.dream.gates import measure_gates

        _show_gates(measure_gates(), as_json)
        return
    if model is not None and mind is not None:
        raise UserError("Name one who dreams: --model or --mind.")
    from reverie.lab.dream.minds import MindKind
    from reverie.lab.dream.run import measure, measure_wrong, scenarios, summary, table

    folders = scenarios(folder)

    def progress(done: int, name: str) -> None:
        _progress(done, len(folders), f": {name:<40}")

    if mind == "wrong":
        scored = measure_wrong(folders, progress=progress)
    else:
        scored = measure(folders, model if mind is None else MindKind(mind), progress=progress)
    answer(as_json, summary(scored), table(scored))


@click.command("recall")
@click.argument("folder", metavar="[DIR]", required=False, type=_FOLDER)
@click.option("--locomo", type=_FILE, help="Measure on a LoCoMo file instead: session level, categories 1 to 4.")
@click.option("--scale", metavar="N,N", help="Measure the cost on invented directories of so many files instead.")
@click.option("--silent", multiple=True, type=_FILE, help="More queries for DIR, in the form of its queries.jsonl.")
@click.option("--fit", is_flag=True, help="Fit the decision to be silent on DIR, with its cross-validated figures.")
@click.option("--models", type=_FOLDER, help="Where sentence encoders are kept; default: the home's models folder.")
@click.option("--keep", type=_FOLDER, help="Keep the derived indexes here, so that a second run does not encode again.")
@json_option
def recall(
    folder: Path | None,
    locomo: Path | None,
    scale: str | None,
    silent: tuple[Path, ...],
    fit: bool,
    models: Path | None,
    keep: Path | None,
    as_json: bool,
) -> None:
    """Measure memory recall: each tier, plain BM25, plain FTS5 and the encoder alone, in one run.

    DIR holds memory/, queries.jsonl and perhaps mtimes.json. It is copied, never written to. The semantic tier and the
    encoder are measured if an encoder has been added (`reverie models add minilm`).

    \b
    Example:
      reverie lab recall my-queries --json
      reverie lab recall --locomo locomo10.json
      reverie lab recall --scale 200,10000 --json
    """
    if sum((folder is not None, locomo is not None, scale is not None)) != 1:
        raise UserError("Name one thing to measure: a folder, --locomo FILE or --scale N,N.")
    if scale is not None:
        _show_scale(_sizes(scale), as_json)
        return
    models = models or places_of(Path.cwd()).models
    if fit and folder is not None:
        _show_fit(folder, models, silent, as_json)
        return
    from reverie.lab.recall.run import measure

    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    measured = measure(folder, locomo, models, silent=silent, index=keep)
    answer(as_json, measured.summary(), measured.table())


def _show_scale(sizes: list[int], as_json: bool) -> None:
    from reverie.lab.recall.scale import measure_scale

    found = measure_scale(sizes)
    lines = [
        f"{int(size):>9,} files  " + "  ".join(f"{name} {value}" for name, value in figures.items())
        for size, figures in found.items()
    ]
    answer(as_json, found, *lines)


def _show_fit(folder: Path, models: Path, silent: tuple[Path, ...], as_json: bool) -> None:
    from dataclasses import asdict

    from reverie.lab.recall.fit import fit

    found: dict[str, Any] = {"builtin": asdict(fit(folder, models, silent, "builtin"))}
    if (models / "minilm").is_dir():
        found["semantic"] = asdict(fit(folder, models, silent, "semantic"))
    lines = list[str]()
    for tier, one in found.items():
        weights = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(one["names"], one["weights"], strict=True))
        shares = f"speaks {one['spoke']:.3f}, keeps silent {one['silent']:.3f}, shows {one['shown']:.3f}"
        lines.append(f"{tier}: {weights}, bias {one['bias']:.3g}")
        lines.append(f"  on queries not fitted on: {shares} of what is relevant")
    answer(as_json, found, *lines)


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--scale {text}: not numbers of files; give some, like 200,10000.")
    return sizes
