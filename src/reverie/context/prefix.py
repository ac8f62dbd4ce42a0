"""Everything of the prefix that is rendered once a session: system prompt with the memory section, reminder, thinking.

Static text stands before what depends on the project, and that before what depends on the day. A bare session has
neither memory nor instruction files. Kept in the session header: saves in between change nothing in front of the
conversation. What went wrong on the way is told, and never keeps a session from starting.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import assert_never

from reverie.flags import PrefixFlags
from reverie.instructions import InstructionFile, Scope, load_instructions
from reverie.instructions.find import read_text
from reverie.memory.index import load_index
from reverie.memory.prompt import memory_prompt, uses_team
from reverie.memory.taxonomy import INDEX, TEAM
from reverie.origins import broken_tags
from reverie.paths import Places, memory_place, memory_switch
from reverie.permissions.memory_paths import check_memory_root, is_inside
from reverie.prompts import render
from reverie.settings import Settings
from reverie.settings.sections import ModelSettings
from reverie.storage.transcript.records import SessionHeader, from_record
from reverie.types import JsonObject, Origin, Record, TextBlock

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


def thinking_of(model: ModelSettings, max_output: int) -> JsonObject | None:
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


def effort_of(model: ModelSettings) -> str | None:
    """How hard a request asks the model to try; None leaves it to the model."""
    return None if model.effort == "default" else model.effort


def system_prompt(cwd: Path, git_branch: str, today: date) -> tuple[str, ...]:
    """The blocks of the system prompt, static before dynamic."""
    repository = f"Git repository, branch {broken_tags(git_branch)}" if git_branch else "Not a git repository"
    place = {
        "cwd": broken_tags(str(cwd)),
        "repository": repository,
        "platform": f"{platform.system()} {platform.machine()}",
        "date": today.isoformat(),
    }
    return (render("reverie.context", "system.md"), render("reverie.context", "environment.md", place))


def date_change(today: date) -> TextBlock:
    """What the model is told when a conversation goes on on another day."""
    return TextBlock(render("reverie.context", "date_change.md", {"date": today.isoformat()}), Origin.CODE)


def date_changed(records: Sequence[Record], today: date) -> bool:
    """Whether the model still believes in another day: the header's, or the last it was told."""
    for record in reversed(records):
        header = from_record(record)
        if "knownDate" in record.data or isinstance(header, SessionHeader):
            told = header.date if isinstance(header, SessionHeader) else str(record.data["knownDate"])
            return told != today.isoformat()
    return True


EMPTY = "(It is empty: nothing has been saved yet.)"

_WHOSE = {
    Scope.MANAGED: "for everybody on this machine",
    Scope.USER: "the user's own, for every project",
    Scope.PROJECT: "the project's",
    Scope.LOCAL: "the user's own, for this project",
}


@dataclass(frozen=True, slots=True)
class ShownIndex:
    """An index as the model is shown it, or why it could not be read."""

    title: str
    path: Path
    text: str
    diagnostic: str = ""


def indexes(directory: Path, *, team: bool) -> tuple[ShownIndex, ...]:
    """The index of a memory directory, and the team's if there is one, each cut to its limits."""
    found = [_shown("Memory index", directory / INDEX, directory)]
    if team:
        found.append(_shown("Team memory index", directory / TEAM / INDEX, directory))
    return tuple(found)


def reminder(files: tuple[InstructionFile, ...], shown: tuple[ShownIndex, ...]) -> str:
    """The whole reminder; empty if there is nothing to say."""
    parts: list[str] = []
    if files:
        each = [f"## {file.path} ({_WHOSE[file.scope]})\n\n{file.text}" for file in files]
        parts.append(render("reverie.context", "instructions.md", {"files": broken_tags("\n\n".join(each))}))
    for index in shown:
        values = {"title": index.title, "path": broken_tags(str(index.path)), "index": broken_tags(index.text) or EMPTY}
        parts.append(render("reverie.context", "index.md", values))
    return render("reverie.context", "reminder.md", {"parts": "\n\n".join(parts)}) if parts else ""


def _shown(title: str, path: Path, directory: Path) -> ShownIndex:
    if not os.path.lexists(path):
        return ShownIndex(title, path, "")
    if not is_inside(str(path), directory):
        return ShownIndex(title, path, "", f"{path} leads out of the memory directory and is not shown; replace it.")
    read = read_text(Path(os.path.realpath(path)), cut=True)
    if read.problem:
        return ShownIndex(title, path, "", f"{path} {read.problem}, so the index is not shown.")
    return ShownIndex(title, path, load_index(read.text).text)
