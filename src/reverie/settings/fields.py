"""What one setting is: its kind, default, unit, variable, and who may set it. Sections are built from these.

A section is a frozen dataclass whose fields are made by the functions below; everything else (reading, checking, the
reference page, `reverie settings`) is derived from them. Nothing here reads a file or the environment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, cast

from reverie.settings.toml_file import KeyPath

_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")


class Project(Enum):
    """What a project's committed settings, which strangers may have written, can do to a setting."""

    MAY = "yes"
    TRUSTED = "if trusted"
    OFF_ONLY = "only off"
    NEVER = "no"


@dataclass(frozen=True, slots=True)
class Frame:
    """What a relative path and `~/` mean where a value was written."""

    base: Path
    user_home: Path

    def resolve(self, text: str) -> Path:
        if text == "~" or text.startswith("~/"):
            return self.user_home / text[2:]
        return self.base / text


class Misfit(Exception):
    """A value that does not fit. `at` leads from the setting to the part that is wrong."""

    def __init__(self, wanted: str, at: KeyPath = (), unknown: str | None = None, valid: tuple[str, ...] = ()) -> None:
        super().__init__(wanted)
        self.wanted = wanted
        self.at = at
        self.unknown = unknown
        self.valid = valid


class Kind(Protocol):
    """How one kind of value is checked. `check` takes what TOML gave, `from_text` what a variable or flag holds."""

    @property
    def wanted(self) -> str: ...
    def check(self, value: object, frame: Frame) -> object: ...
    def from_text(self, text: str) -> object: ...


@dataclass(frozen=True, slots=True)
class Setting:
    """All that is known about one setting."""

    kind: Kind
    help: str
    unit: str
    env: str | None
    env_only: bool
    project: Project
    secret: bool

    @property
    def adds_up(self) -> bool:
        """Lists of several places are joined; tables are joined key by key; anything else is replaced."""
        return isinstance(self.kind, Texts | Paths | Tables)


@dataclass(frozen=True, slots=True)
class Switch:
    wanted: str = "true or false"

    def check(self, value: object, frame: Frame) -> bool:
        if not isinstance(value, bool):
            raise Misfit(self.wanted)
        return value

    def from_text(self, text: str) -> object:
        word = text.strip().lower()
        return True if word in _ON else False if word in _OFF else text


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number. `above` excludes the bound itself."""

    whole: bool
    minimum: float = 0
    maximum: float = math.inf
    above: bool = False

    @property
    def wanted(self) -> str:
        what = "a whole number" if self.whole else "a number"
        low = f"over {self.minimum:g}" if self.above else f"of {self.minimum:g} or more"
        return f"{what} {low}" + (f", at most {self.maximum:g}" if self.maximum < math.inf else "")

    def check(self, value: object, frame: Frame) -> int | float:
        fits = isinstance(value, int) if self.whole else isinstance(value, int | float)
        if isinstance(value, bool) or not fits:
            raise Misfit(self.wanted)
        given = cast("int | float", value)
        low_enough = given > self.minimum if self.above else given >= self.minimum
        if not (math.isfinite(given) and low_enough and given <= self.maximum):
            raise Misfit(self.wanted)
        return given if self.whole else float(given)

    def from_text(self, text: str) -> object:
        try:
            return int(text) if self.whole else float(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Text:
    """A string; `starts` lists the ways it may begin, if not any."""

    wanted: str = "text in quotation marks"
    starts: tuple[str, ...] = ()

    def check(self, value: object, frame: Frame) -> str:
        if not isinstance(value, str) or "\0" in value or (self.starts and value and not value.startswith(self.starts)):
            raise Misfit(self.wanted)
        return value

    def from_text(self, text: str) -> object:
        return text


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[str, ...]

    @property
    def wanted(self) -> str:
        return "one of " + ", ".join(self.options)

    def check(self, value: object, frame: Frame) -> str:
        if not isinstance(value, str) or value not in self.options:
            raise Misfit(self.wanted)
        return value

    def from_text(self, text: str) -> object:
        return text


@dataclass(frozen=True, slots=True)
class Location:
    """A path; `~/` means the user's home, a relative one starts at the folder of the settings file."""

    wanted: str = "a path in quotation marks"

    def check(self, value: object, frame: Frame) -> Path:
        if not isinstance(value, str) or not value or "\0" in value:
            raise Misfit(self.wanted)
        return frame.resolve(value)

    def from_text(self, text: str) -> object:
        return text


def _items(value: object, wanted: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise Misfit(wanted)
    return list(cast("list[object]", value))


@dataclass(frozen=True, slots=True)
class Texts:
    wanted: str = "a list of texts"

    def check(self, value: object, frame: Frame) -> tuple[str, ...]:
        items = _items(value, self.wanted)
        for index, item in enumerate(items):
            if not isinstance(item, str) or not item or "\0" in item:
                raise Misfit("text in quotation marks, not empty", (index,))
        return tuple(cast("list[str]", items))

    def from_text(self, text: str) -> object:
        return [text]


@dataclass(frozen=True, slots=True)
class Paths:
    wanted: str = "a list of paths"

    def check(self, value: object, frame: Frame) -> tuple[Path, ...]:
        items = _items(value, self.wanted)
        for index, item in enumerate(items):
            if not isinstance(item, str) or not item or "\0" in item:
                raise Misfit("a path in quotation marks", (index,))
        return tuple(frame.resolve(item) for item in cast("list[str]", items))

    def from_text(self, text: str) -> object:
        return [text]


@dataclass(frozen=True, slots=True)
class Counts:
    """A table from names of the user's choice to whole numbers over 0."""

    wanted: str = "a table of whole numbers over 0"

    def check(self, value: object, frame: Frame) -> Mapping[str, int]:
        if not isinstance(value, Mapping):
            raise Misfit(self.wanted)
        table = cast("Mapping[str, object]", value)
        for name, number in table.items():
            if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
                raise Misfit("a whole number over 0", (name,))
        return MappingProxyType(dict(cast("Mapping[str, int]", table)))

    def from_text(self, text: str) -> object:
        return text


@dataclass(frozen=True, slots=True)
class Tables:
    """A list of tables, each becoming one `element` (a dataclass of settings itself)."""

    element: type
    wanted: str = "a list of tables"

    def check(self, value: object, frame: Frame) -> tuple[object, ...]:
        return tuple(self._one(index, item, frame) for index, item in enumerate(_items(value, self.wanted)))

    def _one(self, index: int, item: object, frame: Frame) -> object:
        if isinstance(item, self.element):
            return item
        if not isinstance(item, Mapping):
            raise Misfit("a table", (index,))
        known = settings_of(self.element)
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

    def from_text(self, text: str) -> object:
        return text


@cache
def settings_of(section: type) -> Mapping[str, Setting]:
    """The settings of one section, by key, in the order they are written."""
    return MappingProxyType({entry.name: entry.metadata["setting"] for entry in fields(section)})


def make(
    kind: Kind,
    default: object,
    help: str,
    *,
    unit: str = "",
    env: str | None = None,
    env_only: bool = False,
    project: Project = Project.MAY,
    secret: bool = False,
    required: bool = False,
) -> Any:
    """One field of a section. Typed `Any` so that the annotation beside it says what a reader gets."""
    setting = Setting(kind, help, unit, env, env_only, project, secret)
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
    default: float | None, unit: str, help: str, *, minimum: float = 0, maximum: float = math.inf, **more: Any
) -> Any:
    """A number over `minimum`, at most `maximum`."""
    return make(Numeric(whole=False, minimum=minimum, maximum=maximum, above=True), default, help, unit=unit, **more)


def text(default: str, help: str, **more: Any) -> Any:
    return make(Text(), default, help, **more)


def url(default: str, help: str, **more: Any) -> Any:
    kind = Text("an address that begins with http:// or https://", ("http://", "https://"))
    return make(kind, default, help, **more)


def secret(env: str, help: str) -> Any:
    """A credential: hidden wherever settings are shown, never taken from a project's committed file."""
    return make(Text(), "", help, env=env, secret=True, project=Project.NEVER)


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
