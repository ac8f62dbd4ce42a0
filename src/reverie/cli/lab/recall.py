"""`reverie lab recall`: how well memories are found, how well the ranker keeps silent, and what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from reverie.errors import UserError

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command("recall")
@click.argument("folder", metavar="[DIR]", required=False, type=_FOLDER)
@click.option("--locomo", type=_FILE, help="Measure on a LoCoMo file instead: session level, categories 1 to 4.")
@click.option("--scale", metavar="N,N", help="Measure the cost on invented directories of so many files instead.")
@click.option("--silent", multiple=True, type=_FILE, help="More queries for DIR, in the form of its queries.jsonl.")
@click.option("--fit", is_flag=True, help="Fit the decision to be silent on DIR, with its cross-validated figures.")
@click.option("--models", type=_FOLDER, help="Where sentence encoders are kept; default: the home's models folder.")
@click.option("--keep", type=_FOLDER, help="Keep the derived indexes here, so that a second run need not encode again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for a program to read.")
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
    models = models or _models_dir()
    if fit and folder is not None:
        _show_fit(folder, models, silent, as_json)
        return
    from reverie.lab.recall.run import measure

    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    measured = measure(folder, locomo, models, silent=silent, index=keep)
    click.echo(json.dumps(measured.summary()) if as_json else measured.table())


def _show_scale(sizes: list[int], as_json: bool) -> None:
    from reverie.lab.recall.scale import measure_scale

    found = measure_scale(sizes)
    if as_json:
        click.echo(json.dumps(found))
        return
    for size, figures in found.items():
        click.echo(f"{int(size):>9,} files  " + "  ".join(f"{name} {value}" for name, value in figures.items()))


def _show_fit(folder: Path, models: Path, silent: tuple[Path, ...], as_json: bool) -> None:
    from dataclasses import asdict

    from reverie.lab.recall.fit import fit

    found: dict[str, Any] = {"builtin": asdict(fit(folder, models, silent, "builtin"))}
    if (models / "minilm").is_dir():
        found["semantic"] = asdict(fit(folder, models, silent, "semantic"))
    if as_json:
        click.echo(json.dumps(found))
        return
    for tier, figures in found.items():
        weights = ", ".join(
            f"{name} {weight:.3g}" for name, weight in zip(figures["names"], figures["weights"], strict=True)
        )
        click.echo(f"{tier}: {weights}, bias {figures['bias']:.3g}")
        click.echo(
            f"  on queries not fitted on: speaks {figures['spoke']:.3f}, keeps silent {figures['silent']:.3f},"
            f" shows {figures['shown']:.3f} of what is relevant"
        )


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if not sizes or min(sizes) < 1:
        raise UserError(f"--scale {text}: not numbers of files; give some, like 200,10000.")
    return sizes


def _models_dir() -> Path:
    from reverie.paths.places import Places
    from reverie.settings import load_settings

    return Places.of(Path.cwd(), load_settings(Path.cwd())).models
