"""`reverie serve tokens`: the tokens of people and services. A token is shown once; only its hash is stored."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.options import examples
from reverie.cli.output import answer
from reverie.cli.serve.asked import Asked, Row, options, plain

if TYPE_CHECKING:
    from reverie.server.operation.operator import Operator


def _list_tokens(asked: Asked, person: str = "") -> None:
    async def act(operator: Operator) -> list[Row]:
        return await operator.tokens((await operator.find("person", person))["id"] if person else "")

    columns = {one: one for one in ("id", "person", "name", "state", "may_write", "expires_at", "last_used_at")}
    columns |= {"may_write": "writes", "expires_at": "expires", "last_used_at": "last used"}
    asked.show(asked.run(act), columns, "There is no token yet.")


@examples("reverie serve tokens", "reverie serve tokens add ann --days 90", "reverie serve tokens revoke apikey_01…")
@click.group("tokens", invoke_without_command=True)
@options
@click.pass_context
def tokens(ctx: click.Context, asked: Asked) -> None:
    """List, make and revoke tokens. A token is shown once, when it is made; only its hash is stored."""
    if ctx.invoked_subcommand is None:
        _list_tokens(asked)


@examples("reverie serve tokens list ann --json")
@tokens.command("list")
@click.argument("person", default="")
@options
def list_tokens(person: str, asked: Asked) -> None:
    """Show all tokens, or those of PERSON; never the tokens themselves."""
    _list_tokens(asked, person)


@examples("reverie serve tokens add ann --days 90", "reverie serve tokens add nightly --read-only --name pipeline")
@tokens.command("add")
@click.argument("person")
@click.option("--days", type=click.FloatRange(0, 36_500, min_open=True), help="Until it expires.  [default: never]")
@click.option("--read-only", is_flag=True, help="It may not change anything.")
@click.option("--name", default="", help="What it is for, to know it again.")
@options
def add_token(person: str, days: float | None, read_only: bool, name: str, asked: Asked) -> None:
    """Make a token for a person or a service, and show it once."""

    async def act(operator: Operator) -> Any:
        from reverie.server import accounts

        row = await operator.find("person", person)
        made = await accounts.add_token(operator.connection, row["id"], name=name, days=days, may_write=not read_only)
        await operator.note("make token", made.id)
        return made

    made = asked.run(act)
    shown = {"id": made.id, "token": made.secret, "expires_at": plain(made.expires_at)}
    until = "" if made.expires_at is None else f" It expires on {made.expires_at:%Y-%m-%d}."
    answer(asked.as_json, shown, made.secret)
    if not asked.as_json:
        click.echo(f"This is the only time that it is shown ({made.id}).{until}", err=True)


@examples("reverie serve tokens revoke apikey_01kq…")
@tokens.command("revoke")
@click.argument("id")
@options
def revoke_token(id: str, asked: Asked) -> None:
    """Let the token ID no longer work, at once."""
    asked.run(partial(_revoke, id=id))
    answer(asked.as_json, {"id": id, "revoked": True}, f"The token {id} does not work any more.")


async def _revoke(operator: Operator, id: str) -> None:
    await operator.revoke(id)
