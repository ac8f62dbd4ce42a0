"""Whatever is sent, the answer is JSON in the published form, and never a failure of the server."""

from __future__ import annotations

import json
import random
from typing import Any
from urllib.parse import quote

import pytest

from tests.counts import count
from tests.integration.server.asking import Caller
from tests.integration.server.conftest import Served

pytestmark = pytest.mark.integration
SEED = 7
TEXTS = (
    "",
    "x",
    "\x00",
    "é",
    "e\u0301",
    "\ud800",
    "\u202e",
    "/",
    "/a",
    "/a/b.md",
    "..",
    "%",
    "'; drop table stores",
    "0",
)
VALUES: tuple[Any, ...] = (
    *TEXTS,
    None,
    True,
    -1,
    10**30,
    1e308,
    [],
    {},
    ["x"],
    {"type": "content_sha256"},
    "x" * 110_000,
)
FIELDS = ("path", "content", "precondition", "name", "description", "metadata", "scope", "purpose", "if_missing")
NAMES = ("limit", "page", "view", "depth", "path_prefix", "memory_id", "operation", "session_id", "after", "scope")
MORE = ("created_at[gte]", "created_at[lte]", "expected_content_sha256", "include_archived", "api_key_id", "purpose")


def test_strange_requests_get_a_clear_answer(shared: Served) -> None:
    chance, caller = random.Random(SEED), Caller(shared.url, shared.anna)
    store = caller.ask("POST", "/v1/memory_stores", {"name": "strange"})[1]["id"]
    memory = caller.ask("POST", f"/v1/memory_stores/{store}/memories", {"path": "/x.md", "content": "x"})[1]
    ids = (store, memory["id"], memory["memory_version_id"], *(one for one in TEXTS if one and one != "\ud800"))

    def path() -> str:
        start, id = chance.choice(("/v1", "/v1/reverie")), quote(chance.choice(ids[3:]), safe="")
        at = f"{start}/memory_stores/{store if chance.random() < 0.8 else id}"
        one = chance.choice((memory["id"], memory["memory_version_id"], id))
        ends = ("", "/memories", f"/memories/{one}", "/memory_versions", f"/memory_versions/{one}", "/changes")
        more = (f"/memories/{one}/share", f"/memory_versions/{one}/redact", "/archive")
        whole = ("/v1/memory_stores", *(f"/v1/reverie/{name}" for name in ("memory_stores", "projects", "me")))
        found = chance.choice((*(at + end for end in (*ends, *more[:1])), *whole, f"/v1/reverie/projects/{id}/members"))
        query = {chance.choice((*NAMES, *MORE)): chance.choice((*TEXTS, "99", "full", "3" * 30)) for _ in range(2)}
        return found + "?" + "&".join(f"{name}={quote(value, errors='replace')}" for name, value in query.items())

    for _ in range(count(150, 5_000)):
        method = chance.choice(("GET", "POST"))
        body = None
        if method == "POST":
            body = {name: chance.choice(VALUES) for name in chance.sample(FIELDS, chance.randint(0, 3))}
            body |= chance.choice(({}, {"path": "/y.md", "content": "y"}, {"store": store}, {"person": "\x00"}))
        headers = {"session": chance.choice(TEXTS[:4])} if chance.random() < 0.2 else {}
        asked = path()
        try:
            status, answer = caller.ask(method, asked, body, **headers)
        except json.JSONDecodeError:  # no such route
            continue
        assert status < 500, (method, asked, body, answer)
        assert status == 200 or set(answer) == {"type", "error", "request_id"}, (asked, answer)
    assert caller.ask("GET", f"/v1/memory_stores/{store}/memories/{memory['id']}")[0] == 200
