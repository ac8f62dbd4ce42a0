"""Who may use the web view: the token, the cookie it becomes, CSRF tokens, and the headers of every answer.

Host and Origin are checked before (`runtime/loopback.py`). Nothing is stored: cookies depend on a key of this process.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import field
from hashlib import sha256
from typing import Final

from reverie.quick import dataclass
from reverie.runtime.loopback import App, Message, Receive, Scope, Send

_TICKET_S: Final = 60.0
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The keys of one server."""

    token: str = field(repr=False, default_factory=lambda: secrets.token_urlsafe(24))
    _key: bytes = field(repr=False, default_factory=lambda: secrets.token_bytes(32))
    _tickets: dict[str, float] = field(repr=False, default_factory=dict[str, float])

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def new_ticket(self) -> str:
        """A token for one visit within a minute: every user of the machine can see the arguments of a browser."""
        now, ticket = time.monotonic(), secrets.token_urlsafe(24)
        for old in [one for one, until in list(self._tickets.items()) if until < now]:
            self._tickets.pop(old, None)
        self._tickets[ticket] = now + _TICKET_S
        return ticket

    def may_enter(self, given: str) -> bool:
        """Whether this is the token, or a ticket that nobody has used."""
        return self.is_token(given) or self._tickets.pop(given, 0.0) > time.monotonic()

    def new_cookie(self) -> str:
        """A value that only this process can make."""
        name = secrets.token_urlsafe(12)
        return f"{name}.{self._sign('cookie', name)}"

    def is_cookie(self, value: str) -> bool:
        name, _, signature = value.partition(".")
        return hmac.compare_digest(signature.encode("utf-8", "replace"), self._sign("cookie", name).encode())

    def csrf_of(self, cookie: str) -> str:
        """The token that forms of this browser carry."""
        return self._sign("csrf", cookie)

    def _sign(self, use: str, text: str) -> str:
        return hmac.new(self._key, f"{use}\0{text}".encode("utf-8", "replace"), sha256).hexdigest()


def cookie_name(port: int) -> str:
    """Cookies of one host do not know ports, so the name does."""
    return f"reverie_web_{port}"


class SafeHeaders:
    """Adds the headers that keep a browser from running or framing anything foreign."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = list(message.get("headers", []))
                known = {name for name, _ in given}
                given += [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in known]
                if b"cache-control" not in known:
                    given.append((b"cache-control", b"no-store"))
                message = {**message, "headers": given}
            await send(message)

        await self._app(scope, receive, send_with_headers)
