"""What is known about each model: window, output limit, prices, cache rules. Read from `catalogue.toml`.

A user's own file adds or corrects any entry, key by key. A model without an entry gets a generic one (`known=False`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from reverie.errors import SettingsError
from reverie.parsing import load_toml
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.settings.fields import Kind
from reverie.settings.kinds import NOWHERE, Choice, Misfit, Numeric, Switch, Text, Texts

Provider = Literal["anthropic", "openai", "embedded", "scripted", "unknown"]
Window1M = Literal["none", "beta", "native"]
Overflow = Literal["error", "stop"]

ONE_MILLION = 1_000_000
"""The window a `[1m]` suffix asks for, in tokens."""

_CHOICES = {"provider": get_args(Provider), "window_1m": get_args(Window1M), "overflow": get_args(Overflow)}
_SECTIONS = ("default", "provider", "models")
_REMEMBERED = 1_000
_Entries = dict[str, dict[str, Any]]
_COMPUTED = ("name", "known", "asked_1m", "served")
_DATE = re.compile(r"-(?:20\d{6}|20\d\d-\d\d-\d\d|latest)$")
_SUFFIX_1M = re.compile(r"\[1m\]$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One catalogue entry. Prices are US dollars per million tokens; cache prices are multiples of the input price."""

    name: str
    provider: Provider
    window: int
    max_output: int
    input_price: float
    output_price: float
    cache_read: float
    cache_write_5m: float
    cache_write_1h: float
    cache_minimum: int
    """Prefixes with fewer tokens are not cached."""
    known: bool = True
    """False: the model has no entry, and the figures are generic."""
    asked_1m: bool = False
    """The name has a `[1m]` suffix."""
    served: bool = False
    """The window is what the server says."""
    cheapest: str | None = None
    """The cheapest model of the same family, for small background jobs."""
    cache_markers: bool = False
    """Understands `cache_control` markers."""
    automatic_cache: bool = False
    """Caches prefixes without markers, in steps of 128 tokens."""
    ttls: tuple[str, ...] = ()
    context_management: bool = False
    compaction: bool = False
    """Understands the `compact_20260112` edit."""
    keeps_thinking: bool = False
    """Thinking of earlier turns stays in the prompt; older models drop it at a new user turn."""
    window_1m: Window1M = "none"
    """Whether there is a window of a million tokens: always, with a beta header, or not."""
    overflow: Overflow = "stop"
    """Prompt plus `max_tokens` above the window: refused (`error`), or accepted and cut there (`stop`)."""
    long_prompt_over: int | None = None
    """Prompts larger than this are billed at the `long_` prices."""
    long_input_price: float | None = None
    long_output_price: float | None = None
    aliases: tuple[str, ...] = ()
    checked: str | None = None
    """The day on which two independent sources gave these prices."""
    disputed: tuple[str, ...] = ()
    """Fields about which public sources disagree, as `field: what they say`."""
    assumed: tuple[str, ...] = ()
    """Figures that no source gave."""

    @property
    def priced(self) -> bool:
        """Whether this model has a price."""
        return self.input_price > 0 or self.output_price > 0


class Catalogue:
    """All entries. Build it with `Catalogue.load()`; look up a model with `facts(name)`."""

    def __init__(self, tables: _Tables) -> None:
        self._tables = tables
        self._names = {name: name for name in tables.models}
        for name, entry in tables.models.items():
            for alias in cast("list[str]", entry.get("aliases", [])):
                self._names.setdefault(alias, name)
        self._known: dict[tuple[str, Provider | None], ModelFacts] = {}

    @classmethod
    def load(cls, extra: Sequence[Path] = ()) -> Catalogue:
        """The catalogue of this package, changed by each of the user's files in turn.

        A file that cannot be read, an unknown key or a bad value is a `SettingsError` that names the file and the key.
        """
        built_in = _load_built_in()
        tables = built_in._tables
        for path in extra:
            tables = tables.with_changes(_read(path))
        return cls(tables) if extra else built_in

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all entries, in the order of the files."""
        return tuple(self._tables.models)

    def facts(self, model: str, provider: Provider | None = None) -> ModelFacts:
        """What is known about `model`; a generic entry with `known=False` if it is not in the catalogue.

        The name may have a date (`claude-opus-4-5-20251101`), `-latest`, a vendor (`anthropic/…`) and a `[1m]` suffix.
        `provider` counts for a model without an entry; None: the name tells.
        """
        key = (model, provider)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _REMEMBERED:  # names come from clients of the simulator too
                self._known.clear()
            found = self._known[key] = self._look_up(model, provider)
        return found

    def facts_of_answer(self, model: str, asked: ModelFacts) -> ModelFacts:
        """What is known about the model that answered; the one that was asked if the catalogue has no entry for it."""
        found = self.facts(model) if model else asked
        return found if found.known else asked

    def _look_up(self, model: str, provider: Provider | None) -> ModelFacts:
        bare = _SUFFIX_1M.sub("", model.strip())
        facts = self._entry(bare, provider)
        return facts if bare == model.strip() else replace(facts, asked_1m=True, window=ONE_MILLION)

    def _entry(self, bare: str, provider: Provider | None) -> ModelFacts:
        last = bare.rsplit("/", 1)[-1]
        for candidate in (bare, _DATE.sub("", bare), last, _DATE.sub("", last)):
            name = self._names.get(candidate)
            if name is not None:
                return _facts(name, self._tables.merge(name), known=True)
        table = {**self._tables.default, "provider": provider or _guess_provider(last)}
        table |= self._tables.provider.get(cast("str", table["provider"]), {})
        return _facts(bare, table, known=False)


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables of a file: each key is checked, nothing is merged yet."""

    default: dict[str, Any]
    provider: _Entries
    models: _Entries

    def with_changes(self, top: _Tables) -> _Tables:
        """These tables, with the keys of `top` in place of their own."""

        def merge(low: _Entries, high: _Entries) -> _Entries:
            return {name: low.get(name, {}) | high.get(name, {}) for name in (*low, *high)}

        return _Tables(self.default | top.default, merge(self.provider, top.provider), merge(self.models, top.models))

    def merge(self, name: str) -> dict[str, Any]:
        entry = self.models[name]
        provider = entry.get("provider") or _guess_provider(name)
        return {**self.default, **self.provider.get(provider, {}), **entry, "provider": provider}


def _facts(name: str, table: Mapping[str, Any], *, known: bool) -> ModelFacts:
    values: dict[str, Any] = dict(table)
    for key, value in table.items():
        if isinstance(value, list):
            values[key] = tuple(cast("list[str]", value))
    return ModelFacts(name=name, known=known, **values)


def _guess_provider(name: str) -> Provider:
    if name.startswith("claude"):
        return "anthropic"
    if re.match(r"(?:gpt-|chatgpt-|o[134](?:-|$))", name):
        return "openai"
    return "unknown"


@cache
def _load_built_in() -> Catalogue:
    return Catalogue(_read(Path(__file__).with_name("catalogue.toml")))


def _read(path: Path) -> _Tables:
    try:
        data: dict[str, Any] = load_toml(read_regular_text(path))
    except OSError as error:
        raise SettingsError(f"{path}: the model catalogue cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise SettingsError(f"{path}: the model catalogue cannot be used: {error}.") from error
    for section in data:
        if section not in _SECTIONS:
            raise _unknown(path, section, _SECTIONS)
    return _Tables(
        _check_entry(path, "default", data.get("default", {})),
        _check_entries(path, "provider", data.get("provider", {})),
        _check_entries(path, "models", data.get("models", {})),
    )


def _check_entries(path: Path, section: str, value: object) -> _Entries:
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: `{section}` must be a table of entries.")
    entries = cast("dict[str, object]", value)
    return {name: _check_entry(path, f'{section}."{name}"', entry) for name, entry in entries.items()}


def _check_entry(path: Path, where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: `{where}` must be a table of facts.")
    entry = cast("dict[str, Any]", value)
    kinds = _kinds()
    for key, given in entry.items():
        if key not in kinds:
            raise _unknown(path, key, tuple(kinds), where)
        try:
            kinds[key].check(given, NOWHERE)
        except Misfit as misfit:
            raise SettingsError(f"{path}: `{where}.{key}` is {given!r}, but must be {misfit.wanted}.") from misfit
    return entry


@cache
def _kinds() -> dict[str, Kind]:
    return {
        field.name: _kind(field.name, str(field.type)) for field in fields(ModelFacts) if field.name not in _COMPUTED
    }


def _kind(key: str, wanted: str) -> Kind:
    if key in _CHOICES:
        return Choice(_CHOICES[key])
    if wanted.startswith("int"):
        return Numeric(whole=True, minimum=0 if key == "cache_minimum" else 1)
    if wanted.startswith("float"):
        return Numeric(whole=False)
    return Switch() if wanted == "bool" else Texts() if wanted.startswith("tuple") else Text()


def _unknown(path: Path, key: str, valid: tuple[str, ...], where: str = "") -> SettingsError:
    near = difflib.get_close_matches(key, valid, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(valid)}."
    place = f" in `{where}`" if where else ""
    return SettingsError(f"{path}: unknown key `{key}`{place}; {hint}")
