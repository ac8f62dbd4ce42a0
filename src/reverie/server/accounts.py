"""Organisations, people, services, teams, projects and their tokens, as the operator manages them (as the owner)."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.server.database import Row, hash_token
from reverie.server.ids import new_id

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

TOKEN_START: Final = "rvt_"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that was just made; `secret` is shown once and not stored."""

    id: str
    secret: str
    expires_at: datetime | None = None


async def add_organisation(connection: Connection, name: str) -> str:
    return await _add(connection, "organisations", "org", name)


async def add_person(
    connection: Connection, organisation: str, name: str, *, is_service: bool = False, is_admin: bool = False
) -> str:
    """Adds a person, or a service such as a pipeline, to an organisation (its id)."""
    kind = "service" if is_service else "person"
    return await _add(
        connection,
        "people",
        "svac" if is_service else "user",
        name,
        organisation_id=organisation,
        kind=kind,
        is_admin=is_admin,
    )


async def add_team(connection: Connection, organisation: str, name: str) -> str:
    return await _add(connection, "teams", "team", name, organisation_id=organisation)


async def add_project(connection: Connection, organisation: str, name: str, *, team: str | None = None) -> str:
    return await _add(connection, "projects", "proj", name, organisation_id=organisation, team_id=team)


async def join_team(connection: Connection, team: str, person: str) -> None:
    await connection.execute(
        "insert into team_members (team_id, person_id) values (%s, %s) on conflict do nothing", (team, person)
    )


async def join_project(connection: Connection, project: str, person: str) -> None:
    await connection.execute(
        "insert into project_members (project_id, person_id) values (%s, %s) on conflict do nothing", (project, person)
    )


async def scopes_of(connection: Connection, person: str | None) -> list[str]:
    """What a person or service sees now; nothing if it is disabled or gone."""
    found = await connection.execute(
        "select array['user:' || p.id, 'organisation:' || p.organisation_id] "
        "|| array(select 'team:' || m.team_id from team_members m where m.person_id = p.id) "
        "|| array(select 'project:' || m.project_id from project_members m where m.person_id = p.id) as scopes "
        "from people p where p.id = %s and p.disabled_at is null",
        (person,),
    )
    row = await found.fetchone()
    return list(row["scopes"]) if row else []


async def add_token(
    connection: Connection, person: str, *, name: str = "", days: float | None = None, may_write: bool = True
) -> NewToken:
    """Makes a token for a person or service; `days` until it expires."""
    id, secret = new_id("apikey"), TOKEN_START + secrets.token_urlsafe(32)
    added = await connection.execute(
        "insert into tokens (id, person_id, name, hash, may_write, expires_at) values (%s, %s, %s, %s, %s, now() + %s) "
        "returning expires_at",
        (id, person, name, hash_token(secret), may_write, None if days is None else timedelta(days=days)),
    )
    row = await added.fetchone()
    return NewToken(id, secret, row["expires_at"] if row else None)


async def revoke_token(connection: Connection, id: str) -> bool:
    """Whether there was such a token that still worked."""
    done = await connection.execute("update tokens set revoked_at = now() where id = %s and revoked_at is null", (id,))
    return done.rowcount > 0


async def _add(connection: Connection, table: str, prefix: str, name: str, **values: object) -> str:
    from psycopg import errors, sql

    id = new_id(prefix)
    row: dict[str, object] = {"id": id, "name": name, **values}
    columns = sql.SQL(", ").join(map(sql.Identifier, row))
    places = sql.SQL(", ").join(sql.Placeholder() * len(row))
    query = sql.SQL("insert into {} ({}) values ({})").format(sql.Identifier(table), columns, places)
    try:
        async with connection.transaction():
            await connection.execute(query, list(row.values()))
    except errors.UniqueViolation as error:
        raise UserError(f"There is already one with the name {name!r}.") from error
    except errors.ForeignKeyViolation as error:
        raise UserError("It belongs to something that does not exist.") from error
    return id
