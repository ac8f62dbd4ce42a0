"""Histories that an API would refuse, changes of layers, and conversations of one wire in the body of another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie.context.request import IMAGE_LEFT_OUT, without_images
from reverie.errors import UserError
from reverie.library.wires import wire_named
from reverie.models import wire as messages_wire
from reverie.models.base import Marker, Request
from reverie.models.count import ContextMeter
from reverie.models.tokens import estimate_message
from reverie.simulator import Simulator
from reverie.storage.transcript.records import Clears, ResultDecisions
from reverie.storage.transcript.view import NO_RESULT, OPENING
from reverie.types import ITEM, Message, Origin, TextBlock, parse_message
from tests.library.wire_items import PNG, Item, Items, as_bytes, log_of, written


def chat_call(*names: str) -> Item:
    calls = [{"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def chat_result(name: str, text: str = "seen") -> Item:
    return {"role": "tool", "tool_call_id": name, "content": text}


def call(name: str) -> Item:
    return {"type": "function_call", "call_id": name, "name": "look", "arguments": "{}"}


def result(name: str, text: str = "seen") -> Item:
    return {"type": "function_call_output", "call_id": name, "output": text}


def use(*names: str) -> Item:
    calls = [{"type": "tool_use", "id": name, "name": "look", "input": {}} for name in names]
    return {"role": "assistant", "content": calls}


def used(*names: str) -> Item:
    results = [{"type": "tool_result", "tool_use_id": name, "content": "seen"} for name in names]
    return {"role": "user", "content": results}


def said(text: object, role: str = "user") -> Item:
    return {"role": role, "content": text}


def accepted(wire: str, body: Item) -> None:
    """The simulated API answers."""
    asyncio.run(getattr(Simulator(), wire)(body))


def test_a_broken_chat_history_becomes_one_that_the_api_accepts() -> None:
    items: Items = [
        said("Hello.", "assistant"),
        said(""),
        chat_result("nobody", "orphaned"),
        chat_call("a", "b"),
        said("by the way"),
        chat_result("b"),
        said("", "assistant"),
        said(None, "assistant"),
        chat_call("c"),
        said("never mind"),
        said("fine", "assistant"),
        chat_result("c", "late"),
        said("go on"),
    ]
    body = written("chat", items)
    accepted("chat", body)
    missing = {"role": "tool", "content": f"Error: {NO_RESULT}"}
    assert body["messages"] == [
        said(OPENING),
        said("Hello.", "assistant"),
        chat_call("a", "b"),
        {"role": "tool", "tool_call_id": "a", **missing},
        chat_result("b"),
        said("by the way"),
        chat_call("c"),
        {"role": "tool", "tool_call_id": "c", **missing},
        said("never mind"),
        said("fine", "assistant"),
        said("go on"),
    ]


def test_a_broken_list_of_the_responses_api_becomes_one_that_the_api_accepts() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    items: Items = [
        said("Hello.", "assistant"),
        said([]),
        result("nobody"),
        call("a"),
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "x"},
        said("by the way"),
        result("a"),
        thought,
        said("go on"),
    ]
    body = written("responses", items)
    accepted("responses", body)
    output = {"type": "custom_tool_call_output", "call_id": "b", "output": f"Error: {NO_RESULT}"}
    answer = said("(no answer)", "assistant")
    assert body["input"] == [
        said(OPENING),
        items[0],
        items[3],
        items[4],
        output,
        items[5],
        items[6],
        answer,
        said("go on"),
    ], "the reasoning is left out, because no item follows it"


def test_broken_messages_become_messages_that_the_api_accepts() -> None:
    items: Items = [
        said("Hello.", "assistant"),
        said(""),
        used("nobody"),
        use("a", "b"),
        used("b", "b"),
        said("fine", "assistant"),
        used("a"),
        said([{"type": "text", "text": " "}, {"type": "text", "text": "go on"}]),
    ]
    body = written("messages", items)
    accepted("messages", body)
    shown = [[block.get("text", block["type"]) for block in message["content"]] for message in body["messages"]]
    assert shown == [
        [OPENING],
        ["Hello.", "tool_use", "tool_use"],
        ["tool_result", "tool_result"],
        ["fine"],
        ["go on"],
    ]


def test_ids_that_a_server_uses_again_keep_their_results() -> None:
    rounds: Items = [chat_call("call_0", "call_1"), chat_result("call_1", "one"), chat_result("call_0", "zero")]
    chat = [said("hi"), *rounds, *rounds, said("go on"), *rounds, chat_call("call_0")]
    body = written("chat", chat)
    accepted("chat", body)
    assert body["messages"] == [*chat, {**chat_result("call_0"), "content": f"Error: {NO_RESULT}"}]
    again: Items = [call("1"), result("1", "first"), call("1"), result("1", "second"), said("go on")]
    assert written("responses", [said("hi"), *again])["input"] == [said("hi"), *again]


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_a_cleared_result_keeps_its_item_and_an_added_block_becomes_an_item(wire: str) -> None:
    parts = [{"type": "text" if wire == "chat" else "input_text", "text": "long"}]
    if wire == "chat":
        key, calls = "messages", [chat_call("a", "b")]
        results: Items = [{**chat_result("b"), "name": "look"}, {**chat_result("a"), "content": parts, "x": 1}]
    else:
        key, calls = "input", [call("a"), call("b")]
        results = [{**result("b"), "status": "completed"}, {**result("a"), "output": parts, "id": "fco_1"}]
    items = [said("hi"), *calls, *results]
    log = log_of(wire, items)
    log.append_message(Message("user", (TextBlock("Remember this.", Origin.CODE),)))
    log.append(Clears("idle", {"a": "[cleared]"}))
    log.append(ResultDecisions(replaced={"b": "[on disk]"}))
    body = written(wire, items, view=log.view)
    accepted(wire, body)
    field = "content" if wire == "chat" else "output"
    shown = [{**results[0], field: "[on disk]"}, {**results[1], field: "[cleared]"}]
    reminder = said("<system-reminder>\nRemember this.\n</system-reminder>")
    assert as_bytes(body[key]) == as_bytes([said("hi"), *calls, *shown, reminder])
    assert as_bytes(written(wire, items, view=log.view)) == as_bytes(body)


def test_an_image_that_is_left_out_becomes_a_text_in_its_item() -> None:
    image = {"type": "image_url", "image_url": {"url": PNG}}
    items: Items = [{"role": "user", "content": [image, {"type": "text", "text": "look"}], "name": "bob"}]
    shown = without_images(log_of("chat", items).view.messages(), 1)
    body = wire_named("chat").write_body(Request("gpt-5", (), (), shown, 9))
    left = {"type": "text", "text": IMAGE_LEFT_OUT}
    assert body["messages"] == [{"role": "user", "content": [left, items[0]["content"][1]], "name": "bob"}]


def test_reasoning_that_only_a_storing_server_knows_is_left_out_if_nothing_is_stored() -> None:
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"}
    bare = {"type": "reasoning", "id": "rs_2", "summary": []}
    items = [said("hi"), sealed, call("a"), bare, call("b"), result("a"), result("b")]
    request = Request("gpt-5", (), (), log_of("responses", items).view.messages(), 9)
    kept = wire_named("responses").write_body(request, {"store": False})
    assert kept["input"] == [item for item in items if item is not bare]
    assert wire_named("responses").write_body(request, {"store": True})["input"] == items


@pytest.mark.parametrize("damage", [[["content", 9]], [["nothing", 0, 1]], [5], "x", [[{}]]])
def test_a_damaged_rest_of_an_item_does_not_stop_a_request(damage: Any) -> None:
    items: Items = [said([{"type": "text", "text": "hi"}]), chat_call("a"), chat_result("a")]
    shown = list[Message]()
    for message in log_of("chat", items).view.messages():
        raw = message.stored()
        raw["content"][0][ITEM]["at"] = damage
        read = parse_message(raw, [Origin.ENTERED])
        assert read is not None
        shown.append(read)
    body = wire_named("chat").write_body(Request("gpt-5", (), (), tuple(shown), 9))
    accepted("chat", body)
    assert [one["role"] for one in body["messages"]] == ["user", "assistant", "tool"]


def chat_and_responses() -> tuple[Items, Items]:
    """The same conversation with everything that only its own API knows."""
    sound = {"type": "input_audio", "input_audio": {"data": "A" * 40_000, "format": "wav"}}
    link = {"type": "image_url", "image_url": {"url": PNG}}
    chat: Items = [
        said("start", "system"),
        said([{"type": "text", "text": "hi"}, link, sound]),
        chat_call("a"),
        {**chat_result("a"), "content": [{"type": "file", "file": {"file_id": "AAAA"}}]},
        said("Be brief.", "developer"),
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        said([sound]),
    ]
    responses: Items = [
        said("hi"),
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "A" * 40_000},
        call("a"),
        result("a"),
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"type": "image_generation_call", "id": "ig_1", "result": "A" * 40_000, "status": "completed"},
        said("go on"),
    ]
    return chat, responses


@pytest.mark.parametrize("number", [0, 1])
def test_a_model_beside_the_conversation_gets_messages_without_what_only_another_api_knows(number: int) -> None:
    name, items = ("chat", "responses")[number], chat_and_responses()[number]
    tools = wire_named(name).read_tools([{"type": "web_search"}])
    shown = log_of(name, items).view.messages()
    request = Request("claude-sonnet-4-5", ("s",), tools, shown, 9, markers=(Marker("messages", len(shown) - 1),))
    body = messages_wire.body(request)
    accepted("messages", body)
    text = as_bytes(body)
    assert ITEM not in text and "AAAA" not in text and "tools" not in body
    assert "<system-reminder>\\nBe brief.\\n</system-reminder>" in text
    assert ITEM not in "".join(messages_wire.prefix_parts(Request("m", (), (), shown, 9)))


@pytest.mark.parametrize("number", [0, 1])
def test_what_travels_with_an_item_does_not_count(number: int) -> None:
    name, items = ("chat", "responses")[number], chat_and_responses()[number]
    meter = ContextMeter()
    for given in wire_named(name).read_messages(items):
        meter.append(given.message)
        assert estimate_message(given.message) < 5_000, "sound and images count as such, not as text"
    assert meter.tokens < 10_000
    plain = wire_named(name).read_messages([said("hello " * 50)])[0].message
    assert estimate_message(plain) == estimate_message(Message("user", (TextBlock("hello " * 50),)))


def test_no_text_is_stored_twice() -> None:
    long = "word " * 1_000
    arguments = '{"text": "' + long + '"}'
    items: Items = [
        said(long),
        {"role": "assistant", "content": long, "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}]},
        chat_result("a", long),
    ]  # fmt: skip
    stored = as_bytes([given.message.stored() for given in wire_named("chat").read_messages(items)])
    assert len(stored) < 4 * len(long) + 1_500


def test_an_origin_that_the_caller_names_is_read_and_removed() -> None:
    part = {"type": "text", "text": "page", "reverie_origin": "page"}
    items: Items = [said([part, {"type": "text", "text": "hi"}]), {**said("logs"), "reverie_origin": "pasted"}]
    for wire, key in (("messages", "messages"), ("chat", "messages"), ("responses", "input")):
        given = items
        if wire == "responses":
            typed = [{**one, "type": "input_text"} for one in items[0]["content"]]
            given = [said(typed), items[1]]
        read = wire_named(wire).read_messages(given)
        origins = [block.origin for one in read for block in one.message.content]
        assert origins == [Origin.PAGE, Origin.ENTERED, Origin.PASTED]
        body = as_bytes(written(wire, given)[key])
        assert "reverie_origin" not in body and "<page-text>" in body and "<pasted-text>" in body
        assert "reverie_origin" in as_bytes(given), "what the caller gave is not changed"


def test_system_messages_inside_a_messages_conversation_end_their_turn() -> None:
    system = {"role": "system", "content": "Be brief."}
    items: Items = [said("hi"), system, said("Hello.", "assistant"), said("more"), {**system, "clear_at": "never"}]
    log = log_of("messages", items)
    log.append_message(Message("user", (TextBlock("Remember.", Origin.CODE),)))
    body = written("messages", items, view=log.view, markers=(Marker("messages", 2),))
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["user", "system", "assistant", "user", "system"]
    assert body["messages"][1] == system and len(body["messages"][3]["content"]) == 2
    assert body["messages"][3]["content"][-1]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize(
    ("wire", "given", "problem"),
    [
        ("messages", [{"role": "robot", "content": "x"}], r"messages\[0\]\.role"),
        ("messages", [{"role": "user", "content": 5}], r"messages\[0\]\.content"),
        ("chat", ["hi"], r"messages\[0\] must be an object"),
        ("chat", [{"role": "user", "content": [{"data": b"x"}]}], r"messages\[0\]\.content\[0\]\.data is bytes"),
        ("responses", {"role": "user"}, "must be a list"),
    ],
)
def test_what_is_not_a_list_of_messages_gets_one_sentence(wire: str, given: Any, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        wire_named(wire).read_messages(given)
    with pytest.raises(UserError, match="use messages, chat, responses"):
        wire_named("grpc")
