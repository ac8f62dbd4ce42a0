"""The memories resource of the anthropic SDK, unchanged, over a real server: a test per method, and what is refused."""

from __future__ import annotations

import asyncio
import json
import time
import unicodedata
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import anthropic
import pytest

from reverie.server.ids import new_id
from tests.integration.server.asking import ask
from tests.integration.server.conftest import Served, client

pytestmark = pytest.mark.integration
TOKEN = "ghp_" + "a8Kd93kLmQ0zXw7RtY5uVb2Nc4Jf6Hg1Ss9P"


@pytest.fixture
def served(shared: Served) -> Served:
    return shared


@pytest.fixture
def store(served: Served) -> str:
    return client(served, served.anna).beta.memory_stores.create(name="Shop").id


def test_create_and_retrieve(served: Served, store: str) -> None:
    memories = client(served, served.anna).beta.memory_stores.memories
    text = "Grüße 👋\r\n"
    made = memories.create(store, path="/notes/a.md", content=text)
    assert made.id.startswith("mem_") and made.memory_version_id.startswith("memver_") and made.type == "memory"
    assert (made.content, made.path, made.memory_store_id) == (None, "/notes/a.md", store)
    assert made.content_sha256 == sha256(text.encode()).hexdigest() and made.content_size_bytes == len(text.encode())
    assert made.created_at == made.updated_at
    assert memories.retrieve(made.id, memory_store_id=store).content == text
    assert memories.retrieve(made.id, memory_store_id=store, view="basic").content is None
    assert memories.create(store, path="/empty", content="", view="full").content == ""
    with pytest.raises(anthropic.ConflictError) as taken:
        memories.create(store, path="/notes/a.md", content="other")
    assert taken.value.type == "memory_path_conflict_error"
    for path in ("/notes", "/notes/a.md/b"):  # a folder cannot also be a file
        with pytest.raises(anthropic.ConflictError):
            memories.create(store, path=path, content="x")
    memories.create(store, path="/NOTES", content="paths are case-sensitive")


def test_update(served: Served, store: str) -> None:
    memories = client(served, served.anna).beta.memory_stores.memories
    made = memories.create(store, path="/a", content="1")
    written = memories.update(made.id, memory_store_id=store, content="2", view="full")
    assert (written.id, written.content, written.path) == (made.id, "2", "/a") and written.updated_at > made.updated_at
    assert written.memory_version_id != made.memory_version_id
    moved = memories.update(made.id, memory_store_id=store, path="/b/c")
    assert (moved.path, moved.content_sha256, moved.created_at) == ("/b/c", written.content_sha256, made.created_at)
    same = memories.update(made.id, memory_store_id=store, content="2", path="/b/c")
    assert same == moved  # no change, no version
    condition = {"type": "content_sha256", "content_sha256": made.content_sha256}
    with pytest.raises(anthropic.ConflictError) as stale:
        memories.update(made.id, memory_store_id=store, content="3", precondition=condition)
    assert stale.value.type == "memory_precondition_failed_error"
    with pytest.raises(anthropic.ConflictError):  # somebody else wrote what this writer wants
        memories.update(made.id, memory_store_id=store, content="2", path="/b/c", precondition=condition)
    condition["content_sha256"] = moved.content_sha256
    both = memories.update(made.id, memory_store_id=store, content="4", path="/b", precondition=condition, view="full")
    assert (both.path, both.content) == ("/b", "4")
    other = memories.create(store, path="/other", content="")
    with pytest.raises(anthropic.ConflictError):
        memories.update(other.id, memory_store_id=store, path="/b")
    for wrong in ({"type": "path"}, {"type": "content_sha256"}, {"type": "content_sha256", "content_sha256": "A" * 64}):
        with pytest.raises(anthropic.BadRequestError):
            memories.update(made.id, memory_store_id=store, content="5", precondition=wrong)


def test_list_by_prefix_and_depth_in_pages(served: Served, store: str) -> None:
    memories = client(served, served.anna).beta.memory_stores.memories
    paths = ["/a/b/1", "/a/b/2", "/a/c", "/a-z/1", "/a0", "/top", "/Ä/ö/x/y", "/z/1/2/3"]
    for path in paths:
        memories.create(store, path=path, content=f"at {path}")

    def found(**given: Any) -> list[str]:
        return [one.path for one in memories.list(store, **given)]

    in_order = sorted(paths, key=str.encode)
    assert found() == found(limit=1) == found(limit=3) == in_order
    assert found(path_prefix="/a/") == ["/a/b/1", "/a/b/2", "/a/c"] and found(path_prefix="/nothing/") == []
    top = ["/a-z/", "/a/", "/a0", "/top", "/z/", "/Ä/"]
    assert found(depth=1) == found(depth=1, limit=1) == found(depth=1, limit=4) == top
    assert [one.type for one in memories.list(store, depth=1)][1:3] == ["memory_prefix", "memory"]
    assert found(path_prefix="/a/", depth=1, limit=1) == ["/a/b/", "/a/c"]
    assert found(depth=2, limit=2) == ["/a-z/1", "/a/b/", "/a/c", "/a0", "/top", "/z/1/", "/Ä/ö/"]
    assert found(path_prefix="/Ä/", depth=2) == ["/Ä/ö/x/"]
    assert memories.list(store).data[0].content is None
    assert memories.list(store, view="full").data[0].content == "at /a-z/1"
    page = memories.list(store, limit=4)
    gone, seen = in_order[4], [one.path for one in page.data]
    memories.create(store, path="/a/a", content="before the next page")
    memories.create(store, path="/zz", content="after it")
    memories.delete(next(one.id for one in memories.list(store) if one.path == gone), memory_store_id=store)
    seen += [one.path for one in page.get_next_page()]
    assert seen == sorted({*paths, "/zz"} - {gone}, key=str.encode)
    for wrong in ({"path_prefix": "/a"}, {"path_prefix": "a/"}, {"depth": 99}, {"limit": 0}, {"limit": 101}):
        with pytest.raises(anthropic.BadRequestError):
            memories.list(store, **wrong)
    for query in ("page=%00", "page=abc", "path_prefix=/%00/", "depth=-1", "view=all", "limit=%C2%B2"):
        assert ask(served, served.anna, "GET", f"/v1/memory_stores/{store}/memories?{query}")[0] == 400, query


def test_a_full_page_has_twenty(served: Served, store: str) -> None:
    memories = client(served, served.anna).beta.memory_stores.memories
    for number in range(22):
        memories.create(store, path=f"/{number:02}", content="x")
    assert len(memories.list(store, view="full", limit=100).data) == 20 == len(memories.list(store).data)
    assert len(list(memories.list(store, view="full"))) == 22 == len(memories.list(store, limit=100).data)


def test_delete_and_an_archived_store(served: Served, store: str) -> None:
    stores = client(served, served.anna).beta.memory_stores
    made, other = [stores.memories.create(store, path=path, content="1") for path in ("/a", "/b")]
    with pytest.raises(anthropic.ConflictError) as stale:
        stores.memories.delete(made.id, memory_store_id=store, expected_content_sha256="0" * 64)
    assert stale.value.type == "memory_precondition_failed_error"
    with pytest.raises(anthropic.BadRequestError):
        stores.memories.delete(made.id, memory_store_id=store, expected_content_sha256="short")
    gone = stores.memories.delete(made.id, memory_store_id=store, expected_content_sha256=made.content_sha256)
    assert (gone.id, gone.type) == (made.id, "memory_deleted")
    with pytest.raises(anthropic.NotFoundError):
        stores.memories.retrieve(made.id, memory_store_id=store)
    stores.archive(store)
    for change in (
        lambda: stores.memories.create(store, path="/c", content=""),
        lambda: stores.memories.update(other.id, memory_store_id=store, content="2"),
    ):
        with pytest.raises(anthropic.BadRequestError, match="archived"):
            change()
    assert stores.memories.retrieve(other.id, memory_store_id=store).content == "1"
    assert stores.memories.delete(other.id, memory_store_id=store).type == "memory_deleted"


def test_versions_say_who_and_why(served: Served, store: str) -> None:
    one = client(served, served.anna)
    memories, versions = one.beta.memory_stores.memories, one.beta.memory_stores.memory_versions
    start = datetime.now(UTC)
    made = memories.create(store, path="/a", content="1", extra_headers={"x-reverie-reason": quote(f"wegen „{TOKEN}“")})
    by_agent = {"x-reverie-session": "sesn_1", "x-reverie-message": "msg_7"}
    memories.update(made.id, memory_store_id=store, content="2", extra_headers=by_agent)
    memories.update(made.id, memory_store_id=store, path="/b")
    memories.create(store, path="/c", content="3")
    memories.delete(made.id, memory_store_id=store)
    listed = list(versions.list(store, limit=2))
    assert [one.number for one in listed] == [5, 4, 3, 2, 1]
    assert [one.operation for one in listed] == ["deleted", "created", "modified", "modified", "created"]
    assert [one.path for one in listed] == ["/b", "/c", "/b", "/a", "/a"] and {one.content for one in listed} == {None}
    assert listed[4].created_by.type == "user_actor" and listed[4].created_by.user_id == served.ids["anna"]
    assert listed[4].reason == "wegen „[secret]“"
    assert listed[3].created_by.type == "session_actor" and listed[3].created_by.session_id == "sesn_1"
    assert listed[3].message_id == "msg_7"
    full = [one.content for one in versions.list(store, view="full", memory_id=made.id)]
    assert full == [None, "2", "2", "1"]
    assert versions.retrieve(listed[4].id, memory_store_id=store).content == "1"
    assert versions.retrieve(listed[4].id, memory_store_id=store, view="basic").content is None

    def numbers(**given: Any) -> list[int]:
        return [one.number for one in versions.list(store, **given)]

    assert numbers(operation="modified") == [3, 2] and numbers(session_id="sesn_1") == [2]
    assert numbers(api_key_id=listed[0].api_key_id) == [5, 4, 3, 2, 1] and numbers(api_key_id="apikey_x") == []
    assert numbers(service_account_id="svac_x") == []
    assert numbers(created_at_gte=listed[2].created_at, created_at_lte=listed[1].created_at) == [4, 3]
    assert numbers(created_at_lte=start) == []
    for wrong in ("operation=gone", "page=abc", "page=LTE", "created_at[gte]=yesterday", "memory_id=%00", "limit=x"):
        path = f"/v1/memory_stores/{store}/memory_versions?{wrong}"
        assert ask(served, served.anna, "GET", path)[0] == 400, wrong


def test_redaction_removes(served: Served, store: str) -> None:
    import psycopg

    one = client(served, served.anna)
    memories, versions = one.beta.memory_stores.memories, one.beta.memory_stores.memory_versions
    made = memories.create(store, path="/zebra", content="zebra 1", extra_headers={"x-reverie-reason": "zebra"})
    memories.update(made.id, memory_store_id=store, content="quiet 2")
    first, last = [one.id for one in versions.list(store)][::-1]
    gone = versions.redact(first, memory_store_id=store)
    assert (gone.content, gone.path, gone.content_sha256, gone.content_size_bytes) == (None,) * 4
    assert gone.redacted_at is not None and gone.redacted_by.user_id == served.ids["anna"]
    assert gone.created_by.user_id == served.ids["anna"] and gone.operation == "created"
    assert versions.redact(first, memory_store_id=store).redacted_at == gone.redacted_at
    assert memories.retrieve(made.id, memory_store_id=store).content == "quiet 2"
    with pytest.raises(anthropic.PermissionDeniedError):
        versions.redact(last, memory_store_id=store, extra_headers={"x-reverie-session": "sesn_1"})
    versions.redact(last, memory_store_id=store)  # what the memory shows: the memory goes too
    with pytest.raises(anthropic.NotFoundError):
        memories.retrieve(made.id, memory_store_id=store)
    assert [(one.operation, one.path) for one in versions.list(store)] == [
        ("deleted", None),
        ("modified", None),
        ("created", None),
    ]
    with psycopg.connect(served.dsn) as connection:
        for (table,) in connection.execute("select tablename from pg_tables where schemaname = 'reverie'").fetchall():
            rows = connection.execute(f"select t::text from reverie.{table} t".encode()).fetchall()
            assert not [row for row in rows if "zebra" in row[0] or "quiet" in row[0]], table
        count = "select vacuum_count from pg_stat_user_tables where relname = 'versions'"
        until = time.monotonic() + 30
        while not connection.execute(count).fetchone()[0]:  # soon the old rows leave the pages too
            assert time.monotonic() < until
            time.sleep(0.3)
            connection.rollback()
        assert ("redact version", last) in connection.execute("select action, object from reverie.audit").fetchall()


@pytest.mark.parametrize(
    "body",
    [
        {"path": "/a", "content": "x" * 102_401},
        {"path": "/a", "content": "é" * 51_201},
        {"path": "/a", "content": "a\x00b"},
        {"path": "/a", "content": "\ud800"},
        {"path": "/a", "content": None},
        {"path": "/a", "content": 7},
        {"path": "/a"},
        {"content": "x"},
        {"path": "/a", "content": "x", "nmae": 1},
        *(
            {"path": path, "content": "x"}
            for path in (
                "a",
                "",
                "/",
                "/a/",
                "//a",
                "/./a",
                "/a/..",
                "/../../etc/passwd",
                "/a\x00b",
                "/a\nb",
                "/a\u200bb",
                "/a\u202eb",
                "/a\u2028b",
                "/\ud800",
                "/" + unicodedata.normalize("NFD", "é"),
                "/a" * 21,
                "/" + "a" * 1_024,
                "/.git/config",
                "/a/.claude/settings.json",
                "/a/.hidden.md",
                "/...",
                "/\uff0egit/config",  # fullwidth
                "/\u2024git/config",  # one dot leader
                "/\ufe52git",  # small full stop
                "/\u2026",  # an ellipsis
                "/\u034f.git",  # characters that a file system may ignore
                "/\ufe0f.git",
                "/\u3164.git",
                "/ .git",
                "/a\\.git",
                7,
            )
        ),
    ],
    ids=repr,
)
def test_bad_memories_are_refused(served: Served, store: str, body: dict[str, Any]) -> None:
    status, answer = ask(served, served.anna, "POST", f"/v1/memory_stores/{store}/memories", body)
    assert status == 400 and answer["error"]["type"] == "invalid_request_error", answer
    assert ask(served, served.anna, "GET", f"/v1/memory_stores/{store}/memories")[1]["data"] == []


def test_the_largest_is_stored(served: Served, store: str) -> None:
    memories = client(served, served.anna).beta.memory_stores.memories
    assert memories.create(store, path="/a", content="x" * 102_400).content_size_bytes == 102_400
    assert memories.create(store, path="/b" * 20, content="").path == "/b" * 20
    assert memories.create(store, path="/" + "c" * 1_023, content="").path.endswith("c")
    body = {"path": "/d", "content": "x" * 3_000_000}
    assert ask(served, served.anna, "POST", f"/v1/memory_stores/{store}/memories", body)[0] == 413
    assert ask(served, served.anna, "POST", f"/v1/memory_stores/{store}/memories", [1])[0] == 400


def test_secrets_are_refused_and_not_shown(served: Served, store: str, capfd: pytest.CaptureFixture[str]) -> None:
    at = f"/v1/memory_stores/{store}/memories"
    made = ask(served, served.anna, "POST", at, {"path": "/a.md", "content": "fine"})[1]
    for method, path, body in (
        ("POST", at, {"path": "/b.md", "content": f"the token is {TOKEN}\n"}),
        ("POST", at, {"path": f"/{TOKEN}.md", "content": "x"}),
        ("POST", at, {"path": f"/{TOKEN}/a.md", "content": "x"}),
        ("POST", f"{at}/{made['id']}", {"content": f"now {TOKEN}"}),
        ("POST", f"{at}/{made['id']}", {"path": f"/{TOKEN}"}),
        ("POST", "/v1/memory_stores", {"name": "x", "description": f"with {TOKEN}"}),
        ("POST", f"/v1/memory_stores/{store}", {"metadata": {"key": TOKEN}}),
        ("POST", "/v1/reverie/memory_stores", {"name": "x", "purpose": TOKEN}),
        ("POST", "/v1/reverie/projects", {"name": f"https://me:{TOKEN}@github.com/ours/x"}),
    ):
        status, answer = ask(served, served.anna, method, path, body)
        assert status == 400 and TOKEN not in json.dumps(answer), answer
    own = f"Anna is user:{served.ids['anna']}, key {new_id('apikey')}."  # ids are not secrets, tokens are
    assert ask(served, served.anna, "POST", at, {"path": "/ids.md", "content": own})[0] == 200
    assert ask(served, served.anna, "POST", at, {"path": "/t.md", "content": f"{own} {served.anna}"})[0] == 400
    printed = capfd.readouterr()
    assert TOKEN not in printed.out + printed.err


def test_trust_is_marked_by_who_writes(served: Served, store: str) -> None:
    at = f"/v1/memory_stores/{store}/memories"
    heads = {"confirmed": "---\ntrust: confirmed\n---\nx", "inferred": "---\ntrust: inferred\n---\nx", "unmarked": "x"}
    for said, content in heads.items():
        made = ask(served, served.anna, "POST", at, {"path": f"/{said}.md", "content": content})[1]
        assert made["trust"] == said
    content = heads["confirmed"]
    made = ask(served, served.anna, "POST", at, {"path": "/s.md", "content": content}, session="sesn_1")[1]
    assert made["trust"] == "inferred"
    again = ask(served, served.anna, "POST", f"{at}/{made['id']}", {"content": content}, session="sesn_1")[1]
    assert again["number"] == made["number"]
    confirmed = ask(served, served.anna, "POST", f"{at}/{made['id']}", {"content": content})[1]
    assert confirmed["trust"] == "confirmed" and confirmed["content_sha256"] == made["content_sha256"]
    again = ask(served, served.anna, "POST", f"{at}/{made['id']}", {"content": content}, session="sesn_1")[1]
    assert again["trust"] == "confirmed" and again["number"] == confirmed["number"]
    changed = ask(served, served.anna, "POST", f"{at}/{made['id']}", {"content": content + "y"}, session="sesn_1")[1]
    assert changed["trust"] == "inferred"
    assert ask(served, served.anna, "POST", at, {"path": "/MEMORY.md", "content": content})[1]["trust"] == "unmarked"


def test_guessed_ids_and_foreign_tokens(served: Served, store: str) -> None:
    one = client(served, served.anna)
    made = one.beta.memory_stores.memories.create(store, path="/a", content="1")
    version = made.memory_version_id
    other = one.beta.memory_stores.create(name="other").id
    for token, at in ((served.ben, store), (served.eve, store), (served.anna, other)):
        stores = client(served, token).beta.memory_stores
        for act, given in (
            (stores.memories.retrieve, (made.id,)),
            (partial(stores.memories.update, content="2"), (made.id,)),
            (stores.memories.delete, (made.id,)),
            (stores.memory_versions.retrieve, (version,)),
            (stores.memory_versions.redact, (version,)),
        ):
            with pytest.raises(anthropic.NotFoundError):
                act(*given, memory_store_id=at)
    for token in (served.ben, served.eve):
        stores = client(served, token).beta.memory_stores
        for act in (stores.memories.list, stores.memory_versions.list):
            with pytest.raises(anthropic.NotFoundError):
                act(store)
        with pytest.raises(anthropic.NotFoundError):
            stores.memories.create(store, path="/b", content="")
    for id in ("mem_0", "%00", "%ff", "é", "..", "x" * 3_000):
        quoted = id if id.startswith("%") else quote(id)
        for path in (f"/v1/memory_stores/{store}/memories/{quoted}", f"/v1/memory_stores/{quoted}"):
            assert ask(served, served.anna, "GET", path)[0] == 404, path
    assert one.beta.memory_stores.memories.retrieve(made.id, memory_store_id=store).content == "1"


def test_tokens_that_expire_are_revoked_or_only_read(served: Served, store: str) -> None:
    from reverie.server import accounts
    from reverie.server.database import Database

    async def make() -> tuple[str, str, str]:
        async with Database.open(served.dsn, size=1) as database, database.as_owner() as connection:
            old = await accounts.add_token(connection, served.ids["anna"], days=-1)
            gone = await accounts.add_token(connection, served.ids["anna"])
            await accounts.revoke_token(connection, gone.id)
            reads = await accounts.add_token(connection, served.ids["anna"], may_write=False)
            return old.secret, gone.secret, reads.secret

    old, gone, reads = asyncio.run(make())
    for token in (old, gone):
        with pytest.raises(anthropic.AuthenticationError):
            client(served, token).beta.memory_stores.memories.list(store)
    memories = client(served, reads).beta.memory_stores.memories
    assert list(memories.list(store)) == []
    with pytest.raises(anthropic.PermissionDeniedError):
        memories.create(store, path="/a", content="")


def test_the_async_client(served: Served, store: str) -> None:
    async def run() -> None:
        async with anthropic.AsyncAnthropic(base_url=served.url, auth_token=served.anna, max_retries=0) as one:
            stores = one.beta.memory_stores
            made = await stores.memories.create(store, path="/a", content="1")
            await stores.memories.update(made.id, memory_store_id=store, content="2")
            assert [item.path async for item in stores.memories.list(store)] == ["/a"]
            assert (await stores.memories.retrieve(made.id, memory_store_id=store)).content == "2"
            listed = [item async for item in stores.memory_versions.list(store)]
            assert (await stores.memory_versions.retrieve(listed[1].id, memory_store_id=store)).content == "1"
            assert (await stores.memory_versions.redact(listed[1].id, memory_store_id=store)).redacted_at is not None
            await stores.memories.delete(made.id, memory_store_id=store)

    asyncio.run(run())


def test_of_two_writers_with_a_precondition_one_wins(served: Served, store: str) -> None:
    memories = client(served, served.anna).beta.memory_stores.memories
    made = memories.create(store, path="/a", content="0")
    hash = made.content_sha256
    with ThreadPoolExecutor(8) as pool:
        for turn in range(5):

            def write(number: int, turn: int = turn, hash: str = hash) -> str | None:
                condition = {"type": "content_sha256", "content_sha256": hash}
                try:
                    text = f"{turn} {number}"
                    return memories.update(
                        made.id, memory_store_id=store, content=text, precondition=condition
                    ).content_sha256
                except anthropic.ConflictError:
                    return None

            won = [one for one in pool.map(write, range(8)) if one]
            assert len(won) == 1
            hash = memories.retrieve(made.id, memory_store_id=store).content_sha256
            assert hash == won[0]

        def create(number: int) -> bool:
            try:
                return bool(memories.create(store, path="/race", content=str(number)))
            except anthropic.ConflictError:
                return False

        assert sum(pool.map(create, range(8))) == 1


def test_of_two_writers_of_the_same_text_one_wins(served: Served, store: str) -> None:
    """A counter: whoever has written it may count on it. The SDK repeats requests by itself."""
    at = f"/v1/memory_stores/{store}/memories"
    made = ask(served, served.anna, "POST", at, {"path": "/count", "content": "0"})[1]
    counted = Counter[str]()

    def count(worker: int) -> None:
        with anthropic.Anthropic(base_url=served.url, api_key=served.anna) as sdk:
            memories = sdk.beta.memory_stores.memories
            for _ in range(25):
                now = memories.retrieve(made["id"], memory_store_id=store)
                condition = {"type": "content_sha256", "content_sha256": now.content_sha256}
                text = str(int(now.content or "0") + 1)
                try:
                    memories.update(made["id"], memory_store_id=store, content=text, precondition=condition)  # type: ignore[arg-type]
                    counted["won"] += 1
                except anthropic.ConflictError:
                    counted["lost"] += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count, range(8)))
    assert counted["lost"] and counted["won"] + counted["lost"] == 200
    shown = ask(served, served.anna, "GET", f"{at}/{made['id']}")[1]
    assert (shown["content"], shown["number"]) == (str(counted["won"]), counted["won"] + 1)


def test_a_repeated_request_may_be_another_writer(served: Served, store: str) -> None:
    """A first try that was refused with 429 was never done. The second one looks as if its answer had been lost, and
    somebody else with the same token may have written the same text."""
    at = f"/v1/memory_stores/{store}/memories"
    made = ask(served, served.anna, "POST", at, {"path": "/a", "content": "0"})[1]

    def write(retries: str) -> int:
        condition = {"type": "content_sha256", "content_sha256": made["content_sha256"]}
        body = json.dumps({"content": "1", "precondition": condition}).encode()
        head = {"x-api-key": served.anna, "x-stainless-retry-count": retries}
        try:
            with urllib.request.urlopen(urllib.request.Request(f"{served.url}{at}/{made['id']}", body, head)) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            assert error.headers["x-should-retry"] == "false"
            return error.code

    assert [write(retries) for retries in "1012"] == [200, 409, 409, 409]
    assert ask(served, served.anna, "GET", f"{at}/{made['id']}")[1]["number"] == 2
