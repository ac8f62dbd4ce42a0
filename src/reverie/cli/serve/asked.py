"""What the commands about accounts share: the database, the organisation, and tables or JSON as the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from reverie.cli.output import answer, one_line, table
from reverie.cli.serve.opening import Where, as_operator, database_options, find_database, organisation_option

if TYPE_CHECKING:
    from reverie.server.operation.operator import Operator

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Row = dict[str, Any]


class Asked:
    """Where the command works, and how it answers."""

    def __init__(self, find: Callable[[], Where], organisation: str, as_json: bool) -> None:
        self._find = find
        self._organisation = organisation
        self.as_json = as_json

    def run(self, act: Callable[[Operator], Awaitable[T]]) -> T:
        return as_operator(self._find(), self._organisation, act)

    def show(self, rows: Sequence[Row], columns: Mapping[str, str], nothing: str) -> None:
        """A table with these headings, or all values as JSON."""
        shown = [{name: plain(value) for name, value in row.items()} for row in rows]
        lines = table([tuple(columns.values()), *(tuple(_cell(row.get(one)) for one in columns) for row in rows)])
        answer(self.as_json, shown, *(lines if rows else [nothing]))


def options(function: F) -> F:
    """The database, the organisation, `--json` and `-C`; the command gets `asked`."""

    @wraps(function)
    def run(
        *args: Any, dsn: str, dsn_file: Path | None, cwd: Path, organisation: str, as_json: bool, **more: Any
    ) -> Any:
        asked = Asked(lambda: find_database(cwd, dsn, dsn_file), organisation, as_json)
        return function(*args, asked=asked, **more)

    return organisation_option(database_options(run))  # type: ignore[return-value]


def plain(value: object) -> object:
    """A value of a row as JSON has it."""
    if isinstance(value, datetime):
        from reverie.server.wire import format_time

        return format_time(value)
    return value


def _cell(value: object) -> str:
    if value is None or value is False:
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, list | tuple):
        return one_line(", ".join(map(str, value)), 40) or "-"  # type: ignore[arg-type]
    return "yes" if value is True else one_line(str(value), 60)
