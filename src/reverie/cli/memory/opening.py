"""What the memory commands share: opening the memory of a folder, finding the file a person means, and telling of undo.

Loads no event loop, no SDK, no flags, and the write gate only when something is written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from reverie.cli.options import cwd_option as cwd_option
from reverie.cli.options import json_option as json_option
from reverie.cli.output import Paint, columns, one_line, paint_for
from reverie.cli.screen import json_text
from reverie.errors import ReverieError, UserError
from reverie.memory.opening import OpenedMemory, open_memory
from reverie.memory.taxonomy import INDEX, MemoryType, is_index
from reverie.paths import Places
from reverie.settings import load_settings
from reverie.storage.history.versions import Version

TYPES = click.Choice([kind.value for kind in MemoryType])


def memory_in(cwd: Path, *, quiet: bool = False) -> OpenedMemory:
    """The memory that a session in `cwd` would use. Unless `quiet`, what its files say of memory in vain is told."""
    settings = load_settings(cwd)
    places = Places.of(cwd, settings)
    ignored = [part for part in settings.parts if part.ignored and part.key.startswith("memory.")]
    if ignored and not quiet:
        from reverie.settings.folder import ignored_sentences

        for sentence in ignored_sentences(ignored):
            say(f"reverie: {one_line(sentence)}", err=True)

    def report(refusal: Any) -> None:
        from reverie.runtime.background_log import BackgroundLog

        BackgroundLog(places.background_log).write(
            "memory_refused", refused=refusal.kind, writer=refusal.writer.value, detail=refusal.detail
        )

    return open_memory(settings, places, report=report)


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


def everything_named(memory: OpenedMemory) -> list[str]:
    """Every file of the directory, the indexes too."""
    indexes = [name for name in (INDEX, f"team/{INDEX}") if memory.directory.exists(name)]
    return [*indexes, *memory.directory.names()]


def say(text: str = "", *, err: bool = False) -> None:
    click.echo(text, err=err, color=painted(err=err).on)


def painted(*, err: bool = False) -> Paint:
    return paint_for(sys.stderr if err else sys.stdout)


def say_json(value: Any) -> None:
    click.echo(json_text(value, indent=2))


def say_undo(version: Version) -> None:
    """How to take back what was just done."""
    say(painted().dim(f"Undo: reverie memory undo {version.short}"))


def warn(text: str) -> None:
    """Something to know, on standard error, wrapped."""
    paint = painted(err=True)
    first, *rest = wrapped(text, 2)
    say(f"{paint.warning('!')} {first}", err=True)
    for line in rest:
        say(f"  {line}", err=True)


def wrapped(text: str, indent: int = 0) -> list[str]:
    """Lines of a text as wide as the terminal, less an indent."""
    import textwrap

    return textwrap.wrap(one_line(text), max(20, columns(100) - indent), break_on_hyphens=False) or [""]


def can_ask() -> bool:
    """Whether somebody is there to answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


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
