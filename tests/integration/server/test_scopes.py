"""No row of a foreign scope is ever read, changed or deleted: random attempts over HTTP, and in SQL without conditions
inside the transaction of a request. Two organisations, each with teams, projects, people and a service."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from reverie.server import accounts, memories, stores
from reverie.server.database import Database, Principal
from reverie.server.gate import Author
from reverie.server.ids import new_id
from tests.counts import count
from tests.integration.server.asking import Caller
from tests.integration.server.conftest import Served

pytestmark = pytest.mark.integration
BY_SQL = count(1_800, 98_000)
BY_HTTP = count(200, 4_000)
PER_TRANSACTION = 20
SEED = 55


@dataclass
class Person:
    id: str
    token: str
    organisation: str
    scopes: set[str]


@dataclass
class World:
    """What exists, and who may see it."""

    people: list[Person] = field(default_factory=list[Person])
    scope_of: dict[str, str] = field(default_factory=dict[str, str])
    """Of stores, memories and versions, by id."""
    stores: list[str] = field(default_factory=list[str])
    memories: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Store, memory and version."""
    projects: dict[str, str] = field(default_factory=dict[str, str])
    """The organisation of each."""


async def make_world(database: Database) -> World:
    world = World()
    async with database.as_owner() as connection:
        for name in ("red", "blue"):
            organisation = await accounts.add_organisation(connection, name)
            teams = [await accounts.add_team(connection, organisation, f"team {n}") for n in range(3)]
            projects = [await accounts.add_project(connection, organisation, f"project {n}") for n in range(3)]
            world.projects |= dict.fromkeys(projects, organisation)
            for number in range(5):
                id = await accounts.add_person(connection, organisation, f"p{number}", is_service=number == 4)
                token = await accounts.add_token(connection, id)
                scopes = {f"user:{id}", f"organisation:{organisation}"}
                for team in teams[: 1 + number % 3]:
                    await accounts.join_team(connection, team, id)
                    scopes.add(f"team:{team}")
                for project in projects[number % 3 :]:
                    await accounts.join_project(connection, project, id)
                    scopes.add(f"project:{project}")
                world.people.append(Person(id, token.secret, organisation, scopes))
    for person in world.people:
        async with database.as_token(person.token) as (connection, who):
            for scope in sorted(person.scopes):
                made = await stores.create(connection, who, {"name": scope}, scope=scope)
                await fill(connection, world, who, made["id"], scope)
    return world


async def fill(connection: Any, world: World, who: Principal, store: str, scope: str) -> None:
    world.stores.append(store)
    world.scope_of[store] = scope
    for path in ("/a.md", "/b/c.md"):
        one = await memories.create(connection, store, Author.of(who), path, f"kiwi of {who.person_id}")
        world.memories.append((store, one["id"], one["version_id"]))
        world.scope_of |= {one["id"]: scope, one["version_id"]: scope}


# ------------------------------------------------------------------ SQL

READS = (
    "select * from {table}",
    "select * from {table} where true order by random() limit 5",
    "select {table}.* from {table}, generate_series(1, 2)",
    "select a.* from {table} a full join {table} b on a.ctid = b.ctid",
    "select * from (select * from {table} offset 0) x where {column} not in (select unnest(%(own)s::text[]))",
    "select * from {table} where {column} = any (%(foreign)s)",
    "select * from {table} tablesample system (100)",
)
CHANGES = (
    "update memories set content = %(mark)s returning scope",
    "update memories set trust = 'inferred' where scope = any (%(foreign)s) returning scope",
    "update versions set reason = %(mark)s returning scope",
    "update versions set redacted_at = now() where store_id <> 'x' returning scope",
    "update stores set description = %(mark)s returning scope",
    "update stores set counter = counter + 1 where scope = any (%(foreign)s) returning scope",
    "delete from memories where scope = any (%(foreign)s) returning scope",
    "delete from memories where id = any (%(ids)s) returning scope",
    "delete from stores where scope = any (%(foreign)s) or id = any (%(ids)s) returning scope",
    "merge into memories m using (select %(ids)s::text[] as ids) g on m.id = any (g.ids) "
    "when matched then update set content = %(mark)s returning m.scope",
)
REFUSED = (
    "update memories set scope = %(one)s where store_id = %(own_store)s",
    "update stores set scope = %(one)s where id = %(own_store)s",
    "update stores set organisation_id = %(organisation)s where id = %(own_store)s",
    "update memories set store_id = %(store)s where store_id = %(own_store)s",
    "insert into memories (id, store_id, scope, path, content, sha256, size, version_id, number, created_at, "
    "updated_at) values (%(new)s, %(store)s, %(mine)s, '/a.md', '', '', 0, '', 1, now(), now())",
    "insert into memories (id, store_id, scope, path, content, sha256, size, version_id, number, created_at, "
    "updated_at) values (%(new)s, %(store)s, %(one)s, '/new.md', '', '', 0, '', 1, now(), now())",
    "insert into versions (id, store_id, scope, memory_id, number, operation, actor_type, actor_id) "
    "values (%(new)s, %(store)s, %(mine)s, '', 99999, 'deleted', 'user_actor', '')",
    "insert into stores (id, organisation_id, scope, name) values (%(new)s, %(mine_organisation)s, %(one)s, '')",
    "insert into stores (id, organisation_id, scope, name) values (%(new)s, %(organisation)s, %(mine)s, '')",
    "delete from versions",
    "select * from tokens",
    "select * from team_members",
    "select * from project_members",
    "select * from audit",
    "insert into project_members values (%(project)s, %(person)s)",
    "update people set is_admin = true",
    "insert into audit (organisation_id, action) values (%(organisation)s, 'x')",
    "truncate memories",
    "alter table memories disable row level security",
    "drop policy own on memories",
)


async def attempt_sql(
    connection: AsyncConnection[Any], chance: random.Random, world: World, who: Person, tables: dict[str, str]
) -> None:
    foreign = sorted(set(world.scope_of.values()) - who.scopes)
    foreign_stores = [one for one in world.stores if world.scope_of[one] not in who.scopes]
    other = next(one for one in world.people if one.organisation != who.organisation)
    given = {
        "own": sorted(who.scopes | {who.organisation}),
        "foreign": foreign,
        "one": chance.choice(foreign),
        "mine": chance.choice(sorted(who.scopes)),
        "mark": f"kiwi of {who.id}",
        "ids": [id for id, scope in world.scope_of.items() if scope not in who.scopes],
        "store": chance.choice(foreign_stores),
        "own_store": chance.choice([one for one in world.stores if world.scope_of[one] in who.scopes]),
        "organisation": other.organisation,
        "mine_organisation": who.organisation,
        "new": new_id("mem"),
        "person": who.id,
        "project": chance.choice([id for id in world.projects if f"project:{id}" not in who.scopes]),
    }
    kind = chance.random()
    if kind < 0.6:
        table, column = chance.choice(sorted(tables.items()))
        text = chance.choice(READS).format(table=table, column=column)
        rows = await (await connection.execute(text.encode(), given)).fetchall()
        allowed = who.scopes if column == "scope" else {who.organisation}
        assert {row[column] for row in rows} <= allowed | {None}, text
    elif kind < 0.8:
        text = chance.choice(CHANGES)
        async with connection.transaction(force_rollback=chance.random() < 0.7):
            rows = await (await connection.execute(text.encode(), given)).fetchall()
            assert {row["scope"] for row in rows} <= who.scopes, text
    else:
        text = chance.choice(REFUSED)
        with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported)):
            async with connection.transaction():
                await connection.execute(text.encode(), given)


async def readable_tables(database: Database) -> dict[str, str]:
    """The tables that a request may read, with the column that says whose a row is. Each has row-level security."""
    async with database.as_owner() as connection:
        found = await connection.execute(
            "select c.relname as name, c.relrowsecurity as is_safe, "
            "array(select attname::text from pg_attribute where attrelid = c.oid and attnum > 0) as columns "
            "from pg_class c where c.relnamespace = 'reverie'::regnamespace and c.relkind in ('r', 'p', 'v', 'm') "
            "and (has_table_privilege('reverie_app', c.oid, 'select, insert, update, delete') "
            "or has_any_column_privilege('reverie_app', c.oid, 'select, insert, update'))"
        )
        rows = await found.fetchall()
        assert {"stores", "memories", "versions"} <= {row["name"] for row in rows}
        assert [row["name"] for row in rows if not row["is_safe"]] == []
        found = await connection.execute(
            "select relname as name from pg_class where relnamespace = 'reverie'::regnamespace and relkind = 'r' "
            "and has_table_privilege('reverie_app', oid, 'select')"
        )
        names = {row["name"] for row in await found.fetchall()}
    tables = dict[str, str]()
    for row in rows:
        if row["name"] in names:
            owners = [one for one in ("scope", "organisation_id") if one in row["columns"]]
            tables[row["name"]] = (owners or ["id"])[0]
    assert [name for name, column in tables.items() if column == "id"] == ["organisations"]
    return tables


# ------------------------------------------------------------------ HTTP


def attempt_http(caller: Caller, chance: random.Random, world: World, who: Person) -> None:
    store, memory, version = chance.choice(world.memories)
    at, ours = f"/v1/memory_stores/{store}", f"/v1/reverie/memory_stores/{store}"
    target = chance.choice(world.stores)
    mark = {"content": f"kiwi of {who.id}"}
    project = chance.choice(list(world.projects))
    scope = chance.choice(sorted(set(world.scope_of.values())))
    may = world.scope_of[store] in who.scopes
    one, may_do = chance.choice(
        [
            (("GET", at), may),
            (("POST", at, {"description": mark["content"]}), may),
            (("GET", f"{at}/memories?view=full"), may),
            (("GET", f"{at}/memories?depth=1"), may),
            (("POST", f"{at}/memories", {"path": f"/{new_id('x')}.md"} | mark), may),
            (("GET", f"{at}/memories/{memory}"), may),
            (("POST", f"{at}/memories/{memory}", mark), may),
            (("GET", f"{at}/memory_versions?view=full"), may),
            (("GET", f"{at}/memory_versions/{version}"), may),
            (("GET", f"{ours}/changes"), may),
            (
                ("POST", f"{ours}/memories/{memory}/share", {"store": target, "path": f"/{new_id('x')}.md"}),
                may and world.scope_of[target] in who.scopes,
            ),
            (("GET", "/v1/memory_stores?limit=100&include_archived=true"), True),
            (("GET", "/v1/reverie/memory_stores?limit=100"), True),
            (("GET", f"/v1/reverie/memory_stores?scope={scope}"), scope in who.scopes),
            (
                ("POST", "/v1/reverie/memory_stores", {"name": "x", "scope": scope, "if_missing": True}),
                scope in who.scopes,
            ),
            (("GET", "/v1/reverie/me"), True),
            (("POST", "/v1/reverie/recall", {"query": "kiwi", "limit": 50}), True),
            (
                ("POST", f"/v1/reverie/projects/{project}/members", {"person": who.id}),
                f"project:{project}" in who.scopes,
            ),
            *(
                []
                if may  # the world must last
                else [
                    (("DELETE", at), False),
                    (("POST", f"{at}/archive"), False),
                    (("DELETE", f"{at}/memories/{memory}"), False),
                    (("POST", f"{at}/memory_versions/{version}/redact"), False),
                ]
            ),
        ]
    )
    status, answer = caller.ask(*one)
    if not may_do:
        assert status in (400, 403, 404), (one, status)
    elif "/memories/" not in one[1]:  # a memory may be deleted, and a version redacted, by now
        assert status == 200, (one, answer)
    text = json.dumps(answer)
    shown = {id for id in world.scope_of if id in text and id not in one[1]}
    shown -= {id for id in (target,) if status == 404}  # the error repeats what the caller sent
    assert {world.scope_of[id] for id in shown} <= who.scopes, one
    writers = {other.id for other in world.people if f"kiwi of {other.id}" in text}
    assert all(any(other.id == id and other.scopes & who.scopes for other in world.people) for id in writers), one


def test_nothing_foreign_is_seen_or_changed(serve: Callable[[], Served]) -> None:
    served, chance = serve(), random.Random(SEED)

    async def by_sql() -> World:
        async with Database.open(served.dsn, size=2) as database:
            world, tables = await make_world(database), await readable_tables(database)
            for _ in range(BY_SQL // PER_TRANSACTION):
                who = chance.choice(world.people)
                async with database.as_token(who.token) as (connection, _):
                    for _ in range(PER_TRANSACTION):
                        await attempt_sql(connection, chance, world, who, tables)
            return world

    world = asyncio.run(by_sql())
    callers = {one.id: Caller(served.url, one.token) for one in world.people}
    for _ in range(BY_HTTP):
        who = chance.choice(world.people)
        attempt_http(callers[who.id], chance, world, who)
    with psycopg.connect(served.dsn, options="-c search_path=reverie") as connection:
        scopes = {one.id: one.scopes for one in world.people}
        written = "memory_id not in (select memory_id from versions where copied_from is not null)"  # not shared
        for statement in (
            f"select scope, content from (select *, id as memory_id from memories) m where {written}",
            f"select scope, content from versions where {written}",
            "select scope, 'kiwi of ' || actor_id from versions",
            "select scope, reason from versions",
            "select scope, description from stores",
        ):
            for scope, text in connection.execute(statement.encode()).fetchall():
                if text and text.startswith("kiwi of "):
                    assert scope in scopes[text.removeprefix("kiwi of ")], statement
        mixed = "select count(*) from {} t join stores s on s.id = t.store_id where t.scope <> s.scope"
        for table in ("memories", "versions"):
            assert connection.execute(mixed.format(table).encode()).fetchone() == (0,)
        kept = {row[0] for row in connection.execute("select id from stores").fetchall()}
        assert kept >= set(world.stores)  # nobody deletes a foreign store, and here nobody deletes an own one
