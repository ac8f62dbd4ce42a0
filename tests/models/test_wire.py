"""What is sent: markers on copies, the same bytes every time, and prefixes that can be compared."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.models import wire
from reverie.models.base import Marker, Request
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    Origin,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from tests.counts import count
from tests.models.requests import READ_TOOL, person, request
from tests.work import calls, ratio


def marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(marks(inner) for inner in value.values())
    return sum(marks(inner) for inner in value) if isinstance(value, list) else 0


def test_a_whole_request() -> None:
    made = wire.body(
        request(
            model="anthropic:claude-sonnet-4-5[1m]",
            markers=(Marker("tools", -1, ttl="1h"), Marker("system", 0, ttl="1h"), Marker("messages", 0)),
            tool_choice={"type": "none"},
            thinking={"type": "adaptive"},
            effort="low",
            output_schema={"type": "object"},
            context_management={"edits": []},
            cache_edits={"deleted": ["toolu_1"]},
            betas=("some-beta",),
        )
    )
    assert made == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 1000,
        "tools": [{**READ_TOOL, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "system": [
            {"type": "text", "text": "You are terse.", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}
        ],
        "tool_choice": {"type": "none"},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "context_management": {"edits": []},
        "cache_edits": {"deleted": ["toolu_1"]},
    }
    assert "cache_control" not in READ_TOOL
    bare = wire.body(request(system=(), tools=(), markers=()))
    assert set(bare) == {"model", "max_tokens", "messages"}


def test_a_marker_moves_off_blocks_that_cannot_carry_one() -> None:
    thought = Message("assistant", (TextBlock("said", Origin.MODEL), TextBlock(""), ThinkingBlock("hm", "sig")))
    made = wire.body(request(person("a"), thought, markers=(Marker("messages", 1),)))
    assert [marks(block) for block in made["messages"][1]["content"]] == [1, 0, 0]
    alone = Message("assistant", (ThinkingBlock("hm", "sig"),))
    assert marks(wire.body(request(person("a"), alone, markers=(Marker("messages", 1),)))) == 0


def test_what_a_foreign_transcript_brought_along_is_repaired() -> None:
    control = {"cache_control": {"type": "ephemeral"}}
    foreign = Message(
        "user",
        (
            TextBlock("a", extra=control),
            ToolResultBlock("t", (TextBlock("b", extra=control),)),
            OtherBlock({"type": "search_result", **control}),
            OtherBlock("not an object"),
        ),
    )
    odd = Message("assistant", (ToolUseBlock("t", "Read", '{"file_path'),))
    asked = request(foreign, odd, markers=())
    made = wire.body(asked)
    assert marks(made) == 0 and b"cache_control" not in wire.canonical(asked)
    assert made["messages"][1]["content"][0]["input"] == {"_unparsed": '{"file_path'}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("anthropic:claude-opus-4-5[1m]", "claude-opus-4-5"),
        ("openai:llama3:8b", "llama3:8b"),
        ("llama3:8b", "llama3:8b"),
        ("openai:anthropic/claude-opus-4.5:beta", "anthropic/claude-opus-4.5:beta"),
    ],
)
def test_the_name_a_server_knows(given: str, sent: str) -> None:
    assert wire.model_id(given) == sent


def test_thinking_without_a_signature_stays_at_home() -> None:
    thought = Message("assistant", (ThinkingBlock("hm"), TextBlock("said", Origin.MODEL), ThinkingBlock("x", "sig")))
    asked = request(person("a"), thought, Message("assistant", (ThinkingBlock("only"),)), markers=())
    sent = wire.body(asked)["messages"]
    assert [block["type"] for block in sent[1]["content"]] == ["text", "thinking"]
    assert sent[2]["content"] == [{"type": "text", "text": "(no answer)"}]
    assert b"hm" not in wire.canonical(asked)
    marked = wire.body(request(person("a"), thought, markers=(Marker("messages", 1, 1),)))["messages"][1]["content"]
    assert [marks(block) for block in marked] == [1, 0]


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=5,
)
_objects = st.dictionaries(st.text(), _json, max_size=3)
_blocks: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, st.text()),
    st.builds(ThinkingBlock, st.text(), st.text()),
    st.builds(ToolUseBlock, st.text(), st.text(), _objects),
    st.builds(ToolResultBlock, st.text(), st.one_of(st.text(), st.tuples(st.builds(TextBlock, st.text())))),
    st.builds(ImageBlock, _objects),
    st.builds(DocumentBlock, _objects),
    st.builds(OtherBlock, _json),
)
_messages = st.builds(
    Message, st.sampled_from(["user", "assistant"]), st.lists(_blocks, min_size=1, max_size=4).map(tuple)
)


@given(st.lists(_messages, min_size=1, max_size=5), st.lists(_messages, max_size=3), st.data())
@settings(max_examples=count(25, 1_500), deadline=None)
def test_rendering_is_pure_and_a_longer_conversation_continues_a_shorter(
    before: list[Message], more: list[Message], data: st.DataObject
) -> None:
    markers = tuple(
        Marker("messages", index, data.draw(st.integers(-len(before[index].content), -1)))
        for index in data.draw(st.lists(st.integers(0, len(before) - 1), max_size=4, unique=True))
    )
    short = request(*before, markers=markers)
    kept = copy.deepcopy(short)
    first = json.dumps(wire.body(short))
    assert short == kept
    assert json.dumps(wire.body(kept)) == first
    assert marks(wire.body(short)) <= len(short.markers)
    long = request(*before, *more, markers=())
    assert wire.canonical(long).startswith(wire.canonical(short))
    assert len(wire.canonical(short).splitlines()) >= 4 + len(before)
    rendered = wire.Rendered()
    assert wire.prefix_parts(short, rendered) == wire.prefix_parts(short, rendered) == wire.prefix_parts(short)


@pytest.mark.parametrize(
    "other",
    [
        {"model": "claude-opus-4-5"},
        {"system": ("You are terse. ",)},
        {"tools": ()},
        {"effort": "low"},
        {"thinking": {"type": "adaptive"}},
        {"betas": ("b",)},
        {"tool_choice": {"type": "none"}},
    ],
)
def test_whatever_a_cache_depends_on_breaks_the_prefix(other: dict[str, Any]) -> None:
    later = request(person("hello"), person("more"), **other)
    assert not wire.canonical(later).startswith(wire.canonical(request()))


def test_a_long_conversation_renders_quickly() -> None:
    """Against what writing the same messages out as JSON takes."""
    messages = [person(f"{index} " + "lorem ipsum " * 80) for index in range(2000)]
    asked: Request = request(*messages)
    rendered = wire.Rendered()

    first, again = (calls(lambda: wire.prefix_parts(asked, rendered)) for _ in range(2))
    assert again <= first / 5
    assert ratio(lambda: wire.body(asked), lambda: json.dumps([message.wire() for message in messages])) < 10
