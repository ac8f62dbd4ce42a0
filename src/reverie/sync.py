"""The same objects without async: `from reverie.sync import Engine, Memory`.

Each public class with coroutines gets a class whose methods wait for them. All of them run on one event loop in one
daemon thread, so they also work inside a running event loop of the caller. Nothing is implemented twice.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import threading
import weakref
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar, cast

from reverie.errors import ReverieError, UserError

T = TypeVar("T")

_EXIT_S: Final = 10.0
"""How long the end of the process waits for objects that were left open."""
_BEFORE, _AFTER = "__aenter__", "__aexit__"


class _Loop:
    """One event loop in one daemon thread, for this process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="reverie-sync", daemon=True)
        self.thread.start()
        self.open: weakref.WeakSet[Any] = weakref.WeakSet()
        atexit.register(self.end)

    def wait(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs a coroutine to its end. Its exception keeps its traceback."""
        if threading.current_thread() is self.thread:
            work.close()
            raise UserError("A blocking call inside `ask` would wait for itself; use the async object there.")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(timeout)
        except BaseException:
            future.cancel()  # Ctrl-C, for example: nobody waits for it any more
            raise

    def end(self) -> None:
        """Closes what is still open when the process ends."""
        if self.process != os.getpid() or not self.thread.is_alive():
            return
        for one in list(self.open):
            with suppress(ReverieError, TimeoutError, RuntimeError):
                self.wait(one.async_object.close(), _EXIT_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_EXIT_S)


_running: _Loop | None = None
_starting = threading.Lock()


def _loop() -> _Loop:
    global _running
    with _starting:
        if _running is None or _running.process != os.getpid():  # threads do not live on in a fork
            _running = _Loop()
        return _running


class _Waiting:
    """What all blocking classes have."""

    async_object: Any
    """The object that does the work."""

    def __enter__(self) -> Any:
        _loop().wait(getattr(self.async_object, _BEFORE)())
        return self

    def __exit__(self, *about: Any) -> Any:
        return _loop().wait(getattr(self.async_object, _AFTER)(*about))

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
    _loop().open.add(outer)
    return outer


def _call(target: Any, name: str, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    given, named = [_inner(one) for one in args], {key: _inner(value) for key, value in more.items()}
    result = getattr(target, name)(*given, **named)
    return _outer(_loop().wait(result) if inspect.iscoroutine(result) else result)


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
