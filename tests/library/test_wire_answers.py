"""Answers as the SDKs give them, and fingerprints that are the same in every form in which they come back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reverie.library.wires import wire_named
from reverie.simulator import Simulator
from reverie.types import ITEM, Origin, TextBlock, ThinkingBlock, ToolUseBlock, Usage
from tests.library.wire_items import Item, Items, as_bytes, written

CHAT: Item = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": "I look.",
                "refusal": None,
                "annotations": [],
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"at": "x", "n": 1}'}}
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64},
    },
}
_MESSAGE: Item = {
    "id": "msg_1",
    "type": "message",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}],
}
RESPONSES: Item = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2VhbGVk"},
        _MESSAGE,
        {
            "id": "fc_1",
            "type": "function_call",
            "status": "completed",
            "call_id": "a",
            "name": "look",
            "arguments": '{"at": "x"}',
        },
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    },
}
MESSAGES: Item = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "text", "text": "I look.", "citations": None},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "x"}},
    ],
    "usage": {
        "input_tokens": 30,
        "output_tokens": 20,
        "cache_read_input_tokens": 64,
        "cache_creation_input_tokens": 6,
        "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 4},
    },
}


def from_sdk(wire: str, raw: Item) -> Any:
    """The answer as an object of the vendor's SDK."""
    if wire == "messages":
        return pytest.importorskip("anthropic").types.Message.model_validate(raw)
    types = pytest.importorskip("openai").types
    kind = types.chat.ChatCompletion if wire == "chat" else types.responses.Response
    return kind.model_validate(raw)


def prints(wire: str, items: object) -> list[str]:
    return [given.fingerprint for given in wire_named(wire).read_messages(items, continued=True)]


def answer_prints(wire: str, response: object) -> list[str]:
    return [given.fingerprint for given in wire_named(wire).read_answer(response)]


@pytest.mark.parametrize(("wire", "raw"), [("messages", MESSAGES), ("chat", CHAT), ("responses", RESPONSES)])
def test_an_answer_is_the_same_as_an_object_and_as_json(wire: str, raw: Item) -> None:
    converter, before = wire_named(wire), as_bytes(raw)
    answers = [converter.read_response(form) for form in (raw, from_sdk(wire, raw), from_sdk(wire, raw).model_dump())]
    assert answers[0] == answers[1] and as_bytes(raw) == before
    for answer in answers:
        text = next(block for block in answer.content if isinstance(block, TextBlock))
        call = next(block for block in answer.content if isinstance(block, ToolUseBlock))
        assert (text.text, text.origin, call.id, call.name, call.input["at"]) == (
            "I look.",
            Origin.MODEL,
            "a",
            "look",
            "x",
        )
        assert isinstance(answer.content[0], ThinkingBlock) == (wire != "chat")
        assert (answer.stop_reason, answer.id) == ("tool_use", raw["id"])
        assert (answer.usage.prompt, answer.usage.output_tokens, answer.usage.cache_read_input_tokens) == (100, 20, 64)
        stored = {**answer.usage.wire(), **answer.raw_usage}
        assert Usage.parse(stored) == answer.usage, "the transcript has the usage in our form"
    assert answers[0].usage.cache_creation_1h == (4 if wire == "messages" else 0)


def test_an_answer_without_usage_id_or_content_is_read() -> None:
    for wire in ("messages", "chat", "responses"):
        first, second = (wire_named(wire).read_response({}) for _ in range(2))
        assert first.usage == Usage() and not first.content and first.stop_reason == "end_turn"
        assert first.id != second.id, "a view joins the records of one response by their id"
    cut = {**RESPONSES, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "usage": None}
    assert wire_named("responses").read_response(cut).stop_reason == "max_tokens"


def test_a_chat_answer_has_the_same_fingerprint_in_every_form() -> None:
    said = CHAT["choices"][0]["message"]
    dumped = from_sdk("chat", CHAT).choices[0].message
    bare: Item = {
        "role": "assistant",
        "content": [{"type": "text", "text": "I look."}],
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"n":1,"at":"x"}'}},
        ],
    }
    forms = [said, dumped, dumped.model_dump(), dumped.to_dict(), bare, {**bare, "reasoning_content": "Hm."}]
    assert {prints("chat", [form])[0] for form in forms} == set(answer_prints("chat", CHAT))
    assert prints("chat", [{**bare, "content": "You look."}]) != prints("chat", [bare])


def test_a_message_has_the_same_fingerprint_in_every_form() -> None:
    content = from_sdk("messages", MESSAGES).content
    without = [block for block in MESSAGES["content"] if block["type"] != "thinking"]
    marked = [{**block, "cache_control": {"type": "ephemeral"}} for block in without]
    forms = [MESSAGES["content"], content, [block.model_dump() for block in content], without, marked]
    made = {prints("messages", [{"role": "assistant", "content": form}])[0] for form in forms}
    assert made == set(answer_prints("messages", MESSAGES))


def test_the_items_of_an_answer_have_the_same_fingerprints_in_every_form() -> None:
    output = from_sdk("responses", RESPONSES).output
    bare: Items = [
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": '{"at":"x"}'},
    ]
    forms: list[Any] = [RESPONSES["output"], output, [item.model_dump() for item in output], bare]
    made = {tuple(prints("responses", form)) for form in forms}
    assert made == {tuple(answer_prints("responses", RESPONSES))} and len(made.pop()) == 2


def test_a_string_is_a_list_with_one_text_and_our_marks_do_not_count() -> None:
    for wire, kind in (("messages", "text"), ("chat", "text"), ("responses", "input_text")):
        part = {"type": kind, "text": "hi"}
        forms: list[Any] = [
            "hi",
            [part],
            [{**part, "reverie_origin": "pasted", "cache_control": {}}],
            [part, {**part, "text": ""}],
        ]
        assert len({prints(wire, [{"role": "user", "content": form}])[0] for form in forms}) == 1
        assert prints(wire, "hi") == prints(wire, [{"role": "user", "content": "hi"}])
        assert prints(wire, [{"role": "assistant", "content": "hi"}]) != prints(wire, "hi")
    result = {"role": "tool", "tool_call_id": "a", "content": "seen"}
    listed = {**result, "content": [{"type": "text", "text": "seen"}]}
    assert prints("chat", [result]) == prints("chat", [listed])
    assert prints("chat", [{**result, "tool_call_id": "b"}]) != prints("chat", [result])
    named = [{"role": "user", "content": "hi", "name": name} for name in ("bob", "eve", None)]
    assert len(set(prints("chat", named))) == 3


def test_unknown_items_count_without_ids_and_empty_fields() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x", "sources": None}}
    again = {"type": "web_search_call", "action": {"query": "x"}}
    other = {"type": "web_search_call", "action": {"query": "y"}}
    assert prints("responses", [search]) == prints("responses", [again]) != prints("responses", [other])
    references = [{"type": "item_reference", "id": name} for name in ("a", "b")]
    assert len(set(prints("responses", references))) == 2


@pytest.mark.parametrize("wire", ["chat", "responses"])
def test_an_observed_answer_is_sent_back_with_all_that_its_api_needs(wire: str) -> None:
    """The simulator answers, the answer goes back with a result, and the simulator accepts it."""
    converter = wire_named(wire)
    if wire == "chat":
        said = [answer.message for answer in converter.read_answer(CHAT)]
        result: Item = {"role": "tool", "tool_call_id": "a", "content": "seen"}
        expected = [{key: value for key, value in CHAT["choices"][0]["message"].items() if value}]
    else:
        said = [answer.message for answer in converter.read_answer(RESPONSES)]
        result = {"type": "function_call_output", "call_id": "a", "output": "seen"}
        expected = RESPONSES["output"]
    assert all(ITEM in as_bytes(message.stored()) for message in said)
    key = "messages" if wire == "chat" else "input"
    hi: Item = {"role": "user", "content": "hi"}
    body = written(wire, [hi, *expected, result])
    assert body[key] == [hi, *expected, result]
    answer = asyncio.run(getattr(Simulator(), wire)(body))
    assert converter.read_response(answer).usage.prompt > 0
