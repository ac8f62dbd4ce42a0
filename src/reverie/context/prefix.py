"""Everything of the prefix that is rendered once a session: system prompt with the memory section, reminder, thinking.

Static text stands before what depends on the project, and that before what depends on the day. A bare session has
neither memory nor instruction files. What went wrong on the way is told, and never keeps a session from starting.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import assert_never

from reverie.context.reminder import ShownIndex, indexes, reminder
from reverie.context.system_prompt import system_prompt
from reverie.flags import PrefixFlags
from reverie.instructions import load_instructions
from reverie.memory.prompt import memory_prompt, uses_team
from reverie.paths import Places, memory_place, memory_switch
from reverie.permissions.inside import check_memory_root
from reverie.settings import Settings
from reverie.settings.sections import Model
from reverie.types import JsonObject

_LEAST_THINKING = 1_024
"""Tokens; servers refuse a smaller budget."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a session header takes from here, and sentences to show once."""

    system: tuple[str, ...]
    reminder: str
    warnings: tuple[str, ...]


def render_prefix(
    places: Places,
    settings: Settings,
    flags: PrefixFlags,
    *,
    branch: str,
    today: date,
    tools: Collection[str],
    window: int,
    managed_dir: Path | None = None,
    prompt: str = "",
) -> Prefix:
    """Renders the prefix. `tools` are the names of the tools the model has; `managed_dir` is for tests.

    `prompt` stands in the place of the system prompt's static text.

    Raises `SettingsError` if a folder that somebody named as memory cannot be one.
    """
    found = load_instructions(places, settings, managed_dir=managed_dir, window=window)
    warnings = list(found.warnings)
    system = system_prompt(places.cwd, branch, today)
    system = (prompt, *system[1:]) if prompt.strip() else system
    shown: tuple[ShownIndex, ...] = ()
    if memory_switch(settings).on:
        directory = memory_place(places, settings, check_memory_root).directory
        section = memory_prompt(directory, places.project, flags, tools, settings.memory.guidelines)
        system = (*system[:-1], section.text, system[-1])
        if not flags.on("recall.no_index"):
            shown = indexes(directory, team=uses_team(flags))
        warnings += [*section.diagnostics, *(index.diagnostic for index in shown if index.diagnostic)]
    return Prefix(system, reminder(found.files, shown), tuple(warnings))


def thinking_of(model: Model, max_output: int) -> JsonObject | None:
    """How a request asks for thinking; the budget leaves room for an answer below `max_output`."""
    match model.thinking:
        case "off":
            return None
        case "adaptive":
            return {"type": "adaptive"}
        case "on":
            room = max(_LEAST_THINKING, min(model.max_output, max_output) - _LEAST_THINKING)
            return {"type": "enabled", "budget_tokens": min(model.thinking_budget, room)}
        case _:
            assert_never(model.thinking)


def effort_of(model: Model) -> str | None:
    """How hard a request asks the model to try; None leaves it to the model."""
    return None if model.effort == "default" else model.effort
