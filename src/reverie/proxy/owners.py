"""Whose a request is. Everything that the proxy keeps has an owner: the client whose credentials brought it.

An owner is a keyed hash of all credentials of a request, so it is the same in all workers and after a restart, and
nobody can read a key from it. Which headers are credentials is decided by their names, rather one too many: a new value
makes a new owner, and nothing that was kept is found.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote_to_bytes

from reverie.quick import dataclass
from reverie.runtime.loopback import FORWARDED, Headers, is_from_page, is_loopback, user_of

_CREDENTIAL: Final = re.compile(rb"auth|key|token|cookie|secret|cred|passw|jwt|signature")
"""What the name of a header or query parameter with credentials has in it. A parameter without a name may be one."""
_PER_REQUEST: Final = b"idempotency"
_FORWARDED: Final = frozenset(name.encode() for name in FORWARDED)
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Peer:
    """The program at the other end of a connection."""

    is_near: bool
    """Whether it runs on this machine."""
    user: int | None = None
    """The user as which it runs; None if the system does not say."""

    @classmethod
    def of(cls, client: tuple[str, int] | None, server: tuple[str, int] | None, headers: Headers) -> Peer:
        """Reads it from the two ends of the connection. Behind another proxy, nobody knows where a client is."""
        if client is None or not is_loopback(client[0]) or any(name in _FORWARDED for name, _ in headers):
            return cls(is_near=False)
        return cls(is_near=True, user=user_of(client, server))


@dataclass(frozen=True, slots=True)
class Owner:
    """A client, in every key under which something is kept."""

    name: str
    is_user: bool = False
    """Whether it is a program of the user who started the proxy: whose memory and statistics are here."""

    @classmethod
    def of(cls, secret: bytes, headers: Headers, query: bytes, peer: Peer, *, trusts_unknown: bool) -> Owner:
        """The owner of a request. `trusts_unknown`: a connection whose user the system does not name is the user's. A
        page in the user's browser is not the user."""
        is_own = peer.user == os.getuid() if peer.user is not None else trusts_unknown
        is_user = peer.is_near and is_own and not is_from_page(headers)
        marks = (b"user" if is_user else b"", str(peer.user).encode())
        hashed = hashlib.blake2b(key=secret, digest_size=16)
        for part in (*marks, *sorted(_credentials(headers, query))):
            hashed.update(b"%d:%b" % (len(part), part))
        return cls(hashed.hexdigest(), is_user)

    @property
    def label(self) -> str:
        """A part of the name, for the names of its conversations."""
        return self.name[:_SHOWN]


def _credentials(headers: Iterable[tuple[bytes, bytes]], query: bytes) -> Iterator[bytes]:
    """Everything in a request that may say who sends it, each with its name."""
    for name, value in headers:
        if _CREDENTIAL.search(name.lower()) and _PER_REQUEST not in name.lower():
            yield name.lower() + b":" + value
    for pair in re.split(b"[&;]", query):
        name, equals, _ = pair.partition(b"=")
        if (pair and not equals) or _CREDENTIAL.search(unquote_to_bytes(name).lower()):
            yield b"?" + pair
