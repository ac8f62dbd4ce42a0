"""An upstream that answers with any bytes, in any number of parts, and sees when its client leaves. Raw sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

Reply = Callable[[socket.socket], None]


def read_request(connection: socket.socket) -> bytes:
    """One whole request: the head and the body."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (part := connection.recv(65_536)):
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    size = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
    while len(body) < size:
        body += connection.recv(1_000_000)
    return head + b"\r\n\r\n" + body


def has_left(connection: socket.socket, within: float = 10.0) -> bool:
    """Whether the other side closes the connection in time."""
    connection.settimeout(within)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@contextmanager
def wild(reply: Reply, heads: list[list[bytes]] | None = None) -> Generator[str]:
    """Calls `reply` after each request has come. `heads` gets the lines before each body."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if came := read_request(connection):
                if heads is not None:
                    heads.append(came.partition(b"\r\n\r\n")[0].split(b"\r\n"))
                reply(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        server.close()


def chunked(*parts: bytes, kind: str = "text/event-stream", ends: bool = True, **headers: str) -> Reply:
    """Answers 200 with these parts; `ends`: with the last chunk, as servers do."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    start = "HTTP/1.1 200 OK\r\nconnection: close\r\n"  # each connection has one answer
    head = f"{start}content-type: {kind}\r\ntransfer-encoding: chunked\r\n{more}\r\n".encode()

    def reply(connection: socket.socket) -> None:
        connection.sendall(head)
        for part in parts:
            connection.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        if ends:
            connection.sendall(b"0\r\n\r\n")

    return reply
