"""The options that `run` and `chat` share: which session, which model, what is allowed."""

from __future__ import annotations

from collections.abc import Callable
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

    async def open(self, *, interactive: bool) -> Session:
        from reverie.session.session import Session

        return await Session.open(
            cwd=self.cwd, model=self.model, resume=self.resume, interactive=interactive, overrides=self.overrides
        )


def session_options(function: F) -> F:
    """Adds the options. The command passes them to `make_opening`."""
    options = (
        click.option("-m", "--model", metavar="NAME", help="`provider:model`, e.g. anthropic:claude-sonnet-5-5."),
        click.option("-c", "--continue", "go_on", is_flag=True, help="Continue the last used session of this folder."),
        session_option(
            "Continue this session. The first characters of its id are enough.",
            "-r",
            "--resume",
            "resume",
            default=None,
        ),
        cwd_option,
        click.option("--bare", is_flag=True, help="No memory, no instruction files, no hooks."),
        click.option("--allow", metavar="RULE", multiple=True, help=_ALLOW_HELP),
        click.option("--permission-mode", type=click.Choice(_MODES), help=_MODE_HELP),
        click.option("--max-rounds", type=click.IntRange(min=1), help="The maximum number of model requests per turn."),
    )
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
