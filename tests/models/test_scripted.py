"""The scripted model: what is streamed, how it fails, what it says it cost; and the examples of the documentation."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from pathlib import Path

import pytest

from reverie import errors
from reverie.models.base import Finished, TextDelta, ThinkingDelta, ToolCallStarted
from reverie.models.script import CLOSING, Script
from reverie.models.scripted import ScriptedModel
from reverie.types import Purpose, TextBlock, ThinkingBlock, ToolUseBlock
from tests.models.requests import answered, ask, collect, person, request
from tests.waiting import FOREVER_S
from tests.work import cpu_limit


def model(text: str) -> ScriptedModel:
    return ScriptedModel(Script.parse(text))


def test_streams_in_chunks_and_ends_with_the_whole_response() -> None:
    said = "All the words of this answer, one after the other, in small pieces."
    events, response = ask(model(f'think Hm.\nsay {said}\ncall Read {{"file_path": "a"}} x2'), request())
    texts = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(texts) > 1 and "".join(texts) == said
    assert [event.text for event in events if isinstance(event, ThinkingDelta)] == ["Hm."]
    assert [event.name for event in events if isinstance(event, ToolCallStarted)] == ["Read", "Read"]
    kinds = [type(block) for block in response.content]
    assert kinds == [ThinkingBlock, TextBlock, ToolUseBlock, ToolUseBlock]
    assert response.stop_reason == "tool_use" and response.usage.output_tokens > 0


def test_usage_counts_what_the_conversation_sent_before_as_cached() -> None:
    played = model("repeat forever\nsay {round}\nend")
    first = request(person("x" * 8000), conversation="c")
    _, one = ask(played, first)
    _, two = ask(played, answered(first, one))
    assert one.usage.cache_read_input_tokens == 0 and one.usage.cache_creation_input_tokens > 2000
    assert two.usage.cache_read_input_tokens == one.usage.prompt
    assert 0 < two.usage.cache_creation_input_tokens < 50
    assert one.id != two.id and one.id.startswith("msg_")
    fork = answered(first, one)
    _, other = ask(played, request(*fork.messages, person("note"), conversation="c", thread="f", purpose=Purpose.NOTES))
    assert other.usage.cache_read_input_tokens == two.usage.prompt
    _, elsewhere = ask(played, request(person("x" * 8000), conversation="d"))
    assert elsewhere.usage.cache_read_input_tokens == 0
    again = ask(model("repeat forever\nsay {round}\nend"), first)[1]
    assert again == one


@pytest.mark.parametrize(
    ("fault", "error", "status"),
    [
        ("overloaded retry-after 3", errors.Overloaded, 529),
        ("rate-limited retry-after 3", errors.Overloaded, 429),
        ("server-error", errors.Overloaded, 500),
        ("unreachable", errors.Unreachable, None),
        ("bad-request messages.3: no such tool", errors.BadRequest, 400),
        ("authentication", errors.AuthenticationFailed, 401),
        ("prompt-too-long 9 > 5", errors.PromptTooLong, 400),
    ],
)
def test_faults_are_the_errors_a_real_model_raises(fault: str, error: type[errors.ModelError], status: int) -> None:
    with pytest.raises(error) as caught:
        ask(model(f"fail {fault}\nsay through"), request())
    assert caught.value.status == status
    if "retry-after" in fault:
        assert caught.value.retry_after == 3.0
    if isinstance(caught.value, errors.PromptTooLong):
        assert (caught.value.actual, caught.value.limit) == (9, 5)


@pytest.mark.parametrize(("after", "heard"), [(0, ""), (7, "hello, "), (400, "hello, world" * 10)])
def test_a_cut_stream_breaks_after_so_many_characters(after: int, heard: str) -> None:
    async def run() -> str:
        got: list[str] = []
        with pytest.raises(errors.Unreachable):
            async for event in model(f"fail cut {after}\nsay {'hello, world' * 10}").stream(request()):
                assert isinstance(event, TextDelta)
                got.append(event.text)
        return "".join(got)

    assert asyncio.run(run()) == heard


def test_slow_answers_can_be_stopped_at_any_time() -> None:
    async def run() -> None:
        async with aclosing(model("slow 0.01\nfill 4000").stream(request())) as stream:
            async for _ in stream:
                break
        for late in ("wait", "slow"):
            task = asyncio.create_task(collect(model(f"{late} {FOREVER_S}\nsay late").stream(request())))
            await asyncio.wait([task], timeout=0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())


def test_usage_and_purpose_are_taken_from_the_script() -> None:
    played = model('say main\n[notes]\nusage {"input_tokens": 5, "cache_read_input_tokens": 100}\nsay notes')
    _, response = ask(played, request(purpose=Purpose.NOTES))
    assert response.content == (TextBlock("notes", response.content[0].origin),)
    assert (response.usage.input_tokens, response.usage.cache_read_input_tokens) == (5, 100)


def examples() -> list[str]:
    page = (Path(__file__).parents[2] / "docs" / "scripts.md").read_text(encoding="utf-8")
    return re.findall(r"```script\n(.*?)```", page, re.DOTALL)


def test_the_first_example_of_the_documentation_runs() -> None:
    played = model(examples()[0])
    asked = request(person("Which port does the server use?"))
    _, call = ask(played, asked)
    assert [type(block) for block in call.content] == [ThinkingBlock, TextBlock, ToolUseBlock]
    looked = answered(asked, call, "settings.toml:3:port = 8080")
    for _ in range(2):
        with pytest.raises(errors.Overloaded):
            ask(played, looked)
    _, answer = ask(played, looked)
    assert answer.content[0] == TextBlock(
        "It is in the settings: settings.toml:3:port = 8080", answer.content[0].origin
    )
    _, thanks = ask(played, request(*looked.messages, *answered(looked, answer).messages[-2:-1], person("Thank you!")))
    assert isinstance(thanks.content[0], TextBlock) and thanks.content[0].text == "You are welcome."


def test_the_long_example_of_the_documentation_plays_a_thousand_rounds_in_no_time() -> None:
    async def run() -> list[str]:
        played, now, said = model(examples()[1]), request(conversation="long"), list[str]()
        for _ in range(1001):
            last = (await collect(played.stream(now)))[-1]
            assert isinstance(last, Finished)
            said += [block.text for block in last.response.content if isinstance(block, TextBlock)]
            now = answered(now, last.response)
        return said

    said = list[str]()
    with cpu_limit(90):
        said += asyncio.run(run())
    assert said[0] == "Round 2: read, 1 files so far."
    assert said[499:] == ["Round 1000: read, 500 files so far.", CLOSING]


def test_every_statement_of_the_documentation_is_understood() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scripts.md").read_text(encoding="utf-8")
    rows = [row.replace("\\|", "|") for row in re.findall(r"^\| `(.+?)` \| ", page, re.MULTILINE)]
    assert len(rows) >= 19
    for row in rows:
        line = row.replace("{json}", "{}").replace(" S", " 1.5").replace("REASON", "refusal")
        Script.parse(f"say first\n{line}" if line.startswith("|") else line)
