"""Finds a memory by what somebody calls it, and records changes by hand before the history is shown. Reads only, apart
from that record."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from reverie.errors import StorageError, UserError
from reverie.memory.changes import WriteInfo
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import is_index


def find_file(directory: MemoryDirectory, given: str, *, also: Iterable[str] = ()) -> str:
    """The file with this name, with or without `.md`, with this title, or the only one whose name contains it. A name
    that a list has cut (`…`) counts too, and a folder with a part of a name (`team/mocks`).

    `also`: names of files that do not exist now, but count.
    """
    names = [*directory.names(), *also]
    wanted = given.strip().removeprefix("./").rstrip("…")
    if is_index(wanted) or wanted in names:
        return wanted
    folded = wanted.casefold().removesuffix(".md")
    exact = [name for name in names if name.casefold().removesuffix(".md") == folded]
    titled = [entry.name for entry in directory.list() if entry.title.casefold() == folded]
    folder, slash, part = folded.rpartition("/")
    holding = [
        name
        for name in names
        if part and name.casefold().startswith(folder + slash) and part in name[len(folder + slash) :].casefold()
    ] or [name for name in names if folded and folded in name.casefold()]
    for found in (exact, titled, holding):
        if len(set(found)) == 1:
            return found[0]
    if holding:
        listed = ", ".join(dict.fromkeys(holding[:5]))
        raise UserError(f"{given[:60]!r} matches {listed}{' and more' if len(holding) > 5 else ''}; name one.")
    raise UserError(f"There is no memory {given[:60]!r}; `reverie memory list` lists all memories.")


def absorb(directory: MemoryDirectory, info: WriteInfo | None = None) -> None:
    """Makes a version of changes by hand, or as `info` says, if the disk allows it."""
    if directory.history.head() is not None:
        with suppress(StorageError):
            directory.absorb(info)


def list_past_files(directory: MemoryDirectory) -> set[str]:
    """Every file that a version changed, also those that are gone."""
    return {change.name for version in directory.log() for change in version.files}
