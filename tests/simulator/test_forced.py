"""Answers whose form the request fixes: forced calls and JSON of a schema, from minds that read neither."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from reverie.models.base import Finished, Request
from reverie.models.forced import smallest
from reverie.models.script import Script
from reverie.models.scripted import ScriptedModel
from reverie.offline.model import EmbeddedModel
from reverie.simulator import ScriptResponder, Simulator
from reverie.types import Message, TextBlock, ToolUseBlock

ANSWER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 1}, "note": {"type": "string"}},
    "required": ["city", "people"],
}
LOOK = {"name": "look", "description": "looks", "input_schema": {"type": "object", "properties": {}}}
FINAL = {"name": "final", "description": "answers", "input_schema": ANSWER}
USER = [{"role": "user", "content": "Which city?"}]


def simulated(script: str | None) -> Simulator:
    return Simulator(None if script is None else ScriptResponder(Script.parse(script)))


def ask(script: str | None, choice: dict[str, Any], messages: Any = USER) -> list[dict[str, Any]]:
    request = {"model": "claude-opus-5", "max_tokens": 500, "tools": [LOOK, FINAL], "tool_choice": choice}
    answer = asyncio.run(simulated(script).messages({**request, "messages": messages}))
    assert answer["stop_reason"] == "tool_use"
    assert all(block["type"] == "tool_use" for block in answer["content"]), "nothing is said before a forced call"
    return [{"name": block["name"], "input": block["input"]} for block in answer["content"]]


@pytest.mark.parametrize(
    ("script", "choice", "expected"),
    [
        ('say {"city": "Bern", "people": 5}', "final", {"city": "Bern", "people": 5}),
        ("say Bern", "final", {"city": "Bern", "people": 1}),
        ('call look {}\ncall final {"city": "Rome", "people": 2}', "final", {"city": "Rome", "people": 2}),
        (None, "look", {}),
    ],
)
def test_the_tool_that_is_asked_for_is_called(script: str | None, choice: str, expected: Any) -> None:
    assert ask(script, {"type": "tool", "name": choice}) == [{"name": choice, "input": expected}]


def test_any_tool_is_the_one_that_fits_or_one_that_was_not_called_yet() -> None:
    assert ask('say {"city": "Bern", "people": 5}', {"type": "any"})[0]["name"] == "final"
    assert ask("say hm", {"type": "any"}) == [{"name": "look", "input": {}}]
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a sign: Bern"}
    later = [*USER, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    assert ask(None, {"type": "any"}, later)[0]["name"] == "final"


def test_a_schema_makes_the_text_json() -> None:
    body = {"model": "claude-opus-5", "max_tokens": 500, "messages": USER}
    form = {"output_config": {"format": {"type": "json_schema", "schema": ANSWER}}}
    for script, expected in (("say Bern", {"city": "Bern", "people": 1}), ('say {"city": "B"}', {"city": "B"})):
        answer = asyncio.run(simulated(script).messages({**body, **form}))
        assert json.loads(answer["content"][0]["text"]) == expected


def test_chat_completions_do_the_same() -> None:
    tools = [{"type": "function", "function": {"name": "final", "parameters": ANSWER}}]
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "Which city?"}]}
    for choice in ("required", {"type": "function", "function": {"name": "final"}}):
        answer = asyncio.run(simulated("say Bern").chat({**body, "tools": tools, "tool_choice": choice}))
        (call,) = answer["choices"][0]["message"]["tool_calls"]
        assert answer["choices"][0]["finish_reason"] == "tool_calls"
        assert json.loads(call["function"]["arguments"]) == {"city": "Bern", "people": 1}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": ANSWER}}
    answer = asyncio.run(simulated("say Bern").chat({**body, "response_format": form}))
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"city": "Bern", "people": 1}


def test_the_minds_of_this_package_call_it_too() -> None:
    async def content(model: Any) -> Any:
        message = Message("user", (TextBlock("Which city?"),))
        request = Request("m", ("s",), (LOOK, FINAL), (message,), 100, tool_choice={"type": "tool", "name": "final"})
        return [event async for event in model.stream(request)][-1]

    for model in (ScriptedModel(Script.parse("say Bern")), EmbeddedModel()):
        last = asyncio.run(content(model))
        assert isinstance(last, Finished)
        (block,) = last.response.content
        assert isinstance(block, ToolUseBlock) and block.name == "final"
        assert block.input["people"] == 1 and isinstance(block.input["city"], str)


def test_schemas_of_any_shape_have_a_value() -> None:
    loop = {"type": "object", "properties": {"next": {"$ref": "#/$defs/L"}}, "required": ["next", "next2"]}
    wide = {"type": "array", "minItems": 90, "items": {"type": "array", "minItems": 90, "items": {"$ref": "#/$defs/L"}}}
    assert smallest({"$ref": "#/$defs/L", "$defs": {"L": loop}}) is not None
    assert len(json.dumps(smallest({**wide, "$defs": {"L": loop}}))) < 100_000
    for odd in (None, [], {"type": []}, {"enum": []}, {"required": 5}, {"required": [{}]}, {"anyOf": {}}, {"$ref": 1}):
        smallest(odd)
    exact = {"type": "string", "minLength": 3, "maxLength": 4}
    assert (smallest(exact), smallest(exact, "Vienna"), smallest({"type": "string", "format": "date"})) == (
        "...",
        "Vien",
        "2026-01-01",
    )
