"""Migrations under load, interrupted ones, and newer schemas: with a later version of Reverie that has one more."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

import reverie
from tests.integration.server.conftest import Served, client

pytestmark = pytest.mark.integration
NUMBER = 9_999


@pytest.fixture
def later(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """The environment of a Reverie with one more migration, which has this SQL."""

    def make(sql: str) -> dict[str, str]:
        source, copy = Path(reverie.__file__).parent, tmp_path / "later" / "reverie"
        shutil.rmtree(copy.parent, ignore_errors=True)
        copy.mkdir(parents=True)
        for path in source.iterdir():
            if path.name == "server":
                shutil.copytree(path, copy / "server")
            elif path.name != "__pycache__":
                (copy / path.name).symlink_to(path)
        (copy / "server" / "migrations" / f"{NUMBER}_later.sql").write_text(sql)
        return {"PYTHONPATH": str(copy.parent), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    return make


def schema(dsn: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute("select max(number) from reverie.migrations").fetchone()
        return int(row[0]) if row else 0


def test_old_servers_work_while_a_new_one_migrates(
    serve: Callable[..., Served], later: Callable[[str], dict[str, str]]
) -> None:
    old = serve()
    stores = client(old, old.anna).beta.memory_stores
    store = stores.create(name="s").id
    slowest, written, ends = 0.0, 0, threading.Event()

    def write() -> None:
        nonlocal slowest, written
        while not ends.is_set():
            began = time.monotonic()
            stores.memories.create(store, path=f"/{written}.md", content="x")
            slowest, written = max(slowest, time.monotonic() - began), written + 1

    writer = threading.Thread(target=write)
    writer.start()
    with psycopg.connect(old.dsn) as reader:
        reader.execute("select count(*) from reverie.stores")  # somebody reads for a long time: the change must wait
        ended = threading.Timer(6, reader.commit)
        ended.start()
        new = serve(env=later("alter table stores add column later text; alter table memories add column later text;"))
        ended.join()
    before = written
    time.sleep(1)
    ends.set()
    writer.join()
    assert schema(old.dsn) == NUMBER and written > before, "the old server goes on with the new schema"
    assert slowest < 5, f"everybody waited for {slowest:.1f} s"
    assert len(list(client(new, new.anna).beta.memory_stores.memories.list(store, limit=100))) == written


def test_a_killed_migration_leaves_the_old_schema_and_the_next_start_finishes(
    dsn: str, serve: Callable[..., Served], later: Callable[[str], dict[str, str]]
) -> None:
    serve().kill()
    number = schema(dsn)
    env = later("create table half (); select pg_sleep(3); create table whole ();")
    command = [sys.executable, "-m", "reverie", "serve", "--dsn", dsn, "--port", "0"]
    killed = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL)
    with psycopg.connect(dsn, autocommit=True) as connection:
        until = time.monotonic() + 60
        sleeping = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
        while connection.execute(sleeping).fetchone() == (0,) and time.monotonic() < until:
            time.sleep(0.05)
        killed.kill()
        killed.wait()
        assert schema(dsn) == number
        assert connection.execute("select to_regclass('reverie.half')").fetchone() == (None,)
        serve(env=env)
        assert schema(dsn) == NUMBER
        assert connection.execute("select to_regclass('reverie.half'), to_regclass('reverie.whole')").fetchone() != (
            None,
            None,
        )
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    said = [line for line in done.stderr.splitlines() if line.startswith("reverie:")]
    assert done.returncode == 2 and len(said) == 1 and "Traceback" not in done.stderr, done.stderr
    assert f"The database has schema {NUMBER}, and this Reverie knows {number}" in said[0]
