"""Kill switches, through OpenFeature: `Flags.on(name)` and `Flags.number(name, default)`.

Any OpenFeature provider works; without one, flags come from TOML files, which are read again when they change.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar, cast

from reverie.errors import SettingsError
from reverie.flags.registry import FLAGS, Flag, number_kind, switches_of
from reverie.quick import dataclass
from reverie.settings.kinds import NOWHERE, Misfit

if TYPE_CHECKING:
    from pathlib import Path

    from openfeature.flag_evaluation import FlagEvaluationDetails
    from openfeature.provider import FeatureProvider

    from reverie.paths import Places
    from reverie.settings import Settings

__all__ = ["FLAGS", "Flag", "Flags", "PrefixFlags"]

N = TypeVar("N", int, float)
V = TypeVar("V", bool, float)
_domains = count(1)
_unused = deque[str]()
"""The domains of closed flags, for the next ones: OpenFeature never forgets a domain."""

START_S = 2.0  # the longest wait in seconds for a provider to become ready


@dataclass(frozen=True, slots=True)
class PrefixFlags:
    """The flags that shape the prefix, with their values when the session's header was written."""

    values: Mapping[str, bool]

    def on(self, name: str) -> bool:
        """Whether a prefix flag is on; any other name is a programming error."""
        _find_flag(name, prefix=True)
        # A flag that did not exist when the header was written did not shape that prefix.
        return self.values.get(name, False)

    def to_json(self) -> dict[str, bool]:
        """The form for the session header; `from_json` reads it on resume."""
        return dict(self.values)

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> PrefixFlags:
        return cls(MappingProxyType({name: value for name, value in data.items() if isinstance(value, bool)}))


class Flags:
    """The current flags. Give a `provider`, or use the files with `Flags.open(places, settings)`."""

    def __init__(self, provider: FeatureProvider) -> None:
        from openfeature import api

        from reverie.flags.file_provider import FileProvider

        _keep_quiet()
        # A separate domain: two sessions in one process may have different homes.
        self._domain = _next_domain()
        self._provider = provider
        self._warnings: list[str] = []
        self._told = set[str]()
        self._files = provider if isinstance(provider, FileProvider) else None
        self._state: tuple[object, ...] | None = None
        self._answers: dict[str, float] = {}
        api.set_provider(provider, self._domain)
        self._client = api.get_client(self._domain)
        self._wait_until_ready()

    @classmethod
    def open(cls, places: Places, settings: Settings, *, managed_dir: Path | None = None) -> Flags:
        """Opens the provider in `flags.provider`, else the flags files. A broken file is a `SettingsError`."""
        if settings.flags.provider:
            return cls(_named_provider(settings.flags.provider))
        from reverie.flags.file_provider import FileProvider
        from reverie.settings.loading import MANAGED

        return cls(FileProvider(places.flags_file, (managed_dir or MANAGED) / "flags.toml", settings.flag_env))

    def on(self, name: str) -> bool:
        """Whether a flag is on right now, and those above it. Ask at each use. Prefix flags are in `snapshot()`."""
        _find_flag(name, prefix=False)
        known = self._cached_answers()
        for one in switches_of(name):
            if one not in known:
                known[one] = self._checked(self._client.get_boolean_details(one, FLAGS[one].default))
            if not known[one]:
                return False
        return True

    def _read(self, name: str) -> bool:
        return all(self._client.get_boolean_value(one, FLAGS[one].default) for one in switches_of(name))

    def number(self, name: str, default: N) -> N:
        """Returns the number of a flag, else `default`. A number that is not valid is ignored with a warning."""
        kind = number_kind(name)
        if kind is None:
            raise KeyError(f"{name} is not a setting that a flag may change; mark it `live` in the schema")
        known = self._cached_answers()
        if name not in known:
            known[name] = self._checked(self._client.get_float_details(name, float("nan")))
        given = known[name]
        if given != given or given == default:  # not set, or the same
            return default
        try:
            return cast("N", kind.check(int(given) if kind.whole and given.is_integer() else given, NOWHERE))
        except Misfit as misfit:
            self._warn(f"flag `{name}` is {given:g}, but must be {misfit.wanted}; {default} is used.")
            return default

    def _checked(self, answer: FlagEvaluationDetails[V]) -> V:
        """Returns the value. A provider that gives another kind of value is reported, and the default is used."""
        if answer.error_code in ("TYPE_MISMATCH", "PARSE_ERROR"):
            what = f": {answer.error_message}" if answer.error_message else ""
            self._warn(f"flag `{answer.flag_key}`: its value has the wrong type{what}; the default is used.")
        return answer.value

    def _cached_answers(self) -> dict[str, float]:
        """Returns the answers since the flags files last changed. Other providers are asked at each use."""
        state = self._files.state() if self._files is not None else None
        if state is None or state != self._state:
            self._answers = {}
        self._state = state
        return self._answers

    def snapshot(self) -> PrefixFlags:
        """Returns the flags that shape the prefix, for the session header and the rest of the session."""
        return PrefixFlags(
            MappingProxyType({flag.name: self._read(flag.name) for flag in FLAGS.values() if flag.prefix})
        )

    def all(self) -> dict[str, tuple[bool, str]]:
        """Returns every flag, prefix flags too: its value now and the source of what is set for it. One that is off
        because of a flag above it has the source of that one."""
        return {name: (self._read(name), self._source(self._decisive(name))) for name in FLAGS}

    def _decisive(self, name: str) -> str:
        """The flag that decides: the first one that is off, or itself."""
        off = (one for one in switches_of(name) if not self._client.get_boolean_value(one, FLAGS[one].default))
        return next(off, name)

    def numbers(self) -> dict[str, tuple[float, str]]:
        """Returns the numbers in flags files or variables, and their source; other providers cannot list them."""
        numbers = self._files.numbers() if self._files is not None else {}
        return {name: (value, self._source(name)) for name, value in numbers.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about ignored values, each to show once."""
        return (*(self._files.warnings if self._files is not None else ()), *self._warnings)

    def new_warnings(self) -> tuple[str, ...]:
        """Returns the sentences since the last call."""
        found = tuple(text for text in self.warnings if text not in self._told)
        self._told |= set(found)
        return found

    def close(self) -> None:
        """Returns the provider to OpenFeature, which shuts it down. Who asks later gets the defaults."""
        from openfeature import api

        domain, self._domain = self._domain, ""
        if domain:
            self._client = api.get_client()
            api.set_provider(self._client.provider, domain)
            _unused.append(domain)

    def _wait_until_ready(self) -> None:
        """Waits a moment for the provider. If it is down, the defaults count, and there is a warning."""
        from openfeature.provider import ProviderStatus

        until = time.monotonic() + START_S
        while self._client.get_provider_status() is ProviderStatus.NOT_READY and time.monotonic() < until:
            time.sleep(0.002)
        if self._client.get_provider_status() is not ProviderStatus.READY:
            self._warn(
                f"The flag provider {self._provider.get_metadata().name!r} is not ready; "
                "where it does not answer, the defaults are used."
            )

    def _source(self, name: str) -> str:
        return self._files.source(name) if self._files is not None else self._provider.get_metadata().name

    def _warn(self, sentence: str) -> None:
        if sentence not in self._warnings:
            self._warnings.append(sentence)


def _next_domain() -> str:
    with suppress(IndexError):
        return _unused.popleft()
    return f"reverie-{next(_domains)}"


def _find_flag(name: str, *, prefix: bool) -> Flag:
    flag = FLAGS.get(name)
    if flag is None:
        raise KeyError(f"there is no flag {name!r}; flags are listed in flags/registry.py")
    if flag.prefix is not prefix:
        ask = "the session's snapshot" if flag.prefix else "Flags.on"
        raise KeyError(f"{name} {'shapes' if flag.prefix else 'does not shape'} the prefix: ask {ask}")
    return flag


@cache
def _keep_quiet() -> None:
    """Adds a log handler. Without one, a failing provider would print a traceback at each use."""
    import logging

    logging.getLogger("openfeature").addHandler(logging.NullHandler())


def _named_provider(name: str) -> FeatureProvider:
    from importlib import import_module

    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
        is_provider = hasattr(found, "resolve_boolean_details") and not isinstance(found, type)
        made = found if is_provider or not callable(found) else found()
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise SettingsError(f"flags.provider: {name!r} cannot be loaded: {error}.") from error
    if not hasattr(made, "resolve_boolean_details"):
        raise SettingsError(f"flags.provider: {name!r} is not an OpenFeature provider.")
    return cast("FeatureProvider", made)
