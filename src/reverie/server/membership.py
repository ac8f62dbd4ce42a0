"""Who the caller is, which scopes it has by name, and the projects that people found and join. Reading runs as the
caller; a change of accounts has the rights of the owner after the caller was checked."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any, Final

from reverie.errors import UserError
from reverie.server import accounts, audit
from reverie.server.database import Principal, Row, account_rights
from reverie.server.gate import check_words
from reverie.server.wire import ApiError, not_found, plain_id, take_row, take_text

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

_TABLES: Final = {"team": "teams", "project": "projects"}
_MOST_NAME: Final = 255


async def show_caller(connection: Connection, who: Principal) -> dict[str, Any]:
    """The person or service of a token, its organisation, and the scopes that it may use."""
    found = await connection.execute("select id, name, kind, is_admin from people where id = %s", (who.person_id,))
    person = await take_row(found, "person", who.person_id)
    found = await connection.execute("select id, name from organisations where id = %s", (who.organisation_id,))
    organisation = await take_row(found, "organisation", who.organisation_id)
    found = await connection.execute(
        "select 'team' as kind, id, name from teams where 'team:' || id = any (%(scopes)s) "
        "union all select 'project', id, name from projects where 'project:' || id = any (%(scopes)s) "
        "order by kind, name",
        {"scopes": list(who.scopes)},
    )
    groups = [
        {"kind": "user", "id": person["id"], "name": person["name"]},
        {"kind": "organisation", **organisation},
        *await found.fetchall(),
    ]
    scopes = [{"scope": f"{one['kind']}:{one['id']}", **one} for one in groups]
    return {"person": person, "organisation": organisation, "scopes": scopes}


async def read_scope(connection: Connection, who: Principal, given: str) -> str:
    """A scope as a client writes it (`user`, `organisation`, `team:NAME`, `project:ID`), as rows have it."""
    kind, _, name = given.partition(":")
    own = {"user": who.person_id, "organisation": who.organisation_id}
    if kind in own and name in ("", own[kind]):
        return f"{kind}:{own[kind]}"
    table = _TABLES.get(kind)
    if table is None or not name or "\x00" in name:
        raise ApiError(400, "scope: must be `user`, `organisation`, `team:NAME` or `project:NAME`, of your own.")
    found = await connection.execute(
        f"select id from {table} where id = %(name)s or name = %(name)s order by id <> %(name)s".encode(),
        {"name": name},
    )
    scope = f"{kind}:{(await take_row(found, kind, name))['id']}"
    if scope not in who.scopes:
        raise ApiError(403, f"You are not a member of this {kind}.")
    return scope


async def found_project(connection: Connection, who: Principal, name: str) -> dict[str, Any]:
    """The project of this name; a new one has the caller as its member. 403 if it exists and the caller is outside."""
    name, is_new = check_name(name), False
    async with account_rights(connection):
        id = await _find_project(connection, who, name)
        if not id:
            try:
                id = await accounts.add_project(connection, who.organisation_id, name)
                await accounts.join_project(connection, id, who.person_id)
                is_new = True
            except UserError:  # somebody was quicker
                id = await _find_project(connection, who, name)
        found = await connection.execute(
            "select 1 from project_members where project_id = %s and person_id = %s", (id, who.person_id)
        )
        if await found.fetchone() is None:
            raise ApiError(
                403, f"You are not in the project {name!r}: ask for `reverie serve projects join {name} YOU`."
            )
    if is_new:
        await audit.record(connection, who, "add project", id)
    return {"type": "project", "id": id, "name": name, "scope": f"project:{id}", "is_new": is_new}


async def change_member(connection: Connection, who: Principal, project: str, person: str, *, joins: bool) -> Row:
    """Adds a person to a project, or removes one. Members and administrators may; everybody may leave."""
    found = await connection.execute("select id from projects where id = %s", (plain_id(project),))
    id = (await take_row(found, "project", project))["id"]
    if f"project:{id}" not in who.scopes and not who.is_admin:
        raise not_found("project", project)
    found = await connection.execute(
        "select id, name from people where (id = %(person)s or name = %(person)s) and disabled_at is null "
        "order by id <> %(person)s limit 1",
        {"person": check_name(person)},
    )
    member = await take_row(found, "person", person)
    async with account_rights(connection):
        if joins:
            await accounts.join_project(connection, id, member["id"])
        else:
            await connection.execute(
                "delete from project_members where project_id = %s and person_id = %s", (id, member["id"])
            )
    await audit.record(connection, who, "add member" if joins else "remove member", f"{id} {member['id']}")
    return {"project": id, "person": member}


def check_name(name: str) -> str:
    name = take_text({"name": name}, "name", least=1, most=_MOST_NAME)
    if any(unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp") for one in name):
        raise ApiError(400, "name: may not contain control characters.")
    check_words("name", name)
    return name


async def _find_project(connection: Connection, who: Principal, name: str) -> str:
    found = await connection.execute(
        "select id from projects where organisation_id = %s and name = %s", (who.organisation_id, name)
    )
    row = await found.fetchone()
    return row["id"] if row else ""
