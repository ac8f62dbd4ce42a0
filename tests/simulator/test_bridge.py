"""`--bridge`: requests as files, answered by whoever writes the reply."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reverie.cli.simulate import command
from reverie.errors import UserError
from reverie.simulator import ApiError, BridgeResponder, Simulator
from reverie.simulator.http import running
from tests.simulator.test_http import claude
from tests.simulator.test_simulate_command import RUN, post
from tests.waiting import LIMIT_S, wait_until

openai: Any

HELLO = [{"role": "user", "content": "hi"}]


@pytest.fixture(autouse=True, scope="module")
def _sdk() -> None:
    """Imported only where these tests run, and before a thread waits for requests."""
    global openai
    pytest.importorskip("anthropic")
    openai = pytest.importorskip("openai")


def play(folder: Path, replies: dict[str, Any]) -> threading.Thread:
    """Answers each request with the reply of its number, as a person would: another name first, then the right one."""

    def answer() -> None:
        left = dict(replies)

        def all_answered() -> bool:
            for name in [name for name in left if (folder / f"{name}.request.json").exists()]:
                reply = left.pop(name)
                part = folder / f"{name}.part"
                part.write_text(reply if isinstance(reply, str) else json.dumps(reply), encoding="utf-8")
                part.replace(folder / f"{name}.reply.json")
            return not left

        wait_until(all_answered)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def test_whoever_writes_the_reply_is_the_model(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "requests"
    simulator = Simulator(BridgeResponder(folder))
    call = {"type": "tool_use", "name": "Read", "input": {"path": "a"}}
    player = play(
        folder,
        {
            "0001": {"content": [{"type": "text", "text": "Let me look."}, call]},
            "0002": {"content": "plain words", "stop_reason": "refusal"},
            "0003": {"content": [call]},
        },
    )
    with running(simulator) as url:
        first = claude(url).messages.create(model="claude-opus-5", max_tokens=99, messages=HELLO)
        assert [block.type for block in first.content] == ["text", "tool_use"] and first.stop_reason == "tool_use"
        assert first.content[1].id.startswith("toolu_")
        with claude(url).messages.stream(model="claude-opus-5", max_tokens=99, messages=HELLO) as stream:
            assert (stream.get_final_text(), stream.get_final_message().stop_reason) == ("plain words", "refusal")
        chat = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0).chat.completions
        (made,) = chat.create(model="gpt-5", messages=HELLO).choices[0].message.tool_calls
        assert json.loads(made.function.arguments) == {"path": "a"}
    player.join()
    asked = json.loads((folder / "0001.request.json").read_text())
    assert (asked["model"], asked["messages"]) == ("claude-opus-5", HELLO)
    assert (folder / "0001.request.json").stat().st_mode & 0o077 == 0, "prompts are private"
    assert json.loads((folder / "0003.request.json").read_text())["messages"][0]["role"] == "user"
    assert BridgeResponder(folder)._last == 3, "a new server goes on counting"  # pyright: ignore
    assert simulator.ledger.totals()["requests"] == 3 and simulator.ledger.totals()["cost_usd"] > 0


def test_a_wrong_reply_says_what_is_wrong_and_silence_is_an_overload(tmp_path: Path) -> None:
    wrong = ["no JSON", [], {"content": 5}, {"content": [{"type": "tool_use", "name": "x"}]}]
    body = {"model": "m", "max_tokens": 9, "messages": HELLO}

    async def scenario() -> list[Any]:
        simulator = Simulator(BridgeResponder(tmp_path, wait_s=0.1))
        with pytest.raises(ApiError, match="nobody answered 0001") as caught:
            await simulator.messages(body)
        assert caught.value.code == 529
        simulator = Simulator(BridgeResponder(tmp_path))
        return await asyncio.gather(*(simulator.messages(body) for _ in wrong), return_exceptions=True)

    player = play(tmp_path, {f"{number:04}": reply for number, reply in enumerate(wrong, 2)})
    for number, error in enumerate(asyncio.run(scenario()), 2):
        assert isinstance(error, ApiError) and error.code == 500
        assert re.match(rf"000{number}.reply.json: .*; write {{\"content\"", str(error)), str(error)
    player.join()


def test_the_command_bridges_and_profiles(tmp_path: Path) -> None:
    folder, profile = tmp_path / "asked", tmp_path / "profile.json"
    profile.write_text('{"/v1/messages": {"status": 429, "every": 2, "retry_after": 3}}', encoding="utf-8")
    arguments = [*RUN, "--bridge", str(folder), "--profile", str(profile), "--threads"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        head = "".join(process.stdout.readline() for _ in range(3))
        found = re.search(r"http://127\.0\.0\.1:\d+", head)
        assert found is not None, head
        player = play(folder, {"0001": {"content": "by hand"}})
        body = {"model": "m", "max_tokens": 9, "messages": HELLO, "thread": {"type": "create"}}
        with pytest.raises(OSError, match="HTTP Error 400"):  # the beta header is missing, so threads are on
            post(f"{found[0]}/v1/messages", body)
        with pytest.raises(OSError, match="HTTP Error 429"):
            post(f"{found[0]}/v1/messages", body)
        del body["thread"]
        assert post(f"{found[0]}/v1/messages", body)["content"] == [{"type": "text", "text": "by hand"}]
        player.join()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, errors) == (0, "")


def test_bad_options_are_one_sentence(tmp_path: Path) -> None:
    taken, odd = tmp_path / "file", tmp_path / "odd.json"
    taken.write_text("x", encoding="utf-8")
    odd.write_text('{"/v1/messages": {"wait_s": -1}}', encoding="utf-8")
    script = tmp_path / "a.script"
    script.write_text("say hi\n", encoding="utf-8")
    for arguments, said in (
        (["--bridge", str(tmp_path / "x"), "--script", str(script)], "only one of them"),
        (["--profile", str(tmp_path / "gone")], "gone cannot be read"),
        (["--profile", str(odd)], "wait_s: Input should be a number of seconds from 0 to 600"),
    ):
        failed = CliRunner().invoke(command, arguments)
        assert isinstance(failed.exception, UserError) and said in str(failed.exception)
    assert "is a file" in CliRunner().invoke(command, ["--bridge", str(taken)]).output
