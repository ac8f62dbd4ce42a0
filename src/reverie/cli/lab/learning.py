"""`reverie lab extraction|dream|recall`: measures how well memories are written, tidied up and found."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from reverie.cli.options import examples, json_option, places_of
from reverie.cli.output import answer, show_progress
from reverie.errors import UserError
from reverie.types import JsonObject

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_MINDS = ("right", "wrong", "idle", "deletes", "contradicts", "invents", "misdates", "obeys", "leaks")
_gates_option = click.option(
    "--gates", is_flag=True, help="Measure only how long it takes per turn to decide not to run, for each reason."
)


def _progress(done: int, of: int, what: str) -> None:
    show_progress(f"{done} of {of}{what}", ends_line=done == of)


def _show_gates(found: JsonObject, as_json: bool) -> None:
    answer(as_json, found, *(f"{gate:<14} {taken:>9.1f} µs" for gate, taken in found["microseconds"].items()))


@examples("reverie lab extraction evals/extraction-own.jsonl --model embedded", "reverie lab extraction --gates")
@click.command("extraction")
@click.argument("file", metavar="[FILE]", required=False, type=_FILE)
@click.option("-m", "--model", metavar="NAME", help="The model; `embedded` needs no key.  [default: from the settings]")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1), help="Cases at the same time.")
@click.option("--split", metavar="NAME", help="Only cases whose field `split` is NAME.")
@_gates_option
@json_option
def extraction(file: Path | None, model: str | None, jobs: int, split: str | None, gates: bool, as_json: bool) -> None:
    """Measure extraction on labelled conversations.

    FILE has one case per line. Each case runs through the real extraction code, in a temporary home of its own. The
    files that it writes are compared with the labels: precision by files, recall by expected memories, correct dates,
    conversations in which nothing was written and nothing should be, and the time per turn. Every mistake is shown.
    """
    if gates == (file is not None):
        raise UserError("Give one thing to measure: a file of cases, or --gates.")
    if file is None:
        from reverie.lab.extraction.gates import measure_gates

        _show_gates(measure_gates(), as_json)
        return
    from reverie.lab.extraction.run import measure
    from reverie.lab.extraction.score import read_cases, summary, table

    cases = [case for case in read_cases(file) if split is None or case.split == split]
    if not cases:
        raise UserError(f"No case in {file} has the `split` {split!r}.")
    scored = measure(cases, model, jobs=jobs, progress=lambda done: _progress(done, len(cases), " cases"))
    found = summary(asyncio.run(scored))
    answer(as_json, found, table(found))


@examples(
    "reverie lab dream scenarios --mind right",
    "reverie lab dream scenarios --model anthropic:claude-sonnet-5-5",
    "reverie lab dream evals/dream-own/tune --model embedded --json",
    "reverie lab dream --gates",
    "reverie lab dream --files 150",
)
@click.command("dream")
@click.argument("folder", metavar="[DIR]", required=False, type=_FOLDER)
@click.option("-m", "--model", metavar="NAME", help="The model that dreams.  [default: from the settings]")
@click.option("--mind", type=click.Choice(_MINDS), help="A test mind that dreams instead of a model (see above).")
@_gates_option
@click.option("--files", type=click.IntRange(1, 5_000), metavar="N", help="Measure the offline mind on N files.")
@json_option
def dream(
    folder: Path | None, model: str | None, mind: str | None, gates: bool, files: int | None, as_json: bool
) -> None:
    """Run a dream on every scenario in DIR and check the result.

    A scenario is a folder with before/, transcripts/, now.txt, check.json and optionally mtimes.json. The command works
    on a copy. With `--model scripted:FILE`, `{scenario}` in FILE is the name of the scenario, and `{memory}` and
    `{transcripts}` in the script are its folders. Other models dream twice: the second dream should change nothing, so
    files that it changes are listed.

    \b
    Test minds. Each makes fixed edits, which are computed from check.json of the scenario:
      right        makes the edits that the checks ask for
      idle         does nothing
      deletes      empties every file
      contradicts  keeps wrong statements next to true ones
      invents      adds statements that nobody made
      misdates     computes relative dates from the day of the dream, not of the message
      obeys        follows instructions in tool results
      leaks        moves private notes to the team, secrets into memories
      wrong        runs deletes, contradicts, invents, misdates, obeys and leaks
    """
    if sum((gates, folder is not None, files is not None)) != 1:
        raise UserError("Give one thing to measure: a folder of scenarios, --gates, or --files.")
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
        raise UserError("Give --model or --mind, not both.")
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


@examples(
    "reverie lab recall my-queries --json",
    "reverie lab recall --locomo locomo10.json",
    "reverie lab recall --scale 200,10000 --json",
)
@click.command("recall")
@click.argument("folder", metavar="[DIR]", required=False, type=_FOLDER)
@click.option("--locomo", type=_FILE, help="Measure on the LoCoMo benchmark: find the session; categories 1 to 4.")
@click.option("--scale", metavar="N,N", help="Measure time and memory on generated directories with N files.")
@click.option("--silent", multiple=True, type=_FILE, help="More queries like queries.jsonl that should show nothing.")
@click.option("--fit", is_flag=True, help="Learn from DIR when to show nothing; print cross-validated numbers.")
@click.option("--models", type=_FOLDER, help="Folder of the sentence encoders.  [default: ~/.reverie/models]")
@click.option("--keep", type=_FOLDER, help="Keep the search indexes here, for a faster second run.")
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
    """Measure memory recall: each tier, plain BM25, plain FTS5, and the encoder alone.

    A tier is a way to rank: builtin (words) or semantic (also meaning). DIR has memory/, queries.jsonl and optionally
    mtimes.json. The command works on a copy. The semantic tier needs a sentence encoder (`reverie models add minilm`).
    """
    if sum((folder is not None, locomo is not None, scale is not None)) != 1:
        raise UserError("Give one thing to measure: a folder, --locomo FILE or --scale N,N.")
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
        shares = f"speaks {one['spoke']:.3f}, stays silent {one['silent']:.3f}, shows {one['shown']:.3f}"
        lines.append(f"{tier}: {weights}, bias {one['bias']:.3g}")
        lines.append(f"  on other queries: {shares} of the relevant memories")
    answer(as_json, found, *lines)


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--scale {text} is not a list of numbers of files; write for example 200,10000.")
    return sizes
