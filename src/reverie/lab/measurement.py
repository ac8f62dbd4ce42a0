"""What a measurement is: a function that takes the arguments of a command and returns a `Result`.

One command and one printer serve all of them. A measurement only says what it measured: `figures` for programs, tables
and lines for people, and whether everything holds that must hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import update_wrapper
from math import floor, isfinite, log10
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import click

from reverie.cli.options import examples as with_examples
from reverie.cli.options import json_option
from reverie.cli.output import answer, show_progress
from reverie.quick import dataclass
from reverie.text.columns import table

T = TypeVar("T")
Row: TypeAlias = Mapping[str, Any]
_DIGITS = 5
"""Digits of a figure that is not a whole number."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: where its figures are in a row (`a.b` is `b` in `a`), its head, and how they are written.
    Without a format they are written as suits their type."""

    key: str
    head: str = ""
    format: str = ""

    def value(self, row: Row) -> Any:
        value: Any = row
        for key in self.key.split("."):
            value = value.get(key)
        return value

    def write(self, value: Any) -> str:
        return self.format.format(value) if self.format and value is not None else write_figure(value)


def share(key: str, head: str = "") -> Column:
    return Column(key, head, "{:.1%}")


def ratio(key: str, head: str = "") -> Column:
    return Column(key, head, "{:.3f}")


def whole(key: str, head: str = "") -> Column:
    return Column(key, head, "{:,.0f}")


def dollars(key: str, head: str = "") -> Column:
    return Column(key, head, "${:,.2f}")


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of figures. A column is a `Column`, or a key, which is then its head too."""

    rows: Iterable[Any]
    columns: Sequence[Column | str]

    def lines(self) -> Iterator[str]:
        columns = [Column(column) if isinstance(column, str) else column for column in self.columns]
        rows = [[column.value(row) for column in columns] for row in map(plain, self.rows)]
        heads = [column.head or column.key.rpartition(".")[2].replace("_", " ") for column in columns]
        texts = [[column.write(value) for column, value in zip(columns, row, strict=True)] for row in rows]
        figures = [at for at in range(len(columns)) if not any(isinstance(row[at], str | list) for row in rows)]
        yield from table([heads, *texts], right=figures)


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured. `figures`: the JSON document. `shown`: tables and lines for people. If something does not
    hold, the command ends with exit code 1."""

    figures: Any
    shown: Sequence[Table | str] = ()
    holds: bool = True

    def lines(self) -> Iterator[str]:
        """The tables and lines, with an empty line around a table."""
        before: Table | str | None = None
        for part in self.shown:
            if before is not None and (isinstance(part, Table) or isinstance(before, Table)):
                yield ""
            yield from part.lines() if isinstance(part, Table) else [part]
            before = part


class Measurement(click.Command):
    """A measurement as a command. `measure` is its function, for other programs."""

    measure: Callable[..., Result]


def measurement(*examples: str) -> Callable[[Callable[..., Result]], Measurement]:
    """Makes a function a command with its name and docstring. Click declares the arguments and options below this."""

    def declare(function: Callable[..., Result]) -> Measurement:
        def run(*, as_json: bool, **given: Any) -> None:
            result = function(**given)
            answer(as_json, plain(result.figures), *(() if as_json else result.lines()))
            if not result.holds:
                raise click.exceptions.Exit(1)

        command = click.command(function.__name__, cls=Measurement)(update_wrapper(run, function))
        command.measure = function
        return with_examples(*examples)(json_option(command))

    return declare


paths_argument = click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path))
"""Transcripts, or folders of transcripts."""
at_option = click.option(
    "--at",
    default=100_000,
    show_default=True,
    type=click.IntRange(min=1),
    help="In sessions without a compaction, measure at this number of tokens.",
)


def track(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The items, one after the other; the progress line says how many of them are done."""
    for number, item in enumerate(items, 1):
        yield item
        show_progress(f"{number} of {total} {what}", ends_line=number == total)


def named(rows: Mapping[str, Any], key: str = "name") -> list[Row]:
    """Rows of a table, from figures by name."""
    return [{key: name, **plain(figures)} for name, figures in rows.items()]


def plain(value: Any) -> Any:
    """A value as it is in JSON: of a data class its fields; numbers that are not whole are rounded."""
    if isinstance(value, float):
        return _round(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in cast("Iterable[Any]", value)]
    return str(value) if isinstance(value, Path) else value


def _round(value: float) -> float:
    return round(value, max(1, _DIGITS - 1 - floor(log10(abs(value))))) if value and isfinite(value) else value


def write_figure(value: Any) -> str:
    """A figure for people: `1,234`, `12.3`, `0.123`, `yes`, `–`."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3f}"
        case list():
            return ", ".join(map(str, cast("list[object]", value)))
        case _:
            return str(value)
