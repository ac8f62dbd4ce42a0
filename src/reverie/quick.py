"""`dataclass` as in the standard library, in a tenth of its time when a module is loaded.

The library compiles up to six functions per class, which was half of the start of `reverie run`. This one compiles
`__init__` when it is first used, and nothing else. Fields, `replace`, `asdict`, patterns, errors and signatures are the
same. It does not know `InitVar`. Other options and subclasses of data classes are left to the library.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, **options: bool) -> Any:
        """As `dataclasses.dataclass`, with `frozen`, `slots`, `eq` and `kw_only`, or none of them."""
        return _make(cls, options) if cls is not None else lambda given: _make(given, options)


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY: Any = _Factory()
_MISSING = dataclasses.MISSING
_KNOWN = {"frozen", "slots", "eq", "kw_only"}


def _make(cls: Any, options: dict[str, bool]) -> Any:
    if options.keys() - _KNOWN or any(dataclasses.is_dataclass(base) for base in cls.__mro__[1:]):
        return dataclasses.dataclass(**options)(cls)  # pyright: ignore[reportCallIssue]
    own = dict(cls.__dict__)
    frozen, eq, slots = options.get("frozen", False), options.get("eq", True), options.get("slots", False)
    if not own.get("__doc__"):
        cls.__doc__ = cls.__name__  # or else the library looks for a signature, which takes longer than all the rest
    left = {name: value for name, value in options.items() if name in ("slots", "kw_only")}
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, **left)(cls)  # pyright: ignore[reportCallIssue]
    fields = dataclasses.fields(made)
    functions: dict[str, Any] = {"__init__": _LateInit(frozen), "__repr__": _repr(fields)}
    if eq:
        functions["__eq__"] = _eq([one.name for one in fields if one.compare])
    for name, function in functions.items():
        if name not in own:
            setattr(made, name, function)
    if eq and ("__hash__" not in own or (own["__hash__"] is None and "__eq__" in own)):
        hashed = [one.name for one in fields if (one.compare if one.hash is None else one.hash)]
        made.__hash__ = _hash(hashed) if frozen else None
    if frozen:
        made.__setattr__, made.__delattr__ = _refusing(made, {one.name for one in fields})
        if slots and "__getstate__" not in own:
            made.__getstate__, made.__setstate__ = _get_state, _set_state
    told = made.__dataclass_params__
    told.init, told.repr, told.eq, told.frozen = True, True, eq, frozen
    return made


class _LateInit:
    """Stands for `__init__` until it is used or looked at, and puts the function in its own place."""

    def __init__(self, frozen: bool) -> None:
        self.frozen = frozen

    def __get__(self, instance: object, kind: Any) -> Any:
        owner = next(one for one in kind.__mro__ if one.__dict__.get("__init__") is self)
        function = owner.__init__ = _init(owner, self.frozen)
        return function if instance is None else function.__get__(instance, kind)


def _init(cls: Any, frozen: bool) -> Any:
    given: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    usual, named, body = list[str](), list[str](), list[str]()
    fields = dataclasses.fields(cls)
    for one in fields:
        name, value = one.name, one.name
        default = f"_default_{name}"
        if one.default_factory is not _MISSING:
            given[default] = one.default_factory
            value = f"{default}() if {name} is _FACTORY else {name}" if one.init else f"{default}()"
        elif one.default is not _MISSING:
            given[default] = one.default
            value = name if one.init else default
        elif not one.init:
            continue
        if one.init:
            default = "_FACTORY" if one.default_factory is not _MISSING else default
            (named if one.kw_only else usual).append(f"{name}={default}" if default in given else name)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    listed = ", ".join(["self", *usual, *(["*", *named] if named else [])])
    text = "\n  ".join([f"def _outer({', '.join(given)}):\n def __init__({listed}):", *(body or ["pass"])])
    made: dict[str, Any] = {}
    exec(f"{text}\n return __init__", sys.modules[cls.__module__].__dict__, made)
    function = made["_outer"](**given)
    function.__qualname__ = f"{cls.__qualname__}.__init__"
    function.__annotations__ = {one.name: one.type for one in fields if one.init} | {"return": None}
    return function


def _key(names: list[str]) -> Callable[[object], object]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _eq(names: list[str]) -> Any:
    key = _key(names)

    def __eq__(self: object, other: object) -> Any:
        return key(self) == key(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(names: list[str]) -> Any:
    key = _key(names)

    def __hash__(self: object) -> int:
        return hash(key(self))

    return __hash__


def _repr(fields: tuple[dataclasses.Field[Any], ...]) -> Any:
    @recursive_repr()
    def __repr__(self: object) -> str:
        shown = (f"{one.name}={getattr(self, one.name)!r}" for one in fields if one.repr)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    return __repr__


def _refusing(cls: Any, names: set[str]) -> tuple[Any, Any]:
    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
