"""What the operator does with accounts at the command line: find them by name, list them, disable and remove them. It
runs as the owner of the tables, and every change has a line in the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from reverie.errors import UserError
from reverie.quick import dataclass
from reverie.server import accounts
from reverie.server.audit import record_by_server
from reverie.server.database import Row
from reverie.settings.loading import find_nearest

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    Connection = AsyncConnection[Row]

Kind = Literal["person", "team", "project"]
_TABLES: Final = {"person": "people", "team": "teams", "project": "projects"}
_SCOPES: Final = {"person": "user", "team": "team", "project": "project"}
NOBODY: Final = "There is nobody yet: `reverie serve setup` makes an organisation, a person and a token."


@dataclass(frozen=True, slots=True)
class Operator:
    """The database as the operator sees it: one organisation, and who types the command."""

    connection: Connection
    organisation: str
    actor: str

    async def note(self, action: str, object: str) -> None:
        await record_by_server(self.connection, action, object, organisation=self.organisation, actor=self.actor)

    async def find(self, kind: Kind, name: str) -> Row:
        """By its name or its id."""
        rows = await self._rows(
            f"select * from {_TABLES[kind]} where organisation_id = %s and (name = %s or id = %s)",
            (self.organisation, name, name),
        )
        if rows:
            return rows[0]
        known = await self._rows(f"select name from {_TABLES[kind]} where organisation_id = %s", (self.organisation,))
        near = find_nearest(name, [str(row["name"]) for row in known])
        hint = f"did you mean {near!r}?" if near else f"`reverie serve {_TABLES[kind]}` lists all."
        raise UserError(f"There is no {kind} {name[:80]!r}; {hint}")

    async def people(self) -> list[Row]:
        return await self._rows(
            "select p.id, p.name, p.kind, p.is_admin, p.disabled_at, p.created_at, p.dream_budget::float8, "
            "array(select t.name from team_members m join teams t on t.id = m.team_id where m.person_id = p.id "
            "order by 1) as teams, "
            "array(select j.name from project_members m join projects j on j.id = m.project_id "
            "where m.person_id = p.id order by 1) as projects, "
            "(select count(*) from tokens t where t.person_id = p.id and t.revoked_at is null "
            "and (t.expires_at is null or t.expires_at > now())) as tokens "
            "from people p where p.organisation_id = %s order by p.name",
            (self.organisation,),
        )

    async def groups(self, kind: Literal["team", "project"]) -> list[Row]:
        extra = "g.dream_budget::float8" if kind == "team" else "(select name from teams where id = g.team_id) as team"
        return await self._rows(
            f"select g.id, g.name, {extra}, g.created_at, "
            f"array(select p.name from {kind}_members m join people p on p.id = m.person_id "
            f"where m.{kind}_id = g.id order by 1) as members, "
            f"(select count(*) from stores s where s.scope = '{kind}:' || g.id) as stores "
            f"from {_TABLES[kind]} g where g.organisation_id = %s order by g.name",
            (self.organisation,),
        )

    async def tokens(self, person: str = "") -> list[Row]:
        """All tokens, or those of a person (an id); secrets are not stored."""
        return await self._rows(
            "select t.id, p.name as person, t.name, t.may_write, t.created_at, t.expires_at, t.revoked_at, "
            "t.last_used_at, case when t.revoked_at is not null then 'revoked' "
            "when t.expires_at <= now() then 'expired' when p.disabled_at is not null then 'disabled' "
            "else 'active' end as state "
            "from tokens t join people p on p.id = t.person_id where p.organisation_id = %s and %s in ('', p.id) "
            "order by p.name, t.created_at",
            (self.organisation, person),
        )

    async def revoke(self, id: str) -> None:
        if id not in {str(row["id"]) for row in await self.tokens()}:
            raise UserError(f"There is no token {id[:80]!r}; `reverie serve tokens` lists all.")
        if not await accounts.revoke_token(self.connection, id):
            raise UserError(f"The token {id} is revoked already.")
        await self.note("revoke token", id)

    async def set_disabled(self, person: Row, disabled: bool) -> None:
        await self.connection.execute(
            "update people set disabled_at = case when %s then coalesce(disabled_at, now()) end where id = %s",
            (disabled, person["id"]),
        )
        await self.note("disable person" if disabled else "enable person", person["id"])

    async def set_membership(self, kind: Literal["team", "project"], group: Row, person: Row, joins: bool) -> None:
        if not joins:
            await self.connection.execute(
                f"delete from {kind}_members where {kind}_id = %s and person_id = %s".encode(),
                (group["id"], person["id"]),
            )
        elif kind == "team":
            await accounts.join_team(self.connection, group["id"], person["id"])
        else:
            await accounts.join_project(self.connection, group["id"], person["id"])
        await self.note(f"{'join' if joins else 'leave'} {kind}", f"{group['id']} {person['id']}")

    async def set_budget(
        self, table: Literal["people", "teams", "organisations"], id: str, dollars: float | None
    ) -> None:
        statement = f"update {table} set dream_budget = %s where id = %s"
        await self.connection.execute(statement.encode(), (dollars, id))
        await self.note("set budget", id)

    async def stores(self) -> list[Row]:
        """All stores with their figures, without contents."""
        return await self._rows(
            "select s.id, s.name, split_part(s.scope, ':', 1) as scope, coalesce(p.name, t.name, j.name) as whose, "
            "(select count(*) from memories m where m.store_id = s.id) as memories, s.updated_at, s.archived_at "
            "from stores s left join people p on s.scope = 'user:' || p.id "
            "left join teams t on s.scope = 'team:' || t.id left join projects j on s.scope = 'project:' || j.id "
            "where s.organisation_id = %s order by scope, whose, s.created_at",
            (self.organisation,),
        )

    async def stores_of(self, kind: Kind, row: Row) -> list[Row]:
        """The stores that only this person, team or project sees."""
        return await self._rows(
            "select s.id, s.name, (select count(*) from memories m where m.store_id = s.id) as memories "
            "from stores s where s.scope = %s order by s.created_at",
            (f"{_SCOPES[kind]}:{row['id']}",),
        )

    async def remove(self, kind: Kind, row: Row) -> None:
        """With its stores, memories, uploaded sessions, dreams, tokens and memberships. Versions that a person wrote in
        other stores stay."""
        for table in ("sessions", "dreams", "dream_settings", "stores"):
            scope = f"{_SCOPES[kind]}:{row['id']}"
            await self.connection.execute(f"delete from {table} where scope = %s".encode(), (scope,))
        await self.connection.execute(f"delete from {_TABLES[kind]} where id = %s".encode(), (row["id"],))
        await self.note(f"remove {kind}", row["id"])

    async def audit(self, *, limit: int, action: str = "") -> list[Row]:
        """The newest lines, with those that belong to no organisation. `what` has names instead of ids."""
        rows = await self._rows(
            "select a.at, a.action, a.object, a.outcome, a.actor, a.token_id, "
            "coalesce(p.name, a.person_id) as person "
            "from audit a left join people p on p.id = a.person_id "
            "where (a.organisation_id = %s or a.organisation_id is null) and %s in ('', a.action) "
            "order by a.at desc, a.id desc limit %s",
            (self.organisation, action, limit),
        )
        named = await self._rows(
            "select id, name from people union all select id, name from teams union all select id, name from projects "
            "union all select t.id, t.id || ' of ' || p.name from tokens t join people p on p.id = t.person_id",
            (),
        )
        names = {str(one["id"]): str(one["name"]) for one in named}
        return [row | {"what": " ".join(names.get(one, one) for one in str(row["object"]).split())} for row in rows]

    async def _rows(self, query: str, values: Sequence[Any]) -> list[Row]:
        return await (await self.connection.execute(query.encode(), values)).fetchall()


async def open_operator(connection: Connection, actor: str, organisation: str = "") -> Operator:
    """By the name or id of the organisation, which is needed only if there is more than one."""
    found = await connection.execute("select id, name from organisations order by name")
    rows = await found.fetchall()
    fit = [row for row in rows if organisation in ("", row["name"], row["id"])]
    if len(fit) == 1:
        return Operator(connection, str(fit[0]["id"]), actor)
    names = ", ".join(str(row["name"]) for row in rows)
    if not rows:
        raise UserError(NOBODY)
    if organisation:
        raise UserError(f"There is no organisation {organisation[:80]!r}; there are: {names}.")
    raise UserError(f"There are several organisations ({names}): say which with --organisation.")


async def set_up(connection: Connection, actor: str, organisation: str, person: str) -> accounts.NewToken:
    """A new organisation with its first administrator, and a token for this person."""
    id = await accounts.add_organisation(connection, organisation)
    who = await accounts.add_person(connection, id, person, is_admin=True)
    token = await accounts.add_token(connection, who, name="first")
    await Operator(connection, id, actor).note("add organisation", f"{id} {who} {token.id}")
    return token


async def is_empty(connection: Connection) -> bool:
    """Whether there is no organisation yet."""
    return await (await connection.execute("select 1 as one from organisations limit 1")).fetchone() is None
