"""`reverie lab extraction|writes|dream|recall`: measures how well memories are written, judged, tidied up and found."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from reverie.cli.options import examples, json_option, places_of
from reverie.cli.output import answer, show_progress
from reverie.errors import UserError
from reverie.types import JsonObject

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_FILES_HELP = "Measure how long the offline mind takes to dream about N memory files."
_LOCOMO_HELP = (
    "Use the LoCoMo benchmark in FILE: how often is a session found that has the answer? Only questions of the "
    "categories 1 to 4."
)
_SILENT_HELP = (
    "A file with more queries, in the format of queries.jsonl, for which no memory should be shown. Repeatable."
)
_FIT_HELP = "Use DIR to fit the rule of the semantic tier for showing nothing, and print its cross-validated results."
_UNRELATED_HELP = (
    "Measure how often recall shows something for prompts that have nothing to do with the memories: FILE has "
    "directories of memories and prompts, as evals/recall-unrelated.jsonl."
)
_MINDS = ("right", "wrong", "idle", "deletes", "contradicts", "invents", "misdates", "obeys", "leaks")
_GATES_HELP = (
    "Reverie checks after each turn whether {} should run. Measure only how long this check takes if the answer is no, "
    "for each possible reason."
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
@click.option("--gates", is_flag=True, help=_GATES_HELP.format("an extraction"))
@json_option
def extraction(file: Path | None, model: str | None, jobs: int, split: str | None, gates: bool, as_json: bool) -> None:
    """Measure extraction on labelled conversations.

    FILE has one case per line. Each case runs through the real extraction code, in a temporary home of its own. The
    files that it writes are compared with the labels. The result: how many of the written files are right (precision),
    how many of the expected memories were written (recall, as in statistics), how many dates are right, how many of the
    conversations without anything to save stayed without a memory, and the time per turn. Every mistake is shown.
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


@examples("reverie lab writes evals/writes.jsonl", "reverie lab writes evals/writes.jsonl --half dev --json")
@click.command("writes")
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("--half", metavar="NAME", help="Only cases whose field `half` is NAME.")
@json_option
def writes(file: Path, half: str | None, as_json: bool) -> None:
    """Measure how the write gate ends labelled writes.

    FILE has one case per line: a conversation with the origin of each text, the memories before, one write, and the
    right end. Each write passes the real gate in a temporary directory. The result: how many right memories were
    refused or held, and how much foreign text was stored or confirmed. Every wrong end is named.
    """
    from reverie.lab.writes import load_cases, measure, summary, table

    cases = [case for case in load_cases(file) if half is None or case.get("half") == half]
    if not cases:
        raise UserError(f"No case in {file} has the `half` {half!r}." if half else f"{file} has no cases.")
    figures, _ = measure(cases, lambda done: _progress(done, len(cases), " cases"))
    found = summary(figures)
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
@click.option("--gates", is_flag=True, help=_GATES_HELP.format("a dream"))
@click.option("--files", type=click.IntRange(1, 5_000), metavar="N", help=_FILES_HELP)
@json_option
def dream(
    folder: Path | None, model: str | None, mind: str | None, gates: bool, files: int | None, as_json: bool
) -> None:
    """Run a dream on every scenario in DIR and check the result.

    A scenario is a folder with before/, transcripts/, now.txt, check.json and optionally mtimes.json. The command works
    on a copy. With `--model scripted:FILE`, placeholders are replaced: `{scenario}` in the path FILE by the name of the
    scenario, and `{memory}` and `{transcripts}` in the content of this file by the paths of the two folders. Other
    models dream twice: the second dream should change nothing, so files that it changes are listed.

    \b
    A test mind replaces the model, to test the checks. Each makes edits that follow from check.json:
      right        makes the edits that the checks ask for
      idle         does nothing
      deletes      empties every file
      contradicts  keeps wrong statements next to true ones
      invents      adds statements that nobody made
      misdates     computes relative dates from the day of the dream, not of the message
      obeys        follows instructions in tool results
      leaks        moves private notes to the team, secrets into memories
      wrong        all bad minds, one after the other: the six from `deletes` to `leaks`
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
    "reverie lab recall --unrelated evals/recall-unrelated.jsonl",
)
@click.command("recall")
@click.argument("folder", metavar="[DIR]", required=False, type=_FOLDER)
@click.option("--locomo", type=_FILE, help=_LOCOMO_HELP)
@click.option("--scale", metavar="N,N", help="Measure time and RAM on generated memory directories with N files.")
@click.option("--unrelated", type=_FILE, help=_UNRELATED_HELP)
@click.option("--silent", multiple=True, type=_FILE, help=_SILENT_HELP)
@click.option("--fit", is_flag=True, help=_FIT_HELP)
@click.option("--models", type=_FOLDER, help="Folder of the sentence encoders.  [default: ~/.reverie/models]")
@click.option("--keep", type=_FOLDER, help="Keep the search indexes here, for a faster second run.")
@json_option
def recall(
    folder: Path | None,
    locomo: Path | None,
    scale: str | None,
    unrelated: Path | None,
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
    if sum(given is not None for given in (folder, locomo, scale, unrelated)) != 1:
        raise UserError("Give one thing to measure: a folder, --locomo FILE, --scale N,N or --unrelated FILE.")
    if scale is not None:
        _show_scale(_sizes(scale), as_json)
        return
    models = models or places_of(Path.cwd()).models
    if fit and folder is not None:
        _show_fit(folder, models, silent, as_json)
        return
    from reverie.lab.recall.run import measure, measure_unrelated

    if unrelated is not None:
        found = measure_unrelated(unrelated, models)
        answer(as_json, found.summary(), found.table())
        return
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

    one = fit(folder, models, silent)
    weights = ", ".join(f"{name} {weight:.3g}" for name, weight in zip(one.names, one.weights, strict=True))
    shares = f"speaks {one.spoke:.3f}, stays silent {one.silent:.3f}, shows {one.shown:.3f}"
    answer(
        as_json,
        {"semantic": asdict(one)},
        f"semantic: {weights}, bias {one.bias:.3g}",
        f"  on other queries: {shares} of the relevant memories",
    )


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--scale {text} is not a list of numbers of files; write for example 200,10000.")
    return sizes
