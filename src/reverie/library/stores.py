"""Memories that packages keep elsewhere (`reverie.stores`): Reverie works on a folder, and the store keeps it in step
with its place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from reverie.errors import UserError
from reverie.plugins import STORES, Plugin, find_plugin, guarded

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory


class Store(Protocol):
    """A place for a memory. A plug-in returns an object like this, or only a folder."""

    @property
    def folder(self) -> Path:
        """The folder that Reverie reads and writes."""
        ...

    def pull(self) -> None:
        """Called before every access: brings the folder up to date."""
        ...

    def push(self) -> None:
        """Called after every change: brings the changes to the place."""
        ...

    def close(self) -> None:
        """Called at the end."""
        ...


class _OthersStore:
    """What a plug-in returned. `pull` and `push` may be missing."""

    def __init__(self, plugin: Plugin, made: Any) -> None:
        self._whose = plugin.whose
        self._made = made
        with guarded(self._whose):
            folder: Any = getattr(made, "folder", made)
            self.folder = Path(cast("str", os.fspath(folder)))

    def pull(self) -> None:
        self._call("pull")

    def push(self) -> None:
        self._call("push")

    def close(self) -> None:
        self.push()

    def _call(self, name: str) -> None:
        with guarded(self._whose):
            if (method := getattr(self._made, name, None)) is not None:
                method()


class ServerStore:
    """A memory server (`memory.store`): the folder is the memory directory, and syncs run beside the work."""

    def __init__(self, memory: OpenedMemory) -> None:
        from reverie.memory.sharing.store.background import StoreKeeper

        self.folder = memory.directory.root
        keeper = StoreKeeper(memory)
        self.pull, self.push, self.close = keeper.pull, keeper.push, keeper.close


def open_server(memory: OpenedMemory) -> Store | None:
    """The memory server of the settings; None without one."""
    return ServerStore(memory) if memory.settings.memory.store else None


def open_store(address: str, home: Path | None) -> Store:
    """The store at `scheme://…`. `UserError` if no installed package has this scheme, or its code fails."""
    scheme = address.partition("://")[0]
    plugin = find_plugin(STORES, scheme)
    if plugin is None:
        raise UserError(f"No installed package keeps memories at {scheme}://; give the path of a folder.")
    return _OthersStore(plugin, plugin(address, home))


def check_root(path: str | os.PathLike[str], cwd: Path) -> Path:
    """The folder of a memory, as the caller named it. Raises `UserError` if it cannot be one."""
    from reverie.permissions.memory_paths import check_memory_root

    given = os.fspath(path)
    spelled = given if given.startswith(("/", "~")) or not given else os.path.normpath(f"{cwd}/{given}")
    return check_memory_root(spelled, home=Path.home(), expand_tilde=True)
