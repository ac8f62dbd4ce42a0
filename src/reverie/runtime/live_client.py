"""Finds live sessions and sends them requests: the other end of `runtime/live.py`, for commands that must start fast.

A request is one JSON object on one line, `{"do": verb, ...}`, and so is the answer. No event loop.
"""

from __future__ import annotations

import json
import os
import socket
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from reverie.errors import NobodyListening, ReverieError, SessionRefused, UserError
from reverie.parsing import load_json
from reverie.paths.places import SOCKET_BYTES
from reverie.quick import dataclass
from reverie.storage.lease import Lease
from reverie.types import JsonObject

LARGEST_REQUEST = 1_048_576
LARGEST_ANSWER = 16 * LARGEST_REQUEST


@dataclass(frozen=True, slots=True)
class LiveSession:
    """A session that a process has open. `socket` is None if it does not listen."""

    id: str
    pid: int
    socket: Path | None
    started: float
    info: JsonObject


def live_sessions(projects: Path, session: str | None = None) -> list[LiveSession]:
    """Returns all open sessions under `<home>/projects`, oldest first; `session` is the start of an id."""
    found: list[LiveSession] = []
    for path in projects.glob(f"*/*/{Lease.NAME}"):
        if session is not None and not path.parent.name.startswith(session):
            continue
        try:
            body = Lease.holder(path)
        except ReverieError:  # one unreadable lease must not hide the others
            continue
        if body is not None:
            where, started = body.get("socket"), body.get("started")
            found.append(
                LiveSession(
                    id=path.parent.name,
                    pid=int(body["pid"]),
                    socket=Path(where) if isinstance(where, str) and where else None,
                    started=float(started) if isinstance(started, int | float) else 0.0,
                    info=body,
                )
            )
    return sorted(found, key=lambda live: (live.started, live.id))


def ask_live(path: Path, request: JsonObject, timeout_s: float = 10.0) -> JsonObject:
    """Sends a request to a session and returns its answer. Raises NobodyListening or SessionRefused. Blocks."""
    check_socket_path(path)
    line = json.dumps(request).encode() + b"\n"
    if len(line) > LARGEST_REQUEST:
        raise UserError(f"The request has {len(line):,} bytes; a session accepts at most {LARGEST_REQUEST:,}.")
    until = time.monotonic() + timeout_s
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(os.fspath(path))
            uid = peer(connection)[1]
            if uid not in (None, os.geteuid(), 0):
                raise NobodyListening(f"The socket {path} belongs to another user; it is not used.")
            answer = _exchange(connection, line, until)
    except TimeoutError:
        raise NobodyListening(f"The session at {path} did not answer within {timeout_s:g} s; try again.") from None
    except (FileNotFoundError, ConnectionRefusedError):
        raise NobodyListening(f"No live session listens at {path}; it has ended or never had a socket.") from None
    except OSError as error:
        raise NobodyListening(f"Cannot reach the session at {path}: {error.strerror or error}.") from error
    return _check_answer(answer, path)


def is_own_socket(path: Path) -> bool:
    """Whether the path is a socket of this user, and not a link."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()


def check_socket_path(path: Path) -> None:
    """Raises UserError if the path is too long for a Unix socket."""
    length = len(os.fsencode(path))
    if length > SOCKET_BYTES:
        raise UserError(
            f"The socket path {path} has {length} bytes and a Unix socket at most {SOCKET_BYTES}; "
            "set REVERIE_HOME to a shorter folder."
        )


def peer(connection: socket.socket) -> tuple[int, int | None]:
    """Returns PID and user id of the other end; (0, None) where the system does not tell, and file modes must do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return 0, None
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid


def _exchange(connection: socket.socket, line: bytes, until: float) -> bytes:
    with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before it closed
        connection.sendall(line)
    answer = bytearray()
    while not answer.endswith(b"\n") and len(answer) <= LARGEST_ANSWER:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(65_536)
        if not part:
            break
        answer += part
    return bytes(answer)


def _check_answer(raw: bytes, path: Path) -> JsonObject:
    try:
        answer: Any = load_json(raw)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise NobodyListening(f"The session at {path} closed without an answer; it may be ending.")
    given = cast(JsonObject, answer)
    if given.get("ok") is not True:
        raise SessionRefused(str(given.get("error") or "The session refused without a reason."))
    return given
