"""What stands before the first message: instruction files, then the memory index, then the team's, in one reminder.

Rendered once and kept in the session header, so saves in between change nothing in front of the conversation. Text of
files cannot end the reminder early. Nothing is written here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reverie.instructions import InstructionFile, Scope
from reverie.instructions.reading import read_text
from reverie.memory.index import load_index
from reverie.memory.taxonomy import INDEX, TEAM
from reverie.origins import broken_tags
from reverie.permissions.inside import is_inside
from reverie.prompts import render

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
