"""Operating a server: figures, logs, limits, TLS, slow clients, a database that goes away or is full, wrong clocks."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anthropic
import psycopg
import pytest

from reverie.server.embedded import EmbeddedPostgres
from tests.integration.server.conftest import Served, client

pytestmark = pytest.mark.integration
Start = Callable[..., Served]


def get(served: Served, path: str, token: str = "", **headers: str) -> tuple[int, str, Any]:
    """Status, body and headers of a request."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()} | ({"x-api-key": token} if token else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(served.url + path, headers=sent), timeout=30) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(), error.headers


def test_figures_logs_and_limits_have_no_contents(serve: Start, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        served = serve("--log", "requests", "--rate", "5", stderr=file)
    stores = client(served, served.anna).beta.memory_stores
    store = stores.create(name="zebra-name").id
    stores.memories.create(store, path="/zebra_path.md", content="zebra-content")
    assert get(served, "/v1/memory_stores/zebra-id", served.anna)[0] == 404
    assert get(served, "/v1/reverie/me", "rvt_zebra-token")[0] == 401
    assert json.loads(get(served, "/healthz")[1]) == {"status": "ok", "schema": 6}
    assert json.loads(get(served, "/nowhere/zebra")[1])["error"]["type"] == "not_found_error"

    status, text, _ = get(served, "/metrics", served.anna)
    assert status == 200
    found = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert found['reverie_requests_total{method="POST",route="/v1/memory_stores/{store}/memories",status="200"}'] == "1"
    assert found["reverie_writes_total"] == "2" and found["reverie_schema_version"] == "6"
    assert found['reverie_request_seconds_bucket{le="+Inf",route="/v1/memory_stores"}'] == "1"
    for headers in ({}, {"host": "127.0.0.1"}, {"host": "evil.example"}, {"x_forwarded_for": "127.0.0.1"}):
        assert get(served, "/metrics", **headers)[0] == 401, "a page or a reverse proxy may ask from this machine"
    assert get(served, "/metrics", served.ben)[0] == 403

    answers = [get(served, "/v1/reverie/me", served.ben) for _ in range(40)]
    assert {status for status, _, _ in answers} == {200, 429}
    refused = next(one for one in answers if one[0] == 429)
    assert refused[2]["retry-after"] == "1" and json.loads(refused[1])["error"]["type"] == "rate_limit_error"
    assert get(served, "/v1/reverie/me", served.eve)[0] == 200, "others are not slower for it"

    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    written = next(one for one in lines if one["route"].endswith("/memories"))
    assert (written["status"], written["store"], written["person"]) == (200, store, served.ids["anna"])
    for secret in ("zebra", served.anna, served.ben):
        assert secret not in log.read_text() and secret not in text
    with psycopg.connect(served.dsn) as connection:
        (row,) = connection.execute("select action, object, outcome from audit").fetchall()
        assert row == ("refuse token", "127.0.0.1", "refused")
        assert connection.execute("select count(*) from tokens where last_used_at is not null").fetchone() == (3,)


def test_slow_and_large_requests_do_not_hold_the_database(served: Served) -> None:
    port = int(served.url.rpartition(":")[2])
    head = f"POST /v1/memory_stores HTTP/1.1\r\nhost: x\r\nx-api-key: {served.anna}\r\ncontent-length: 100\r\n\r\n{{"
    slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(25)]
    for one in slow:
        one.sendall(head.encode())
    time.sleep(0.3)
    began = time.monotonic()
    assert get(served, "/v1/reverie/me", served.anna)[0] == 200
    assert time.monotonic() - began < 5, "more slow clients than connections, and others are served"
    for one in slow:
        one.close()
    with pytest.raises(anthropic.RequestTooLargeError):
        client(served, served.anna).beta.memory_stores.create(name="x" * 3_000_000)


def test_tls(serve: Start, tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = f"openssl req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -days 1 -subj /CN=localhost"
    subprocess.run([*command.split(), "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    options = ("--ssl-certfile", str(certificate), "--ssl-keyfile", str(key))
    served = serve(*options, "--host", "0.0.0.0", scheme="https")
    trusted = ssl.create_default_context(cafile=str(certificate))
    with urllib.request.urlopen(f"{served.url}/healthz", context=trusted, timeout=10) as answer:
        assert answer.status == 200


@pytest.fixture
def own(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that a test may stop."""
    one = EmbeddedPostgres.at(tmp_path / "own")
    one.start()
    yield one
    one.start()
    one.remove()


def test_a_database_that_restarts_is_503_until_it_is_back(own: EmbeddedPostgres, tmp_path: Path) -> None:
    from tests.integration.server.conftest import _serving

    seen: Counter[int] = Counter()
    stored = list[str]()
    without_hint = list[str]()
    ends = threading.Event()

    def write(served: Served, store: str, worker: int) -> None:
        memories = client(served, served.anna).beta.memory_stores.memories
        number = 0
        while not ends.is_set():
            number += 1
            path = f"/w{worker}/{number}.md"
            try:
                memories.create(store, path=path, content="x")
                stored.append(path)
                seen[200] += 1
            except anthropic.APIStatusError as error:
                seen[error.status_code] += 1
                if "retry-after" not in error.response.headers:
                    without_hint.append(str(error))
                time.sleep(0.05)

    with _serving(own.dsn) as start:
        served = start()
        store = client(served, served.anna).beta.memory_stores.create(name="s").id
        writers = [threading.Thread(target=write, args=(served, store, worker)) for worker in range(4)]
        for one in writers:
            one.start()
        time.sleep(1)
        for pause in (0.0, 8.0):  # once at once, once later than anything waits
            own._halt()
            time.sleep(pause)
            before = seen[200]
            own._launch(_programs(own))
            until = time.monotonic() + 20
            while seen[200] < before + 20 and time.monotonic() < until:
                time.sleep(0.1)
            assert seen[200] >= before + 20, f"the server recovers by itself: {seen}"
        ends.set()
        for one in writers:
            one.join()
        assert set(seen) <= {200, 503} and seen[503] > 0 and not without_hint, (seen, without_hint[:3])
        kept = {one.path for one in client(served, served.anna).beta.memory_stores.memories.list(store, limit=100)}
        assert set(stored) <= kept, "what was acknowledged is there"
        assert served.process.poll() is None


def _programs(own: EmbeddedPostgres) -> Path:
    from reverie.server.operation.postgres_programs import choose

    return choose(own.data)


def test_a_full_disk_is_a_sentence_and_reading_goes_on(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    from tests.integration.server.conftest import _serving

    if not postgres.user:
        pytest.skip("only root can make a small disk")
    small = Path(subprocess.check_output(["mktemp", "-d", "/tmp/reverie-small-XXXXXX"], text=True).strip())
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "none", small], capture_output=True).returncode:
        small.rmdir()
        pytest.skip("no small disk can be made here")
    try:
        (small / "space").mkdir()
        for place in (small, small / "space"):
            postgres._give(place)
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(f"create tablespace small location '{small}/space'".encode())
            connection.execute("create database full_disk tablespace small")
        dsn = postgres.dsn.replace("/postgres?", "/full_disk?")
        with _serving(dsn) as start:
            served = start()
            stores = client(served, served.anna).beta.memory_stores
            store = stores.create(name="s").id
            stores.memories.create(store, path="/before.md", content="there is room")
            _fill(small / "filler")
            with pytest.raises(anthropic.APIStatusError) as caught:
                for number in range(100):
                    text = "".join(f"{number} {line} {line * line}\n" for line in range(1_500))
                    stores.memories.create(store, path=f"/{number}.md", content=text)
            assert caught.value.status_code == 503 and "disk of the database is full" in str(caught.value)
            assert caught.value.response.headers["retry-after"] == "30"
            assert stores.memories.list(store, limit=100).data[-1].path == "/before.md"
            (small / "filler").unlink()
            stores.memories.create(store, path="/after.md", content="there is room again")
    finally:
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute("drop database if exists full_disk with (force)")
            connection.execute("drop tablespace if exists small")
        subprocess.run(["umount", small], check=True)
        small.rmdir()


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4_096)


_SKEWED = """
import runpy, sys, time
shift, real, real_ns = int(sys.argv.pop(1)), time.time, time.time_ns
time.time, time.time_ns = lambda: real() + shift, lambda: real_ns() + shift * 10**9
runpy.run_module("reverie", run_name="__main__", alter_sys=True)
"""


def test_servers_with_wrong_clocks_agree(serve: Start) -> None:
    """The clock of the database and the counter of the store decide; ids only look older or newer."""
    right = serve()
    behind, ahead = (_start_skewed(right, shift) for shift in (-86_400, 86_400))
    try:
        store = client(right, right.anna).beta.memory_stores.create(name="s").id
        paths = list[str]()
        for number in range(9):
            served = (behind, right, ahead)[number % 3]
            paths.append(f"/{number}.md")
            client(served, right.anna).beta.memory_stores.memories.create(store, path=paths[-1], content="x")
        _, text, _ = get(right, f"/v1/reverie/memory_stores/{store}/changes?after=0", right.anna)
        changes = json.loads(text)["data"]
        assert [one["path"] for one in changes] == paths and [one["number"] for one in changes] == list(range(1, 10))
        versions = client(right, right.anna).beta.memory_stores.memory_versions
        assert [one.path for one in versions.list(store, limit=4)] == paths[::-1], "pages by time, too"
    finally:
        for one in (behind, ahead):
            one.process.terminate()


def _start_skewed(right: Served, shift: int) -> Served:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", _SKEWED, str(shift), "serve", "--dsn", right.dsn, "--port", str(port)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    served = Served(f"http://127.0.0.1:{port}", right.dsn, process, right.anna, right.ben, right.eve, right.ids)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with suppress(OSError):
            if get(served, "/healthz")[0] == 200:
                return served
        time.sleep(0.1)
    raise AssertionError("the server did not start")
