"""The sandboxes of the commands of one program: one per project, made when the first command needs it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.permissions.obeyed_links import find_project

if TYPE_CHECKING:
    from reverie.permissions.sandbox.probe import SandboxLayers
    from reverie.permissions.sandbox.profiles import Sandbox


class Sandboxes:
    """`wanted`: whether there should be any; `private`: folders that no command sees, such as Reverie's own; `layers`:
    only these instead of all that work."""

    def __init__(
        self, *, wanted: bool = True, private: Iterable[Path] = (), layers: SandboxLayers | None = None
    ) -> None:
        self._wanted, self._private, self._layers = wanted, tuple(private), layers
        self._sandboxes = dict[Path, "Sandbox"]()

    @property
    def layers(self) -> SandboxLayers:
        """What works on this machine; the first call takes a moment."""
        from reverie.permissions.sandbox.probe import SandboxLayers, find_layers

        if self._layers is not None:
            return self._layers
        return find_layers() if self._wanted else SandboxLayers(False, 0, "it is turned off (permissions.sandbox)")

    def at(self, cwd: Path) -> Sandbox:
        """Returns the sandbox of the project around a folder."""
        from reverie.permissions.sandbox.profiles import Sandbox

        project = find_project(cwd)
        if project not in self._sandboxes:
            self._sandboxes[project] = Sandbox(cwd, self.layers, private=self._private)
        return self._sandboxes[project]
