"""The memory directories that the web view shows: one per project, and those of agents. Finds and opens them.

Only the directories of projects and of agents in the home can be changed from a page; those inside a repository are
shown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.errors import UserError
from reverie.paths import MemoryPlace, Places, memory_place, memory_switch
from reverie.permissions.memory_paths import check_memory_root
from reverie.quick import dataclass
from reverie.settings import load_settings
from reverie.web.rendering import segment
from reverie.web.site import Project, Site, is_folder
from reverie.web.visit import NotFound, Visit

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

AGENT = "agent:"
"""How the name of an agent's memory begins. No project has such a name."""


@dataclass(frozen=True, slots=True)
class Store:
    """One memory directory. `name` is its name in addresses."""

    name: str
    label: str
    root: Path
    folder: Path
    """Where its sessions work: settings and instructions come from there."""
    project: str = ""
    """Its project; empty for an agent's memory."""
    is_changeable: bool = True

    @property
    def address(self) -> str:
        """The beginning of the addresses of its memories and actions."""
        return f"/memory/{segment(self.name)}"

    @property
    def chosen(self) -> str:
        """The query that chooses it in lists."""
        return f"?project={segment(self.name)}"

    def describe(self) -> dict[str, object]:
        return {"name": self.name, "label": self.label, "directory": str(self.root), "changeable": self.is_changeable}


def list_stores(site: Site) -> list[Store]:
    """Every memory directory that exists, each once, by its label."""
    found: dict[Path, Store] = {}
    for store in (*_of_projects(site), *_of_agents(site)):
        if store.root not in found and store.root.is_dir():
            found[store.root] = store
    return sorted(found.values(), key=lambda one: (not one.project, one.label))


def find_store(site: Site, name: str) -> Store:
    """The memory directory of this name, or of the project of this name; `NotFound` if there is none."""
    if name.startswith(AGENT):
        store = next((one for one in _of_agents(site) if one.name == name), None)
        if store is None:
            raise NotFound(f"No agent {name[len(AGENT) :][:80]!r} has a memory.")
        return store
    store = _of_project(site, site.project(name))
    return next((one for one in list_stores(site) if one.root == store.root), store)


def chosen_stores(visit: Visit) -> list[Store]:
    """The memory directories that a visit is about: the one of `?project=`, or all."""
    name = visit.query.get("project", "")
    return [find_store(visit.site, name)] if name else list_stores(visit.site)


def open_store(site: Site, store: Store) -> OpenedMemory:
    """The memory as a command in its folder opens it."""
    from reverie.memory.directory import MemoryDirectory
    from reverie.memory.opening import OpenedMemory, ProjectGate, log_refusals

    settings = load_settings(store.folder) if is_folder(store.folder) else site.settings
    places = Places.of(store.folder, settings)
    place = MemoryPlace(store.root, "shown by the web view")
    gate = ProjectGate(place, places, settings, log_refusals(places))
    directory = MemoryDirectory.open(place, gate=gate)
    return OpenedMemory(memory_switch(settings), place, gate, directory, settings=settings, places=places)


def open_to_change(site: Site, name: str, what: str) -> tuple[Store, OpenedMemory]:
    """The same for an action. `UserError` if it may not be changed from here; `what` says what is not done."""
    store = find_store(site, name)
    if not store.is_changeable:
        raise UserError(
            f"{store.label} belongs to the repository, so {what} from here. Edit its files in {store.root}."
        )
    memory = open_store(site, store)
    memory.require_on(what)
    return store, memory


def _of_projects(site: Site) -> Iterator[Store]:
    yield _of_project(site, site.here)
    is_usual = not (site.settings.memory.path or site.settings.memory.directory or site.settings.memory.shared_with)
    try:
        names = sorted(entry.name for entry in os.scandir(site.places.projects) if entry.is_dir())
    except OSError:
        return
    for name in names:
        if not is_usual or (site.places.projects / name / "memory").is_dir():
            yield _of_project(site, site.project(name))


def _of_project(site: Site, project: Project) -> Store:
    # A path that has the same name as the project: all that the memory of an unknown folder depends on.
    folder = project.folder or Path("/" + project.name.removeprefix("-"))
    settings, own = site.settings, project.path / "memory"
    if own.is_dir() and not (settings.memory.path or settings.memory.directory or settings.memory.shared_with):
        root = own
    else:
        settings = load_settings(folder) if is_folder(folder) else settings
        root = memory_place(Places.of(folder, settings), settings, check_memory_root).directory
    return Store(project.name, project.label, Path(os.path.realpath(root)), folder, project.name)


def _of_agents(site: Site) -> Iterator[Store]:
    from reverie.memory.sharing.agent_memory import agent_memory_folders

    places = site.places
    for root in agent_memory_folders(places):
        is_own = root.is_relative_to(places.home)
        name = f"{AGENT}{root.name}" if is_own else f"{AGENT}{root.parent.name}:{root.name}"
        where = "all projects" if is_own else str(places.root)
        yield Store(name, f"agent {root.name} ({where})", root, site.cwd, is_changeable=is_own)
