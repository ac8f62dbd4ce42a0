"""The live-session socket: many clients, rude clients, stale files, other processes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import socket
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.errors import NobodyListening, SessionBusy, SessionRefused, StorageError, UserError
from reverie.runtime.live import Handler, LiveServer
from reverie.runtime.live_client import LARGEST_REQUEST, ask_live, live_sessions
from reverie.storage.lease import Lease
from reverie.types import JsonObject
from tests.counts import count
from tests.waiting import FOREVER_S, LIMIT_S, until

T = TypeVar("T")


@pytest.fixture(autouse=True)
def nothing_on_the_terminal(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The event loop reports what goes wrong in its callbacks on standard error, in the middle of a conversation."""
    yield
    assert [record.message for record in caplog.get_records("call") if record.name == "asyncio"] == []


async def echo(request: JsonObject) -> JsonObject:
    await asyncio.sleep(float(request.get("sleep", 0)))
    return {"said": request.get("say")}


async def refuses(_: JsonObject) -> JsonObject:
    raise UserError("There is no task 'x'.")


async def breaks(_: JsonObject) -> JsonObject:
    raise KeyError("secret detail")


HANDLERS = {"echo": echo, "refuse": refuses, "break": breaks}


def with_server(
    path: Path, test: Callable[[LiveServer], Awaitable[T]], handlers: Mapping[str, Handler] = HANDLERS, **limits: float
) -> T:
    async def go() -> T:
        async with LiveServer(path, handlers, **limits) as server:
            return await test(server)

    return asyncio.run(go())


def asks(path: Path, *requests: JsonObject, timeout_s: float = LIMIT_S) -> list[JsonObject]:
    """Asks a server in this process from a thread, as another process would."""

    async def test(_: LiveServer) -> list[JsonObject]:
        return [await asyncio.to_thread(ask_live, path, request, timeout_s) for request in requests]

    return with_server(path, test)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "s.sock"


def raw(path: Path, sent: bytes, *, half_close: bool = True) -> bytes:
    """Whatever comes back for these bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(LIMIT_S)
        connection.connect(str(path))
        try:
            connection.sendall(sent)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        try:
            while part := connection.recv(65_536):
                answer += part
        except ConnectionResetError:
            pass
        return answer


def test_a_question_and_its_answer(path: Path) -> None:
    ping, said = asks(path, {"do": "ping"}, {"do": "echo", "say": "ä\ud800 " * 1000})
    assert ping == {"ok": True, "pid": os.getpid(), "verbs": ["break", "echo", "ping", "refuse"]}
    assert said == {"ok": True, "said": "ä\ud800 " * 1000}


def test_the_socket_is_private_and_goes_when_the_session_ends(path: Path) -> None:
    async def test(_: LiveServer) -> tuple[int, int]:
        return path.parent.stat().st_mode, path.stat().st_mode

    folder, file = with_server(path, test)
    assert (stat.S_IMODE(folder), stat.S_IMODE(file)) == (0o700, 0o600) and stat.S_ISSOCK(file)
    assert not path.exists()
    with pytest.raises(NobodyListening, match="No live session listens"):
        ask_live(path, {"do": "ping"})


def test_refusals_and_our_own_mistakes_are_sentences(path: Path) -> None:
    async def test(_: LiveServer) -> None:
        for request, says in [
            ({"do": "refuse"}, r"There is no task 'x'\."),
            ({"do": "break"}, r"'break' failed: unexpected KeyError\."),
            ({"do": "fly"}, r"does not know 'fly'; it knows: break, echo, ping, refuse\."),
            ({"do": 5}, 'an object with "do"'),
            ({}, 'an object with "do"'),
        ]:
            with pytest.raises(SessionRefused, match=says) as caught:
                await asyncio.to_thread(ask_live, path, request)
            assert "secret detail" not in str(caught.value)
        assert await asyncio.to_thread(ask_live, path, {"do": "echo", "say": 1}) == {"ok": True, "said": 1}

    with_server(path, test)


def test_several_requests_on_one_connection(path: Path) -> None:
    async def test(_: LiveServer) -> bytes:
        lines = b"".join(json.dumps({"do": "echo", "say": n}).encode() + b"\n" for n in range(100))
        return await asyncio.to_thread(raw, path, lines)

    answers = [json.loads(line) for line in with_server(path, test).splitlines()]
    assert [answer["said"] for answer in answers] == list(range(100))


def test_fifty_clients_at_once(path: Path) -> None:
    together: list[JsonObject] = []
    all_ask = asyncio.Event()

    async def meet(request: JsonObject) -> JsonObject:
        together.append(request)
        if len(together) == 50:
            all_ask.set()
        await all_ask.wait()  # one after the other they would wait for ever
        return {"said": request.get("say")}

    async def test(_: LiveServer) -> list[JsonObject]:
        async def client(n: int) -> JsonObject:
            return await asyncio.to_thread(ask_live, path, {"do": "meet", "say": n}, LIMIT_S)

        asyncio.get_running_loop().set_default_executor(executor)
        return list(await asyncio.gather(*(client(n) for n in range(50))))

    from concurrent.futures import ThreadPoolExecutor

    executor = ThreadPoolExecutor(50)
    answers = with_server(path, test, {"meet": meet}, handler_wait_s=LIMIT_S)
    assert [answer["said"] for answer in answers] == list(range(50))


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (b"hello\n", "not JSON"),
        (b"\xff\xfe\xfd\n", "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b"[1, 2]\n", "an object with"),
        (b"null\n", "an object with"),
        (b"x" * (LARGEST_REQUEST + 10) + b"\n", "at most"),
        (b"x" * (5 * LARGEST_REQUEST), "at most"),
    ],
)
def test_requests_that_are_none_get_a_sentence(path: Path, sent: bytes, says: str) -> None:
    async def test(_: LiveServer) -> bytes:
        answer = await asyncio.to_thread(raw, path, sent)
        assert (await asyncio.to_thread(ask_live, path, {"do": "ping"}))["ok"]
        return answer

    answer = json.loads(with_server(path, test))
    assert answer["ok"] is False and says in answer["error"]


def test_a_last_line_without_a_newline_still_counts(path: Path) -> None:
    async def test(_: LiveServer) -> bytes:
        return await asyncio.to_thread(raw, path, b'{"do": "echo", "say": 1}')

    assert json.loads(with_server(path, test))["said"] == 1


@pytest.mark.soak
def test_clients_that_vanish_at_any_moment_do_no_harm(path: Path) -> None:
    def rude(number: int) -> None:
        chance = random.Random(number)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            line = json.dumps({"do": "echo", "say": "x" * chance.randrange(300_000), "sleep": 0.01}).encode() + b"\n"
            try:
                connection.sendall(line[: chance.randrange(1, len(line) + 1)])
                if chance.random() < 0.5:
                    connection.settimeout(0.01)
                    connection.recv(10)
            except OSError:
                pass

    async def test(server: LiveServer) -> None:
        for number in range(count(60, 2000)):
            await asyncio.to_thread(rude, number)
        assert (await asyncio.to_thread(ask_live, path, {"do": "ping"}))["ok"]
        await until(lambda: server.clients == 0)

    with_server(path, test)


def test_clients_that_neither_ask_nor_read_are_dropped(path: Path) -> None:
    def idle() -> bytes:
        return raw(path, b"", half_close=False)

    def never_reads() -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.settimeout(LIMIT_S)
            line = json.dumps({"do": "echo", "say": "x" * 900_000}).encode() + b"\n"
            with pytest.raises(ConnectionError):
                for _ in range(100):
                    connection.sendall(line)

    async def test(_: LiveServer) -> None:
        assert await asyncio.to_thread(idle) == b""
        await asyncio.to_thread(never_reads)
        assert (await asyncio.to_thread(ask_live, path, {"do": "ping"}))["ok"]

    with_server(path, test, request_wait_s=0.3)


def test_a_handler_that_hangs_is_given_up(path: Path) -> None:
    async def test(_: LiveServer) -> None:
        with pytest.raises(SessionRefused, match=r"'echo' took longer than 0\.2 s"):
            await asyncio.to_thread(ask_live, path, {"do": "echo", "sleep": FOREVER_S})
        with pytest.raises(NobodyListening, match=r"did not answer within 0\.05 s"):
            await asyncio.to_thread(ask_live, path, {"do": "echo", "sleep": FOREVER_S}, 0.05)

    with_server(path, test, handler_wait_s=0.2)


def test_closing_lets_a_request_in_flight_end_and_drops_the_idle(path: Path) -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def hold(_: JsonObject) -> JsonObject:
        begun.set()
        await release.wait()
        return {"said": 1}

    async def test() -> None:
        server = LiveServer(path, {"hold": hold})
        await server.start()
        asking = asyncio.create_task(asyncio.to_thread(ask_live, path, {"do": "hold"}, LIMIT_S))
        idle = asyncio.create_task(asyncio.to_thread(raw, path, b"", half_close=False))
        await begun.wait()
        await until(lambda: server.clients == 2)
        closing = asyncio.create_task(server.close())
        assert await idle == b"", "it does not wait for who says nothing"
        assert not closing.done()
        release.set()
        await closing
        await server.close()
        assert (await asking)["said"] == 1

    asyncio.run(test())


SERVER = """
import asyncio, sys
from pathlib import Path
from reverie.runtime.live import LiveServer
from reverie.storage.lease import Lease
async def main():
    path = Path(sys.argv[1])
    lease = Path(sys.argv[2])
    lease.parent.mkdir(parents=True)
    with Lease.take(lease, info={"session": lease.parent.name, "socket": str(path)}):
        async with LiveServer(path, {}):
            print("ready", flush=True)
            await asyncio.Event().wait()
asyncio.run(main())
"""


def test_a_killed_sessions_socket_is_replaced_and_a_live_ones_is_not(tmp_path: Path, path: Path) -> None:
    lease = tmp_path / "projects" / "slug" / "abc-1" / Lease.NAME
    other = subprocess.Popen([sys.executable, "-c", SERVER, str(path), str(lease)], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None and other.stdout.readline() == b"ready\n"
        assert ask_live(path, {"do": "ping"})["pid"] == other.pid
        (live,) = live_sessions(tmp_path / "projects")
        assert (live.id, live.pid, live.socket) == ("abc-1", other.pid, path)
        assert live_sessions(tmp_path / "projects", "abc") == [live] and live_sessions(tmp_path / "projects", "b") == []
        with pytest.raises(SessionBusy) as caught:
            asks(path, {"do": "ping"})
        if hasattr(socket, "SO_PEERCRED"):
            assert caught.value.pid == other.pid
    finally:
        other.kill()
        other.communicate()
    assert path.exists() and live_sessions(tmp_path / "projects") == []
    with pytest.raises(NobodyListening):
        ask_live(path, {"do": "ping"})
    assert asks(path, {"do": "ping"})[0]["pid"] == os.getpid()


def test_places_that_cannot_hold_a_socket(tmp_path: Path, path: Path) -> None:
    long = tmp_path / ("x" * 100) / "s.sock"
    for attempt in (lambda: asks(long), lambda: ask_live(long, {})):
        with pytest.raises(UserError, match=r"Unix socket at most 103; set REVERIE_HOME to a shorter"):
            attempt()
    path.parent.mkdir(mode=0o700)
    path.write_text("not a socket")
    with pytest.raises(StorageError, match="not a socket"):
        asks(path)
    assert path.read_text() == "not a socket"
    path.unlink()
    path.parent.chmod(0o755)
    with pytest.raises(StorageError, match="others can enter it"):
        asks(path)


def test_a_request_too_large_is_not_even_sent(path: Path) -> None:
    with pytest.raises(UserError, match="at most"):
        asks(path, {"do": "echo", "say": "x" * LARGEST_REQUEST})


@pytest.mark.parametrize("answer", [b"", b"\n", b"garbage\n", b"[1]\n", b"\xff\n", b'{"ok": 1}\n', b'{"ok": false}\n'])
def test_a_server_that_talks_nonsense_is_a_sentence(tmp_path: Path, answer: bytes) -> None:
    path = tmp_path / "s.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        async def test() -> None:
            asking = asyncio.create_task(asyncio.to_thread(ask_live, path, {"do": "ping"}, 5))
            connection, _ = await asyncio.to_thread(listener.accept)
            with connection:
                await asyncio.to_thread(connection.recv, 1000)
                connection.sendall(answer)
            await asking

        with pytest.raises((NobodyListening, SessionRefused), match=r"\.$"):
            asyncio.run(test())


@pytest.mark.soak
def test_no_bytes_whatever_end_the_server(tmp_path: Path) -> None:
    path = tmp_path / "s.sock"
    junk = st.binary(max_size=300) | st.text(max_size=100).map(lambda text: json.dumps({"do": text}).encode() + b"\n")

    async def serve(pieces: list[bytes]) -> None:
        async with LiveServer(path, HANDLERS):
            answer = await asyncio.to_thread(raw, path, b"".join(pieces))
            for line in answer.splitlines():
                assert isinstance(json.loads(line)["ok"], bool)
            assert (await asyncio.to_thread(ask_live, path, {"do": "ping"}))["ok"]

    @settings(max_examples=count(30, 2000), deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(junk, max_size=6))
    def check(pieces: list[bytes]) -> None:
        asyncio.run(serve(pieces))

    check()


def test_asking_needs_no_event_loop() -> None:
    code = "import sys, reverie.runtime.live_client; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
