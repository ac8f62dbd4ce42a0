"""`reverie team`: runs a lead and its teammates, each in its own process, from a team file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.options import cwd_option, examples, folder_options, json_lines_option, with_places

if TYPE_CHECKING:
    from reverie.paths import Places

_EPILOG = """\b
A team file is TOML:
  team = "docs"
  task = "Bring the README up to date with the code."
  [lead]
  about = "hands out work and writes the result"
  [[teammates]]
  name = "reader"
  prompt = "You read code and report what it does."
  [[teammates]]
  name = "checker"
  prompt = "You try every command the README shows."
  permission_mode = "ask"
\b
Examples:
  reverie team examples/team/team.toml
  reverie team examples/team/team.toml --json
  reverie team status example
  reverie team stop example
"""


class _Group(click.Group):
    """`reverie team FILE` is `reverie team run FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((arg for arg in args if not arg.startswith("-")), None)
        if first is not None and first not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group("team", cls=_Group, epilog=_EPILOG, subcommand_metavar="FILE | COMMAND [ARGS]...")
def command() -> None:
    """Let several agents work on one task, each in its own process.

    `reverie team FILE` is short for `reverie team run FILE` and has the same options. It starts the lead (the agent
    that distributes the work) and its teammates, and shows what each of them does. When the task is done, the lead asks
    every teammate to stop. After Ctrl-C, the lead asks them immediately, even if the task is not done. A second Ctrl-C
    sends SIGTERM to all processes of the team, and a third one SIGKILL.
    """


@examples("reverie team run examples/team/team.toml")
@command.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@json_lines_option
@click.option("-m", "--model", metavar="NAME", help="The model of agents that have no model in FILE.")
@cwd_option
def run_command(file: Path, as_json: bool, model: str | None, cwd: Path) -> int:
    """Start the team that FILE describes. The lead's answer goes to standard output."""
    from reverie.agents.team.team_file import load_team
    from reverie.cli.event_loop import run_async
    from reverie.cli.team.supervisor import run_team

    plan = load_team(file)
    return run_async(lambda signals: run_team(signals, plan, file.resolve(), cwd.resolve(), model, as_json=as_json))


@examples("reverie team status example --json")
@command.command("status")
@click.argument("name", required=False)
@with_places
def status_command(name: str | None, as_json: bool, places: Places) -> None:
    """Show the agents of the team NAME and what they do. Without NAME, show all teams."""
    from reverie.cli.team.status import show_status

    show_status(name, as_json, places)


@examples("reverie team stop example")
@command.command("stop")
@click.argument("name")
@folder_options
def stop_command(name: str, as_json: bool, cwd: Path) -> None:
    """Stop the team NAME: its lead asks every teammate to stop."""
    from reverie.cli.team.status import stop_team

    stop_team(name, as_json, cwd)


@command.command("member", hidden=True)
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("name")
@click.option("-m", "--model")
@click.option("--ask", is_flag=True)
@cwd_option
def member_command(file: Path, name: str, **options: Any) -> int:
    """Run one member of a team; `reverie team run` starts it. It ends when standard input ends."""
    from reverie.agents.team.team_file import load_team
    from reverie.cli.event_loop import run_async
    from reverie.cli.team.member import run_member

    plan = load_team(file)
    return run_async(lambda signals: run_member(signals, plan, plan.member(name), **options))
