"""Parses a program's arguments as GNU getopt does, with a closed list of options.

Long options must be written in full (getopt accepts any unique beginning), and the value of every option is checked by
its kind. Does not check operands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Literal, assert_never

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.shell.paths import check_contents, check_glob
from reverie.permissions.shell.words import Word
from reverie.quick import dataclass

Kind = Literal["bytes", "lines", "small", "format", "pattern", "regex", "file", "choice", "device_action"]

_LIMITS = {"bytes": 100_000_000, "lines": 10_000_000, "small": 100_000}
_MAX_REPEAT = 1_000
_MAX_NESTED_REPEAT = 10_000
_KIB, _MIB = 1 << 10, 1 << 20
_UNITS = {"": 1, "b": 512, "k": _KIB, "K": _KIB, "KiB": _KIB, "kB": 1_000, "M": _MIB, "MiB": _MIB, "MB": 1_000_000}
_INFORM = frozenset({"--help", "--version"})
_COUNT = re.compile(r"[+-]?([0-9]{1,12})([A-Za-z]{0,3})")
_CHOICE = re.compile(r"[A-Za-z0-9_',:+%./-]{0,64}")
_REPEAT = re.compile(r"(.?)\\?\{(\d*)(?:,(\d*))?\\?\}", re.DOTALL)


def _none() -> Mapping[str, Kind]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Options:
    """Every option of a program that may be used; other options are refused."""

    flags: str
    valued: Mapping[str, Kind] = field(default_factory=_none)
    long_flags: frozenset[str] = frozenset()
    long_valued: Mapping[str, Kind] = field(default_factory=_none)
    long_optional: Mapping[str, Kind] = field(default_factory=_none)
    number: Kind | None = None  # the kind of N in an option written -N


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments as getopt gives them to the program."""

    operands: tuple[Word, ...]
    options: frozenset[str]
    values: tuple[tuple[str, Word], ...]

    @property
    def only_informs(self) -> bool:
        """Whether it only prints help or its version."""
        return not self.options.isdisjoint(_INFORM)


def read_arguments(program: str, words: tuple[Word, ...], known: Options) -> Arguments:
    """Sorts words into options, values and operands; raises `NotReadOnly` unless all of them are known as harmless."""
    operands: list[Word] = []
    options: set[str] = set()
    values: list[tuple[str, Word]] = []
    queue = list(reversed(words))

    def value_of(option: str, kind: Kind, inline: Word | None) -> None:
        if inline is None and not queue:
            raise NotReadOnly(f"{program} {option} has no value")
        word = inline if inline is not None else queue.pop()
        if word.globs and not (kind == "pattern" and inline is not None):
            raise NotReadOnly(f"the value of {program} {option} is a glob (quote it)")
        _check_value(program, option, kind, word)
        options.add(option)
        values.append((option, word))

    while queue:
        word = queue.pop()
        text = word.text
        if text == "--":
            for rest in reversed(queue):
                check_glob(rest)
                operands.append(rest)
            break
        if text.startswith("--"):
            name, equals, _ = text.partition("=")
            inline = _tail(word, len(name) + 1) if equals else None
            if any(index <= len(name) for index in word.globs):
                raise NotReadOnly(f"{clip(word.raw)} is a glob in option position")
            if name in known.long_valued:
                value_of(name, known.long_valued[name], inline)
            elif name in known.long_optional and inline is not None:
                value_of(name, known.long_optional[name], inline)
            elif not equals and (name in known.long_flags or name in known.long_optional or name in _INFORM):
                options.add(name)
            else:
                raise NotReadOnly(f"{program} {clip(text)} is not an option known to be harmless")
        elif text.startswith("-") and text != "-":
            if word.globs:
                raise NotReadOnly(f"{clip(word.raw)} is a glob in option position")
            if known.number and text[1:].isascii() and text[1:].isdigit():
                _check_value(program, "-N", known.number, _tail(word, 1))
                continue
            for index, letter in enumerate(text[1:], start=1):
                option = f"-{letter}"
                if letter in known.valued:
                    value_of(option, known.valued[letter], _tail(word, index + 1) if text[index + 1 :] else None)
                    break
                if letter not in known.flags:
                    raise NotReadOnly(f"{program} {option} is not an option known to be harmless")
                options.add(option)
        else:
            check_glob(word)
            operands.append(word)
    return Arguments(tuple(operands), frozenset(options), tuple(values))


def _tail(word: Word, start: int) -> Word:
    return Word(word.raw, word.text[start:], frozenset(index - start for index in word.globs))


def _check_value(program: str, option: str, kind: Kind, word: Word) -> None:
    text = word.text
    match kind:
        case "bytes" | "lines" | "small":
            _check_count(program, option, text, _LIMITS[kind])
        case "format":
            check_format(f"{program} {option}", text)
        case "pattern":
            pass
        case "regex":
            check_regex(text)
        case "file":
            check_contents(word)
        case "choice":
            if not _CHOICE.fullmatch(text) or re.search(r"\d{10}", text):
                raise NotReadOnly(f"the value of {program} {option} is not plain")
        case "device_action":
            if text != "skip":
                raise NotReadOnly(f"{program} {option} {clip(text)} may read devices")
        case _:
            assert_never(kind)


def _check_count(program: str, option: str, text: str, limit: int) -> None:
    count = _COUNT.fullmatch(text)
    unit = _UNITS.get(count[2]) if count else None
    if count is None or unit is None or int(count[1]) * unit > limit:
        raise NotReadOnly(f"the size {clip(text)} of {program} {option} is not a number up to {limit:,}")


def check_format(what: str, text: str) -> None:
    """Refuses a printf-like format with a field width that would print megabytes of padding."""
    if re.search(r"%[^A-Za-z%]*[0-9]{4}", text):
        raise NotReadOnly(f"the format of {what} has a very large width")


def check_regex(pattern: str) -> None:
    """Refuses repetition counts that make a regular expression use too much memory."""
    plain, nested = 0, 1
    for before, low, high in _REPEAT.findall(pattern):
        bound = max((int(number[:9]) for number in (low, high) if number), default=1)
        if bound > _MAX_REPEAT:
            raise NotReadOnly("its pattern has a very large number of repetitions")
        if before in (")", "}"):
            nested *= max(bound, 1)
        else:
            plain += bound
    if nested * max(plain, 1) > _MAX_NESTED_REPEAT:
        raise NotReadOnly("its pattern has a very large number of nested repetitions")
