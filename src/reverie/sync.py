"""The same objects without async: `from reverie.sync import Engine, Memory`.

Each public class with coroutines gets a class whose methods wait for them. All of them run on one event loop in one
daemon thread, so they also work inside a running event loop of the caller. Nothing is implemented twice.
"""

from __future__ import annotations

import inspect
from typing import Any, cast

from reverie.library.blocking import blocking_loop

_BEFORE, _AFTER = "__aenter__", "__aexit__"


class _Waiting:
    """What all blocking classes have."""

    async_object: Any
    """The object that does the work."""

    def __enter__(self) -> Any:
        blocking_loop().wait(getattr(self.async_object, _BEFORE)())
        return self

    def __exit__(self, *about: Any) -> Any:
        return blocking_loop().wait(getattr(self.async_object, _AFTER)(*about))

    def __repr__(self) -> str:
        return f"sync.{self.async_object!r}"


_made: dict[type, type[_Waiting]] = {}


def _inner(value: Any) -> Any:
    return value.async_object if isinstance(value, _Waiting) else value


def _outer(value: Any) -> Any:
    """A result for the caller: an async object of ours becomes the one that waits."""
    made = _made.get(value.__class__)
    if made is None:
        return value
    outer = made()
    outer.async_object = value
    blocking_loop().open.add(outer)
    return outer


def _call(target: Any, name: str, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    given, named = [_inner(one) for one in args], {key: _inner(value) for key, value in more.items()}
    result = getattr(target, name)(*given, **named)
    return _outer(blocking_loop().wait(result) if inspect.iscoroutine(result) else result)


def _make_method(source: type, name: str, found: Any) -> Any:
    """A method that waits, with the signature and the docstring of the coroutine."""
    is_of_class = isinstance(found, classmethod)

    def method(self: Any, *args: Any, **more: Any) -> Any:
        return _call(source if is_of_class else self.async_object, name, args, more)

    function: Any = cast("Any", found).__func__ if is_of_class else found
    method.__name__, method.__doc__ = name, function.__doc__
    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return classmethod(method) if is_of_class else method


def _make_class(source: type) -> type[_Waiting]:
    """The blocking class of an async one, derived from its public attributes."""
    body: dict[str, Any] = {"__doc__": source.__doc__, "__module__": __name__}
    for name in dir(source):
        found = inspect.getattr_static(source, name)
        if name.startswith("_"):
            continue
        if isinstance(found, classmethod) or inspect.isfunction(found):
            body[name] = _make_method(source, name, found)
        else:  # a property, or a value of the class
            body[name] = property(lambda self, name=name: _outer(getattr(self.async_object, name)), doc=found.__doc__)
    return cast("type[_Waiting]", type(source.__name__, (_Waiting,), body))


def __getattr__(name: str) -> Any:
    import reverie

    source: Any = getattr(reverie, name) if name in reverie.__all__ else None
    if not (isinstance(source, type) and source.__module__.startswith("reverie.library") and hasattr(source, _BEFORE)):
        raise AttributeError(f"module 'reverie.sync' has no attribute {name!r}")
    made = globals()[name] = _made.setdefault(source, _make_class(source))
    return made
