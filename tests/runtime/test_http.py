"""The one function that makes servers: who asks is the peer of the connection."""

from __future__ import annotations

import ast
import json
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import reverie
from reverie.errors import UserError
from reverie.runtime.http import check_proxy, make_server
from reverie.runtime.loopback import listen

SOURCE = Path(reverie.__file__).parent
PEER = "127.0.0.1"


async def _who(scope: Any, _receive: Any, send: Any) -> None:
    body = json.dumps([scope["client"][0], scope["scheme"]]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def _asked(headers: dict[str, str], proxies: Sequence[str] = ()) -> Any:
    listener = listen(0)
    server = make_server(_who, patience_s=1, proxies=proxies)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        request = urllib.request.Request(f"http://127.0.0.1:{listener.getsockname()[1]}/", headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())
    finally:
        server.should_exit = True
        thread.join(15)
        listener.close()


def test_headers_do_not_change_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"x-forwarded-for": "10.9.8.7", "x-forwarded-proto": "https", "forwarded": "for=10.9.8.7"}
    for trusted in ("", "*", "127.0.0.1"):
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
        assert _asked(headers) == [PEER, "http"]
        assert _asked(headers, ["10.0.3.1"]) == [PEER, "http"], "this peer is not the proxy"
    assert _asked(headers, [PEER]) == ["10.9.8.7", "https"]
    assert _asked({"x-forwarded-for": "1.1.1.1, 10.9.8.7"}, ["127.0.0.0/8"])[0] == "10.9.8.7", "the proxy's own word"


@pytest.mark.parametrize("address", ["*", "", "0.0.0.0/0", "::/0", "localhost", "127.0.0.1:80", "unix:"])
def test_a_proxy_has_an_address(address: str) -> None:
    with pytest.raises(UserError, match="is not the address of a reverse proxy"):
        check_proxy(address)


def test_nothing_else_makes_a_server() -> None:
    """A listener with a configuration of its own forgets what the others have learnt."""
    makers = list[str]()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    imported = [one.name for one in names]
                case ast.ImportFrom(module=str(module), names=names):
                    imported = [module, *(f"{module}.{one.name}" for one in names)]
                case _:
                    continue
            roots = (
                "uvicorn",
                "uvicorn.config",
                "uvicorn.server",
                "uvicorn.main",
                "http.server",
                "wsgiref",
                "hypercorn",
            )
            if any(name in roots for name in imported):
                makers.append(str(path.relative_to(SOURCE)))
    assert set(makers) == {"runtime/http.py"}
