"""Windows, caps and limits of a session: what a request asks for, what the window is taken to be, what is reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from reverie.events import Event, Notice
from reverie.session import Session
from reverie.tools.base import ToolContext, ToolOutput
from reverie.types import JsonObject
from tests.layers.strict_model import StrictModel
from tests.layers.talks import flags
from tests.sessions import ended, in_session, of_kind, script, turn
from tests.simulated import served


async def heard(session: Session) -> list[Event]:
    found: list[Event] = []
    session.listen(found.append)
    return found + await turn(session, "hello")


def warnings(events: list[Event], source: str) -> list[str]:
    return [notice.text for notice in of_kind(events, Notice) if notice.source == source]


@pytest.mark.parametrize(("window", "asked"), [(32_000, 3_200), (80_000, 8_000), (200_000, 8_000)])
def test_a_request_never_asks_for_more_than_the_window_keeps_free(tmp_path: Path, window: int, asked: int) -> None:
    caps: list[int] = []
    model = StrictModel(window, watching=lambda request, _tokens: caps.append(request.max_tokens))

    async def work(session: Session) -> None:
        assert ended(await turn(session, "hello")).reason == "answered"
        limits = session.conversation.thresholds
        assert caps == [asked]
        assert asked <= limits.window - limits.effective

    in_session(work, cwd=tmp_path, model=model, overrides={"window.context_window": window})


def test_the_first_request_is_sent_into_a_window_that_our_estimate_fills(tmp_path: Path) -> None:
    """A server may leave out tools that its model does not know. There is nothing to compact before an answer."""
    small = {"window.context_window": 4_096}

    async def work(session: Session) -> tuple[str, str]:
        event = ended(await turn(session, "hello"))
        return event.reason, event.error or ""

    model = StrictModel(32_000)
    assert in_session(work, cwd=tmp_path, model=model, overrides=small) == ("answered", "")
    assert [purpose.value for purpose, _ in model.requests] == ["main"]
    reason, error = in_session(work, cwd=tmp_path, model=StrictModel(2_048), overrides=small)
    assert reason == "failed" and "prompt is too long" in error, "the server's words, not advice to compact"


def test_the_beta_header_opens_the_large_window_of_a_model_without_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BETAS", "something-else, context-1m-2025-08-07")
    with served("say Hello.", monkeypatch) as server:
        session_window = in_session(large, cwd=tmp_path, model="anthropic:nonesuch")
    assert session_window == 1_000_000
    assert len(server.rows) == 1


async def large(session: Session) -> int:
    await turn(session, "hello")
    return session.conversation.thresholds.window


def test_a_model_of_anthropics_without_an_entry_has_cache_markers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "AGENTS.md").write_text("All work and no play. " * 800)

    async def twice(session: Session) -> None:
        await turn(session, "hello")
        await turn(session, "hello again")

    with served("say Hello.\n---\nsay Again.", monkeypatch) as server:
        in_session(twice, cwd=tmp_path, model="anthropic:house-model-3")
    assert server.rows[1].usage.cache_read_input_tokens > 1_000


def test_a_flag_limits_the_results_of_a_tool_that_the_settings_do_not_list(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, "[tool_results.limits]\nSonar = 100\n")

    class Sonar:
        name = "Sonar"

        @property
        def schema(self) -> JsonObject:
            return {"name": "Sonar", "description": "Listens.", "input_schema": {"type": "object"}}

        def is_read_only(self, given: JsonObject) -> bool:
            return True

        async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
            return ToolOutput("ping " * 100)

    async def work(session: Session) -> str:
        await turn(session, "listen")
        return session.view.messages()[2].tool_results[0].text

    model = script(tmp_path, "call Sonar {}\n---\nsay Heard.")
    assert in_session(work, cwd=tmp_path, model=model, tools=[Sonar()]).startswith("<persisted-output>")


def test_a_large_output_of_bash_has_the_preview_of_every_result_on_disk(tmp_path: Path) -> None:
    model = script(tmp_path, 'call Bash {"command": "seq 1 100000; exit 3"}\n---\nsay Done.')

    async def work(session: Session) -> None:
        await turn(session, "count")
        result = session.view.messages()[2].tool_results[0]
        kept = session.places.tool_results(session.id) / f"{result.tool_use_id}.txt"
        assert result.text.startswith("<persisted-output>") and "(588,895 bytes)" in result.text
        assert str(kept) in result.text and "Exit code 3\n1\n2\n" in result.text
        assert len(result.text) < 2_600
        assert kept.read_text().endswith("\n100000\n") and len(list(kept.parent.iterdir())) == 1
        assert session.view.on_disk == [588_895]

    in_session(work, cwd=tmp_path, model=model, overrides={"permissions.mode": "accept_all"})


@pytest.fixture
def own_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, object]]]:
    """A server of the user's own with one model; what it says about its models can be changed."""
    models: list[dict[str, object]] = [{"id": "house-model", "object": "model"}]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"object": "list", "data": models}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}")
        yield models
        server.shutdown()


async def opened(session: Session) -> tuple[int, list[str]]:
    found: list[Event] = []
    session.listen(found.append)
    return session.conversation.thresholds.window, warnings(found, "model")


def test_a_model_on_a_server_of_ones_own_has_the_window_that_the_server_names(
    tmp_path: Path, own_server: list[dict[str, object]]
) -> None:
    own_server[0]["max_model_len"] = 65_536
    assert in_session(opened, cwd=tmp_path, model="openai:house-model") == (65_536, [])
    del own_server[0]["max_model_len"]
    own_server[0]["meta"] = {"n_ctx": 8_192}
    assert in_session(opened, cwd=tmp_path, model="openai:house-model") == (8_192, [])


def test_a_server_with_one_model_means_it_by_every_name(tmp_path: Path, own_server: list[dict[str, object]]) -> None:
    """llama.cpp lists the path of its file and answers to any name; a server with several models does not."""
    own_server[0] |= {"id": "/models/house.gguf", "meta": {"n_ctx": 8_192}}
    assert in_session(opened, cwd=tmp_path, model="openai:house-model") == (8_192, [])
    own_server.append({"id": "/models/other.gguf", "object": "model", "meta": {"n_ctx": 4_096}})
    window, told = in_session(opened, cwd=tmp_path, model="openai:house-model")
    assert window == 32_000 and len(told) == 1


def test_if_nobody_names_it_a_small_window_is_assumed_and_reported(
    tmp_path: Path, own_server: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    window, told = in_session(opened, cwd=tmp_path, model="openai:house-model")
    assert window == 32_000
    assert len(told) == 1 and "openai:house-model" in told[0] and "REVERIE_CONTEXT_WINDOW" in told[0]
    monkeypatch.setenv("REVERIE_CONTEXT_WINDOW", "131072")
    assert in_session(opened, cwd=tmp_path, model="openai:house-model") == (131_072, [])


def test_mistakes_in_flags_are_reported_in_the_session(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, "recal = false\n")
    model = script(tmp_path, "say Hello.\n---\nsay Again.")

    async def work(session: Session) -> None:
        assert ["`recal`" in text for text in warnings(await heard(session), "flags")] == [True]
        flags(own_home, "recall = ???\n")
        again = warnings(await turn(session, "hello again"), "flags")
        assert len(again) == 1 and "The flags stay as they were" in again[0]

    in_session(work, cwd=tmp_path, model=model)
