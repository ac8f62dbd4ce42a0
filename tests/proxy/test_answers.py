"""Streams of servers that follow the API loosely: the answer is read as a client reads it, so that the next request is
recognised as the same conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reverie.proxy.answers import Listener
from reverie.proxy.bodies import Api
from reverie.proxy.merging import merging
from tests.proxy.proxied import Recorder, post, proxy, stats
from tests.proxy.reader import LONG_SYSTEM, OURS, PATHS, Client
from tests.work import ratio

Call = tuple[str, str, str]
"""The id, the name and the arguments of a call."""


def events(*given: Any, ends: str = "") -> bytes:
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in given) + ends.encode()


def chat_stream(*deltas: Sequence[dict[str, Any]], number: int = 0) -> bytes:
    head = {"id": f"c{number}", "model": "m", "created": 1}
    parts = [{**head, "choices": [{"index": 0, "delta": {"tool_calls": list(calls)}}]} for calls in deltas]
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": usage}
    return events(*parts, end, ends="data: [DONE]\n\n")


def part(arguments: Any, id: str | None = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": name} if name is not None else {})}
    return {**more, **({"id": id, "type": "function"} if id is not None else {}), "function": function}


def whole(calls: Sequence[Call]) -> bytes:
    return chat_stream(*([part(given, id, name, index=0)] for id, name, given in calls))


def without_index(calls: Sequence[Call]) -> bytes:
    return chat_stream([part(given, id, name) for id, name, given in calls])


def in_pieces(calls: Sequence[Call]) -> bytes:
    deltas = list[Sequence[dict[str, Any]]]()
    for id, name, given in calls:
        deltas += [[part("", id, name, index=0)], [part(given[:9], index=0)], [part(given[9:], index=0)]]
    return chat_stream(*deltas)


def with_the_name_again(calls: Sequence[Call]) -> bytes:
    """Each part has the id and the name of its call."""
    deltas = list[Sequence[dict[str, Any]]]()
    for id, name, given in calls:
        deltas += [[part(given[:9], id, name, index=0)], [part(given[9:], id, name, index=0)]]
    return chat_stream(*deltas)


def as_objects(calls: Sequence[Call]) -> bytes:
    return chat_stream([part(json.loads(given), id, name, index=0) for id, name, given in calls])


def named_once(calls: Sequence[Call]) -> bytes:
    """All calls have the same id; it is empty in some servers."""
    return whole([("call_0", name, given) for _, name, given in calls])


def without_ids(calls: Sequence[Call]) -> bytes:
    return chat_stream(
        *([part(given[:9], "", name, index=0), part(given[9:], "", name, index=0)] for _, name, given in calls)
    )


def mixed(calls: Sequence[Call]) -> bytes:
    """The parts of the calls take turns, and only the id says which one a part is of."""
    begun = [[part(given[:9], id, name, index=0)] for id, name, given in calls]
    return chat_stream(*begun, *([part(given[9:], id, index=0)] for id, _, given in calls))


LOOSE = (whole, without_index, in_pieces, with_the_name_again, as_objects, named_once, without_ids, mixed)


@pytest.mark.parametrize("stream", LOOSE, ids=lambda one: one.__name__)
def test_parallel_calls_with_one_index_are_two_calls(tmp_path: Path, stream: Callable[[Sequence[Call]], bytes]) -> None:
    recorder = Recorder()
    recorder.kind = "text/event-stream"
    with recorder.running() as to, proxy(tmp_path, to) as url:
        items: list[dict[str, Any]] = [{"role": "user", "content": "Look at the log and write a note, please."}]
        for number in range(6):
            calls = [(f"a{number}", "read", f'{{"path": "/{number}"}}'), (f"b{number}", "write", '{"text": "note"}')]
            ids = {named_once: ["call_0"] * 2, without_ids: [""] * 2}.get(stream, [id for id, _, _ in calls])
            recorder.answer = stream(calls)
            status, came = post(url, PATHS["chat"], {"model": "gpt-5", "stream": True, "messages": items})
            assert (status, came) == (200, recorder.answer)
            said = [
                {"id": id, "type": "function", "function": {"name": name, "arguments": given}}
                for id, (_, name, given) in zip(ids, calls, strict=True)
            ]
            items.append({"role": "assistant", "content": None, "tool_calls": said})
            items += [{"role": "tool", "tool_call_id": id, "content": f"result {number}"} for id in ids]
        found = stats(url)
    assert [one["requests"] for one in found["sessions"]] == [6] and found["failures"] == {}


def test_our_call_and_one_of_the_client_with_one_index_are_told_apart(tmp_path: Path) -> None:
    recorder = Recorder()
    with recorder.running() as to, proxy(tmp_path, to) as url:
        client = Client("chat", url, system=LONG_SYSTEM, streams=True)
        recorder.kind = "text/event-stream"
        for first, second in ((OURS, "look_up"), ("look_up", OURS)):
            client.history = [{"role": "user", "content": f"Look it up. {first}"}]
            recorder.answer = whole([("a", first, '{"path": "/x"}'), ("b", second, '{"path": "/x"}')])
            answer = post(url, PATHS["chat"], client.body())[1].decode()
            assert OURS not in answer and '"name":"look_up"' in answer.replace('": "', '":"')
            assert answer.count('"id":"a"') + answer.count('"id": "a"') == (first == "look_up")


def test_blocks_of_messages_with_one_index_are_all_read(tmp_path: Path) -> None:
    recorder = Recorder()
    recorder.kind = "text/event-stream"
    with recorder.running() as to, proxy(tmp_path, to) as url:
        items: list[dict[str, Any]] = [{"role": "user", "content": "Look at the log and write a note, please."}]
        for number in range(6):
            uses = [
                {"type": "tool_use", "id": f"{name}{number}", "name": name, "input": {"path": f"/{number}"}}
                for name in ("read", "write")
            ]
            blocks = [{"type": "text", "text": "I look at it."}, *uses]
            recorder.answer = messages_stream(number, blocks)
            body = {"model": "claude-sonnet-4-5", "max_tokens": 99, "stream": True, "messages": items}
            assert post(url, PATHS["messages"], body)[0] == 200
            items.append({"role": "assistant", "content": blocks})
            told = [{"type": "tool_result", "tool_use_id": one["id"], "content": "ok"} for one in uses]
            items.append({"role": "user", "content": told})
        found = stats(url)
    assert [one["requests"] for one in found["sessions"]] == [6] and found["failures"] == {}


def messages_stream(number: int, blocks: Sequence[dict[str, Any]]) -> bytes:
    """Every block has index 0."""
    start = {"id": f"m{number}", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 10}}
    made: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for block in blocks:
        empty = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        made.append({"type": "content_block_start", "index": 0, "content_block": empty})
        pieces = (
            [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
            if block["type"] == "tool_use"
            else [{"type": "text_delta", "text": block["text"]}]
        )
        made += [{"type": "content_block_delta", "index": 0, "delta": one} for one in pieces]
        made.append({"type": "content_block_stop", "index": 0})
    made.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}})
    return events(*made, {"type": "message_stop"})


@pytest.mark.parametrize("output", [{}, {"output": []}, {"output": None}], ids=["none", "empty", "null"])
def test_a_response_that_does_not_repeat_its_items_at_the_end_is_read(tmp_path: Path, output: dict[str, Any]) -> None:
    """Our call in it is answered, and the client gets the answer to the next round."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    ours = {"type": "function_call", "id": "f", "call_id": "c", "name": OURS, "arguments": '{"path": "/x"}'}
    text = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 4711."}]}
    recorder = Recorder()
    recorder.kind = "text/event-stream"
    for number, item in enumerate((ours, text)):
        end = {"id": f"r{number}", "model": "gpt-5", "status": "completed", "usage": usage, **output}
        added = {"type": "response.output_item.added", "output_index": 0, "item": item}
        done = {"type": "response.output_item.done", "output_index": 0, "item": item}
        recorder.answers.append(events(added, done, {"type": "response.completed", "response": end}))
    with recorder.running() as to, proxy(tmp_path, to) as url:
        client = Client("responses", url, system=LONG_SYSTEM, streams=True)
        client.history = [{"role": "user", "content": "Which port is it?"}]
        answer = post(url, PATHS["responses"], client.body())[1]
        found = stats(url)
    assert b"It is 4711." in answer and OURS.encode() not in answer
    assert found["total"]["rounds"] == 1 and found["failures"] == {}
    assert [one.get("output") for one in json.loads(recorder.bodies[1])["input"]][-1], "the result of our call"


ODD = (None, "0", [0], {"a": 1}, True, 1.5, -1, 10**30)


@pytest.mark.parametrize("api", ["messages", "chat", "responses"])
def test_an_index_of_any_kind_breaks_no_answer(tmp_path: Path, api: Api) -> None:
    """In a conversation with our tool, in which indexes are counted anew."""
    recorder = Recorder()
    recorder.kind = "text/event-stream"
    with recorder.running() as to, proxy(tmp_path, to) as url:
        for odd in ODD:
            client = Client(api, url, system=LONG_SYSTEM, streams=True)
            asked = f"Which port? {odd}"
            client.history = [
                {"role": "user", "content": [{"type": "text", "text": asked}] if api == "messages" else asked}
            ]
            recorder.answer = {
                "messages": messages_stream(0, [{"type": "text", "text": "The end."}]),
                "chat": chat_stream([part("{}", "a", "The end.", index=0)]),
                "responses": events(
                    {"type": "response.output_item.added", "output_index": 0, "item": {"id": "The end."}},
                    {"type": "response.completed", "response": {"id": "r", "output": []}},
                ),
            }[api].replace(b'index": 0, "', f'index": {json.dumps(odd)}, "'.encode())
            status, came = post(url, PATHS[api], client.body())
            assert status == 200 and b"The end." in came and came.rstrip().endswith(recorder.answer.rstrip()[-9:]), odd


def deltas(kind: str, **more: Any) -> Callable[[int], dict[str, Any]]:
    return lambda _number: {"type": "content_block_delta", "index": 0, "delta": {"type": kind, **more}}


def calls_in(number: int) -> dict[str, Any]:
    call = {"index": number, "id": f"call_{number}", "function": {"name": "read", "arguments": "{}"}}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


LONG_ANSWERS: dict[str, tuple[Api, Callable[[int], dict[str, Any]]]] = {
    "text": ("messages", deltas("text_delta", text="x" * 4_000)),
    "thinking": ("messages", deltas("thinking_delta", thinking="x" * 4_000)),
    "input": ("messages", deltas("input_json_delta", partial_json="x" * 4_000)),
    "compaction": ("messages", deltas("compaction_delta", content="x" * 4_000)),
    "citations": ("messages", deltas("citations_delta", citation={})),
    "words": ("chat", lambda _number: {"choices": [{"index": 0, "delta": {"content": "x" * 4_000}}]}),
    "calls": ("chat", calls_in),
    "items": ("responses", lambda number: {"type": "response.output_item.done", "item": {"id": str(number)}}),
}
MANY = {"calls": 12_800, "citations": 64_000}


@pytest.mark.parametrize("kind", LONG_ANSWERS)
def test_the_work_for_a_stream_grows_with_its_size_only(kind: str) -> None:
    api, make = LONG_ANSWERS[kind]

    def take(share: float) -> Callable[[], None]:
        raw = [events(make(number)) for number in range(round(share * MANY.get(kind, 3_200)))]

        def work() -> None:
            listener, out = Listener(api, streams=True), merging(api, OURS)
            for event in raw:
                listener.take(event)
                out.take(event)

        return work

    assert ratio(take(1), take(1 / 8), tries=3) < 22, "8 times the events; 64 times the work if each looks at all"
