"""`reverie permissions`: all permission rules with their origin, and a way to remove the saved ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.below_agent import AgentsMay, agents_may
from reverie.cli.options import examples, folder_options
from reverie.cli.output import answer, exact, table
from reverie.settings import load_settings

if TYPE_CHECKING:
    from reverie.settings import Settings


@examples("reverie permissions", "reverie permissions list --json", "reverie permissions remove 'Bash(npm test:*)'")
@agents_may(AgentsMay.ALL)
@click.group("permissions", invoke_without_command=True)
@folder_options
@click.pass_context
def command(context: click.Context, cwd: Path, as_json: bool) -> None:
    """List the permission rules, and remove saved ones.

    If you answer a permission question in the chat with "always", the rule is saved in the local settings of the
    project (.reverie/settings.local.toml). Without a sub-command, the command lists all rules.
    """
    if context.invoked_subcommand is None:
        _show_list(cwd, as_json)


@examples("reverie permissions list --json")
@agents_may(AgentsMay.ALL)
@command.command("list")
@folder_options
def list_command(cwd: Path, as_json: bool) -> None:
    """Show the permission mode and every rule, with the file and line that it comes from."""
    _show_list(cwd, as_json)


@examples("reverie permissions remove 'Bash(npm test:*)'")
@command.command("remove")
@click.argument("rule")
@folder_options
def remove_command(rule: str, cwd: Path, as_json: bool) -> None:
    """Remove an allow rule from the local settings of the project.

    Rules in other files are removed by hand: the list says where they are.

    Exit codes: 0: removed; 2: there is no such saved rule; 4: storage error.
    """
    from reverie.settings.loading import find_home
    from reverie.storage.saved_rules import remove_rule

    path = remove_rule(cwd, find_home(), rule)
    answer(
        as_json, {"rule": rule, "file": str(path), "removed": True}, f"Removed {exact(rule)} from {exact(str(path))}."
    )


def rule_rows(settings: Settings) -> list[tuple[str, str, str]]:
    """One row per rule: its kind, its text, and where it comes from."""
    from reverie.storage.saved_rules import list_rules

    return [
        (one.kind, exact(one.rule), exact(one.where) + (f" (ignored: {one.ignored})" if one.ignored else ""))
        for one in list_rules(settings)
    ]


def _show_list(cwd: Path, as_json: bool) -> None:
    from reverie.storage.saved_rules import list_rules

    settings = load_settings(cwd)
    rules: list[dict[str, Any]] = [
        {"kind": one.kind, "rule": one.rule, "where": one.where, "ignored": one.ignored or None}
        for one in list_rules(settings)
    ]
    rows = rule_rows(settings)
    lines = table(rows) if rows else ["There are no rules."]
    mode = settings.permissions.mode
    answer(as_json, {"mode": mode, "rules": rules}, f"mode: {mode}", *lines)
