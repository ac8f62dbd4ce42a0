"""The kinds of values that settings have: how each is checked, and what an error says is wanted.

`check` takes a value from TOML; `from_text` converts text from a variable or the command line to such a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

from reverie.quick import dataclass
from reverie.settings.toml_file import KeyPath

LARGEST = 1e15
"""The largest number a setting may have; up to here whole numbers are exact as a float too."""

_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")


@dataclass(frozen=True, slots=True)
class Frame:
    """The folders that a relative path and `~/` start from, in the place where a value was written."""

    base: Path
    user_home: Path

    def resolve(self, text: str) -> Path:
        if text == "~" or text.startswith("~/"):
            return self.user_home / text[2:]
        return self.base / text


NOWHERE = Frame(Path("/"), Path("/"))
"""For values that are not paths."""


@dataclass(eq=False)
class Misfit(Exception):
    """A value that does not fit. `at` is the path from the setting to the wrong part."""

    wanted: str
    at: KeyPath = ()
    unknown: str | None = None
    valid: tuple[str, ...] = ()


class AsWritten:
    """A kind that uses the text of a variable or the command line unchanged."""

    def from_text(self, text: str) -> object:
        return text


def _check_text(value: object, wanted: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise Misfit(wanted)
    return value


class Switch:
    wanted = "true or false"

    def check(self, value: object, frame: Frame) -> bool:
        if not isinstance(value, bool):
            raise Misfit(self.wanted)
        return value

    def from_text(self, text: str) -> object:
        word = text.strip().lower()
        return True if word in _ON else False if word in _OFF else text


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number. `above`: it must be larger than the minimum."""

    whole: bool
    minimum: float = 0
    maximum: float = LARGEST
    above: bool = False

    @property
    def wanted(self) -> str:
        what = "a whole number" if self.whole else "a number"
        low = f"over {self.minimum:g}" if self.above else f"of {self.minimum:g} or more"
        return f"{what} {low}" + (f", at most {self.maximum:g}" if self.maximum < LARGEST else "")

    def check(self, value: object, frame: Frame) -> int | float:
        fits = isinstance(value, int) if self.whole else isinstance(value, int | float)
        if isinstance(value, bool) or not fits:
            raise Misfit(self.wanted)
        given = cast("int | float", value)
        low_enough = given > self.minimum if self.above else given >= self.minimum
        if not (low_enough and given <= self.maximum):
            raise Misfit(self.wanted)
        return given if self.whole else float(given)

    def from_text(self, text: str) -> object:
        try:
            return int(text) if self.whole else float(text)
        except ValueError:
            return text


@dataclass(frozen=True, slots=True)
class Text(AsWritten):
    """A string. `starts`: it must begin with one of these; `filled`: it must not be blank."""

    wanted: str = "text in quotation marks"
    starts: tuple[str, ...] = ()
    filled: bool = False

    def check(self, value: object, frame: Frame) -> str:
        text = _check_text(value, self.wanted)
        if (self.filled and not text.strip()) or (self.starts and text and not text.startswith(self.starts)):
            raise Misfit(self.wanted)
        return text


class Pattern(AsWritten):
    wanted = "a regular expression, or * for all"

    def check(self, value: object, frame: Frame) -> str:
        text = _check_text(value, self.wanted)
        try:
            re.compile("" if text == "*" else text)
        except re.error as error:
            raise Misfit(f"{self.wanted} ({error})") from error
        return text


@dataclass(frozen=True, slots=True)
class Choice(AsWritten):
    options: tuple[str, ...]

    @property
    def wanted(self) -> str:
        return "one of " + ", ".join(option or '""' for option in self.options)

    def check(self, value: object, frame: Frame) -> str:
        if not isinstance(value, str) or value not in self.options:
            raise Misfit(self.wanted)
        return value


class Location(AsWritten):
    """A path. `~/` means the user's home; a relative path starts at the folder of the settings file."""

    wanted = "a path in quotation marks"

    def check(self, value: object, frame: Frame) -> Path:
        if not isinstance(value, str) or not value or "\0" in value:
            raise Misfit(self.wanted)
        return frame.resolve(value)


def check_list(value: object, wanted: str) -> list[object]:
    if not isinstance(value, list | tuple):
        raise Misfit(wanted)
    return list(cast("list[object]", value))


class Texts:
    wanted = "a list of texts"
    of_each = "text in quotation marks, not empty"

    def check(self, value: object, frame: Frame) -> tuple[object, ...]:
        items = check_list(value, self.wanted)
        for index, item in enumerate(items):
            if not isinstance(item, str) or not item or "\0" in item:
                raise Misfit(self.of_each, (index,))
        return tuple(items)

    def from_text(self, text: str) -> object:
        return [text]


class Paths(Texts):
    wanted = "a list of paths"
    of_each = "a path in quotation marks"

    def check(self, value: object, frame: Frame) -> tuple[object, ...]:
        return tuple(frame.resolve(cast("str", item)) for item in super().check(value, frame))


class Counts(AsWritten):
    """A table of whole numbers over 0; the user chooses the names."""

    wanted = "a table of whole numbers over 0"

    def check(self, value: object, frame: Frame) -> Mapping[str, int]:
        if not isinstance(value, Mapping):
            raise Misfit(self.wanted)
        table = cast("Mapping[str, object]", value)
        for name, number in table.items():
            if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
                raise Misfit("a whole number over 0", (name,))
        return MappingProxyType(dict(cast("Mapping[str, int]", table)))
