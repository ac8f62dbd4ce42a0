"""Sending: what is tried again, how long it waits, what is void, and that nothing is left half done."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie import errors
from reverie.models.base import Capabilities, Finished, ModelEvent, Request, TextDelta
from reverie.models.request_log import RequestLog, read_log
from reverie.models.script import Script
from reverie.models.scripted import ScriptedModel
from reverie.models.sending import Restarted, Retry, RetryPolicy, SendEvent, send
from tests.models.requests import answered, collect, person, request
from tests.prefix_breaks import prefix_breaks
from tests.waiting import LIMIT_S, until


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


def policy(clock: Clock, *, jitter: float = 1.0, retries: int = 8) -> RetryPolicy:
    return RetryPolicy(retries=retries, random=lambda: jitter, sleep=clock.sleep)


def scripted(text: str) -> ScriptedModel:
    return ScriptedModel(Script.parse(text))


def play(text: str, clock: Clock, **more: float) -> tuple[list[SendEvent], list[Retry]]:
    retries: list[Retry] = []
    made = policy(clock, **more)  # type: ignore[arg-type]
    return asyncio.run(collect(send(scripted(text), request(), policy=made, on_retry=retries.append))), retries


def test_waits_twice_as_long_each_time_and_then_gets_through() -> None:
    clock = Clock()
    events, retries = play("fail overloaded 8x\nsay through", clock)
    assert clock.slept == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [retry.attempt for retry in retries] == list(range(1, 9))
    assert isinstance(events[-1], Finished) and events[0] == TextDelta("through")
    assert not any(isinstance(event, Restarted) for event in events)


@given(st.floats(0, 1), st.integers(1, 30))
def test_jitter_is_full_and_bounded(jitter: float, attempt: int) -> None:
    wait = RetryPolicy(retries=30, random=lambda: jitter).wait(attempt, errors.Overloaded("busy"))
    assert wait is not None and 0 <= wait <= min(60, 2 ** (attempt - 1))


def test_honours_what_the_server_asks_for_within_reason() -> None:
    clock = Clock()
    play("fail rate-limited retry-after 20\nsay through", clock, jitter=0.5)
    assert clock.slept == [20.5]
    with pytest.raises(errors.Overloaded):
        play("fail rate-limited retry-after 4000\nsay through", clock)
    assert clock.slept == [20.5]


def test_gives_up_after_the_last_retry() -> None:
    clock = Clock()
    with pytest.raises(errors.Overloaded):
        play("fail overloaded always\nsay never", clock, retries=3)
    assert len(clock.slept) == 3


@pytest.mark.parametrize("fault", ["bad-request no", "authentication", "prompt-too-long 3 > 2"])
def test_what_cannot_succeed_is_not_sent_again(fault: str) -> None:
    clock = Clock()
    with pytest.raises(errors.ModelError):
        play(f"fail {fault}\nsay never", clock)
    assert clock.slept == []


def test_a_cut_answer_is_declared_void_before_it_comes_again() -> None:
    events, retries = play("fail cut 5 2x\nsay hello, world", Clock())
    kinds = [event.text if isinstance(event, TextDelta) else type(event).__name__ for event in events]
    assert kinds == ["hello", "Restarted", "hello", "Restarted", "hello, world", "Finished"]
    assert "broke" in retries[0].reason


class Wire:
    """A model whose connection can be watched."""

    name = "wire"
    capabilities = Capabilities()

    def __init__(self, *, ends: bool) -> None:
        self.open = 0
        self._ends = ends

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        self.open += 1
        try:
            yield TextDelta("begun")
            if not self._ends:
                await asyncio.sleep(3600)
        finally:
            self.open -= 1

    async def close(self) -> None: ...


def test_a_stream_without_an_end_was_cut() -> None:
    model, clock = Wire(ends=True), Clock()
    with pytest.raises(errors.Unreachable, match="before it was complete"):
        asyncio.run(collect(send(model, request(), policy=policy(clock, retries=1))))
    assert len(clock.slept) == 1 and model.open == 0


def test_stopping_or_cancelling_closes_the_connection() -> None:
    async def run() -> None:
        model = Wire(ends=False)
        async with aclosing(send(model, request(), policy=RetryPolicy())) as events:
            async for _ in events:
                assert model.open == 1
                break
        assert model.open == 0
        task = asyncio.create_task(collect(send(model, request(), policy=RetryPolicy())))
        await until(lambda: model.open == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert model.open == 0

    asyncio.run(run())


def test_cancelling_while_waiting_sends_nothing_more() -> None:
    async def run() -> list[Retry]:
        retries: list[Retry] = []
        patient = RetryPolicy(first_wait_s=60, random=lambda: 1.0)
        model = scripted("fail overloaded always\nsay never")
        task = asyncio.create_task(collect(send(model, request(), policy=patient, on_retry=retries.append)))
        await until(lambda: bool(retries))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return retries

    assert len(asyncio.run(run())) == 1


def converse(log: RequestLog, rounds: int, first: Request, model: ScriptedModel) -> Request:
    async def run() -> Request:
        now = first
        for _ in range(rounds):
            last = (await collect(send(model, now, policy=policy(Clock()), log=log)))[-1]
            assert isinstance(last, Finished)
            now = answered(now, last.response)
        return now

    return asyncio.run(run())


def test_every_request_sent_is_logged_and_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    model = scripted("fail overloaded 1x\nsay one\n---\nsay two\n---\nsay three")
    first = request(conversation="c")
    converse(RequestLog(path), 2, first, model)
    logged = list(read_log(path))
    assert [len(entry.parts) for entry in logged] == [5, 5, 7]
    assert logged[0].parts == logged[1].parts == logged[2].parts[:5]
    assert [json.loads(part) for part in logged[0].parts[1:]][-1] == {"user": {"type": "text", "text": "hello"}}
    assert (logged[0].conversation, logged[0].thread, logged[0].purpose) == ("c", "main", "main")
    assert path.stat().st_mode & 0o777 == 0o600
    assert prefix_breaks(path) == []


def test_the_log_grows_with_the_conversation_and_not_with_its_square(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    model = scripted("repeat forever\nsay {round}\nend")
    converse(RequestLog(path), 60, request(person("x" * 10_000), conversation="c"), model)
    assert path.stat().st_size < 60_000
    assert len(list(read_log(path))[-1].parts) == 5 + 2 * 59


def test_a_break_is_found_across_processes_unless_it_was_announced(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    model = scripted("repeat forever\nsay {round}\nend")
    now = converse(RequestLog(path), 2, request(conversation="c"), model)
    converse(RequestLog(path), 1, now, model)
    assert prefix_breaks(path) == []
    converse(RequestLog(path), 1, request(person("summary"), conversation="c", announced_break="compaction"), model)
    assert prefix_breaks(path) == []
    converse(RequestLog(path), 1, request(person("summary"), conversation="c", thread="fork"), model)
    assert prefix_breaks(path) == [], "a fork begins with what it was forked from"
    converse(RequestLog(path), 1, request(person("another"), conversation="c"), model)
    (found,) = prefix_breaks(path)
    assert found.index == 4
    assert "part 4" in str(found) and "summary" in str(found) and "another" in str(found)


def test_several_processes_share_a_log_and_a_torn_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    code = (
        "import sys; from pathlib import Path\n"
        "from reverie.models.request_log import RequestLog\n"
        "from tests.models.requests import person, request\n"
        "log = RequestLog(Path(sys.argv[1]))\n"
        "said = [person('x' * 3000)]\n"
        "for n in range(50):\n"
        "    log.add(request(*said, conversation=sys.argv[2])); said.append(person(str(n)))\n"
    )
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name], cwd=root, env={**os.environ}) for name in "abc"
    ]
    assert [process.wait(LIMIT_S) for process in running] == [0, 0, 0]
    with path.open("a", encoding="utf-8") as log:
        log.write('{"ts": 1, "pi')
    logged = list(read_log(path))
    assert len(logged) == 150
    assert {entry.conversation: len(entry.parts) for entry in logged} == {"a": 54, "b": 54, "c": 54}
    assert prefix_breaks(path) == []


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(errors.StorageError, match="cannot be written"):
        RequestLog(tmp_path / "no" / "such.jsonl").add(request())
