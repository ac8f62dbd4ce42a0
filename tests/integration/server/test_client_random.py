"""Three machines, random changes, and a network that loses requests and answers: no text is lost that nobody replaced
or removed, and in the end all have the same."""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reverie.errors import StorageError
from reverie.memory.opening import OpenedMemory, open_memory
from reverie.memory.sharing.store.client import StoreAddress
from reverie.memory.sharing.store.sync import sync_store
from reverie.memory.sharing.store.tokens import save_token
from reverie.paths import Places
from reverie.settings import load_settings
from tests.integration.server.conftest import Served

pytestmark = pytest.mark.integration
STEPS = 60
NAMES = [f"{folder}n{number}.md" for folder in ("", "team/") for number in range(6)]


class Network:
    """Passes requests on; `loss` of them disappear, half of these after the server has done its work."""

    def __init__(self, target: str, dice: random.Random) -> None:
        self.loss = 0.0
        network, place = self, urlsplit(target).netloc

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                lost = dice.random() < network.loss
                if lost and dice.random() < 0.5:
                    self.close_connection = True
                    return
                there = http.client.HTTPConnection(place, timeout=30)
                kept = {name: value for name, value in self.headers.items() if name.lower() != "host"}
                there.request(self.command, self.path, body, kept)
                answer = there.getresponse()
                data = answer.read()
                there.close()
                if lost:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = handle_any

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def between(target: str, dice: random.Random) -> Iterator[Network]:
    network = Network(target, dice)
    threading.Thread(target=network.server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield network
    finally:
        network.server.shutdown()
        network.server.server_close()


def texts(memory: OpenedMemory) -> dict[str, str]:
    root = memory.directory.root
    found = (
        {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*.md")} if root.exists() else {}
    )
    return {name: text for name, text in found.items() if not name.endswith("MEMORY.md")}


@pytest.mark.parametrize("seed", range(2))
def test_random_changes_over_a_bad_network(shared: Served, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    with between(shared.url, dice) as network:

        def machine(number: int) -> OpenedMemory:
            folder = tmp_path / str(number)
            (folder / "work").mkdir(parents=True)
            given = {"memory.store": network.url, "memory.store_project": f"random-{seed}"}
            settings = load_settings(
                folder / "work", overrides=given, home=folder / "home", managed_dir=folder / "none"
            )
            save_token(folder / "home", StoreAddress.parse(network.url), shared.anna)
            return open_memory(settings, Places.of(folder / "work", settings))

        machines = [machine(number) for number in range(3)]
        alive = set[str]()
        for step in range(STEPS):
            memory, have = (one := dice.choice(machines)), texts(one)
            root, action = memory.directory.root, dice.random()
            old = dice.choice(sorted(have)) if have else ""
            if action < 0.5 or not have:
                name = dice.choice(NAMES)
                text = f"---\nname: {name}\ndescription: d\ntype: project\n---\nText {step} of {seed}.\n"
                alive.discard(have.get(name, ""))
                alive.add(text)
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            elif action < 0.6:
                alive.discard(have[old])
                (root / old).unlink()
            elif action < 0.68:
                (root / old).rename((root / old).with_name(f"moved{step}.md"))
            else:
                network.loss = dice.choice([0, 0, 0.1, 0.3])
                with suppress(StorageError):
                    sync_store(memory)
                network.loss = 0
        for _ in range(8):
            reports = [sync_store(memory) for memory in machines]
            if not any(report.changed for report in reports):
                break
        assert not any(report.changed or report.held_back for report in reports)
        everything = [texts(memory) for memory in machines]
        assert everything[0] == everything[1] == everything[2]
        assert alive <= set(everything[0].values())
