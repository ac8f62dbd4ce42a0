"""The default OpenFeature provider: flags from TOML files, read again when one of them changes.

Variables of this process win over the home's file, and the managed file wins over both, so that an administrator can
stop a fleet. If a file breaks, becomes empty or disappears during a session, the flags stay as they were: saving a file
must not switch anything on for a moment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from openfeature.evaluation_context import EvaluationContext
from openfeature.flag_evaluation import FlagResolutionDetails, Reason
from openfeature.provider import AbstractProvider, Metadata

from reverie.errors import SettingsError
from reverie.flags.registry import (
    ENV_PREFIX,
    FLAGS,
    all_names,
    env_name,
    flatten,
    name_of_variable,
    number_kind,
    variables,
)
from reverie.settings.kinds import NOWHERE, Misfit, Switch
from reverie.settings.loading import find_nearest
from reverie.settings.toml_file import TomlFile, format_key

if TYPE_CHECKING:
    from openfeature.flag_evaluation import FlagValueType

T = TypeVar("T")
_Values = dict[str, bool | int | float]
_Signature = tuple[int, int, int]
_State: TypeAlias = _Signature | Literal["absent"] | None

GRACE_S = 1.0  # how many seconds an empty or missing file must stay that way before it counts
_RACY_NS = 50_000_000
"""A file this young may change again without a new time: it is read again at the next use."""


class FileProvider(AbstractProvider):
    """Flags from `home_file`, `env` (the `REVERIE_FLAG_*` variables) and `managed_file`; later ones win."""

    def __init__(self, home_file: Path, managed_file: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.warnings: list[str] = []
        self._home = _Watched(home_file)
        self._managed = _Watched(managed_file) if managed_file else None
        self._watched = (self._home, self._managed) if self._managed else (self._home,)
        self._env = self._from_env(env or {})
        # A mistake is an error now, when somebody can fix it, and a warning later, during work.
        for watched in self._watched:
            watched.refresh(self._warn, strict=True)

    def get_metadata(self) -> Metadata:
        return Metadata("reverie flags file")

    def value(self, name: str) -> bool | int | float | None:
        """Returns the current value of a flag, or None if it is not set."""
        for watched in self._watched:
            watched.refresh(self._warn, strict=False)
        if self._managed and name in self._managed.values:
            return self._managed.values[name]
        return self._env.get(env_name(name), self._home.values.get(name))

    def state(self) -> tuple[object, ...] | None:
        """Identifies the current values: equal as long as none has changed. None if that is not known."""
        states = [watched.refresh(self._warn, strict=False) for watched in self._watched]
        return None if None in states else tuple(states)

    def numbers(self) -> _Values:
        """Returns the numbers that are set."""
        files = {**self._home.values, **(self._managed.values if self._managed else {})}
        written = {env_name(name): name for name in files}  # as somebody spells it, if a file has it too
        names = dict.fromkeys([*files, *(written.get(one) or name_of_variable(one) or one for one in self._env)])
        values = {name: self.value(name) for name in names if name not in FLAGS}
        return {name: value for name, value in values.items() if value is not None}

    def source(self, name: str) -> str:
        """Returns the source of a value, for `reverie settings --flags`."""
        if self._managed and name in self._managed.values:
            return str(self._managed.path)
        if env_name(name) in self._env:
            return f"environment {env_name(name)}"
        return str(self._home.path) if name in self._home.values else "default"

    def _warn(self, sentence: str) -> None:
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def _from_env(self, env: Mapping[str, str]) -> _Values:
        """The values by their variables: these do not say how the name of a tool is written."""
        values: _Values = {}
        for variable, text in env.items():
            if not variable.startswith(ENV_PREFIX) or not text:
                continue
            if (name := name_of_variable(variable)) is None:
                near = find_nearest(variable, variables())
                hint = f"did you mean {near}?" if near else "`reverie settings --flags` lists the flags."
                self._warn(f"environment {variable}: unknown flag, ignored; {hint}")
                continue
            value, wanted = _fit(name, text)
            if value is None:
                raise SettingsError(f"environment {variable}: {text!r} is not {wanted}.")
            values[variable] = value
        return values

    # What OpenFeature asks for.

    def resolve_boolean_details(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        value = self.value(flag_key)
        return _details(value if isinstance(value, bool) else None, default_value)

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        value = self.value(flag_key)
        return _details(value if isinstance(value, int) and not isinstance(value, bool) else None, default_value)

    def resolve_float_details(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        value = self.value(flag_key)
        return _details(None if value is None or isinstance(value, bool) else float(value), default_value)

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        return _details(None, default_value)

    def resolve_object_details(
        self,
        flag_key: str,
        default_value: Sequence[FlagValueType] | Mapping[str, FlagValueType],
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[Sequence[FlagValueType] | Mapping[str, FlagValueType]]:
        return _details(None, default_value)


class _Watched:
    """One file with its last valid values; one stat shows whether it has changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = str(path)
        self.values: _Values = {}
        self._seen: _Signature | None = None
        self._absent = False
        self._doubted_since: float | None = None

    def refresh(self, warn: _Warn, *, strict: bool) -> _State:
        """Reads the file again if it has changed. Identifies the values; None while a change might not show."""
        signature = self._signature()
        if signature != self._seen or (signature is None and not self._absent):
            self._read(signature, warn, strict=strict)
        return "absent" if self._absent else self._seen

    def _read(self, signature: _Signature | None, warn: _Warn, *, strict: bool) -> None:
        if self.values and (signature is None or signature[1] == 0) and not self._is_doubt_over():
            return
        self._doubted_since = None
        try:
            file = TomlFile.read(self.path)
            values = _values_of(file, warn) if file else {}
        except SettingsError as error:
            if strict:
                raise
            warn(f"{error} The flags stay as they were.")
        else:
            # A file may change during the read, and change back within one tick of the clock: then the size differs.
            sizes = (file.size if file else 0, signature[1] if signature else 0)
            if not strict and (self._signature() != signature or sizes[0] != sizes[1]):
                return  # it may be half read: try again next time
            self.values = values
        self._absent = signature is None
        young = signature is not None and time.time_ns() - signature[0] < _RACY_NS
        self._seen = None if young else signature

    def _signature(self) -> _Signature | None:
        try:
            found = os.stat(self._name)  # noqa: PTH116 (asked at each use of a flag, for a third of the time)
        except OSError:
            return None
        return found.st_ctime_ns, found.st_size, found.st_ino  # not the mtime, which a writer can set back

    def _is_doubt_over(self) -> bool:
        now = time.monotonic()
        if self._doubted_since is None:
            self._doubted_since = now
        return now - self._doubted_since >= GRACE_S


if TYPE_CHECKING:
    from collections.abc import Callable

    _Warn = Callable[[str], None]


def _values_of(file: TomlFile, warn: _Warn) -> _Values:
    values: _Values = {}
    for name, given, keys in flatten(file.data):
        where = f"{file.path}:{file.line(keys)}"
        if name not in FLAGS and number_kind(name) is None:
            near = find_nearest(name, all_names())
            hint = f"did you mean `{near}`?" if near else "`reverie settings --flags` lists the flags."
            warn(f"{where}: unknown flag `{format_key(name)}`, ignored; {hint}")
            continue
        value, wanted = _fit(name, given)
        if value is None:
            raise SettingsError(f"{where}: `{name}` is {given!r}, but must be {wanted}.")
        values[name] = value
    return values


def _fit(name: str, given: object) -> tuple[bool | int | float | None, str]:
    """Returns the value of a flag, or None; and what it should be. Text comes from a variable."""
    kind = number_kind(name) or Switch()
    try:
        return kind.check(kind.from_text(given) if isinstance(given, str) else given, NOWHERE), kind.wanted
    except Misfit as misfit:
        return None, misfit.wanted


def _details(value: T | None, default: T) -> FlagResolutionDetails[T]:
    if value is None:
        return FlagResolutionDetails(value=default, reason=Reason.DEFAULT)
    return FlagResolutionDetails(value=value, reason=Reason.STATIC)
