"""The description of one setting: its kind, default, unit and variable. `reach.py` says who may set it.

A section is a frozen dataclass whose fields are made by the functions below. Reading, checking, the reference page and
`reverie settings` all use these descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TypeAlias, cast, dataclass_transform

from reverie.quick import dataclass
from reverie.settings import kinds


@dataclass(frozen=True, slots=True)
class Setting:
    """Everything about one setting."""

    kind: Kind
    help: str
    unit: str = ""
    env: str | None = None
    env_only: bool = False
    secret: bool = False
    live: bool = False
    """A flag of the same name changes it while a session runs."""
    default_text: str = ""
    """The text of the reference page, if the default depends on the machine."""

    @property
    def adds_up(self) -> bool:
        """Whether the lists of several places are joined."""
        return isinstance(self.kind, kinds.Texts | kinds.Paths | Tables)


@dataclass(frozen=True, slots=True)
class Tables(kinds.AsWritten):
    """A list of tables; each becomes one `element`, which is a section too."""

    element: type
    wanted: str = "a list of tables"

    def check(self, value: object, frame: kinds.Frame) -> tuple[object, ...]:
        return tuple(self._one(index, item, frame) for index, item in enumerate(kinds.check_list(value, self.wanted)))

    def _one(self, index: int, item: object, frame: kinds.Frame) -> object:
        if isinstance(item, self.element):
            return item
        if not isinstance(item, Mapping):
            raise kinds.Misfit("a table", (index,))
        known = list_section_settings(self.element)
        values: dict[str, object] = {}
        for key, given in cast("Mapping[str, object]", item).items():
            if key not in known:
                raise kinds.Misfit("", (index, key), unknown=key, valid=tuple(known))
            try:
                values[key] = known[key].kind.check(given, frame)
            except kinds.Misfit as misfit:
                raise kinds.Misfit(misfit.wanted, (index, key, *misfit.at)) from misfit
        for entry in fields(self.element):
            if entry.metadata["required"] and entry.name not in values:
                raise kinds.Misfit(f"a table with `{entry.name}`", (index,))
        return self.element(**values)


Kind: TypeAlias = (
    kinds.Switch
    | kinds.Numeric
    | kinds.Text
    | kinds.Pattern
    | kinds.Choice
    | kinds.Location
    | kinds.Texts
    | kinds.Paths
    | kinds.Counts
    | Tables
)
"""`check` takes a value from TOML, `from_text` converts the text of a variable to such a value."""


@dataclass_transform(frozen_default=True)
class Section:
    """A frozen dataclass whose fields are settings."""

    def __init_subclass__(cls, *, live: bool = False) -> None:
        """`live`: a flag may change every number of the section while a session runs."""
        dataclass(frozen=True)(cls)
        cls.all_live = live


@cache
def list_section_settings(section: type) -> Mapping[str, Setting]:
    """Returns the settings of one section by key, in the order of the source."""
    found: dict[str, Setting] = {entry.name: entry.metadata["setting"] for entry in fields(section)}
    if getattr(section, "all_live", False):
        found |= {key: replace(one, live=True) for key, one in found.items() if isinstance(one.kind, kinds.Numeric)}
    return MappingProxyType(found)


def make(kind: Kind, default: object, help: str, *, required: bool = False, **more: Any) -> Any:
    """Makes one field of a section; `more` are fields of `Setting`.

    It returns `Any`, so that the annotation of the field gives its type.
    """
    setting = Setting(kind, help, **more)
    metadata = {"setting": setting, "required": required}
    if callable(default):
        factory = cast("Callable[[], object]", default)
        return field(default_factory=factory, metadata=metadata, repr=not setting.secret)
    return field(default=default, metadata=metadata, repr=not setting.secret)


def whole(default: int | None, unit: str, help: str, *, minimum: int = 1, **more: Any) -> Any:
    return make(kinds.Numeric(whole=True, minimum=minimum), default, help, unit=unit, **more)


def number(
    default: float | None, unit: str, help: str, *, minimum: float = 0, maximum: float = kinds.LARGEST, **more: Any
) -> Any:
    """A number over `minimum`, at most `maximum`."""
    kind = kinds.Numeric(whole=False, minimum=minimum, maximum=maximum, above=True)
    return make(kind, default, help, unit=unit, **more)


def secret(env: str, help: str) -> Any:
    """A credential: hidden wherever settings are shown."""
    return make(kinds.Text(), "", help, env=env, secret=True)


def choice(default: str, options: tuple[str, ...], help: str, **more: Any) -> Any:
    return make(kinds.Choice(options), default, help, **more)


def counts(default: Mapping[str, int], unit: str, help: str, **more: Any) -> Any:
    return make(kinds.Counts(), lambda: MappingProxyType(dict(default)), help, unit=unit, **more)


def tables(element: type, help: str, **more: Any) -> Any:
    return make(Tables(element), (), help, **more)


# These take a default, a help text and the options of `make`.
switch = partial(make, kinds.Switch())
text = partial(make, kinds.Text())
pattern = partial(make, kinds.Pattern())
location = partial(make, kinds.Location())
url = partial(make, kinds.Text("an address that begins with http:// or https://", ("http://", "https://")))
# These take a help text and the options of `make`.
texts = partial(make, kinds.Texts(), ())
paths = partial(make, kinds.Paths(), ())
filled = partial(make, kinds.Text("text that is not empty", filled=True), "", required=True)
