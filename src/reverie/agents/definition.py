"""Kinds of agents: two that are built in, and one per Markdown file in the agents folders of the home and the project.

Nearer folders win. A project's file cannot choose a model or use the user's memory, unless the user trusts it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from reverie.instructions.heads import read_with_head
from reverie.memory.sharing.agent_memory import AgentMemoryScope
from reverie.origins import escape_tags
from reverie.paths import Places
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.settings import Settings
from reverie.settings.reach import Risk, names_program
from reverie.settings.trust import ActingPart, TrustBook, make_check, mark_parts

GENERAL = "general"
EXPLORE = "explore"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_READING = ("Read", "Grep", "Glob", "Bash")
_LONGEST_DESCRIPTION = 1_000


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One kind of agent. `tools` None means all tools; an empty `model` means the parent's model."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    model: str = ""
    memory: AgentMemoryScope | None = None
    source: Path | None = None  # the file that defines it; None for a built-in kind
    reads_only: bool = False


@dataclass(frozen=True, slots=True)
class Definitions:
    """All kinds by name, and one sentence for each file that is not valid."""

    kinds: Mapping[str, AgentDefinition]
    problems: tuple[str, ...] = ()

    @property
    def own(self) -> list[AgentDefinition]:
        """The kinds that files define, sorted by name."""
        return sorted((kind for kind in self.kinds.values() if kind.source is not None), key=lambda kind: kind.name)


def built_in() -> tuple[AgentDefinition, ...]:
    """Returns the kinds that need no file."""
    return (
        AgentDefinition(GENERAL, "Any task of several steps.", render("reverie.agents", "general.md")),
        AgentDefinition(
            EXPLORE,
            "Finds out where things are and how they work; changes nothing.",
            render("reverie.agents", "explore.md"),
            tools=_READING,
            reads_only=True,
        ),
    )


def load_definitions(places: Places, *, bare: bool = False) -> Definitions:
    """Returns every kind for this working directory; a bare session gets only the built-in ones."""
    kinds = {kind.name: kind for kind in built_in()}
    problems = list[str]()
    for kind, parts in () if bare else _read_all(places, problems):
        ignored = [part for part in parts if part.ignored]
        if not ignored:
            kinds[kind.name] = kind
            continue
        keys = ", ".join(f"`{part.key}`" for part in ignored)
        problems.append(f"{kind.source}: {keys} ignored: {ignored[0].ignored}; `reverie trust` shows it and asks.")
        if not any(part.key == "name" for part in ignored):
            kinds[kind.name] = replace(
                kind, model="", memory=None if kind.memory is AgentMemoryScope.USER else kind.memory
            )
    return Definitions(MappingProxyType(kinds), tuple(problems))


def trusted_parts(places: Places) -> list[ActingPart]:
    """Returns the choices in the project's files that need the user's trust."""
    return [part for _, parts in _read_all(places, []) for part in parts]


def is_trusted(settings: Settings, places: Places) -> bool:
    """Whether nothing in the files of this folder waits for the user's trust."""
    parts = (*settings.parts, *trusted_parts(places))
    return not any(part.ignored for part in parts if part.can_be_trusted)


def _read_all(places: Places, problems: list[str]) -> Iterator[tuple[AgentDefinition, list[ActingPart]]]:
    taken = {kind.name for kind in built_in()}
    book: TrustBook | None = None
    for folder in definition_folders(places):
        is_own = folder == places.home / "agents"
        for path in _files(folder, problems):
            found = read_definition(path, None if is_own else places.checkout)
            if isinstance(found, str):
                problems.append(found)
                continue
            if not is_own and names_program(found.model):
                problems.append(f"{path}: `model: {found.model}` is ignored: only you may name a program to run.")
                found = replace(found, model="")
            parts = [] if is_own else list(_trusted_parts(found, path, places.checkout, taken))
            if parts:
                book = book or TrustBook.read(places.home)
                parts = mark_parts(parts, book, places.checkout, places.root)
            yield found, parts


def _trusted_parts(kind: AgentDefinition, path: Path, folder: Path, taken: set[str]) -> Iterator[ActingPart]:
    chosen: tuple[tuple[str, str, bool, Risk], ...] = (
        ("model", kind.model, bool(kind.model), Risk.SPEND),
        ("memory", "user", kind.memory is AgentMemoryScope.USER, Risk.MOVE),
        ("name", kind.name, kind.name in taken, Risk.WEAKEN),
    )
    for key, value, acts, risk in chosen:
        if acts:
            look = make_check(key, value, folder)
            yield ActingPart(folder, path.relative_to(folder).as_posix(), 1, key, value, risk, look)


def definition_folders(places: Places) -> list[Path]:
    """Returns the folders to search for definitions, the most general first."""
    return [
        places.home / "agents",
        *(top / name / "agents" for top in places.project_folders() for name in (".claude", ".reverie")),
    ]


def _files(folder: Path, problems: list[str]) -> Iterator[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".md") and entry.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        problems.append(f"{folder}: agents cannot be read: {error.strerror or error}.")
        return
    for name in names:
        if not name.startswith("."):
            yield folder / name


def read_definition(path: Path, project: Path | None = None) -> AgentDefinition | str:
    """Returns the kind that a file (of a project) defines, or one sentence that says what is wrong with the file."""
    head = read_with_head(path, "this agent", project)
    if isinstance(head, str):
        return head
    if not head.present or not head.after:
        return f"{path}: start the file with `---`, name, description and `---`, so that it defines an agent."
    return _parse(path, head.values, head.body.strip())


def _parse(path: Path, values: Mapping[str, str], prompt: str) -> AgentDefinition | str:
    name, description = values.get("name", "").strip() or path.stem, " ".join(values.get("description", "").split())
    if not _NAME.fullmatch(name):
        return f"{path}: {name[:80]!r} is not a valid name; use letters, digits, `-`, `_`, `.` and `:`, at most 64."
    if not description:
        return f"{path}: `description` is missing; say in one sentence what this agent is for."
    if not prompt:
        return f"{path}: the text below the head is empty; write the instructions for the agent there."
    memory, given = None, values.get("memory", "").strip().lower()
    if given:
        if given not in {scope.value for scope in AgentMemoryScope}:
            return f"{path}: `memory: {given[:40]}` is not a scope; write user, project or local, or leave it out."
        memory = AgentMemoryScope(given)
    model = values.get("model", "").strip()
    return AgentDefinition(
        name=name,
        description=description[:_LONGEST_DESCRIPTION],
        prompt=prompt,
        tools=_tools(values.get("tools", "")),
        model="" if model.lower() in ("inherit", "default") else model,
        memory=memory,
        source=path,
    )


def _tools(given: str) -> tuple[str, ...] | None:
    names = tuple(dict.fromkeys(name.strip() for name in given.strip("[]").split(",") if name.strip()))
    return None if not names or "*" in names else names


def list_kinds(definitions: Definitions) -> str:
    """Returns the list of file-defined kinds that the model sees; empty if there are none."""
    own = definitions.own
    if not own:
        return ""
    lines = "\n".join(f"- {kind.name}: {escape_tags(kind.description)}" for kind in own)
    return render("reverie.agents", "kinds.md", {"kinds": lines})


def coordinator_prompt() -> str:
    """Returns the prompt of an agent that coordinates."""
    return render("reverie.agents", "coordinator.md")
