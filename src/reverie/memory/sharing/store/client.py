"""Requests to a memory server, as plain functions. The token goes to the address of the settings and nowhere else: no
redirect is followed, and plain HTTP is for this machine only. An answer is checked before it is used."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlsplit

from reverie.errors import ReverieError, StorageError, UserError
from reverie.parsing import Unparsable, load_json
from reverie.quick import dataclass
from reverie.runtime.loopback import is_here
from reverie.text.cutting import shorten
from reverie.text.folding import visible

if TYPE_CHECKING:
    import httpx

PAGE: Final = 100
_LARGEST: Final = 32_000_000
_SAID: Final = 300


class StoreUnreachable(StorageError):
    """The server does not answer, or cannot answer now. The next sync tries again."""


class StoreRefused(ReverieError):
    """The server refuses a request; `status` is that of HTTP, and the sentence is the server's."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status

    @property
    def is_stale(self) -> bool:
        """Somebody was faster: the memory has another text by now, or is gone."""
        return self.status in (404, 409)


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """Where a memory server is: `https://host[:port][/path]`."""

    url: str
    host: str
    """Host and port: what a token belongs to."""

    @classmethod
    def parse(cls, given: str) -> StoreAddress:
        """`UserError` for what cannot be one, or is not safe for a token."""
        try:
            parts = urlsplit(given.strip())
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise UserError(f"{given[:80]!r} is not the address of a memory server; give https://HOST.") from None
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise UserError(f"{given[:80]!r} is not the address of a memory server; give https://HOST.")
        if parts.username is not None or parts.password is not None:
            raise UserError("The address of a memory server may not have a password; `reverie memory login` keeps it.")
        where = f"{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"
        if parts.scheme == "http" and not is_here(where):
            raise UserError(f"http://{where} is not encrypted, so no token is sent there; use https://.")
        return cls(f"{parts.scheme}://{where}{parts.path.rstrip('/')}", where)

    @property
    def is_here(self) -> bool:
        return is_here(self.host)


class StoreClient:
    """One connection. Use it with `with`; all methods block. `until` bounds all requests together."""

    def __init__(self, address: StoreAddress, token: str, *, timeout_s: float, within_s: float | None = None) -> None:
        self.address = address
        self._token = token
        self._timeout_s = timeout_s
        self._until = None if within_s is None else time.monotonic() + within_s
        self._http: httpx.Client | None = None

    def __enter__(self) -> StoreClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._http is not None:
            self._http.close()

    def me(self) -> dict[str, Any]:
        """Who the token belongs to, and the scopes."""
        return self.get("/v1/reverie/me")

    def get(self, path: str, **query: str | int) -> dict[str, Any]:
        return self._ask("GET", path, query=query)

    def post(self, path: str, body: Mapping[str, Any], *, reason: str = "") -> dict[str, Any]:
        """`reason` says in the version why it was changed."""
        return self._ask("POST", path, body=body, reason=reason)

    def send(self, path: str, data: bytes, **query: str | int) -> dict[str, Any]:
        """Posts a file as it is."""
        return self._ask("POST", path, query=query, data=data)

    def delete(self, path: str, *, reason: str = "", **query: str | int) -> dict[str, Any]:
        return self._ask("DELETE", path, query=query, reason=reason)

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int] | None = None,
        body: Any = None,
        data: bytes | None = None,
        reason: str = "",
    ) -> dict[str, Any]:
        import httpx

        try:
            headers = {"x-reverie-reason": quote(reason[:_SAID], errors="replace")} if reason else {}
            left = self._timeout_s if self._until is None else min(self._timeout_s, self._until - time.monotonic())
            if left <= 0:
                raise StoreUnreachable("The memory server answers slowly; the sync goes on later.")
            with self._open(httpx).stream(
                method,
                f"{self.address.url}{path}",
                params=query,
                json=body,
                content=data,
                headers=headers,
                timeout=left,
            ) as answer:
                said = _read(answer)
                status, wait = answer.status_code, answer.headers.get("retry-after", "")
        except httpx.HTTPError as error:
            why = str(error).strip() or type(error).__name__
            raise StoreUnreachable(
                f"The memory server {self.address.url} does not answer ({_plain(why)}); work goes on without it."
            ) from error
        if 200 <= status < 300:
            return _parse(said, self.address)
        raise self._error(status, wait, said)

    def _open(self, httpx: Any) -> httpx.Client:
        if self._http is None:
            self._http = httpx.Client(
                headers={"x-api-key": self._token, "accept": "application/json"},
                follow_redirects=False,
                trust_env=not self.address.is_here,  # a proxy of the user is for the world outside
            )
        return cast("httpx.Client", self._http)

    def _error(self, status: int, wait: str, data: bytes) -> ReverieError:
        said = _sentence(data) or f"status {status}"
        if status == 401:
            return StoreRefused(
                f"The memory server {self.address.url} does not know this token ({said}); get a new one, and give it "
                f"to `reverie memory login {self.address.url}`.",
                status,
            )
        if 300 <= status < 400:
            return StoreRefused(
                f"{self.address.url} sends the request to another address, and a token is never sent on; correct "
                "`memory.store`.",
                status,
            )
        if status == 429 or status >= 500:
            later = f" in {wait} s" if wait.isdigit() else ""
            return StoreUnreachable(f"The memory server {self.address.url} cannot answer now{later}: {said}")
        return StoreRefused(said, status)


def at_store(store: str, *more: str, own: bool = False) -> str:
    """The path of a store and what is below it; ids come from outside and are quoted."""
    return "/".join(
        ["/v1/reverie/memory_stores" if own else "/v1/memory_stores", *(quote(one, "") for one in (store, *more))]
    )


def _read(answer: httpx.Response) -> bytes:
    data = bytearray()
    for piece in answer.iter_bytes():
        data += piece
        if len(data) > _LARGEST:
            raise StoreUnreachable("The answer of the memory server is too large.")
    return bytes(data)


def _parse(data: bytes, address: StoreAddress) -> dict[str, Any]:
    try:
        found: Any = load_json(data)
    except Unparsable:
        found = None
    if not isinstance(found, dict):
        raise StoreRefused(f"{address.url} does not answer as a memory server does; correct `memory.store`.", 0)
    return cast("dict[str, Any]", found)


def _sentence(data: bytes) -> str:
    """What the server says about an error; it may be anything."""
    try:
        found: Any = load_json(data[:100_000])
        return _plain(str(found["error"]["message"]))
    except (Unparsable, KeyError, TypeError):
        return ""


def _plain(text: str) -> str:
    return shorten(" ".join(visible(text).split()), _SAID)
