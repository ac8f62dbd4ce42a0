"""`reverie lab`: measurements. Those on the sessions of the user belong to the product; the others measure Reverie
itself, and are in the folder `bench/` of its source code."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import cast

import click

import reverie
from reverie.cli.below_agent import AgentsMay, guard_command
from reverie.cli.options import examples

_OWN: Mapping[str, str] = {"replay": "reverie.lab.replay.report", "survival": "reverie.lab.survival.run"}
"""The module of each measurement; the measurement has the same name in it."""


@cache
def _modules() -> Mapping[str, str]:
    """The modules of all measurements: with those of `bench/` if Reverie runs from its source code."""
    source = Path(reverie.__file__).resolve().parents[1]
    if source.name != "src" or not (source.parent / "bench" / "__init__.py").is_file():
        return _OWN
    if str(source.parent) not in sys.path:
        sys.path.insert(0, str(source.parent))
    return {**_OWN, **import_module("bench").MEASUREMENTS}


class _Measurements(click.Group):
    """A group that imports a measurement when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = _modules().get(cmd_name)
        if module is None:
            return None
        command = cast(click.Command, getattr(import_module(module), cmd_name))
        guard_command(command, AgentsMay.ALL)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in (known := _modules()) and not args[0].startswith("-"):
            known_ones = f"There is no measurement {args[0]!r} here; there are: {', '.join(sorted(known))}."
            rest = " The others are in bench/ of Reverie's source code: run `reverie lab` from a checkout of it."
            raise click.UsageError(known_ones + (rest if known is _OWN else ""), ctx)
        return super().resolve_command(ctx, args)


@examples("reverie lab replay ~/.claude/projects --json")
@click.group(name="lab", cls=_Measurements)
def command() -> None:
    """Run benchmarks of Reverie, most of them on recorded sessions.

    replay and survival measure your own sessions. All others measure Reverie itself. They are in the folder bench/ of
    its source code, and are listed here if Reverie runs from a checkout.
    """
