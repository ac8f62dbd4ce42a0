"""The options that many commands share: the folder (`-C`), the session (`-s`) and `--json`.

An option that is given to a group of commands also applies to its sub-command.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from reverie.paths import Places
    from reverie.settings import Settings

C = TypeVar("C", bound=click.Command)
F = TypeVar("F", bound=Callable[..., Any])


class _Folder(click.Path):
    """A folder that exists, or one that is gone but has sessions or memories here, e.g. of another machine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            path = Path(value)
            if path.exists() or not path.is_absolute() or not places_of(path).project.is_dir():
                raise
            return path


_FOLDER = _Folder(path_type=Path, exists=True, file_okay=False)
_BOTH = "Two sessions are given, {} and {}. Give only one."


def examples(*lines: str) -> Callable[[C], C]:
    """Puts examples at the end of the help of a command."""

    def add(command: C) -> C:
        head = "Examples:" if len(lines) > 1 else "Example:"
        command.epilog = "\n".join(["\b", head, *(f"  {line}" for line in lines)])
        return command

    return add


def inherit(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """The value that was given to the nearest group, if the command itself has none."""
    name, above = str(param.name), ctx.parent
    if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
        return value
    while above is not None:
        if above.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP):
            return above.params[name]
        above = above.parent
    return value


def cwd_option(function: F) -> F:
    """`-C/--cwd DIR`: the command works as if it were started there."""
    return click.option(
        "-C",
        "--cwd",
        metavar="DIR",
        type=_FOLDER,
        default=".",
        is_eager=True,  # before the session, because its completion needs the folder
        callback=inherit,
        help="Work in this folder.  [default: the current one]",
    )(function)


def _json(what: str) -> Callable[[F], F]:
    return click.option("--json", "as_json", is_flag=True, callback=inherit, help=f"Print one JSON {what}.")


def json_option(function: F) -> F:
    """`--json`: standard output is one JSON document."""
    return _json("document")(function)


def folder_options(function: F) -> F:
    """`--json` and `-C`. Nearly every command has them."""
    return json_option(cwd_option(function))


def with_places(function: F) -> F:
    """The same; the command gets `places` instead of `cwd`."""

    @wraps(function)
    def run_with_places(*args: Any, cwd: Path, **more: Any) -> Any:
        return function(*args, places=places_of(cwd), **more)

    return folder_options(run_with_places)  # type: ignore[return-value]


def places_of(cwd: Path) -> Places:
    """The paths that a session in this folder uses."""
    return load_places(cwd)[1]


def load_places(cwd: Path) -> tuple[Settings, Places]:
    """The settings and the paths that a session in this folder uses."""
    from reverie.paths import Places
    from reverie.settings import load_settings

    settings = load_settings(cwd)
    return settings, Places.of(cwd, settings)


def json_lines_option(function: F) -> F:
    """`--json`: standard output is one JSON object per line."""
    return _json("object per line")(function)


def session_ids(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Completes the ids of the folder's sessions."""
    from reverie.errors import ReverieError
    from reverie.storage.transcript.sessions import list_sessions

    cwd = Path(ctx.params.get("cwd") or ".")
    try:
        found = list_sessions(places_of(cwd).project)
    except (ReverieError, OSError):
        return []
    return [info.id for info in found if info.id.startswith(incomplete)]


def session_option(help: str, *names: str, default: str | None = "last", multiple: bool = False) -> Callable[[F], F]:
    """`-s/--session ID`. `names`: more names of the option, and the name of the parameter."""
    return click.option(
        "-s",
        "--session",
        *names,
        metavar="ID",
        default=None if multiple else default,
        multiple=multiple,
        callback=inherit,
        shell_complete=session_ids,
        help=help,
    )


def web_option(function: F) -> F:
    """`--web`: show the same in a browser."""
    return click.option("--web", is_flag=True, help="Show it in a browser instead (see `reverie web`).")(function)


def session_choice(
    default: str | None = "last", *, otherwise: str = "the last used session of this folder"
) -> Callable[[F], F]:
    """`[SESSION]` or `-s/--session ID`, for commands without another argument; the command gets `session`."""

    def choice(function: F) -> F:
        @click.argument("positional", metavar="[SESSION]", required=False, shell_complete=session_ids)
        @session_option(f"The same as SESSION.  [default: {otherwise}]", default=None)
        @wraps(function)
        def run_with_session(*args: Any, positional: str | None, session: str | None, **more: Any) -> Any:
            if positional is not None and session not in (None, positional):
                raise click.UsageError(_BOTH.format(repr(positional), repr(session)))
            named = positional if positional is not None else session
            return function(*args, session=default if named is None else named, **more)

        return run_with_session  # type: ignore[return-value]

    return choice
