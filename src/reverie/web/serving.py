"""Runs the web view on loopback, and finds one that already runs: a file in the home has its address and token."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from reverie.parsing import Unparsable, load_json
from reverie.paths import make_private
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import write_atomic
from reverie.web.access import Access
from reverie.web.site import Site

_SWITCH_S = 0.0005
"""How long a thread that reads may keep visitors waiting (Python's own choice is ten times as long)."""


@dataclass(frozen=True, slots=True)
class Running:
    """A web view that runs."""

    url: str
    token: str
    pid: int
    read_only: bool

    def link(self, path: str = "/") -> str:
        """The address of a page, with the token."""
        return self._with_token(path, self.token)

    def link_for_once(self, path: str = "/") -> str:
        """The same for the arguments of a program, which other users can see: it opens the page once."""
        answer: Any = load_json(self.ask("/api/ticket", method="POST"))
        return self._with_token(path, str(answer["ticket"]))

    def ask(self, path: str, *, method: str = "GET", timeout: float = 10) -> bytes:
        """What the server answers to a program; `OSError` if it does not."""
        headers = {"authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.url}{path}", headers=headers, method=method)
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=timeout) as answer:
            return answer.read()

    def _with_token(self, path: str, token: str) -> str:
        return f"{self.url}{path}{'&' if '?' in path else '?'}token={token}"


def state_file(home: Path) -> Path:
    return home / "run" / "web.json"


def find_running(home: Path) -> Running | None:
    """The web view of this home, if it answers."""
    try:
        found: Any = load_json(read_regular(state_file(home)))
        running = Running(str(found["url"]), str(found["token"]), int(found["pid"]), bool(found["read_only"]))
        running.ask("/api/about", timeout=2)
        return running
    except (OSError, Unparsable, KeyError, TypeError, ValueError):
        return None


def serve(site: Site, listener: socket.socket, tell: Callable[[Running], None]) -> None:
    """Serves until interrupted. `tell` gets the address before the first request."""
    from reverie.runtime.http import make_server
    from reverie.web.app import create_app
    from reverie.web.rendering import warm_up

    port = int(listener.getsockname()[1])
    access = Access()
    running = Running(f"http://127.0.0.1:{port}", access.token, os.getpid(), site.read_only)
    home = site.settings.places.home
    path = state_file(home)
    make_private(path.parent)
    state = {"url": running.url, "token": running.token, "pid": running.pid, "read_only": running.read_only}
    write_atomic(path, json.dumps(state).encode(), mode=0o600)
    sys.setswitchinterval(_SWITCH_S)
    try:
        threading.Thread(target=warm_up, daemon=True, name="warm-up").start()
        tell(running)
        make_server(create_app(site, access, port), patience_s=2).run(sockets=[listener])
    finally:
        with suppress(OSError, Unparsable, ValueError):
            if load_json(read_regular(path)).get("pid") == running.pid:
                path.unlink()
