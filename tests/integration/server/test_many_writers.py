"""Fifty writers on few stores and two servers: every acknowledged write is there, and versions have no gaps."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import psycopg
import pytest

from tests.counts import count
from tests.integration.server.asking import Caller, ask
from tests.integration.server.conftest import Served

pytestmark = pytest.mark.integration
WRITERS = 50
WRITES = count(10, 40)


def test_every_acknowledged_write_is_there(serve: Callable[[], Served]) -> None:
    servers = [serve(), serve()]
    first = servers[0]
    body = {"name": "shared", "scope": "project:shop", "if_missing": True}
    stores = [
        ask(first, first.anna, "POST", "/v1/reverie/memory_stores", body | {"purpose": str(number)})[1]["id"]
        for number in range(3)
    ]
    hot = [
        ask(first, first.anna, "POST", f"/v1/memory_stores/{store}/memories", {"path": "/hot.md", "content": "0"})[1]
        for store in stores
    ]

    def write(writer: int) -> list[tuple[str, str, str]]:
        """What was acknowledged: the store, the version and the hash of its content."""
        chance, done = random.Random(writer), list[tuple[str, str, str]]()
        caller = Caller(servers[writer % 2].url, (first.anna, first.ben)[writer % 3 == 0])
        for number in range(WRITES):
            at = chance.randrange(len(stores))
            path, content = f"/v1/memory_stores/{stores[at]}/memories", f"{writer} {number}"
            if chance.random() < 0.5:
                given = {"path": f"/w{writer}/{number}.md", "content": content}
                status, answer = caller.ask("POST", path, given, reason=f"writer {writer}")
                assert status == 200, answer
            else:
                one = f"{path}/{hot[at]['id']}"
                hash = caller.ask("GET", one)[1]["content_sha256"]
                condition = {"type": "content_sha256", "content_sha256": hash}
                status, answer = caller.ask("POST", one, {"content": content, "precondition": condition})
                assert status in (200, 409), answer
            if status == 200:
                done.append((stores[at], answer["memory_version_id"], sha256(content.encode()).hexdigest()))
                assert answer["content_sha256"] == done[-1][2]
        caller.close()
        return done

    with ThreadPoolExecutor(WRITERS) as pool:
        acknowledged = [one for done in pool.map(write, range(WRITERS)) for one in done]
    with psycopg.connect(first.dsn, options="-c search_path=reverie") as connection:
        stored = connection.execute("select store_id, id, sha256 from versions where number > 1").fetchall()
        assert sorted(stored) == sorted(acknowledged) and len(acknowledged) > WRITERS * WRITES / 2
        for store in stores:
            numbers = [
                row[0]
                for row in connection.execute(
                    "select number from versions where store_id = %s order by created_at, number", (store,)
                )
            ]
            counter = connection.execute("select counter from stores where id = %s", (store,)).fetchone()
            assert numbers == list(range(1, len(numbers) + 1)) and counter == (len(numbers),)
        stale = connection.execute(
            "select count(*) from memories m join versions v on v.id = m.version_id "
            "where (m.path, m.content, m.sha256, m.number) is distinct from (v.path, v.content, v.sha256, v.number) "
            "or exists (select from versions n where n.memory_id = m.id and n.number > m.number)"
        ).fetchone()
        assert stale == (0,)
