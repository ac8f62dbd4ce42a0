"""The options that `run`, `chat` and `acp` share: which session, which model, what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reverie.cli.options import cwd_option, session_option
from reverie.quick import dataclass
from reverie.types import JsonObject

if TYPE_CHECKING:
    from reverie.session.session import Session

F = TypeVar("F", bound=Callable[..., Any])

_MODES = ("ask", "accept_edits", "accept_all", "read_only")
_ALLOW_HELP = "Allow these tool calls without a question, e.g. 'Bash(npm test:*)'. Repeatable."
_MODE_HELP = (
    "For tool calls that no rule matches. ask: ask before a change; accept_edits: allow edits of files in this folder; "
    "accept_all: allow everything; read_only: refuse every change."
)


@dataclass(frozen=True, slots=True)
class Opening:
    """How to open a session."""

    cwd: Path
    model: str | None = None
    resume: str | None = None
    overrides: JsonObject | None = None
    session_id: str | None = None
    """The id of a new session."""
    mcp_servers: Mapping[str, object] | None = None
    """Servers of the editor, in the form of `.mcp.json`."""

    async def open(self, *, interactive: bool) -> Session:
        from reverie.session.session import Session

        return await Session.open(
            cwd=self.cwd,
            model=self.model,
            resume=self.resume,
            session_id=self.session_id,
            interactive=interactive,
            overrides=self.overrides,
            mcp_servers=self.mcp_servers,
        )


_MODEL = click.option("-m", "--model", metavar="NAME", help="`provider:model`, e.g. anthropic:claude-sonnet-5-5.")
_HOW = (
    click.option("--bare", is_flag=True, help="No memory, no instruction files, no hooks."),
    click.option("--allow", metavar="RULE", multiple=True, help=_ALLOW_HELP),
    click.option("--permission-mode", type=click.Choice(_MODES), help=_MODE_HELP),
    click.option("--max-rounds", type=click.IntRange(min=1), help="The maximum number of model requests per turn."),
)
_WHICH = (
    click.option("-c", "--continue", "go_on", is_flag=True, help="Continue the last used session of this folder."),
    session_option(
        "Continue this session. The first characters of its id are enough.", "-r", "--resume", "resume", default=None
    ),
    cwd_option,
)


def opening_options(function: F) -> F:
    """Adds the options for how sessions are opened, without those that choose one."""
    return _with_options(function, (_MODEL, *_HOW))


def session_options(function: F) -> F:
    """Adds all options. The command passes them to `make_opening`."""
    return _with_options(function, (_MODEL, *_WHICH, *_HOW))


def _with_options(function: F, options: Sequence[Callable[[F], F]]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def make_opening(
    model: str | None,
    go_on: bool,
    resume: str | None,
    cwd: Path,
    bare: bool,
    allow: tuple[str, ...],
    permission_mode: str | None,
    max_rounds: int | None,
) -> Opening:
    """The opening that the options describe."""
    if go_on and resume:
        raise click.UsageError("--continue and --resume cannot be given together; --resume ID names the session.")
    if not (go_on or resume or cwd.is_dir()):
        raise click.UsageError(f"{cwd} is not there any more: you can only continue its sessions, with --resume.")
    given: JsonObject = {"session.bare": bare, "permissions.allow": list(allow), "permissions.mode": permission_mode}
    overrides = {key: value for key, value in {**given, "tools.max_rounds": max_rounds}.items() if value}
    return Opening(cwd.resolve(), model, "last" if go_on else resume, overrides)
