"""What the memory commands share: opening the memory of a folder, and hints for undo."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from reverie.cli.options import folder_options, load_places
from reverie.cli.output import get_paint, one_line, say
from reverie.errors import ReverieError
from reverie.memory.opening import OpenedMemory, log_refusals, open_memory
from reverie.memory.taxonomy import MemoryType
from reverie.storage.history.versions import Version

F = TypeVar("F", bound=Callable[..., Any])
_FETCH_S = 1.0
_SEND_S = 5.0
"""How long a command waits for a memory server before and after its work."""
TYPES = click.Choice([kind.value for kind in MemoryType])


def open_memory_in(cwd: Path, *, quiet: bool = False) -> OpenedMemory:
    """The memory that a session in `cwd` uses. Unless `quiet`, prints which of its settings are ignored."""
    settings, places = load_places(cwd)
    ignored = [part for part in settings.parts if part.ignored and part.key.startswith("memory.")]
    if ignored and not quiet:
        from reverie.settings.folder import list_ignored

        for sentence in list_ignored(ignored):
            say(f"reverie: {one_line(sentence)}", err=True)

    return open_memory(settings, places, report=log_refusals(places))


def with_memory(function: F) -> F:
    """`--json` and `-C`; the command gets `memory` instead of `cwd`. With a memory server, it works on what the server
    has, and the server gets what it changes, as far as that is quick."""

    @wraps(function)
    def opened(*args: Any, cwd: Path, **more: Any) -> Any:
        memory = open_memory_in(cwd)
        with _in_step(memory):
            return function(*args, memory=memory, **more)

    return folder_options(opened)  # type: ignore[return-value]


def with_memory_here(function: F) -> F:
    """The same for commands that talk to the memory server themselves."""

    @wraps(function)
    def opened(*args: Any, cwd: Path, **more: Any) -> Any:
        return function(*args, memory=open_memory_in(cwd), **more)

    return folder_options(opened)  # type: ignore[return-value]


@contextmanager
def _in_step(memory: OpenedMemory) -> Generator[None]:
    if not memory.settings.memory.store or not memory.switch.on:
        yield
        return
    from reverie.memory.sharing.store.background import is_due, sync_quietly

    if is_due(memory):
        sync_quietly(memory, _FETCH_S)
    before = next(memory.directory.log(limit=1), None)
    yield
    if next(memory.directory.log(limit=1), None) != before:
        sync_quietly(memory, _SEND_S)


def file_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Completes memory files."""
    try:
        names = open_memory_in(Path.cwd(), quiet=True).directory.names()
    except ReverieError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def show_in_browser(memory: OpenedMemory, path: str) -> None:
    """Shows a page about this memory: `path` gets the name of its project."""
    from reverie.cli.web import show
    from reverie.paths import slug

    show(memory.places.cwd, path.format(project=slug(memory.places.root)))


def undo_hint(version: Version | None) -> list[str]:
    """The command that undoes the version, if there is one."""
    return [get_paint().dim(f"Undo: reverie memory undo {version.short}")] if version is not None else []


def version_json(version: Version | None) -> dict[str, Any] | None:
    """A version as JSON."""
    if version is None:
        return None
    return {
        "version": version.id,
        "short": version.short,
        "when": version.when.isoformat(timespec="seconds"),
        "writer": version.info.writer,
        "subject": version.info.subject,
        "why": version.info.why,
        "session": version.info.session,
        "message": version.info.message,
        "reverses": version.info.reverses,
        "reasons": dict(version.info.reasons),
        "files": [{"file": change.name, "change": change.verb} for change in version.files],
    }
