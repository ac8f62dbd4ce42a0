"""The client of a memory server without one: addresses, names, a token that stays where it belongs, answers that are
no answers, and the choice between two versions. The syncs themselves are in tests/integration/server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from reverie.errors import ReverieError, UserError
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.gate.inbox import MemoryInbox
from reverie.memory.opening import OpenedMemory, open_memory
from reverie.memory.sharing.questions import ask_which, drop_settled
from reverie.memory.sharing.store.background import is_due, is_paused, sync_quietly
from reverie.memory.sharing.store.client import StoreAddress
from reverie.memory.sharing.store.naming import normalise
from reverie.memory.sharing.store.state import StoreState, There
from reverie.memory.sharing.store.status import load_status
from reverie.memory.sharing.store.sync import folder_name, store_folder, sync_store
from reverie.memory.sharing.store.tokens import find_token, save_token
from reverie.memory.topic_file import TopicFile
from reverie.paths import Places
from reverie.settings import load_settings

INFO = WriteInfo(Writer.USER, "a test")


def opened(tmp_path: Path, url: str) -> OpenedMemory:
    settings = load_settings(
        tmp_path, overrides={"memory.store": url}, home=tmp_path / "home", managed_dir=tmp_path / "none"
    )
    return open_memory(settings, Places.of(tmp_path, settings))


@contextmanager
def answering(status: int, body: str, **headers: str) -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything alike, and the tokens that it was sent."""
    seen = list[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("x-api-key", ""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, "<html>hello</html>", "does not answer as a memory server does"),
        (200, '{"person": 7}', "does not answer as a memory server does"),
        (401, '{"error": {"message": "unknown\\u202e token\\nx"}}', "(unknown token x)"),
        (503, '{"error": {"message": "The database does not answer."}}', "cannot answer now: The database"),
        (429, "{}", "cannot answer now: status 429"),
    ],
)
def test_what_is_no_answer_is_one_sentence_and_a_pause(tmp_path: Path, status: int, body: str, said: str) -> None:
    with answering(status, body) as (url, seen):
        memory = opened(tmp_path, url)
        save_token(memory.places.home, StoreAddress.parse(url), "token-of-anna")
        assert is_due(memory)
        with pytest.raises(ReverieError) as caught:
            sync_store(memory)
        assert said in str(caught.value) and "\n" not in str(caught.value) and seen == ["token-of-anna"]
        status_now = load_status(store_folder(memory))
        assert status_now.problem == str(caught.value) and is_paused(memory) and not is_due(memory)
        sync_quietly(memory)
        assert len(seen) == 1  # not again while it is down


def test_a_token_goes_to_its_own_server_only(tmp_path: Path) -> None:
    with answering(200, "{}") as (other, stolen), answering(302, "", location=f"{other}/v1/reverie/me") as (url, _):
        memory = opened(tmp_path, url)
        save_token(memory.places.home, StoreAddress.parse(url), "token-of-anna")
        with pytest.raises(ReverieError, match="never sent on"):
            sync_store(memory)
        with pytest.raises(UserError, match="There is no token"):
            find_token(memory.settings, memory.places.home, StoreAddress.parse(other))
        assert not stolen
    for wrong in (
        "http://memory.example.com",
        "https://anna:pw@memory.example.com",
        "ftp://x",
        "https://",
        "https://[x",
    ):
        with pytest.raises(UserError):
            StoreAddress.parse(wrong)
    assert StoreAddress.parse("https://Memory.Example.com:8443/team/") == StoreAddress(
        "https://memory.example.com:8443/team", "memory.example.com:8443"
    )


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("git@github.com:team/app.git", "github.com/team/app"),
        ("https://anna:pw@GitHub.com/team/app", "github.com/team/app"),
        ("ssh://git@host:2222/team/app.git/", "host/team/app"),
        ("/srv/git/app.git", ""),
        ("file:///srv/git/app.git", ""),
        ("", ""),
    ],
)
def test_the_name_of_a_project(remote: str, name: str) -> None:
    assert normalise(remote) == name


def test_two_teams_never_share_a_folder() -> None:
    names = ["core", "Core", "co re", "co/re", "co_re", "..", "", "ö", "a" * 70]
    folders = [folder_name(name) for name in names]
    assert len(set(folders)) == len(names) and not any("/" in one or "." in one for one in folders)


def test_a_damaged_state_counts_as_none(tmp_path: Path) -> None:
    state = StoreState(tmp_path / "s.json", "memstore_1", 7, "memver_7", {"m": There("m", "/a.md", "00", "confirmed")})
    state.common["a.md"] = state.sending["b.md"] = "00"
    state.save()
    assert StoreState.load(tmp_path / "s.json") == state
    for damage in (b"", b"{", b"[]", b'{"store": 1}', state.path.read_bytes().replace(b'"there": {', b'"there": [{')):
        state.path.write_bytes(damage)
        assert StoreState.load(state.path) == StoreState(state.path)


@pytest.mark.parametrize(("own", "kept"), [(True, "mine"), (False, "theirs"), (None, "theirs")])
def test_the_user_chooses_a_version(tmp_path: Path, own: bool | None, kept: str) -> None:
    memory = opened(tmp_path, "http://127.0.0.1:9").directory
    for name, body in (("a.md", "theirs"), ("a_other_version_1.md", "mine")):
        memory.create(name, TopicFile.new(name=name, description="d", type=None, body=body), INFO)
    inbox = MemoryInbox(memory.root)
    texts = [memory.read(name).content for name in ("a_other_version_1.md", "a.md")]
    for _ in range(2):  # an interrupted sync asks again
        assert not ask_which(memory, "a.md", "a_other_version_1.md", texts[0], texts[1])
    (item,) = inbox.list()
    if own is None:
        inbox.reject(item.id)
    else:
        inbox.choose(item, memory, own=own)
    assert kept in memory.read("a.md").text and not inbox.list()
    assert memory.exists("a_other_version_1.md") is (own is None)
    if own:
        ask_which(memory, "a.md", "gone.md", texts[0], texts[1])
        assert drop_settled(memory) == 1 and not inbox.list()
