"""`reverie serve people`, `teams` and `projects`: who uses the memory server, and together with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import click

from reverie.cli.options import examples
from reverie.cli.output import answer, can_ask, plural
from reverie.cli.serve.asked import Asked, Row, options
from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.server.operation.operator import Kind, Operator

_YES = click.option("--yes", is_flag=True, help="Do not ask.")
_WITH_STORES = click.option("--with-stores", is_flag=True, help="Also delete the stores that only it sees.")


# -- people


def _list_people(asked: Asked) -> None:
    columns = {one: one for one in ("name", "kind", "is_admin", "teams", "projects", "tokens", "disabled_at")}
    columns |= {"is_admin": "admin", "dream_budget": "dollars per month", "disabled_at": "disabled"}
    asked.show(asked.run(lambda operator: operator.people()), columns, "There is nobody yet.")


@examples("reverie serve people", "reverie serve people add ann", "reverie serve people disable ann")
@click.group("people", invoke_without_command=True)
@options
@click.pass_context
def people(ctx: click.Context, asked: Asked) -> None:
    """List, add, disable and remove people and services."""
    if ctx.invoked_subcommand is None:
        _list_people(asked)


@examples("reverie serve people list --json")
@people.command("list")
@options
def list_people(asked: Asked) -> None:
    """Show everybody, with teams, projects and the number of working tokens."""
    _list_people(asked)


@examples("reverie serve people add ann --admin", "reverie serve people add nightly --service")
@people.command("add")
@click.argument("name")
@click.option("--service", is_flag=True, help="A program, such as a pipeline: what it writes is not confirmed.")
@click.option("--admin", is_flag=True, help="May see figures and add members to projects.")
@options
def add_person(name: str, service: bool, admin: bool, asked: Asked) -> None:
    """Add a person, or a service."""
    _check_name(name)

    async def act(operator: Operator) -> str:
        from reverie.server import accounts

        made = await accounts.add_person(
            operator.connection, operator.organisation, name, is_service=service, is_admin=admin
        )
        await operator.note("add person", made)
        return made

    id = asked.run(act)
    hint = f"`reverie serve tokens add {name}` makes a token."
    answer(asked.as_json, {"id": id, "name": name}, f"Added {name} ({id}). {hint}")


def _switch_person(name: str, disabled: bool, asked: Asked) -> None:
    async def act(operator: Operator) -> Row:
        row = await operator.find("person", name)
        await operator.set_disabled(row, disabled)
        return row

    row = asked.run(act)
    said = f"{row['name']} is disabled: none of the tokens works." if disabled else f"{row['name']} is enabled again."
    answer(asked.as_json, {"id": row["id"], "name": row["name"], "disabled": disabled}, said)


@examples("reverie serve people disable ann")
@people.command("disable")
@click.argument("name")
@options
def disable_person(name: str, asked: Asked) -> None:
    """Let no token of a person work, at once. Everything that the person wrote stays."""
    _switch_person(name, True, asked)


@examples("reverie serve people enable ann")
@people.command("enable")
@click.argument("name")
@options
def enable_person(name: str, asked: Asked) -> None:
    """Undo `disable`."""
    _switch_person(name, False, asked)


def _remove(kind: Kind, name: str, with_stores: bool, yes: bool, asked: Asked) -> None:
    async def look(operator: Operator) -> tuple[Row, list[Row]]:
        row = await operator.find(kind, name)
        return row, await operator.stores_of(kind, row)

    row, stores = asked.run(look)
    has = f"{plural(len(stores), 'store')} with {plural(sum(one['memories'] for one in stores), 'memory', 'memories')}"
    if stores and not with_stores:
        raise UserError(
            f"{row['name']} has {has} that nobody else sees: `reverie serve stores` lists them, `reverie serve export` "
            "keeps one as files, --with-stores deletes them."
        )
    what = f"{kind} {row['name']}{f' and {has}' if stores else ''}"
    if not yes:
        if not can_ask():
            raise UserError(f"This deletes the {what}: say it with --yes.")
        click.confirm(f"Delete the {what}?", abort=True)

    async def act(operator: Operator) -> None:
        await operator.remove(kind, row)

    asked.run(act)
    answer(asked.as_json, {"id": row["id"], "stores": [one["id"] for one in stores]}, f"Removed the {what}.")


@examples("reverie serve people remove ann --with-stores")
@people.command("remove")
@click.argument("name")
@_WITH_STORES
@_YES
@options
def remove_person(name: str, with_stores: bool, yes: bool, asked: Asked) -> None:
    """Remove a person with all tokens. `disable` keeps everything."""
    _remove("person", name, with_stores, yes, asked)


# -- teams and projects


def _list_groups(kind: Any, asked: Asked) -> None:
    extra = {"dream_budget": "dollars per month"} if kind == "team" else {"team": "team"}
    columns = {"name": "name", **extra, "members": "members", "stores": "stores", "id": "id"}
    asked.show(asked.run(lambda operator: operator.groups(kind)), columns, f"There is no {kind} yet.")


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > 255 or not name.isprintable():
        raise UserError("A name has 1 to 255 characters that can be printed.")


def _change_membership(kind: Any, group: str, people: Sequence[str], joins: bool, asked: Asked) -> None:
    async def act(operator: Operator) -> tuple[Row, list[Row]]:
        found, whom = await operator.find(kind, group), [await operator.find("person", one) for one in people]
        for who in whom:
            await operator.set_membership(kind, found, who, joins)
        return found, whom

    found, whom = asked.run(act)
    now = "now" if joins else "no longer"
    said = [f"{who['name']} is {now} a member of the {kind} {found['name']}." for who in whom]
    answer(asked.as_json, {kind: found["id"], "people": [who["id"] for who in whom], "member": joins}, *said)


@examples("reverie serve teams", "reverie serve teams add core --budget 20", "reverie serve teams join core ann")
@click.group("teams", invoke_without_command=True)
@options
@click.pass_context
def teams(ctx: click.Context, asked: Asked) -> None:
    """List, add and remove teams and their members."""
    if ctx.invoked_subcommand is None:
        _list_groups("team", asked)


@examples("reverie serve projects", "reverie serve projects add shop --team core")
@click.group("projects", invoke_without_command=True)
@options
@click.pass_context
def projects(ctx: click.Context, asked: Asked) -> None:
    """List, add and remove projects and their members.

    A client names a project by the address of its repository, or as the setting `memory.store_project` says.
    """
    if ctx.invoked_subcommand is None:
        _list_groups("project", asked)


_BUDGET = click.option("--budget", type=click.FloatRange(0), help="Dollars per month for dreams.  [default: no limit]")


@examples("reverie serve teams add core --budget 20")
@teams.command("add")
@click.argument("name")
@_BUDGET
@options
def add_team(name: str, budget: float | None, asked: Asked) -> None:
    """Add a team."""
    _check_name(name)

    async def act(operator: Operator) -> str:
        from reverie.server import accounts

        made = await accounts.add_team(operator.connection, operator.organisation, name)
        await operator.note("add team", made)
        if budget is not None:
            await operator.set_budget("teams", made, budget)
        return made

    answer(asked.as_json, {"id": (id := asked.run(act)), "name": name}, f"Added the team {name} ({id}).")


def _set_budget(kind: Literal["person", "team"] | None, name: str, dollars: str, asked: Asked) -> None:
    try:
        limit = None if dollars == "none" else float(dollars)
    except ValueError:
        limit = -1.0
    if limit is not None and not 0 <= limit < 1e8:
        raise UserError(f"{dollars[:80]!r} is not an amount: give dollars, such as 20, or none.")

    async def act(operator: Operator) -> tuple[str, str]:
        if kind is None:
            await operator.set_budget("organisations", operator.organisation, limit)
            return operator.organisation, "The organisation"
        row = await operator.find(kind, name)
        await operator.set_budget("people" if kind == "person" else "teams", row["id"], limit)
        return row["id"], row["name"] if kind == "person" else f"The team {row['name']}"

    id, who = asked.run(act)
    said = "has no limit" if limit is None else f"may spend ${limit:.2f} per month"
    answer(asked.as_json, {"id": id, "dream_budget": limit}, f"{who} {said} for dreams.")


@examples("reverie serve teams budget core 50", "reverie serve teams budget core none")
@teams.command("budget")
@click.argument("name")
@click.argument("dollars")
@options
def set_team_budget(name: str, dollars: str, asked: Asked) -> None:
    """Set what dreams of a team may cost per month: DOLLARS, or `none` for no limit."""
    _set_budget("team", name, dollars, asked)


@examples("reverie serve people budget ann 20", "reverie serve people budget ann none")
@people.command("budget")
@click.argument("name")
@click.argument("dollars")
@options
def set_personal_budget(name: str, dollars: str, asked: Asked) -> None:
    """Set what dreams of a person's private stores may cost per month: DOLLARS, or `none` for no limit."""
    _set_budget("person", name, dollars, asked)


@examples("reverie serve budget 200", "reverie serve budget none")
@click.command("budget")
@click.argument("dollars")
@options
def budget(dollars: str, asked: Asked) -> None:
    """Set what dreams of the organisation may cost per month: DOLLARS, or `none` for no limit.

    It pays for the stores of the organisation, and of projects without a team. Teams and people have their own budgets.
    """
    _set_budget(None, "", dollars, asked)


@examples("reverie serve projects add github.com/example/shop --team core")
@projects.command("add")
@click.argument("name")
@click.option(
    "--team", default="", help="The team whose budget pays for its dreams; its members are not in the project by that."
)
@options
def add_project(name: str, team: str, asked: Asked) -> None:
    """Add a project."""
    _check_name(name)

    async def act(operator: Operator) -> str:
        from reverie.server import accounts

        of = (await operator.find("team", team))["id"] if team else None
        made = await accounts.add_project(operator.connection, operator.organisation, name, team=of)
        await operator.note("add project", made)
        return made

    id = asked.run(act)
    hint = f"`reverie serve projects join {name} PERSON…` lets people in."
    answer(asked.as_json, {"id": id, "name": name}, f"Added the project {name} ({id}). {hint}")


def _add_shared_commands(group: click.Group, kind: Any) -> None:
    """What teams and projects have in common."""
    many, name = f"{kind}s", "core" if kind == "team" else "github.com/example/shop"

    @examples(f"reverie serve {many} list --json")
    @group.command("list", help=f"Show all {many} with their members.")
    @options
    def _list(asked: Asked) -> None:
        _list_groups(kind, asked)

    @examples(f"reverie serve {many} remove {name} --with-stores")
    @group.command("remove", help=f"Remove a {kind}; its members stay.")
    @click.argument("name")
    @_WITH_STORES
    @_YES
    @options
    def _remove_one(name: str, with_stores: bool, yes: bool, asked: Asked) -> None:
        _remove(kind, name, with_stores, yes, asked)

    for verb, joins, does in (("join", True, "Let people into"), ("leave", False, "Take people out of")):

        @examples(f"reverie serve {many} {verb} {name} ann ben")
        @group.command(verb, help=f"{does} a {kind}.")
        @click.argument("name")
        @click.argument("people", metavar="PERSON...", nargs=-1, required=True)
        @options
        def _change(name: str, people: tuple[str, ...], asked: Asked, joins: bool = joins) -> None:
            _change_membership(kind, name, people, joins, asked)


_add_shared_commands(teams, "team")
_add_shared_commands(projects, "project")
