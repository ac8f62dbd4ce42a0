"""What somebody with a token, or without one, could try: more than a page, large bodies, bombs, texts that take long,
and what should be gone."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from reverie.server.gate import hash_content
from tests.integration.server.asking import ask
from tests.integration.server.conftest import Served
from tests.integration.server.dreams.setup import call, inputs, query, said, upload

pytestmark = pytest.mark.integration


def make_store(served: Served, token: str, scope: str = "user", **more: Any) -> str:
    return ask(served, token, "POST", "/v1/reverie/memory_stores", {"name": "a", "scope": scope, **more})[1]["id"]


def post(served: Served, path: str, token: str, data: bytes) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=60)
    try:
        connection.request("POST", path, data, {"x-api-key": token})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.parametrize(
    "query", ["limit=000000000101", "limit=00000000199999", "depth=" + "0" * 21 + "9" * 30, "depth=" + "9" * 5_000]
)
def test_zeros_in_front_do_not_make_a_page_larger(shared: Served, query: str) -> None:
    store = make_store(shared, shared.anna, purpose=f"pages {query[:20]}")
    assert ask(shared, shared.anna, "GET", f"/v1/memory_stores/{store}/memories?{query}")[0] == 400


def test_a_nul_in_the_id_of_a_dream_is_404(shared: Served) -> None:
    for verb in ("land", "discard", "undo"):
        assert ask(shared, shared.anna, "POST", f"/v1/reverie/dreams/%00/{verb}", {})[0] == 404


def test_a_stranger_cannot_fill_the_memory_of_the_server(served: Served) -> None:
    """The body of an unknown token is dropped as it arrives."""
    before = _peak(served)
    sent = [threading.Thread(target=_send_slowly, args=(served, "rvt_unknown", 3_900_000)) for _ in range(30)]
    for one in sent:
        one.start()
    for one in sent:
        one.join()
    assert _peak(served) - before < 60_000  # KB; the bodies have 117,000
    assert post(served, "/v1/reverie/sessions", "rvt_unknown", b"x" * 1_000_000)[0] == 401


def _peak(served: Served) -> int:
    """The most memory that the server had, in KB."""
    lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _send_slowly(served: Served, token: str, size: int) -> None:
    host, _, port = urlsplit(served.url).netloc.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        head = (
            f"POST /v1/reverie/sessions HTTP/1.1\r\nhost: a\r\nx-api-key: {token}\r\ncontent-length: {size + 1}\r\n\r\n"
        )
        connection.sendall(head.encode() + b"x" * size)
        time.sleep(1)  # all are there at the same time, and none is complete


def test_connections_that_send_nothing_or_little_are_closed(shared: Served) -> None:
    host, _, port = urlsplit(shared.url).netloc.partition(":")
    silent, half, again = [socket.create_connection((host, int(port)), timeout=20) for _ in range(3)]
    with silent, half, again:
        half.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n")
        again.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += again.recv(65_536)
        assert answer.startswith(b"HTTP/1.1 200")
        again.sendall(b"GET /heal")
        began = time.monotonic()
        for one in (silent, half, again):
            assert one.recv(1) == b""
        assert time.monotonic() - began < 15


def test_thousands_of_pairs_are_refused_at_once(shared: Served) -> None:
    began = time.monotonic()
    body = {"name": "many", "metadata": {f"key {number}": "value" for number in range(40_000)}}
    assert ask(shared, shared.anna, "POST", "/v1/memory_stores", body)[0] == 400
    assert time.monotonic() - began < 3


def test_owner_functions_do_not_look_among_temporary_tables(shared: Served) -> None:
    found = query(
        shared.dsn,
        "select proname, proconfig from pg_proc where prosecdef and pronamespace = 'reverie'::regnamespace",
    )
    assert len(found) == 5
    assert all(settings and settings[0].endswith(", pg_temp") for _, settings in found), found


def test_a_small_upload_of_millions_of_records_is_refused_quickly(shared: Served) -> None:
    began = time.monotonic()
    status, answer = post(shared, "/v1/reverie/sessions", shared.anna, gzip.compress(b"{}\n" * 20_000_000, 1))
    assert status == 413 and "lines" in answer["error"]["message"]
    assert time.monotonic() - began < 15


def _record(number: int) -> bytes:
    said = [{"type": "text", "text": "a"}] * 9
    return json.dumps({"type": "user", "uuid": str(number), "message": {"role": "user", "content": said}}).encode()


UPLOADS = {
    "many rich records": lambda: b"\n".join(map(_record, range(200_000)))[:63_000_000],
    "one line of lists": lambda: b'{"type": "user", "message": [' + b"[]," * 5_000_000 + b"[]]}",
    "one line of lists, for ever": lambda: b'{"type": "user", "message": [' + b"[]," * 20_000_000 + b"[]]}",
    "one long text": lambda: b'{"type": "user", "message": {"role": "user", "content": "' + b"a" * 63_000_000 + b'"}}',
    "wide letters": lambda: (
        b'{"type": "user", "message": {"role": "user", "content": "' + b"\xf0\x9f\x98\x80" * 15_000_000 + b'"}}'
    ),
    "more than may be": lambda: b"x" * 400_000_000,
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_uploads_that_unpack_to_much_cost_the_server_little(served: Served, kind: str) -> None:
    """Four at once: what they unpack to is read elsewhere, within limits, and everybody else is answered meanwhile."""
    sent = gzip.compress(UPLOADS[kind](), 6)
    assert len(sent) < 2_000_000
    post(served, "/v1/reverie/sessions", served.anna, gzip.compress(_record(1)))  # what it loads late is loaded now
    before, statuses = _peak(served), list[int]()
    threads = [
        threading.Thread(target=lambda: statuses.append(post(served, "/v1/reverie/sessions", served.anna, sent)[0]))
        for _ in range(4)
    ]
    for one in threads:
        one.start()
    slowest, most_beside = 0.0, 0
    while any(one.is_alive() for one in threads):
        began = time.monotonic()
        assert ask(served, "", "GET", "/healthz")[0] == 200
        slowest, most_beside = max(slowest, time.monotonic() - began), max(most_beside, _beside(served))
        time.sleep(0.05)
    assert set(statuses) <= {200, 413}
    assert _peak(served) - before < 100_000  # KB
    assert most_beside < 700_000
    assert slowest < 2, "seconds; it was 12.8"


def _beside(served: Served) -> int:
    """The memory of the processes that the server has started, in KB."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            if int(lines["PPid"]) == served.process.pid:
                total += int(lines.get("VmRSS", "0 kB").split()[0])
    return total


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"1,", b'{"a":[]},', b'"",'], ids=repr)
def test_a_body_of_a_million_values_holds_nobody_up(served: Served, unit: bytes) -> None:
    body = b'{"content":[' + unit * (1_990_000 // len(unit)) + b"1]}"
    store, statuses = make_store(served, served.anna, purpose="values"), list[int]()

    def send() -> None:
        statuses.append(post(served, f"/v1/memory_stores/{store}/memories", served.anna, body)[0])

    threads = [threading.Thread(target=send) for _ in range(4)]
    for one in threads:
        one.start()
    slowest = 0.0
    while any(one.is_alive() for one in threads):
        began = time.monotonic()
        assert ask(served, "", "GET", "/healthz")[0] == 200
        slowest = max(slowest, time.monotonic() - began)
    assert set(statuses) <= {400, 413} and slowest < 1


def test_a_text_that_takes_long_to_check_is_refused(shared: Served) -> None:
    store = make_store(shared, shared.anna, purpose="long")
    began = time.monotonic()
    body = {"path": "/x.md", "content": "key=" * 25_000}
    status, answer = ask(shared, shared.anna, "POST", f"/v1/memory_stores/{store}/memories", body)
    assert status == 400 and "divide the text" in answer["error"]["message"]
    body = {"path": "/y.md", "content": "a key for the door of the house. " * 3_000}
    assert ask(shared, shared.anna, "POST", f"/v1/memory_stores/{store}/memories", body)[0] == 200
    body = {"path": "/z.md", "content": "z"}
    long = "key=" * 4_000
    assert ask(shared, shared.anna, "POST", f"/v1/memory_stores/{store}/memories", body, reason=long)[0] == 200
    assert time.monotonic() - began < 10


def test_a_process_that_is_stopped_in_a_transaction_loses_its_locks(shared: Served) -> None:
    from reverie.server.database import Database

    async def read() -> Any:
        async with Database.open(shared.dsn, size=1) as database, database.as_owner() as connection:
            return await (await connection.execute("show idle_in_transaction_session_timeout")).fetchone()

    assert asyncio.run(read()) == {"idle_in_transaction_session_timeout": "1min"}


def test_redaction_reaches_the_notes_of_dreams(shared: Served) -> None:
    import psycopg
    from psycopg.types.json import Jsonb

    store = make_store(shared, shared.anna, purpose="redacted")
    at = f"/v1/memory_stores/{store}"
    kept = ask(shared, shared.anna, "POST", f"{at}/memories", {"path": "/kept.md", "content": "kept"})[1]
    gone = ask(shared, shared.anna, "POST", f"{at}/memories", {"path": "/ada-is-ill.md", "content": "flu"})[1]
    session = upload(shared, shared.anna, said("Hello."))
    dream = call(shared, shared.anna, "POST", "/v1/dreams", {"inputs": inputs(store, [session]), "model": "embedded"})[
        "id"
    ]
    notes = [
        {
            "path": one["path"],
            "operation": "created",
            "state": "left",
            "why": f"about {one['path']}",
            "before_version": None,
            "before_sha256": None,
            "after_version": one["memory_version_id"],
            "after_sha256": one["content_sha256"],
        }
        for one in (kept, gone)
    ]
    with psycopg.connect(shared.dsn, options="-c search_path=reverie", autocommit=True) as owner:
        owner.execute(
            "update dreams set changes = %s, status = 'completed', review = 'landed' where id = %s",
            (Jsonb(notes), dream),
        )
        version = gone["memory_version_id"]
        assert ask(shared, shared.anna, "POST", f"{at}/memory_versions/{version}/redact", {})[0] == 200
        stored = owner.execute("select changes::text from dreams where id = %s", (dream,)).fetchone()
    assert stored is not None
    assert "ada-is-ill" not in stored[0] and hash_content("flu") not in stored[0]
    left = call(shared, shared.anna, "GET", f"/v1/dreams/{dream}")["left"]
    assert left == [{"path": "/kept.md", "reason": "about /kept.md"}, {"path": "", "reason": "redacted"}]
    assert ask(shared, shared.anna, "GET", f"/v1/reverie/dreams/{dream}/changes")[0] == 200
    assert ask(shared, shared.anna, "POST", f"/v1/reverie/dreams/{dream}/undo", {})[0] == 200


def test_a_removed_person_leaves_no_transcript(served: Served) -> None:
    from reverie.server.database import Database
    from reverie.server.operation.operator import open_operator

    store = make_store(served, served.ben, purpose="mine")
    session = upload(served, served.ben, said("I am ill."))
    body = {"inputs": inputs(store, [session]), "model": "embedded", "instructions": "Look at my illness."}
    call(served, served.ben, "POST", "/v1/dreams", body)
    call(served, served.ben, "POST", f"/v1/reverie/memory_stores/{store}/dreaming", {"review": True})

    async def remove() -> None:
        async with Database.open(served.dsn, size=1) as database, database.as_owner() as connection:
            operator = await open_operator(connection, "test", "ours")
            await operator.remove("person", await operator.find("person", "ben"))

    asyncio.run(remove())
    for table in ("sessions", "dreams", "dream_settings", "stores"):
        assert query(served.dsn, f"select count(*) from {table}") == [(0,)], table


def test_secrets_beside_memories_are_refused(shared: Served) -> None:
    store = make_store(shared, shared.anna, purpose="secrets")
    session = upload(shared, shared.anna, said("Hello."))
    secret = "ghp_" + "a8Kd93kLmQ0zXw7RtY5uVb2Nc4Jf6Hg1Ss9P"
    body = {"inputs": inputs(store, [session]), "model": "embedded", "instructions": f"Use {secret}."}
    status, answer = ask(shared, shared.anna, "POST", "/v1/dreams", body)
    assert status == 400 and secret not in str(answer)
    data = "\n".join(map(json.dumps, said("Hello."))).encode()
    assert post(shared, f"/v1/reverie/sessions?name={secret}", shared.anna, data)[0] == 400
