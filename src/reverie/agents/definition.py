"""Kinds of agents: two that are always there, and those that files define, one Markdown file a kind.

Read from the home, then `.claude/agents` and `.reverie/agents` of the project, nearer folders last; a later one of the
same name takes an earlier one's place. A bad file is one sentence, and the others load all the same. A project's file
chooses no model, no memory of the user's and no name of a built-in kind, unless the user trusts its folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from reverie.memory.frontmatter import split
from reverie.memory.sharing.agent_memory import Scope
from reverie.origins import broken_tags
from reverie.paths import Places
from reverie.prompts import render
from reverie.regular_files import read_head
from reverie.settings.reach import Risk
from reverie.settings.trust import ActingPart, TrustBook, digest_parts, make_check

MAX_BYTES = 100_000
GENERAL = "general"
EXPLORE = "explore"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}")
_READING = ("Read", "Grep", "Glob", "Bash")
_LONGEST_DESCRIPTION = 1_000


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """One kind of agent. `tools` None: all there are; `model` empty: its parent's."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    model: str = ""
    memory: Scope | None = None
    source: Path | None = None
    """The file it comes from; None: built in."""
    reads_only: bool = False


@dataclass(frozen=True, slots=True)
class Definitions:
    """The kinds there are, by name, and a sentence for each file that is none."""

    kinds: Mapping[str, AgentDefinition]
    problems: tuple[str, ...] = field(default=())

    @property
    def own(self) -> list[AgentDefinition]:
        """Those that files define, by name."""
        return sorted((kind for kind in self.kinds.values() if kind.source is not None), key=lambda kind: kind.name)


def built_in() -> tuple[AgentDefinition, ...]:
    """The kinds that need no file."""
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
    """Every kind for this working directory. A bare session has the built-in ones only."""
    kinds = {kind.name: kind for kind in built_in()}
    problems = list[str]()
    for kind, parts in () if bare else _found(places, problems):
        ignored = [part for part in parts if part.ignored]
        if not ignored:
            kinds[kind.name] = kind
            continue
        keys = ", ".join(f"`{part.key}`" for part in ignored)
        problems.append(f"{kind.source}: {keys} ignored: {ignored[0].ignored}; `reverie trust` shows it, and asks.")
        if not any(part.key == "name" for part in ignored):
            kinds[kind.name] = replace(kind, model="", memory=None if kind.memory is Scope.USER else kind.memory)
    return Definitions(MappingProxyType(kinds), tuple(problems))


def acting_parts(places: Places) -> list[ActingPart]:
    """What the project's files choose that needs the user's trust."""
    return [part for _, parts in _found(places, []) for part in parts]


def _found(places: Places, problems: list[str]) -> Iterator[tuple[AgentDefinition, list[ActingPart]]]:
    """Every kind that a file defines, with what needs the user's trust in it."""
    taken = {kind.name for kind in built_in()}
    book: TrustBook | None = None
    for folder in folders(places):
        is_own = folder == places.home / "agents"
        for path in _files(folder, problems):
            found = read_definition(path)
            if isinstance(found, str):
                problems.append(found)
                continue
            parts = [] if is_own else list(_acting(found, path, places.checkout, taken))
            if parts:
                book = book or TrustBook.read(places.home)
                state = book.state(places.checkout, digest_parts(parts)[str(places.checkout)], places.root)
                parts = [replace(part, ignored=state) for part in parts]
            yield found, parts


def _acting(kind: AgentDefinition, path: Path, folder: Path, taken: set[str]) -> Iterator[ActingPart]:
    chosen: tuple[tuple[str, str, bool, Risk], ...] = (
        ("model", kind.model, bool(kind.model), Risk.SPEND),
        ("memory", "user", kind.memory is Scope.USER, Risk.MOVE),
        ("name", kind.name, kind.name in taken, Risk.WEAKEN),
    )
    for key, value, acts, risk in chosen:
        if acts:
            look = make_check(key, value, folder)
            yield ActingPart(folder, path.relative_to(folder).as_posix(), 1, key, value, risk, look)


def folders(places: Places) -> list[Path]:
    """Where definitions are looked for, the general ones first."""
    above = [places.cwd, *places.cwd.parents]
    inside = [folder for folder in above if folder == places.checkout or places.checkout in folder.parents]
    nearest_last = list(reversed(inside or [places.cwd]))
    return [
        places.home / "agents",
        *(top / name / "agents" for top in nearest_last for name in (".claude", ".reverie")),
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


def read_definition(path: Path) -> AgentDefinition | str:
    """The kind a file defines, or one sentence that says what is wrong with it."""
    try:
        data = read_head(path, MAX_BYTES + 1)
    except OSError as error:
        return f"{path}: this agent cannot be read: {error.strerror or error}."
    if len(data) > MAX_BYTES:
        return f"{path}: an agent's file may hold {MAX_BYTES:,} bytes; shorten it, or move detail into files it reads."
    try:
        head = split(data.decode("utf-8"))
    except UnicodeDecodeError:
        return f"{path}: not UTF-8 text, so this agent is left out; save it as UTF-8."
    if not head.present or not head.after:
        return f"{path}: begin it with `---`, name, description and `---`, so that it defines an agent."
    return _defined(path, head.values, head.body.strip())


def _defined(path: Path, values: Mapping[str, str], prompt: str) -> AgentDefinition | str:
    name, description = values.get("name", "").strip() or path.stem, " ".join(values.get("description", "").split())
    if not _NAME.fullmatch(name):
        return f"{path}: {name[:80]!r} is no name for an agent; use letters, digits, `-`, `_`, `.` and `:`, at most 64."
    if not description:
        return f"{path}: `description` is missing; say in one sentence what this agent is for."
    if not prompt:
        return f"{path}: the text below the head is empty; write there what the agent is told."
    memory, given = None, values.get("memory", "").strip().lower()
    if given:
        if given not in {scope.value for scope in Scope}:
            return f"{path}: `memory: {given[:40]}` is no scope; write user, project or local, or leave it out."
        memory = Scope(given)
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


def listing(definitions: Definitions) -> str:
    """What the model is told of the kinds that files define; empty if there are none."""
    own = definitions.own
    if not own:
        return ""
    lines = "\n".join(f"- {kind.name}: {broken_tags(kind.description)}" for kind in own)
    return render("reverie.agents", "kinds.md", {"kinds": lines})


def coordinating() -> str:
    """What an agent that coordinates is told of that."""
    return render("reverie.agents", "coordinator.md")
