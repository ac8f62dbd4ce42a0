"""Code of other packages: found through entry points, loaded only when somebody asks for a name that Reverie does not
know, and called so that any failure of it becomes one sentence with the name of its package."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from reverie.errors import ReverieError, UserError
from reverie.quick import dataclass

MODELS = "reverie.models"
"""`provider = "package:open"`: `open(model, access)` returns a `Model` for the name `provider:model`."""
ENCODERS = "reverie.encoders"
"""`name = "package:open"`: `open()` returns an encoder with `encode(texts)` and `identity`, for `memory.encoder`."""
STORES = "reverie.stores"
"""`scheme = "package:open"`: `open(address, home)` returns a folder or a store, for `Memory.open("scheme://…")`."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """What one entry point names. `whose` names it and its package in a sentence."""

    name: str
    package: str
    call: Callable[..., Any]

    @property
    def whose(self) -> str:
        return f"the plug-in {self.name!r} of the package {self.package}"

    def __call__(self, *given: Any) -> Any:
        """Calls it. `UserError` with the name of its package if it fails."""
        with guarded(self.whose):
            return self.call(*given)


@contextmanager
def guarded(whose: str, error: type[ReverieError] = UserError) -> Generator[None]:
    """Turns any failure of code that is not ours into one sentence that says whose it is."""
    try:
        yield
    except ReverieError:
        raise
    except Exception as problem:
        said = " ".join(str(problem).split())[:300]
        what = f"{type(problem).__name__}: {said}" if said else type(problem).__name__
        raise error(f"{whose[0].upper()}{whose[1:]} failed: {what.rstrip('.')}.") from problem


def has_plugin(group: str, name: str) -> bool:
    """Whether a package has a plug-in of this name. Reads the list of installed packages, and loads none of them."""
    from importlib.metadata import entry_points

    return bool(entry_points(group=group, name=name))


def find_plugin(group: str, name: str) -> Plugin | None:
    """Loads the plug-in of this name; None if no package has one. `UserError` if it cannot be loaded."""
    from importlib.metadata import entry_points

    for found in entry_points(group=group, name=name):
        package = found.dist.name if found.dist is not None else found.module
        with guarded(f"the plug-in {name!r} of the package {package}"):
            call = found.load()
        if not callable(call):
            raise UserError(f"The plug-in {name!r} of the package {package} is not a function ({found.value}).")
        return Plugin(name, package, call)
    return None
