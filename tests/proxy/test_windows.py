"""How full a window is, in the proxy: what the server reported counts, a window that nobody knows is never full, and a
compaction is told to the user. And what such models cost."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.proxied import Recorder, post, proxy, stats
from tests.proxy.reader import PATHS

UNKNOWN = "some-coder-3-codex"
WORDS = "please tell me more about the harbour and its ships. "


class Talk:
    """A client that keeps its whole history; its upstream reports the tokens that the test says."""

    def __init__(self, api: str, model: str, recorder: Recorder) -> None:
        self.api, self.model = api, model
        self._recorder = recorder
        self._items: list[dict[str, Any]] = []

    def ask(self, url: str, text: str, tokens: int | None = None) -> bool:
        """One question; returns whether its body arrived as it was sent. `tokens`: what the upstream reports; by
        default about as many as arrived."""
        key = "input" if self.api == "responses" else "messages"
        self._items.append({"role": "user", "content": text})
        body: dict[str, Any] = {"model": self.model, key: self._items}
        raw = json.dumps(body | ({"max_tokens": 1_000} if self.api == "messages" else {})).encode()
        number = len(self._items)
        said = f"Answer {number} about the harbour, with words that nobody else says."
        self._recorder.reply = lambda sent: answer(
            self.api, f"a{number}", said, len(sent) // 4 if tokens is None else tokens
        )
        status, came = post(url, PATHS[self.api], raw)
        assert status == 200 and said in came.decode()
        self._items.append({"role": "assistant", "content": said})
        return self._recorder.bodies[-1] == raw


def answer(api: str, name: str, text: str, tokens: int) -> dict[str, Any]:
    if api == "messages":
        usage = {"input_tokens": tokens, "output_tokens": 20}
        return {"id": name, "model": "m", "content": [{"type": "text", "text": text}], "usage": usage}
    if api == "chat":
        chat = {"prompt_tokens": tokens, "completion_tokens": 20}
        choices = [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
        return {"id": name, "model": "m", "choices": choices, "usage": chat}
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    usage = {"input_tokens": tokens, "output_tokens": 20}
    return {"id": name, "model": "m", "status": "completed", "output": [item], "usage": usage}


@pytest.mark.parametrize("api", PATHS)
@pytest.mark.parametrize("tokens_per_step", [0, 9_000, 90_000], ids=["no usage", "small", "large"])
def test_a_window_that_nobody_knows_is_never_full(tmp_path: Path, api: str, tokens_per_step: int) -> None:
    recorder = Recorder()
    talk = Talk(api, UNKNOWN, recorder)
    with recorder.running() as to, proxy(tmp_path, to, markers=False) as url:
        for number in range(1, 11):  # about 340,000 tokens by our estimate
            assert talk.ask(url, f"Question {number}: {WORDS * 2_500}", tokens_per_step * number)
        found = stats(url)
    assert found["total"]["compactions"] == found["total"]["changed"] == 0 and found["failures"] == {}
    assert [one["requests"] for one in found["sessions"]] == [10]


@pytest.mark.parametrize("where", ["variable", "catalogue", "option"])
def test_a_window_that_the_user_names_counts(tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = dict[str, Any]()
    if where == "variable":
        monkeypatch.setenv("REVERIE_CONTEXT_WINDOW", "20000")
    elif where == "catalogue":
        (tmp_path / "models.toml").write_text(f'[models."{UNKNOWN}"]\nwindow = 20000\n')
        (tmp_path / "settings.toml").write_text(f'[catalogue]\nfiles = ["{tmp_path / "models.toml"}"]\n')
    else:
        options = {"window": 20_000}
    recorder = Recorder()
    talk = Talk("chat", UNKNOWN, recorder)
    with recorder.running() as to, proxy(tmp_path, to, **options) as url:
        same = [talk.ask(url, f"Question {number}: {WORDS * 200}", 2_700 * number) for number in range(1, 10)]
        found = stats(url)
    assert not all(same) and found["total"]["compactions"] > 0 and found["failures"] == {}


def test_what_the_server_reported_counts_and_not_our_estimate(tmp_path: Path) -> None:
    recorder = Recorder()
    small, large = Talk("chat", "gpt-5", recorder), Talk("chat", "gpt-5-mini", recorder)
    with recorder.running() as to, proxy(tmp_path, to, window=40_000) as url:
        for number in range(1, 9):  # about 60,000 tokens by our estimate, and 24,000 for the server
            assert small.ask(url, f"Question {number}: {WORDS * 570}", 3_000 * number)
        assert stats(url)["total"]["compactions"] == 0
        same = [large.ask(url, f"Question {number}: {WORDS * 220}", 6_000 * number) for number in range(1, 8)]
        assert not all(same), "42,000 for the server, and about 20,000 by our estimate"
        assert stats(url)["total"]["compactions"] == 1


def test_a_compaction_is_told_and_later_requests_are_billed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    for api, model in (("responses", "gpt-5"), ("chat", UNKNOWN), ("messages", "claude-sonnet-4-5")):
        home = tmp_path / api
        talk = Talk(api, model, recorder)
        caplog.set_level(logging.WARNING, "reverie.proxy")
        with recorder.running() as to, proxy(home, to, window=20_000) as url:
            for number in range(1, 13):
                talk.ask(url, f"Question {number}: {WORDS * 250}")
                found = stats(url)
                if number == 8:
                    before = found["total"]
        after, session = found["total"], found["sessions"][0]
        assert found["failures"] == {} and before["compactions"] > 0
        assert after["compactions"] < 3, "only the requests in which it happened are counted"
        assert after["requests"] == 12
        assert session["sent_tokens"] > 0 and session["direct_tokens"] > 0
        assert any("compacted" in one.message and session["id"] in one.message for one in caplog.records)
        caplog.clear()
        text = _stats_text(home)
        assert "compacted" in text and session["id"] in text
        if model == UNKNOWN:
            assert session["paid"] is session["direct"] is session["saved"] is None
            assert "price unknown" in text and "$0.00" not in text
        else:
            assert after["paid"] > before["paid"] > 0 and after["direct"] > before["direct"]
            assert "price unknown" not in text


def _stats_text(home: Path) -> str:
    environment = {**os.environ, "REVERIE_HOME": str(home), "HOME": str(home)}
    command = [sys.executable, "-m", "reverie", "proxy", "stats"]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


CLIENT = """
import json, os, sys, urllib.request
items = []
for number in range(int(sys.argv[1])):
    items.append({"role": "user", "content": f"Question {number}: " + "please tell me more about the harbour. " * 300})
    body = {"model": sys.argv[2], "messages": items}
    asked = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    said = json.loads(urllib.request.urlopen(asked).read())
    items.append(said["choices"][0]["message"])
"""


def test_the_end_says_what_the_proxy_did(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(CLIENT)
    recorder = Recorder()
    environment = {**os.environ, "REVERIE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}

    def run(to: str, *arguments: str, options: tuple[str, ...] = ()) -> str:
        command = [sys.executable, "-m", "reverie", "proxy", "--upstream", to, *options, "--"]
        client = [sys.executable, "client.py", *arguments] if arguments else [sys.executable, "-c", ""]
        done = subprocess.run(
            [*command, *client], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True
        )
        return "\n".join(line for line in done.stderr.splitlines() if line.startswith("Reverie:"))

    with recorder.running() as to:
        recorder.answer = json.dumps(answer("chat", "a", "It has many ships.", 3_000)).encode()
        first = run(to, "3", "gpt-5")
        assert "3 requests" in first and "paid $0.01" in first and "compacted" not in first
        unknown = run(to, "2", UNKNOWN)
        assert "2 requests" in unknown and "price unknown" in unknown and "$" not in unknown, "only of this program"
        recorder.answer = json.dumps(answer("chat", "a", "It has many ships.", 30_000)).encode()
        compacted = run(to, "9", "gpt-5", options=("--window", "20000"))
        assert "compacted" in compacted and "proxy-" in compacted
        assert "no request" in run(to)
