"""What one setting is: its kind, default, unit and variable. Sections are built from these. Who may set it: `reach.py`.

A section is a frozen dataclass whose fields are made by the functions below; everything else (reading, checking, the
reference page, `reverie settings`) is derived from them. Nothing here reads a file or the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias, cast, dataclass_transform

from reverie.settings.kinds import (
    LARGEST,
    AsWritten,
    Choice,
    Counts,
    Frame,
    Location,
    Misfit,
    Numeric,
    Paths,
    Pattern,
    Switch,
    Text,
    Texts,
    check_list,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """All that is known about one setting."""

    kind: Kind
    help: str
    unit: str
    env: str | None
    env_only: bool
    secret: bool
    live: bool
    """A flag of the same name changes it while a session runs."""
    default_text: str
    """What the reference page says instead of a default that depends on the machine."""

    @property
    def adds_up(self) -> bool:
        """Lists of several places are joined; tables are joined key by key; anything else is replaced."""
        return isinstance(self.kind, Texts | Paths | Tables)


@dataclass(frozen=True, slots=True)
class Tables(AsWritten):
    """A list of tables, each becoming one `element` (a dataclass of settings itself)."""

    element: type
    wanted: str = "a list of tables"

    def check(self, value: object, frame: Frame) -> tuple[object, ...]:
        return tuple(self._one(index, item, frame) for index, item in enumerate(check_list(value, self.wanted)))

    def _one(self, index: int, item: object, frame: Frame) -> object:
        if isinstance(item, self.element):
            return item
        if not isinstance(item, Mapping):
            raise Misfit("a table", (index,))
        known = list_section_settings(self.element)
        values: dict[str, object] = {}
        for key, given in cast("Mapping[str, object]", item).items():
            if key not in known:
                raise Misfit("", (index, key), unknown=key, valid=tuple(known))
            try:
                values[key] = known[key].kind.check(given, frame)
            except Misfit as misfit:
                raise Misfit(misfit.wanted, (index, key, *misfit.at)) from misfit
        for entry in fields(self.element):
            if entry.metadata["required"] and entry.name not in values:
                raise Misfit(f"a table with `{entry.name}`", (index,))
        return self.element(**values)


Kind: TypeAlias = Switch | Numeric | Text | Pattern | Choice | Location | Texts | Paths | Counts | Tables
"""How a value is checked: `check` takes what TOML gave, `from_text` turns what a variable holds into the same."""


@dataclass_transform(frozen_default=True)
class Section:
    """A frozen dataclass whose methods are written once here instead of generated for each section.

    Generating them for all sections takes 11 ms, half as long as everything else a reading command does at start.
    """

    def __init_subclass__(cls, *, live: bool = False) -> None:
        """`live`: a flag may change every number of the section while a session runs."""
        dataclass(init=False, repr=False, eq=False)(cls)
        cls.all_live = live

    def __init__(self, **values: object) -> None:
        for entry in fields(cast("Any", self)):
            if entry.name in values:
                value = values.pop(entry.name)
            elif callable(entry.default_factory):
                value = entry.default_factory()
            else:
                value = entry.default
            object.__setattr__(self, entry.name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        shown = [f"{entry.name}={self.__dict__[entry.name]!r}" for entry in fields(cast("Any", self)) if entry.repr]
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def list_section_settings(section: type) -> Mapping[str, Setting]:
    """The settings of one section, by key, in the order they are written."""
    found: dict[str, Setting] = {entry.name: entry.metadata["setting"] for entry in fields(section)}
    if getattr(section, "all_live", False):
        found |= {key: replace(one, live=True) for key, one in found.items() if isinstance(one.kind, Numeric)}
    return MappingProxyType(found)


def make(
    kind: Kind,
    default: object,
    help: str,
    *,
    unit: str = "",
    env: str | None = None,
    env_only: bool = False,
    secret: bool = False,
    live: bool = False,
    default_text: str = "",
    required: bool = False,
) -> Any:
    """One field of a section. Typed `Any` so that the annotation beside it says what a reader gets."""
    setting = Setting(kind, help, unit, env, env_only, secret, live, default_text)
    metadata = {"setting": setting, "required": required}
    if callable(default):
        factory = cast("Callable[[], object]", default)
        return field(default_factory=factory, metadata=metadata, repr=not secret)
    return field(default=default, metadata=metadata, repr=not secret)


def switch(default: bool | None, help: str, **more: Any) -> Any:
    return make(Switch(), default, help, **more)


def whole(default: int | None, unit: str, help: str, *, minimum: int = 1, **more: Any) -> Any:
    return make(Numeric(whole=True, minimum=minimum), default, help, unit=unit, **more)


def number(
    default: float | None, unit: str, help: str, *, minimum: float = 0, maximum: float = LARGEST, **more: Any
) -> Any:
    """A number over `minimum`, at most `maximum`."""
    return make(Numeric(whole=False, minimum=minimum, maximum=maximum, above=True), default, help, unit=unit, **more)


def text(default: str, help: str, **more: Any) -> Any:
    return make(Text(), default, help, **more)


def filled(help: str, **more: Any) -> Any:
    """Text that must be given, and not blank."""
    return make(Text("text that is not empty", filled=True), "", help, required=True, **more)


def pattern(default: str, help: str, **more: Any) -> Any:
    return make(Pattern(), default, help, **more)


def url(default: str, help: str, **more: Any) -> Any:
    kind = Text("an address that begins with http:// or https://", ("http://", "https://"))
    return make(kind, default, help, **more)


def secret(env: str, help: str) -> Any:
    """A credential: hidden wherever settings are shown."""
    return make(Text(), "", help, env=env, secret=True)


def choice(default: str, options: tuple[str, ...], help: str, **more: Any) -> Any:
    return make(Choice(options), default, help, **more)


def location(default: Path | Callable[[], Path] | None, help: str, **more: Any) -> Any:
    return make(Location(), default, help, **more)


def texts(help: str, **more: Any) -> Any:
    return make(Texts(), (), help, **more)


def paths(help: str, **more: Any) -> Any:
    return make(Paths(), (), help, **more)


def counts(default: Mapping[str, int], unit: str, help: str, **more: Any) -> Any:
    return make(Counts(), lambda: MappingProxyType(dict(default)), help, unit=unit, **more)


def tables(element: type, help: str, **more: Any) -> Any:
    return make(Tables(element), (), help, **more)
