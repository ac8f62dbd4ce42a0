"""Recall on the server: by words at once, by meaning a moment later, and only in the scopes of the caller."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.conftest import Served, client

pytestmark = pytest.mark.integration

_TEXT = "---\nname: {}\ndescription: {}\ntype: project\n---\n\n{}\n"


def _recall(served: Served, token: str, query: str, **more: Any) -> dict[str, Any]:
    body = json.dumps({"query": query, **more}).encode()
    headers = {"x-api-key": token, "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{served.url}/v1/reverie/recall", body, headers)) as answer:
        return json.load(answer)


def _write(served: Served, token: str, path: str, name: str, body: str) -> Any:
    memory = client(served, token).beta.memory_stores
    store = next(iter(memory.list()), None) or memory.create(name="notes")
    return memory.memories.create(store.id, path=path, content=_TEXT.format(name, name, body)), store


def test_words_find_a_memory_at_once_and_follow_its_changes(served: Served) -> None:
    made, store = _write(served, served.anna, "/staging.md", "Staging port", "The staging server listens on port 8081.")
    _write(served, served.anna, "/coffee.md", "Coffee", "The coffee machine is on the second floor.")
    found = _recall(served, served.anna, "Which port does staging use?")["data"]
    assert found[0]["path"] == "/staging.md" and "8081" in found[0]["content"] and "stage" in found[0]["terms"]
    memories = client(served, served.anna).beta.memory_stores.memories
    memories.update(made.id, memory_store_id=store.id, content="The kettle is blue.")
    assert next(one["path"] for one in _recall(served, served.anna, "blue kettle")["data"]) == "/staging.md"
    memories.update(made.id, memory_store_id=store.id, path="/kitchen.md", content="Nothing here.")
    assert [one["path"] for one in _recall(served, served.anna, "blue kettle")["data"]] == []
    memories.delete(made.id, memory_store_id=store.id)
    assert [one["path"] for one in _recall(served, served.anna, "kitchen")["data"]] == []


def test_only_the_named_stores_are_searched(served: Served) -> None:
    stores = client(served, served.anna).beta.memory_stores
    one, many = stores.create(name="one"), stores.create(name="many")
    stores.memories.create(one.id, path="/heron.md", content="A heron.")
    for number in range(70):
        stores.memories.create(many.id, path=f"/heron_{number}.md", content="A heron, a heron.")
    found = _recall(served, served.anna, "heron", memory_store_ids=[one.id])["data"]
    assert [each["memory_store_id"] for each in found] == [one.id]


def test_nobody_recalls_the_memories_of_others(served: Served) -> None:
    _write(served, served.anna, "/secret.md", "Launch", "The launch codename is heron.")
    for token in (served.ben, served.eve):
        assert _recall(served, token, "launch codename heron")["data"] == []


@pytest.mark.parametrize(
    "query", ["'); drop table memories; --", "a & | ! ( ) :* <->", "\\ ' '' \\'", "日本語のメモ", "..."]
)
def test_no_question_breaks_the_search(served: Served, query: str) -> None:
    _write(served, served.anna, "/a.md", "a", "Plain text.")
    assert "data" in _recall(served, served.anna, query)


def test_meaning_finds_what_shares_no_word(serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    models = os.environ.get("REVERIE_TEST_MODELS", "")
    if not models:
        pytest.skip("needs the encoder: REVERIE_TEST_MODELS names the folder with minilm")
    (tmp_path / "models").symlink_to(models)
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path))
    served = serve()
    _write(served, served.anna, "/car.md", "Vehicle", "My automobile needs new tyres before winter.")
    _write(served, served.anna, "/db.md", "Database", "The nightly backup of PostgreSQL runs at two.")
    until = time.monotonic() + 30
    while time.monotonic() < until:
        found = _recall(served, served.anna, "wheels of the car")
        if found["data"] and found["data"][0]["closeness"] is not None:
            break
        time.sleep(0.2)
    assert found["by_meaning"] and found["data"][0]["path"] == "/car.md"
