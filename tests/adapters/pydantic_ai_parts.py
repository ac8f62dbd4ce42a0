"""The messages of pydantic-ai as blocks and back. Fails with an assertion."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from reverie.adapters.pydantic_ai_messages import History

IMAGE = BinaryContent(b"\x89PNG", media_type="image/png")
SOUND = BinaryContent(b"RIFF", media_type="audio/wav")


def messages() -> list[ModelMessage]:
    return [
        ModelRequest([SystemPromptPart("You are a clerk."), UserPromptPart("Look.")], instructions="Be brief."),
        ModelResponse([ThinkingPart("Hm."), TextPart("I look."), ToolCallPart("look", {"at": 1}, "c1")]),
        ModelRequest([ToolReturnPart("look", {"seen": ["pears"]}, "c1"), UserPromptPart("Look.")]),
        ModelResponse([ToolCallPart("look", '{"at": 2}', "c2"), ToolCallPart("look", None, "c3")]),
        ModelRequest(
            [RetryPromptPart("No.", tool_name="look", tool_call_id="c3"), ToolReturnPart("look", IMAGE, "c2")]
        ),
        ModelRequest([UserPromptPart(["Two", IMAGE, ImageUrl("https://e.org/a.png"), SOUND, CachePoint(), "Two"])]),
        ModelResponse([TextPart("I see.")]),
        ModelRequest([RetryPromptPart("Say more.")]),
    ]


given = messages()
history = History.of(given)
assert [part.content for part in history.system] == ["You are a clerk."]
json.dumps(history.messages)
marked: list[dict[str, Any]] = json.loads(json.dumps(history.messages))
marked[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
made = history.rebuild(marked)
assert len(made) == len(given) and all(one is two for one, two in zip(made, given, strict=True)), "the caller's objects"

# A result is on disk, and a memory is beside the last message.
marked[2]["content"][0]["content"] = "The result is at /tmp/c1.txt"
marked[-1]["content"].append({"type": "text", "text": "A memory."})
made = history.rebuild(marked)
assert [one is two for one, two in zip(made, given, strict=True)] == [True, True, False, True, True, True, True, False]
result, text = made[2].parts
assert result.content == "The result is at /tmp/c1.txt" and result.tool_call_id == "c1" and text is given[2].parts[1]
assert made[-1].parts[0] is given[-1].parts[0] and made[-1].parts[1].content == "A memory."

# A summary is in place of the first messages; the system prompt stays.
summary = {"role": "user", "content": [{"type": "text", "text": "A summary."}]}
made = history.rebuild([summary, *history.messages[6:]])
assert [part.content for part in made[0].parts] == ["You are a clerk.", "A summary."]
assert made[1] is given[6] and made[2] is given[7]
