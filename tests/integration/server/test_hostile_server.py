"""A client whose memory server is wrong or hostile: what arrives is checked, one sentence says so, the sync ends."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from reverie.memory.sharing.store.client import StoreAddress, StoreClient, StoreRefused
from tests.integration.server.test_client import SECRET, Machine, topic

pytestmark = pytest.mark.integration


class Hostile(ThreadingHTTPServer):
    """Answers as a memory server does, with `changes` in the private store; `heard` has what the client sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.changes: list[dict[str, Any]] = []
        self.is_endless = False
        self.heard: list[str] = []


class _Answers(BaseHTTPRequestHandler):
    server: Hostile

    def do_GET(self) -> None:
        at = urlsplit(self.path)
        if at.path.endswith("/me"):
            self._say(
                {
                    "person": {"name": "anna"},
                    "organisation": {"name": "ours"},
                    "scopes": [{"scope": "user:1", "kind": "user", "name": "anna"}],
                }
            )
        elif at.path.endswith("/changes"):
            after = int(parse_qs(at.query)["after"][0])
            data = [one for one in self.server.changes if self.server.is_endless or _number(one) > after]
            self._say({"data": data, "last": len(data), "has_more": self.server.is_endless})
        else:
            self._say({"data": []})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.heard += [body, unquote(self.headers.get("x-reverie-reason", ""))]
        if self.path.endswith("/memory_stores"):
            self._say({"id": "memstore_1", "purpose": "shop"})
        else:
            self._say({"error": {"message": "no"}}, 400)

    def _say(self, body: Any, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _number(change: dict[str, Any]) -> int:
    return change["number"] if isinstance(change["number"], int) else 10**9


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    with Hostile() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def laptop(hostile: Hostile, tmp_path: Path) -> Machine:
    return Machine(tmp_path / "laptop", f"http://127.0.0.1:{hostile.server_address[1]}", "rvt_x")


def change(path: str, content: Any, number: Any = 1, **more: Any) -> dict[str, Any]:
    text = content if isinstance(content, str) else ""
    return {
        "id": f"memver_{number}",
        "memory_id": f"mem_{path[:20]}_{number}",
        "number": number,
        "operation": "created",
        "path": path,
        "content": content,
        "content_sha256": sha256(text.encode(errors="replace")).hexdigest(),
        **more,
    }


WRONG = [
    [change("/a.md", topic("a", "x"), content_sha256="0" * 64)],
    [change("/a.md", topic("a", "x" * 200_000))],
    [change("/a.md", "\0sha256:" + "0" * 64)],
    [change("/a.md", 7)],
    [change("/a.md", topic("a", "x"), number="many")],
    [change("/a.md", topic("a", "x"), number=2), change("/b.md", topic("b", "x"), number=1)],
    [["a", "list"]],
]


def test_wrong_answers_are_one_sentence_and_change_nothing(hostile: Hostile, laptop: Machine) -> None:
    laptop.run("remember", "We deploy on Tuesdays.", url="http://127.0.0.1:9")
    before = laptop.files()
    for changes in WRONG:
        hostile.changes = changes  # type: ignore[assignment]
        if not isinstance(changes[0], dict):
            hostile.is_endless = True
        said = laptop.run("memory", "sync", code=1)
        assert "memory server" in said and len(said) < 500, said
        assert laptop.files() == before
    hostile.changes, hostile.is_endless = [change("/a.md", topic("a", "x"))], True
    assert "out of order" in laptop.run("memory", "sync", code=1)


def test_names_cannot_leave_their_part_and_reasons_have_no_secret(hostile: Hostile, laptop: Machine) -> None:
    laptop.run("remember", "We deploy on Tuesdays.", url="http://127.0.0.1:9")
    before = set(laptop.files())
    names = (
        "//team/x.md",
        "/../x.md",
        "/a/../../x.md",
        "/.git/x.md",
        "/MEMORY.md",
        "/memory.md",
        "/team/x.md",
        "/a//x.md",
        "/a\\x.md",
    )
    names += ("/" + "x" * 300 + ".md", "/~/x.md", "/%2e%2e/x.md", "/fine.md")
    hostile.changes = [change(name, topic("x", "fine"), number) for number, name in enumerate(names, 1)]
    laptop.write("mine.md", "We use tabs.")
    laptop.sync()
    assert set(laptop.files()) == before | {"fine.md", "mine.md"}
    assert not list(laptop.folder.rglob("x.md"))
    with StoreClient(StoreAddress.parse(laptop.url), "rvt_x", timeout_s=5) as client, pytest.raises(StoreRefused):
        client.post("/v1/memory_stores/a/memories", {}, reason=f"The old one was {SECRET}.")
    assert "The old one was" in hostile.heard[-1] and SECRET not in "".join(hostile.heard)
