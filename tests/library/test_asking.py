"""`ask`: every shape of an answer is read, and every way to fail is one `ModelError`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from reverie.errors import ModelError, UnknownModel, UserError
from reverie.library.asking import Ask, open_ask
from reverie.models.base import Finished, Marker, Request, Response
from reverie.offline.model import EmbeddedModel
from reverie.settings import Settings
from reverie.settings.schema import with_values
from reverie.types import Message, Origin, TextBlock, ToolUseBlock

REQUEST = Request(
    model="anthropic:claude-sonnet-5-5",
    system=("Be brief.",),
    tools=(),
    messages=(Message("user", (TextBlock("Sum it up.", Origin.CODE),)),),
    max_tokens=100,
    markers=(Marker("system", 0),),
    output_schema={"type": "object"},
)
USAGE = {"input_tokens": 7, "output_tokens": 3}


def answer(ask: Ask, *, model: str = "", seconds: float = 5.0) -> Response:
    async def run() -> Response:
        opened = open_ask(ask, with_values(Settings(), {"background.ask_s": seconds}), model=model)
        try:
            return [event async for event in opened.stream(REQUEST) if isinstance(event, Finished)][-1].response
        finally:
            await opened.close()

    return asyncio.run(run())


class Dumps:
    def model_dump(self) -> dict[str, Any]:
        return {"id": "msg_1", "content": [{"type": "text", "text": "short", "citations": None}], "usage": USAGE}


class Converts(Dumps):
    def to_dict(self) -> dict[str, Any]:
        return {**self.model_dump(), "id": "msg_2"}


@pytest.mark.parametrize(
    "given",
    ["short", {"content": "short"}, {"content": [{"type": "text", "text": "short"}]}, Dumps(), Converts()],
    ids=["text", "plain content", "blocks", "model_dump", "to_dict"],
)
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
def test_every_shape_of_an_answer_is_read(given: Any, is_async: bool) -> None:
    async def later(_body: dict[str, Any]) -> Any:
        return given

    response = answer(later if is_async else lambda _body: given)
    assert response.content == (TextBlock("short", Origin.MODEL),) and response.stop_reason == "end_turn"
    if isinstance(given, Dumps):
        assert response.usage.input_tokens == 7 and response.id.startswith("msg_")


def test_a_call_of_a_tool_is_read_and_an_sdk_object_too() -> None:
    from anthropic.types import Message as SdkMessage

    call = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {"file_path": "x"}}
    raw: dict[str, Any] = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [call]}
    raw |= {"stop_reason": "tool_use", "stop_sequence": None, "usage": USAGE}
    for given in (raw, SdkMessage.model_validate(raw)):
        response = answer(lambda _body, given=given: given)
        (block,) = response.content
        assert isinstance(block, ToolUseBlock) and block.input == {"file_path": "x"}
        assert response.stop_reason == "tool_use" and response.usage.output_tokens == 3


def test_the_function_gets_the_body_of_a_messages_request() -> None:
    seen = list[dict[str, Any]]()
    answer(lambda body: seen.append(body) or "ok")
    answer(lambda body: seen.append(body) or "ok", model="anthropic:claude-sonnet-5-5")
    unnamed, named = seen
    assert "model" not in unnamed and named["model"] == "claude-sonnet-5-5" and "output_config" not in named
    assert named["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Sum it up."}]}]
    assert named["system"][0]["cache_control"] == {"type": "ephemeral"} and named["max_tokens"] == 100


def _raise(error: BaseException) -> Callable[[Any], Any]:
    def ask(_body: Any) -> Any:
        raise error

    return ask


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (_raise(RuntimeError("no\nsuch host")), "failed: RuntimeError: no such host."),
        (_raise(KeyError()), "failed: KeyError."),
        (_raise(TimeoutError("own limit")), "failed: TimeoutError: own limit."),
        (_raise(ModelError("The quota is spent.")), "The quota is spent."),
        (lambda _body: None, "returned NoneType"),
        (lambda _body: 42, "returned int"),
        (lambda _body: "  ", "neither text nor a tool call"),
        (lambda _body: {}, "has no content"),
        (lambda _body: {"content": []}, "neither text nor a tool call"),
        (lambda _body: {"content": [None, 3, {"type": "audio"}]}, "neither text nor a tool call"),
        (lambda _body: {"type": "error", "error": {"message": "overloaded"}}, "returned an error: overloaded"),
        (lambda: "no parameter", "failed: TypeError"),
        (lambda _body: Dumps, "returned type"),
    ],
)
def test_a_function_that_fails_or_answers_nonsense_is_a_model_error(ask: Any, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        answer(ask)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_function_that_hangs_is_a_model_error_in_time() -> None:
    async def forever(_body: Any) -> Any:
        await asyncio.Event().wait()

    release = threading.Event()
    for hangs in (forever, lambda _body: release.wait()):
        with pytest.raises(ModelError, match=r"did not answer within 0.05 s \(background.ask_s\)"):
            answer(hangs, seconds=0.05)
    release.set()


def test_names_models_and_nothing() -> None:
    assert open_ask(None, Settings()).name == "embedded"
    assert open_ask("embedded", Settings()).name == "embedded"
    own = EmbeddedModel()
    assert open_ask(own, Settings()).name == "embedded"
    with pytest.raises(UnknownModel):
        open_ask("nobody:knows", Settings())
    with pytest.raises(UserError, match="`ask` is int"):
        open_ask(3, Settings())  # type: ignore[arg-type]
