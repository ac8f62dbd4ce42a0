"""The layers under an agent of LangChain, over real HTTP: with a chat model of our own here, and with those of the
vendors in `make integration`."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import BlockingLimit, UserError
from reverie.library.engine import Engine
from reverie.library.memory import Memory
from reverie.simulator import Reply, Simulator
from reverie.simulator.http import running
from tests.integration.programs import installed
from tests.waiting import LIMIT_S

TURNS = 3
VENDORS = [
    "plain",
    *(pytest.param(name, marks=pytest.mark.integration) for name in ("messages", "chat", "responses")),
]


@pytest.fixture(scope="module", autouse=True)
def sdk() -> None:
    """Takes more than a second: only a process that runs one of these tests imports it."""
    global create_agent, ModelRequest, AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
    global StructuredTool, InMemorySaver, WireRequest
    global LARGE, Files, Mind, PlainChat, asked, chat_model, make_agent, open_layers, thread
    from langchain.agents import create_agent
    from langchain.agents.middleware import ModelRequest
    from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langgraph.checkpoint.memory import InMemorySaver

    from reverie.adapters.langchain_messages import WireRequest
    from tests.adapters.langchain_agents import (
        LARGE,
        Files,
        Mind,
        PlainChat,
        asked,
        chat_model,
        make_agent,
        open_layers,
        thread,
    )


def billed(simulator: Simulator) -> tuple[int, int, int, int]:
    usage: Any = simulator.ledger.totals()["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    used = tuple(usage[name] for name in names)
    return used[0], used[1], used[2], used[3]


def booked(home: Path, conversation: str, vendor: str) -> tuple[int, int, int, int]:
    """What the engine knows about the requests of a conversation, in a process that starts again."""
    model = "anthropic:claude-sonnet-5-5" if vendor == "messages" else "openai:gpt-5"
    cost = asyncio.run(Engine.open(conversation, model=model, home=home).cost())
    return cost.input_tokens, cost.cache_read_tokens, cost.cache_write_tokens, cost.output_tokens


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_long_task_with_restarts_sends_the_same_bytes(
    vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, bodies = tmp_path / "home", list[list[str]]()
    for is_restarted in (False, True):
        mind, saver, files = Mind(), InMemorySaver(), Files(fails_at=9 if is_restarted else 0)
        simulator, notices = Simulator(mind), list[str]()
        with running(simulator) as url:
            model = chat_model(vendor, url, monkeypatch)
            layers = open_layers(home, on_event=lambda event: notices.append(str(event)))  # noqa: B023
            for turn in range(TURNS):
                agent = make_agent(model, layers, saver, files)
                try:
                    state = agent.invoke(asked(f"Please check part {turn}."), thread("a/b"))
                except KeyboardInterrupt:
                    assert is_restarted and turn == 1
                    agent = make_agent(model, open_layers(home), saver, files)
                    state = agent.invoke(None, thread("a/b"))
                assert state["messages"][-1].text.endswith(f"({6 * (turn + 1)})")
                if is_restarted:
                    layers.close()
                    layers = open_layers(home, on_event=lambda event: notices.append(str(event)))  # noqa: B023
            layers.close()
        bodies.append(mind.bodies)
        assert simulator.ledger.totals()["misses"] == simulator.ledger.totals()["errors"] == 0
        assert max(row.usage.prompt for row in simulator.ledger.rows) < 24_000
        assert any("Compacted" in notice for notice in notices)
        messages = state["messages"]
        assert [one.text for one in messages if isinstance(one, HumanMessage)] == [
            f"Please check part {turn}." for turn in range(TURNS)
        ], "the state keeps the whole history"
        large = [one.text for one in messages if isinstance(one, ToolMessage) and one.tool_call_id == "toolu_3_0"]
        (kept,) = home.rglob("toolu_3_0*")
        assert str(kept) in large[0] and "file 3, line 3999" in kept.read_text()
        if vendor != "plain":
            assert booked(home, "a/b", vendor) == billed(simulator)
        shutil.rmtree(home)
    assert len(bodies[0]) == TURNS * 6 and bodies[0] == bodies[1]


@pytest.mark.parametrize("vendor", [one for one in VENDORS if one != "plain"])
def test_a_streamed_answer_is_observed(vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = Simulator(Mind(4))

    async def play(url: str) -> list[str]:
        layers, seen = open_layers(tmp_path), list[str]()
        agent = make_agent(chat_model(vendor, url, monkeypatch), layers, InMemorySaver())
        for turn in range(2):
            stream = agent.astream(asked(f"Check part {turn}."), thread("s"), stream_mode="messages")
            seen += [chunk.text async for chunk, _ in stream if isinstance(chunk, AIMessageChunk)]
        await layers.aclose()
        return seen

    with running(simulator) as url:
        pieces = asyncio.run(play(url))
    assert len(pieces) > 8 and "I read file 1." in "".join(pieces)
    assert simulator.ledger.totals()["misses"] == 0
    assert booked(tmp_path, "s", vendor) == billed(simulator)


PNG = "iVBORw0KGgo="


def odd_messages(vendor: str) -> list[Any]:
    calls: Any = [{"name": "read_file", "args": {"number": n}, "id": f"c{n}"} for n in (1, 2)]
    said: Any = "I read."
    if vendor == "messages":
        thought = {"type": "thinking", "thinking": "hm", "signature": "sig=", "index": 0}
        call = {"type": "tool_use", "id": "c1", "name": "read_file", "input": {}, "partial_json": '{"number": 1}'}
        said = [thought, {"type": "text", "text": said, "index": 1}, {**call, "index": 2}]
    if vendor == "responses":
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"}
        call = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c1",
            "name": "read_file",
            "arguments": '{"number":1}',
        }
        said = [thought, {"type": "text", "text": said, "id": "msg_1", "annotations": []}, call]
    image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
    link = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    return [
        HumanMessage("hi"),
        AIMessage("With a space at the end. "),
        HumanMessage([{"type": "text", "text": "look"}, image, link]),
        AIMessage(said, tool_calls=calls, response_metadata={"model_provider": "anthropic"}),
        ToolMessage("no such file", tool_call_id="c2", name="read_file", status="error", artifact={"x": 1}),
        ToolMessage([{"type": "text", "text": "one"}, image], tool_call_id="c1", name="read_file"),
        HumanMessage([{"type": "text", "text": "marked", "cache_control": {"type": "ephemeral"}}]),
        AIMessage("Ok.", name="agent"),
        HumanMessage("hi"),
    ]


@pytest.mark.parametrize("vendor", VENDORS)
def test_what_no_layer_changed_is_the_callers_own_message(
    vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = odd_messages(vendor)
    system = SystemMessage("You look after a shop.")
    model = chat_model(vendor, "http://127.0.0.1:9", monkeypatch)
    wired = WireRequest.of(ModelRequest(model=model, messages=given, system_message=system, tools=[Files().tool]))
    engine = Engine.open("odd", model=wired.model, wire=wired.wire, home=tmp_path)
    body = asyncio.run(engine.prepare(**wired.given(), whole=True)).body
    made = wired.prepared(body)
    sent = WireRequest.of(made).body
    items = "input" if vendor == "responses" else "messages"
    assert plain_items(sent[items]) == plain_items(body[items]), "what is sent is the engine's body"
    changed = [place for place, one in enumerate(given) if not any(one is other for other in made.messages)]
    if vendor == "messages":  # those with a marker are copies, and so is the one that lost its own
        assert set(changed) <= {2, 5, 6, 8} and json.dumps(sent).count("cache_control") == 4
        assert made.messages[5].id == given[5].id and made.messages[5].name == "read_file"
    else:
        assert changed == []
        assert made.system_message is system


def plain_items(items: Any) -> list[Any]:
    """Items without markers and empty fields, and messages as the blocks that they have."""

    def bare(value: Any) -> Any:
        if isinstance(value, list):
            return [bare(part) for part in value]
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k != "cache_control" and v not in (None, False)}
        return value

    found = list[Any]()
    for item in bare(items):
        content = item.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        found += [{**item, "content": part} for part in parts] or [item]
    return found


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_fact_is_recalled_in_the_next_conversation(
    vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mind = Mind(1, "Fine, I will keep that in mind.")
    with running(Simulator(mind)) as url:
        memory = Memory.open(tmp_path / "memory", home=tmp_path / "home", cwd=tmp_path)
        layers = open_layers(tmp_path / "home", memory=memory)
        agent = make_agent(chat_model(vendor, url, monkeypatch), layers, InMemorySaver())
        agent.invoke(
            asked("Remember that we deploy the webshop on Thursdays, because support is complete then."), thread("1")
        )
        layers.close()
        assert any("Thursday" in one.text for one in asyncio.run(memory.list()))
        agent.invoke(asked("On which day do we deploy the webshop?"), thread("2"))
        layers.close()
    assert "Thursdays" in mind.bodies[-1] and "On which day" in mind.bodies[-1]


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_chat_model_writes_the_summary(vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Writer(Mind):
        def __init__(self) -> None:
            super().__init__(22)
            self.asked = list[Any]()

        async def reply(self, body: Any, *, purpose: str = "main") -> Reply:
            last = json.dumps(body["messages"][-1]["content"][-1:])
            if "tool_result" in last or len(body["messages"]) == 1:
                return await super().reply(body, purpose=purpose)
            self.asked.append(body)
            said = "<summary>The files are read one by one, and counted in dozens.</summary>"
            return Reply([{"type": "text", "text": said}], "end_turn")

    mind = Writer()
    simulator = Simulator(mind)
    with running(simulator) as url:
        model = chat_model(vendor, url, monkeypatch)
        layers = open_layers(tmp_path, ask=model)
        agent = make_agent(model, layers, InMemorySaver())
        agent.invoke(asked("Check the files."), thread("t"))
        layers.close()
    assert mind.asked and simulator.ledger.totals()["errors"] == 0
    (row,) = [row for row in simulator.ledger.rows if row.usage.output_tokens == 18]
    assert row.usage.cache_read_input_tokens > 10_000, "it reads the cache of the conversation"
    assert "one by one, and counted in dozens" in mind.bodies[-1]


def test_a_large_result_is_read_back_with_the_tool(tmp_path: Path) -> None:
    class Reader(Mind):
        async def reply(self, body: Any, *, purpose: str = "main") -> Any:
            made = await super().reply(body, purpose=purpose)
            path = str(next(iter(tmp_path.rglob("toolu_3_0*")), ""))
            if self.count == LARGE + 1:
                made.content[1] |= {"name": "read_kept_result", "input": {"path": path, "offset": 150_000}}
                made.content[2:] = []
            return made

    with running(Simulator(Reader())) as url:
        layers = open_layers(tmp_path)
        agent = make_agent(PlainChat(url=f"{url}/v1"), layers, InMemorySaver())
        messages = agent.invoke(asked("Check the files."), thread("r"))["messages"]
        layers.close()
    read = next(one for one in messages if isinstance(one, ToolMessage) and one.name == "read_kept_result")
    assert "file 3, line 3600" in read.text and len(read.text) > 5_000


def test_wrong_arguments_are_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"notes\.on"):
        open_layers(tmp_path, settings={"notes.on": False})


def test_nothing_of_ours_stops_the_agent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocked = tmp_path / "home"
    with running(Simulator(Mind(3))) as url:
        model = PlainChat(url=f"{url}/v1")
        for home, place in ((blocked, thread("t")), (tmp_path / "other", {})):
            layers = open_layers(home)
            agent = make_agent(model, layers, None)
            if home == blocked:
                blocked.write_text("a file where a folder should be")
            assert agent.invoke(asked("Check."), place)["messages"][-1].text.startswith("All files are in order")
            layers.close()
    assert caplog.text.count("A request is sent without layers") == 6
    assert "the run has no thread_id" in caplog.text
    rules = " ".join(f"Rule {number} is about shelf {number * 7}." for number in range(9_000))
    agent = create_agent(model, system_prompt=rules, middleware=[open_layers(tmp_path / "third")])
    with pytest.raises(BlockingLimit, match="does not fit the window"):
        agent.invoke(asked("Check."), thread("x"))


def test_a_sub_agent_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    """It is called as a tool, in the same run and with the same middleware."""

    class Manager(Mind):
        async def reply(self, body: Any, *, purpose: str = "main") -> Reply:
            made = await super().reply(body, purpose=purpose)
            is_helper = "Look at file" in json.dumps(body["messages"][0])
            is_told = "tool_result" in json.dumps(body["messages"][-1])
            return Reply([{"type": "text", "text": "It is fine."}], "end_turn") if is_helper or is_told else made

    simulator = Simulator(Manager(1_000))
    with running(simulator) as url:
        model, layers = PlainChat(url=f"{url}/v1"), open_layers(tmp_path)
        helper = make_agent(model, layers, None)

        def read_file(number: int) -> str:
            """Asks the helper."""
            return helper.invoke(asked(f"Look at file {number}."))["messages"][-1].text

        tools = [StructuredTool.from_function(read_file)]
        agent = create_agent(model, tools, middleware=[layers], checkpointer=InMemorySaver())
        for turn in range(2):
            agent.invoke(asked(f"Turn {turn}."), thread("main"))
        layers.close()
    assert len(simulator.ledger.rows) == 6
    transcripts = sorted(path.stem for path in tmp_path.rglob("*.jsonl") if path.stem.startswith("main"))
    assert transcripts[0] == "main" and len(transcripts) == 3


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_prompt_that_the_server_refuses_is_made_shorter(
    vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulator = Simulator(Mind(16), window=20_000)
    with running(simulator) as url:
        layers = open_layers(tmp_path, window=200_000)
        agent = make_agent(chat_model(vendor, url, monkeypatch), layers, InMemorySaver())
        assert agent.invoke(asked("Check the files."), thread("t"))["messages"][-1].text.endswith("(16)")
        layers.close()
    assert simulator.ledger.totals()["errors"] >= 1


def test_without_langchain_one_sentence_says_what_to_install() -> None:
    code = (
        "import sys; import reverie.adapters; assert 'langchain' not in sys.modules; sys.modules['langchain'] = None\n"
        "try:\n    import reverie.adapters.langchain\nexcept Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert done.stdout.startswith("MissingExtra This needs LangChain") and "[langchain]" in done.stdout


@pytest.mark.integration
def test_the_example_runs(tmp_path: Path) -> None:
    place = installed("langchain", "lib/python*/site-packages/langchain_anthropic").parent
    example = Path(__file__).parents[2] / "examples" / "12_langchain.py"
    code = f"import runpy, sys; sys.path.append({str(place)!r}); runpy.run_path({str(example)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 results are on disk\nthe last prompt had the memory: True" in done.stdout
