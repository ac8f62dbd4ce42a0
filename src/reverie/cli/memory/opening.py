"""What the memory commands share: opening the memory of a folder, finding the file a person means, and telling of undo.

Loads no event loop, no SDK, no flags, and the write gate only when something is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from reverie.cli.options import here
from reverie.cli.output import one_line, painted, say
from reverie.errors import ReverieError, UserError
from reverie.memory.opening import OpenedMemory, open_memory
from reverie.memory.taxonomy import MemoryType, is_index
from reverie.paths import Places
from reverie.settings import load_settings
from reverie.storage.history.versions import Version

F = TypeVar("F", bound=Callable[..., Any])
TYPES = click.Choice([kind.value for kind in MemoryType])


def memory_in(cwd: Path, *, quiet: bool = False) -> OpenedMemory:
    """The memory that a session in `cwd` would use. Unless `quiet`, what its files say of memory in vain is told."""
    settings = load_settings(cwd)
    places = Places.of(cwd, settings)
    ignored = [part for part in settings.parts if part.ignored and part.key.startswith("memory.")]
    if ignored and not quiet:
        from reverie.settings.folder import list_ignored

        for sentence in list_ignored(ignored):
            say(f"reverie: {one_line(sentence)}", err=True)

    def report(refusal: Any) -> None:
        from reverie.runtime.background_log import BackgroundLog

        BackgroundLog(places.background_log).write(
            "memory_refused", refused=refusal.kind, writer=refusal.writer.value, detail=refusal.detail
        )

    return open_memory(settings, places, report=report)


def with_memory(function: F) -> F:
    """`--json` and `-C`; the command gets `memory`, which a session there would use."""

    @wraps(function)
    def opened(*args: Any, cwd: Path, **more: Any) -> Any:
        return function(*args, memory=memory_in(cwd), **more)

    return here(opened)  # type: ignore[return-value]


def file_names(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Completion of memory files."""
    try:
        names = memory_in(Path.cwd(), quiet=True).directory.names()
    except ReverieError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def file_meant(memory: OpenedMemory, given: str, *, also: Iterable[str] = ()) -> str:
    """The file a person names: its name, with or without `.md`, its title, or the only one whose name holds it.

    `also` are names that count although no such file is there now.
    """
    names = [*memory.directory.names(), *also]
    wanted = given.strip().removeprefix("./")
    if is_index(wanted) or wanted in names:
        return wanted
    folded = wanted.casefold().removesuffix(".md")
    exact = [name for name in names if name.casefold().removesuffix(".md") == folded]
    titled = [entry.name for entry in memory.directory.list() if entry.title.casefold() == folded]
    holding = [name for name in names if folded and folded in name.casefold()]
    for found in (exact, titled, holding):
        if len(set(found)) == 1:
            return found[0]
    if holding:
        listed = ", ".join(dict.fromkeys(holding[:5]))
        raise UserError(f"{given[:60]!r} may mean {listed}{' and more' if len(holding) > 5 else ''}; say which.")
    raise UserError(f"There is no memory {given[:60]!r}; `reverie memory list` shows what there is.")


def undo_line(version: Version | None) -> list[str]:
    """How to take back what was just done, if anything was."""
    return [painted().dim(f"Undo: reverie memory undo {version.short}")] if version is not None else []


def version_json(version: Version | None) -> dict[str, Any] | None:
    """A version for programs."""
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
