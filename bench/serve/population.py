"""A database with 1,000 stores and as many memories as wanted, copied into the tables: 700 private stores, 200 of
projects, 99 of teams and one of the organisation. A person sees five of them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from bench.serve.texts import REAL, write_memories
from reverie.cli.output import show_progress
from reverie.quick import dataclass
from reverie.server import accounts
from reverie.server.database import Database
from reverie.server.migrating import SCHEMA
from reverie.server.vectors import Vectors

if TYPE_CHECKING:
    import psycopg

    from reverie.memory.recall.encoder import SentenceEncoder

PEOPLE: Final = 700
PROJECTS: Final = 200
TEAMS: Final = 99
_NOISE: Final = 0.6
"""Of the length of a vector: the closest of the others are then about as close as texts on one subject."""
_PART: Final = 5_000
_ROW = struct.Struct(">h")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who asks: a token, and the store that only this person sees."""

    token: str
    store: str


async def make_people(dsn: str, known: int) -> list[Person]:
    """Everybody and all stores; `known` of them get a token."""
    async with Database.open(dsn, size=1) as database, database.as_owner() as connection:
        organisation = await accounts.add_organisation(connection, "lab")
        teams = [await accounts.add_team(connection, organisation, f"team {number}") for number in range(TEAMS)]
        projects = [
            await accounts.add_project(connection, organisation, f"project {number}") for number in range(PROJECTS)
        ]
        scopes = [
            f"organisation:{organisation}",
            *(f"team:{id}" for id in teams),
            *(f"project:{id}" for id in projects),
        ]
        tokens = list[str]()
        people = list[str]()
        for number in range(PEOPLE):
            person = await accounts.add_person(connection, organisation, f"person {number}")
            people.append(person)
            scopes.append(f"user:{person}")
            await accounts.join_team(connection, teams[number % TEAMS], person)
            for project in {number % PROJECTS, (number * 7 + 3) % PROJECTS}:
                await accounts.join_project(connection, projects[project], person)
            if number < known:
                tokens.append((await accounts.add_token(connection, person)).secret)
        for number, scope in enumerate(scopes):
            await connection.execute(
                "insert into stores (id, organisation_id, scope, name) values (%s, %s, %s, %s)",
                (f"memstore_{number:04}", organisation, scope, f"store {number}"),
            )
        mine = {scope: f"memstore_{number:04}" for number, scope in enumerate(scopes)}
        return [Person(token, mine[f"user:{person}"]) for token, person in zip(tokens, people, strict=False)]


def fill(dsn: str, encoder: SentenceEncoder, sentences: list[str], count: int) -> None:
    """Copies the memories with versions, words and vectors, then builds the indexes again."""
    import psycopg

    vectors = Vectors(lambda: encoder)
    asyncio.run(vectors.start())
    options = f"-c search_path={SCHEMA}"
    with psycopg.connect(dsn, autocommit=True, options=options) as connection:
        stores = connection.execute("select id, scope from stores order by id").fetchall()
        connection.execute("alter table memories disable trigger user")
        for table in ("memories", "versions"):
            connection.execute(f"truncate {table} cascade".encode())
        texts = write_memories(sentences, count)
        around = _vectors(encoder, sentences)
        done = 0
        while done < count:
            part = [(done + place, *next(texts)) for place in range(min(_PART, count - done))]
            _copy(connection, part, stores, vectors.name, around([first for _, first, _ in part]))
            done += len(part)
            show_progress(f"{done:,} of {count:,} memories")
        connection.execute(
            "insert into recall_words select id, scope, setweight(to_tsvector('english', description), 'A') "
            "|| to_tsvector('english', content) "
            "from (select *, substring(content from '^---\\n(.*?)\\n---') as description from memories) m"
        )
        connection.execute(
            "update stores set counter = coalesce((select max(number) from memories where store_id = stores.id), 0)"
        )
        connection.execute("alter table memories enable trigger user")
        connection.execute("vacuum analyze")
    vectors.close()


def _vectors(encoder: SentenceEncoder, sentences: list[str]) -> Callable[[Sequence[int]], Iterator[bytes]]:
    """Vectors around the real ones, in the binary form of `halfvec`."""
    import numpy as np

    real = encoder.encode(sentences[:REAL])
    chance = np.random.default_rng(13)

    def around(which: Sequence[int]) -> Iterator[bytes]:
        noise = chance.standard_normal((len(which), real.shape[1]), np.float32)
        noise *= _NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
        made = real[list(which)] + noise
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        for row in made.astype(">f2"):
            yield struct.pack(">hh", len(row), 0) + row.tobytes()

    return around


def _copy(
    connection: psycopg.Connection[Any],
    part: Sequence[tuple[int, int, str]],
    stores: Sequence[tuple[str, str]],
    encoder: str,
    vectors: Iterator[bytes],
) -> None:
    rows = [
        (f"mem_{number:09}", f"memver_{number:09}", *stores[number % len(stores)], number, text)
        for number, _, text in part
    ]
    with connection.cursor() as cursor:
        with cursor.copy(
            "copy memories (id, store_id, scope, path, content, sha256, size, version_id, number, created_at, "
            "updated_at) from stdin"
        ) as copy:
            for id, version, store, scope, number, text in rows:
                data = text.encode()
                copy.write_row(
                    (id, store, scope, f"/project_{number:x}.md", text, sha256(data).hexdigest(), len(data), version,
                     number // len(stores) + 1, "now", "now")
                )  # fmt: skip
        with cursor.copy(
            "copy versions (id, store_id, scope, memory_id, number, operation, path, content, sha256, size, "
            "actor_type, actor_id) from stdin"
        ) as copy:
            for id, version, store, scope, number, text in rows:
                data = text.encode()
                copy.write_row(
                    (version, store, scope, id, number // len(stores) + 1, "created", f"/project_{number:x}.md", text,
                     sha256(data).hexdigest(), len(data), "user_actor", "lab")
                )  # fmt: skip
        with cursor.copy(
            "copy recall_vectors (scope, memory_id, encoder, passage, vector) from stdin (format binary)"
        ) as copy:
            copy.write(b"PGCOPY\n\xff\r\n\0" + bytes(8))
            for id, _, _, scope, _, _ in rows:
                fields = (scope.encode(), id.encode(), encoder.encode(), _ROW.pack(0), next(vectors))
                copy.write(_ROW.pack(len(fields)) + b"".join(_LENGTH.pack(len(one)) + one for one in fields))
            copy.write(_ROW.pack(-1))


def database_size(dsn: str) -> int:
    """Bytes on disk."""
    import psycopg

    with psycopg.connect(dsn) as connection:
        row = connection.execute("select pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0


def wait_for_vectors(dsn: str) -> bool:
    """Whether no memory waits for its vector."""
    import psycopg

    with psycopg.connect(dsn, options=f"-c search_path={SCHEMA}") as connection:
        row = connection.execute("select count(*) from recall_waiting").fetchone()
    return not (row and row[0])
