"""The options that many commands share, each in one form: the folder (`-C`), the session (`-s`) and `--json`.

What is given to a group of commands also holds for the command behind it. Names sessions, but never opens one.
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

F = TypeVar("F", bound=Callable[..., Any])

_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
_BOTH = "The session is named twice, as {} and as {}: name it once."


def examples(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "\n".join(["\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  {line}" for line in lines)])


def _inherited(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """What the group before this command was given, where the command itself was given nothing."""
    name, above = str(param.name), ctx.parent
    if above is None or ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
        return value
    is_given = above.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)
    return above.params[name] if is_given else value


def cwd_option(function: F) -> F:
    """`-C/--cwd DIR`: the command does what it would do if it were started there."""
    return click.option(
        "-C",
        "--cwd",
        metavar="DIR",
        type=_FOLDER,
        default=".",
        is_eager=True,  # before the session, whose completion looks there
        callback=_inherited,
        help="As if started in this folder.  [default: the current one]",
    )(function)


def _json(what: str) -> Callable[[F], F]:
    help = f"One JSON {what} on standard output."
    return click.option("--json", "as_json", is_flag=True, callback=_inherited, help=help)


def json_option(function: F) -> F:
    """`--json`: one JSON document on standard output, and nothing else there."""
    return _json("document")(function)


def here(function: F) -> F:
    """`--json` and `-C`, which nearly every command has."""
    return json_option(cwd_option(function))


def with_places(function: F) -> F:
    """The same; the command gets `places`, where things of that folder are."""

    @wraps(function)
    def opened(*args: Any, cwd: Path, **more: Any) -> Any:
        return function(*args, places=places_of(cwd), **more)

    return here(opened)  # type: ignore[return-value]


def places_of(cwd: Path) -> Places:
    """Where things of this folder are."""
    from reverie.paths import Places
    from reverie.settings import load_settings

    return Places.of(cwd, load_settings(cwd))


def json_lines_option(function: F) -> F:
    """`--json` for what comes piece by piece."""
    return _json("object per line")(function)


def session_ids(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Completion of the ids of the folder's sessions."""
    from reverie.errors import ReverieError
    from reverie.storage.transcript.sessions import list_sessions

    cwd = Path(ctx.params.get("cwd") or ".")
    try:
        found = list_sessions(places_of(cwd).project)
    except (ReverieError, OSError):
        return []
    return [info.id for info in found if info.id.startswith(incomplete)]


def session_option(help: str, *names: str, default: str | None = "last", multiple: bool = False) -> Callable[[F], F]:
    """`-s/--session ID`, for commands whose arguments are something else. `names`: more names, and the parameter's."""
    return click.option(
        "-s",
        "--session",
        *names,
        metavar="ID",
        default=None if multiple else default,
        multiple=multiple,
        callback=_inherited,
        shell_complete=session_ids,
        help=help,
    )


def session_choice(
    default: str | None = "last", *, otherwise: str = "the newest session of this folder"
) -> Callable[[F], F]:
    """`[SESSION]` or `-s/--session ID`, for commands that have no other argument; the command gets `session`."""

    def choice(function: F) -> F:
        @click.argument("positional", metavar="[SESSION]", required=False, shell_complete=session_ids)
        @session_option(f"The same as SESSION.  [default: {otherwise}]", default=None)
        @wraps(function)
        def chosen(*args: Any, positional: str | None, session: str | None, **more: Any) -> Any:
            if positional is not None and session not in (None, positional):
                raise click.UsageError(_BOTH.format(repr(positional), repr(session)))
            named = positional if positional is not None else session
            return function(*args, session=default if named is None else named, **more)

        return chosen  # type: ignore[return-value]

    return choice
