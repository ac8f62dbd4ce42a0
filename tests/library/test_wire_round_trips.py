"""What a caller gives comes back: every item that no layer changed has the same JSON, after a restart too."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.library.wires import wire_named
from reverie.simulator import chat as simulated_chat
from reverie.simulator import responses as simulated_responses
from tests.library.wire_items import PNG, Item, Items, anything, arguments, as_bytes, more, parts, said, written

QUICK = settings(max_examples=15)
_IMAGE = {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}
_LINK = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
_FILE = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}}
_FILE_ID = {"type": "file", "file": {"file_id": "file-1"}}
_SOUND = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}


@st.composite
def chat_items(draw: st.DrawFn) -> Items:
    names = itertools.count(1)
    content = st.one_of(said, parts("text", _IMAGE, _LINK, _FILE, _FILE_ID, _SOUND))
    user = st.builds(lambda text, rest: {"role": "user", "content": text, **rest}, content, more)
    named = st.builds(lambda text, name: {"name": name, "content": text, "role": "user"}, content, said)
    other = st.builds(
        lambda role, text: {"role": role, "content": text}, st.sampled_from(["system", "developer"]), said
    )
    start = draw(st.lists(other, max_size=2))
    items: Items = [*start, draw(user | named)]
    for _ in range(draw(st.integers(0, 4))):
        answer: Item = {"role": "assistant", "content": draw(st.none() | said | parts("text"))}
        answer |= draw(st.sampled_from([{}, {"refusal": None}, {"annotations": [], "audio": None}]))
        calls = [draw(_chat_call(f"call_{next(names)}")) for _ in range(draw(st.integers(0, 3)))]
        if calls:
            answer["tool_calls"] = calls
        elif answer["content"] is None:
            answer |= draw(st.sampled_from([{"refusal": "No."}, {"audio": {"id": "audio_1"}}]))
        items.append(answer | draw(more))
        for call in draw(st.permutations(calls)):
            result = draw(st.text(max_size=5) | parts("text", _IMAGE))
            items.append({"role": "tool", "tool_call_id": call["id"], "content": result, **draw(more)})
        items += draw(st.lists(user | named | other, min_size=1, max_size=2))
    return items


@st.composite
def _chat_call(draw: st.DrawFn, name: str) -> Item:
    if draw(st.integers(0, 5)) == 0:
        return {"id": name, "type": "custom", "custom": {"name": "patch", "input": draw(st.text(max_size=4))}}
    function = {"arguments": draw(arguments), "name": "look"}
    return {"id": name, "type": "function", "function": function}


_INPUT_IMAGE = {"type": "input_image", "image_url": PNG, "detail": "auto"}
_INPUT_FILE = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}
_INPUT_ID = {"type": "input_image", "file_id": "file-1"}


@st.composite
def responses_items(draw: st.DrawFn) -> Items:
    names = itertools.count(1)
    content = st.one_of(said, parts("input_text", _INPUT_IMAGE, _INPUT_FILE, _INPUT_ID))
    user = st.builds(lambda text, rest: {"role": "user", "content": text, **rest}, content, more)
    typed = st.builds(lambda text: {"type": "message", "role": "user", "content": text}, content)
    other = st.builds(lambda text: {"type": "message", "role": "developer", "content": text}, said)
    output = st.just({"type": "computer_call_output", "call_id": "x", "output": {"type": "computer_screenshot"}})
    items: Items = [*draw(st.lists(other, max_size=1)), draw(user | typed)]
    for _ in range(draw(st.integers(0, 3))):
        answers: Items = []
        for _ in range(draw(st.integers(1, 3))):
            number = next(names)
            if draw(st.booleans()):
                sealed = {"id": f"rs_{number}", "type": "reasoning", "encrypted_content": "c2VhbGVk"}
                answers.append(sealed | {"summary": [{"type": "summary_text", "text": "thought"}]})
            answers.append(draw(_output_item(number, parts("output_text"))))
        results = [
            {"type": f"{one['type']}_output", "call_id": one["call_id"], "output": draw(st.text(max_size=4) | content)}
            for one in answers
            if one["type"] in ("function_call", "custom_tool_call")
        ]
        # The Responses API takes an output anywhere after its call.
        items += [*answers, *draw(st.permutations([*results, draw(user | typed | other | output)]))]
    return items


@st.composite
def _output_item(draw: st.DrawFn, number: int, content: st.SearchStrategy[Items]) -> Item:
    kind = draw(st.sampled_from(["message", "function_call", "custom_tool_call", "web_search_call"]))
    made: Item = {"id": f"{kind}_{number}", "type": kind, "status": "completed"}
    if kind == "message":
        return made | {"role": "assistant", "content": draw(content)}
    if kind == "web_search_call":
        return made | {"action": draw(anything)}
    made |= {"call_id": f"call_{number}", "name": "look"}
    return made | ({"arguments": draw(arguments)} if kind == "function_call" else {"input": draw(st.text(max_size=4))})


@st.composite
def messages_items(draw: st.DrawFn) -> Items:
    names = itertools.count(1)
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aQ=="}}
    unknown = st.builds(lambda value: {"type": "container_upload", "file_id": value}, said)
    text = st.builds(lambda text: {"type": "text", "text": text}, said)
    items: Items = [{"role": "user", "content": [draw(text)]}]
    for _ in range(draw(st.integers(0, 3))):
        thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
        calls = [
            {"type": "tool_use", "id": f"t{next(names)}", "name": "look", "input": {"a": draw(anything)}}
            for _ in range(draw(st.integers(0, 2)))
        ]
        said_by_model = [*draw(st.sampled_from([[], [thought]])), draw(text), *calls]
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": draw(st.text(max_size=4) | st.just([image]))}
            for call in calls
        ]
        rest = draw(st.lists(text | unknown | st.just(image), min_size=1, max_size=2))
        items += [{"role": "assistant", "content": said_by_model}, {"role": "user", "content": [*results, *rest]}]
    return items


@QUICK
@given(chat_items())
def test_every_chat_item_comes_back_unchanged(items: Items) -> None:
    body = written("chat", items)
    assert as_bytes(body["messages"]) == as_bytes(items)
    assert body["max_completion_tokens"] == 100


@QUICK
@given(responses_items())
def test_every_item_of_the_responses_api_comes_back_unchanged(items: Items) -> None:
    body = written("responses", items)
    assert as_bytes(body["input"]) == as_bytes(items)
    assert body["max_output_tokens"] == 100


@QUICK
@given(messages_items())
def test_every_message_comes_back_unchanged(items: Items) -> None:
    assert written("messages", items)["messages"] == items


@QUICK
@given(chat_items(), responses_items(), st.integers(0, 20))
def test_a_request_extends_the_one_before_it(chat: Items, responses: Items, count: int) -> None:
    """The first items alone give the start of the body of all items, if every call in them is answered."""
    for wire, key, items in (("chat", "messages", chat), ("responses", "input", responses)):
        part = items[: count % len(items) + 1]
        done = {item.get("tool_call_id", item.get("call_id")) for item in part if _answers(item)}
        if any(call not in done for item in part for call in _calls(item)) or part[-1].get("type") == "reasoning":
            continue
        before, after = written(wire, part)[key], written(wire, items)[key]
        assert after[: len(before)] == before


def _answers(item: Item) -> bool:
    return item.get("role") == "tool" or str(item.get("type")).endswith("_output")


def _calls(item: Item) -> list[Any]:
    own = [item["call_id"]] if item.get("type") in ("function_call", "custom_tool_call") else []
    return [*own, *(call["id"] for call in item.get("tool_calls") or [])]


@QUICK
@given(chat_items(), responses_items())
def test_the_simulated_apis_accept_arbitrary_items(chat: Items, responses: Items) -> None:
    simulated_chat.to_messages(written("chat", chat))
    simulated_responses.to_messages(written("responses", responses))


def test_system_prompts_and_tools_come_back_as_they_were_given() -> None:
    start: Items = [
        {"role": "developer", "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}], "x": 1},
        {"role": "system", "content": "Three."},
        {"role": "system", "content": ""},
        {"role": "user", "content": "hi"},
    ]
    function = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": True}
    tools = [{"type": "function", "function": function}, {"type": "custom", "custom": {"name": "patch"}}]
    body = written("chat", start, tools=tools)
    assert as_bytes([body["messages"], body["tools"]]) == as_bytes([start, tools])
    assert written("chat", start, system="Zero.")["messages"] == [{"role": "system", "content": "Zero."}, *start]
    flat = [
        {"type": "function", **function},
        {"type": "web_search", "user_location": None},
        {"type": "namespace", "name": "n", "tools": []},
    ]
    start[0]["content"] = [{"type": "input_text", "text": "One."}]
    body = written("responses", start, system=[{"type": "text", "text": "Zero."}], tools=flat)
    assert as_bytes([body["input"], body["tools"]]) == as_bytes([start, flat])
    assert body["instructions"] == "Zero."
    assert wire_named("responses").read_tools(flat)[0]["input_schema"] == {"type": "object"}
    server = [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3}]
    body = written("messages", start[3:], system="Zero.", tools=server)
    assert (body["system"], body["tools"]) == ([{"type": "text", "text": "Zero."}], server)
