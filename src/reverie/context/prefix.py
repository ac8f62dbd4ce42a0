"""Renders the prefix once per session: system prompt with the memory section, reminder and thinking.

Static text comes first, then text that depends on the project, then text that depends on the day. The result is kept in
the session header, so later saves do not change it. Problems are reported and never prevent a session from starting.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Sequence
from datetime import date
from pathlib import Path
from typing import assert_never

from reverie.flags import PrefixFlags
from reverie.instructions import InstructionFile, InstructionScope, load_instructions
from reverie.instructions.find import read_text
from reverie.memory.index import load_index
from reverie.memory.prompt import memory_prompt, uses_team
from reverie.memory.taxonomy import INDEX, TEAM
from reverie.origins import escape_tags
from reverie.paths import Places, memory_place, memory_switch
from reverie.permissions.memory_paths import check_memory_root, is_inside
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.settings import Settings
from reverie.settings.sections import ModelSettings
from reverie.storage.transcript.records import SessionHeader, from_record
from reverie.types import JsonObject, Origin, Record, TextBlock

_LEAST_THINKING = 1_024
"""Tokens; servers refuse a smaller budget."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """The parts of a session header that come from here, and warnings to show once."""

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
    """Renders the prefix. `tools` are the names of the model's tools; `managed_dir` is for tests; `prompt` replaces the
    static text of the system prompt. Raises `SettingsError` if a folder that is set as memory cannot be used."""
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
    """Returns how a request asks for thinking. The budget leaves room for an answer below `max_output`."""
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
    """Returns the effort of a request; None leaves it to the model."""
    return None if model.effort == "default" else model.effort


def system_prompt(cwd: Path, git_branch: str, today: date) -> tuple[str, ...]:
    """Returns the blocks of the system prompt, static ones first."""
    repository = f"Git repository, branch {escape_tags(git_branch)}" if git_branch else "Not a git repository"
    place = {
        "cwd": escape_tags(str(cwd)),
        "repository": repository,
        "platform": f"{platform.system()} {platform.machine()}",
        "date": f"{today:%A, %Y-%m-%d}",
    }
    return (render("reverie.context", "system.md"), render("reverie.context", "environment.md", place))


def date_change(today: date) -> TextBlock:
    """Returns the reminder for a conversation that continues on another day."""
    return TextBlock(render("reverie.context", "date_change.md", {"date": f"{today:%A, %Y-%m-%d}"}), Origin.CODE)


def is_date_outdated(records: Sequence[Record], today: date) -> bool:
    """Returns whether the model still has another date: that of the header, or of the last reminder."""
    for record in reversed(records):
        header = from_record(record)
        if "knownDate" in record.data or isinstance(header, SessionHeader):
            known = header.date if isinstance(header, SessionHeader) else str(record.data["knownDate"])
            return known != today.isoformat()
    return True


EMPTY = "(It is empty: nothing has been saved yet.)"

_WHOSE = {
    InstructionScope.MANAGED: "for everybody on this machine",
    InstructionScope.USER: "the user's own, for every project",
    InstructionScope.PROJECT: "the project's",
    InstructionScope.LOCAL: "the user's own, for this project",
}


@dataclass(frozen=True, slots=True)
class ShownIndex:
    """An index as the model sees it, or why it could not be read."""

    title: str
    path: Path
    text: str
    diagnostic: str = ""


def indexes(directory: Path, *, team: bool) -> tuple[ShownIndex, ...]:
    """Returns the index of a memory directory and the team's if there is one, each cut to its limits."""
    found = [_read_index("Memory index", directory / INDEX, directory)]
    if team:
        found.append(_read_index("Team memory index", directory / TEAM / INDEX, directory))
    return tuple(found)


def reminder(files: tuple[InstructionFile, ...], shown: tuple[ShownIndex, ...]) -> str:
    """Returns the whole reminder; empty if there is nothing to say."""
    parts: list[str] = []
    if files:
        each = [f"## {file.path} ({_WHOSE[file.scope]})\n\n{file.text}" for file in files]
        parts.append(render("reverie.context", "instructions.md", {"files": escape_tags("\n\n".join(each))}))
    for index in shown:
        values = {"title": index.title, "path": escape_tags(str(index.path)), "index": escape_tags(index.text) or EMPTY}
        parts.append(render("reverie.context", "index.md", values))
    return render("reverie.context", "reminder.md", {"parts": "\n\n".join(parts)}) if parts else ""


def _read_index(title: str, path: Path, directory: Path) -> ShownIndex:
    if not os.path.lexists(path):
        return ShownIndex(title, path, "")
    if not is_inside(str(path), directory):
        return ShownIndex(title, path, "", f"{path} leads out of the memory directory and is not shown; replace it.")
    read = read_text(Path(os.path.realpath(path)), cut=True)
    if read.problem:
        return ShownIndex(title, path, "", f"{path} {read.problem}, so the index is not shown.")
    return ShownIndex(title, path, load_index(read.text).text)
