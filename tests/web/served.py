"""A web view on loopback for the time of a test, and a client that has entered with the token."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from reverie.runtime.http import make_server
from reverie.runtime.loopback import listen
from reverie.web.access import Access
from reverie.web.app import create_app
from reverie.web.site import Site


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass
class Browser:
    """Enough of a browser for tests: keeps the cookie, sends Origin with forms, follows no redirect."""

    port: int
    token: str
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def enter(self) -> Browser:
        answer = self.get(f"/?token={self.token}")
        assert answer.status == 303, answer.text
        return self

    def get(self, path: str, **headers: str) -> Answer:
        return self._send("GET", path, b"", headers)

    def json(self, path: str) -> Any:
        """The twin of a page, as a program reads it."""
        answer = self._send("GET", "/api" + path, b"", {"authorization": f"Bearer {self.token}"})
        assert answer.status == 200, answer.text
        return answer.json

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        body = urlencode(form).encode()
        given = {"content-type": "application/x-www-form-urlencoded", "origin": self.url, **headers}
        return self._send("POST", path, body, given)

    def submit(self, page: str, path: str, **form: str) -> Answer:
        """Posts to an action with the CSRF token of the page, and returns the page it leads to."""
        token = self.get(page).text.split('name="csrf" value="')[1].split('"')[0]
        answer = self.post(path, {"csrf": token, **form})
        assert answer.status == 303, answer.text
        return self.get(answer.headers["location"])

    def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            connection.request(method, path, body, {**({"cookie": cookie} if cookie else {}), **headers})
            answer = connection.getresponse()
            for given in answer.headers.get_all("set-cookie") or ():
                name, _, value = given.partition(";")[0].partition("=")
                self.cookies[name] = value
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read().decode())
        finally:
            connection.close()


@contextmanager
def served(cwd: Path, *, read_only: bool = False) -> Generator[Browser]:
    """Serves the home of the environment from a thread; yields a client that has entered."""
    site, access, listener = Site.open(cwd, read_only=read_only), Access(), listen(0)
    port = int(listener.getsockname()[1])
    server = make_server(create_app(site, access, port), patience_s=2, log_level="error")
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 15
        while not server.started:
            assert thread.is_alive() and time.monotonic() < deadline
            time.sleep(0.005)
        yield Browser(port, access.token).enter()
    finally:
        server.should_exit = True
        thread.join(15)
        listener.close()
