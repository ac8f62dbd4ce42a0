"""`reverie serve setup`, `stores`, `audit`, `backup`, `restore`, `export` and `import`: the upkeep of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.options import examples
from reverie.cli.output import answer, format_size, plural
from reverie.cli.serve.asked import Asked, options
from reverie.cli.serve.opening import Where, database_options, find_database, started, this_user, with_database
from reverie.errors import UserError
from reverie.text.cutting import shorten

if TYPE_CHECKING:
    from reverie.server.database import Database

_LONGEST, _MOST_SHOWN = 100, 20
_NEW = click.Path(path_type=Path, dir_okay=False)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


def add_upkeep(group: click.Group) -> None:
    """Adds the commands to `reverie serve`."""
    for one in (setup, stores, audit, backup, restore, export, import_folder):
        group.add_command(one)


@examples("reverie serve setup --dsn-file /etc/reverie/dsn --organisation example")
@click.command("setup")
@click.option("--organisation", default="home", show_default=True, help="The name of the new organisation.")
@click.option("--person", default="", help="The name of its first administrator.  [default: your user name]")
@database_options
def setup(organisation: str, person: str, dsn: str, dsn_file: Path | None, cwd: Path, as_json: bool) -> None:
    """Make an organisation with an administrator.

    The administrator gets a token, which is shown once. `reverie serve` does this by itself for its own database. With
    another database, run it once; each further run adds one more organisation, which cannot see the others.
    """
    where, name = find_database(cwd, dsn, dsn_file), person or this_user()

    async def act(database: Database) -> Any:
        from reverie.server.operation.operator import set_up

        async with database.as_owner() as connection:
            return await set_up(connection, this_user(), organisation, name)

    token = with_database(where, act, makes=True)
    shown = {"organisation": organisation, "person": name, "token_id": token.id, "token": token.secret}
    answer(as_json, shown, token.secret)
    if not as_json:
        click.echo(f"This is the only time that the token of {name} is shown.", err=True)


@examples("reverie serve stores", "reverie serve stores --json")
@click.command("stores")
@options
def stores(asked: Asked) -> None:
    """List the memory stores and whose they are."""
    columns = {one: one for one in ("id", "scope", "whose", "name", "memories")} | {"updated_at": "changed"}
    asked.show(asked.run(lambda operator: operator.stores()), columns, "There is no store yet.")


@examples("reverie serve audit", "reverie serve audit --action 'refuse token' --json")
@click.command("audit")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many lines.")
@click.option("--action", default="", help="Only this action, such as 'make token' or 'delete store'.")
@options
def audit(limit: int, action: str, asked: Asked) -> None:
    """Show who did what, newest first.

    That is: tokens that were made, revoked and refused, changed accounts and members, deleted stores, redactions.
    """
    columns = {"at": "when", "action": "action", "what": "what", "outcome": "outcome"}
    columns |= {"person": "by", "actor": "by command of"}
    asked.show(asked.run(lambda operator: operator.audit(limit=limit, action=action)), columns, "Nothing yet.")


@examples("reverie serve backup memory.dump")
@click.command("backup")
@click.argument("file", type=_NEW)
@database_options
def backup(file: Path, dsn: str, dsn_file: Path | None, cwd: Path, as_json: bool) -> None:
    """Write everything to FILE, while the server runs.

    That is: stores, versions, accounts, dreams and the audit log. The file is private (mode 600) and has all memories:
    keep it as you keep them. It is made by pg_dump.
    """
    from reverie.server.operation.backup import back_up

    with started(find_database(cwd, dsn, dsn_file)) as place:
        size = back_up(place, file)
    answer(as_json, {"file": str(file), "bytes": size}, f"Wrote {file} ({format_size(size)}).")


@examples("reverie serve restore memory.dump", "reverie serve restore memory.dump --replace")
@click.command("restore")
@click.argument("file", type=_FILE)
@click.option("--replace", is_flag=True, help="Replace everything that the database has now.")
@database_options
def restore(file: Path, replace: bool, dsn: str, dsn_file: Path | None, cwd: Path, as_json: bool) -> None:
    """Read a backup into an empty database, all or nothing."""
    from reverie.server.operation.backup import bring_back

    where = find_database(cwd, dsn, dsn_file)
    with started(where, makes=True) as place:
        bring_back(place, file, replaces=replace)
        found = with_database(Where(where.home, place), _count)
    said = f"Restored {plural(found['stores'], 'store')}, {plural(found['memories'], 'memory', 'memories')}."
    answer(as_json, {"file": str(file), **found}, said)


async def _count(database: Database) -> dict[str, int]:
    async with database.as_owner() as connection:
        found = await connection.execute(
            "select (select count(*) from stores) as stores, (select count(*) from memories) as memories"
        )
        return dict(await found.fetchone() or {})


@examples("reverie serve export memstore_01kq… shop-memory")
@click.command("export")
@click.argument("store")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@database_options
def export(store: str, folder: Path, dsn: str, dsn_file: Path | None, cwd: Path, as_json: bool) -> None:
    """Write the memories of STORE to FOLDER.

    Each memory is one file in FOLDER/memories, with the same bytes and `.memory` in its name, so that no program obeys
    it by its name. The folder is new or empty. `reverie serve stores` lists the stores.
    """
    from reverie.server.operation.folders import export_store

    where = find_database(cwd, dsn, dsn_file)
    done = with_database(where, lambda database: export_store(database, store, folder, this_user()))
    lines = [f"Wrote {plural(done.files, 'file')} to {folder}."]
    if done.renamed:
        what = plural(len(done.renamed), "memory has", "memories have")
        lines.append(
            f"{what} a hidden path, or one that this disk cannot have, and another name here (--json lists all):"
        )
        lines += [f"  {shorten(path, _LONGEST)} → {file}" for path, file in list(done.renamed.items())[:_MOST_SHOWN]]
    shown = {"store": store, "folder": str(folder), "files": done.files, "renamed": dict(done.renamed)}
    answer(as_json, shown, *lines)


@examples("reverie serve import shop-memory --store memstore_01kq… --person ann")
@click.command("import")
@click.argument("folder", type=_FOLDER)
@click.option("--store", required=True, help="The id of the store.")
@click.option("--person", required=True, help="In whose name: a member of the scope of the store.")
@click.option("--replace", is_flag=True, help="Overwrite memories that have another content now.")
@options
def import_folder(folder: Path, store: str, person: str, replace: bool, asked: Asked) -> None:
    """Write the files of FOLDER to a store.

    They pass the same checks as every write. All or nothing. `reverie serve stores` lists the stores.
    """
    from reverie.server.operation.folders import import_files
    from reverie.server.wire import ApiError

    try:
        done = asked.run(lambda operator: import_files(operator, folder, store, person, replaces=replace))
    except ApiError as error:
        raise UserError(f"Nothing was imported: {error}") from error
    said = f"{done.created} new, {done.changed} changed, {done.same} as before"
    answer(asked.as_json, {"created": done.created, "changed": done.changed, "same": done.same}, f"Imported: {said}.")
