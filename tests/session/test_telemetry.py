"""OpenTelemetry: off by default and not imported; when on, spans and metrics have the names of the conventions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reverie.models import telemetry
from reverie.session import Session
from tests.sessions import ended, in_session, turn
from tests.simulated import ANTHROPIC, Served, files, served
from tests.waiting import LIMIT_S

sdk_trace = pytest.importorskip("opentelemetry.sdk.trace", reason="the extra `otel` is not installed")
PLAY = """
call Read {"file_path": "f1.txt"}
call Read {"file_path": "nothing.txt"}
---
fail overloaded
say Done.
---
say Never.
"""


class Collected:
    """What the in-memory exporters got."""

    def __init__(self) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers = sdk_trace.TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meters = MeterProvider([self._reader])

    def spans(self, start: str) -> list[Any]:
        return [span for span in self._spans.get_finished_spans() if span.name.startswith(start)]

    def metrics(self) -> dict[str, list[Any]]:
        found = self._reader.get_metrics_data()
        assert found is not None
        scopes = [scope for resource in found.resource_metrics for scope in resource.scope_metrics]
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    """The program around the session has set up OpenTelemetry with in-memory exporters."""
    from opentelemetry import metrics, trace

    given = Collected()
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: given.tracers)
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: given.meters)
    telemetry.open_telemetry.cache_clear()
    yield given
    telemetry.open_telemetry.cache_clear()


def hold(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Served:
    files(folder)
    with served(PLAY, monkeypatch) as server:

        async def work(session: Session) -> None:
            assert ended(await turn(session, "read it")).reason == "answered"
            server.simulator.fail_next(401)
            assert ended(await turn(session, "and now?")).reason == "failed"

        overrides = {"telemetry.otel": True, "model.retry_first_wait_s": 0.001}
        in_session(work, cwd=folder, model=ANTHROPIC, overrides=overrides, session_id="traced")
    return server


def test_requests_tools_and_turns_are_spans_with_the_names_of_the_conventions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collected: Collected
) -> None:
    server = hold(tmp_path, monkeypatch)
    chats, tools, turns = (collected.spans(start) for start in ("chat ", "execute_tool ", "invoke_agent reverie"))
    assert [span.name for span in chats] == ["chat claude-sonnet-5-5"] * 4, "each attempt is one"
    assert [span.attributes.get("error.type") for span in chats] == [None, "Overloaded", None, "AuthenticationFailed"]
    for span, row in zip([chats[0], chats[2]], [row for row in server.rows if row.error is None], strict=True):
        about = span.attributes
        assert (about["gen_ai.operation.name"], about["gen_ai.provider.name"]) == ("chat", "anthropic")
        assert about["gen_ai.conversation.id"] == "traced" and about["reverie.purpose"] == "main"
        assert about["gen_ai.response.id"] == row.message_id
        assert about["gen_ai.usage.input_tokens"] == row.usage.prompt
        assert about["gen_ai.usage.output_tokens"] == row.usage.output_tokens
        assert about["gen_ai.usage.cache_read.input_tokens"] == row.usage.cache_read_input_tokens
        assert about["gen_ai.usage.cache_creation.input_tokens"] == row.usage.cache_creation_input_tokens
    assert {span.name for span in tools} == {"execute_tool Read"}
    assert sorted(str(span.attributes.get("error.type")) for span in tools) == ["None", "tool_error"]
    assert [span.attributes.get("error.type") for span in turns] == [None, "failed"]
    assert {span.parent.span_id for span in (*chats[:3], *tools)} == {turns[0].context.span_id}
    assert [event.attributes["reverie.layer"] for event in turns[1].events] == ["request"]
    said = json.dumps([span.to_json() for span in (*chats, *tools, *turns)])
    assert "read it" not in said and "All work and no play" not in said, "no content"


def test_health_is_in_the_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collected: Collected) -> None:
    server = hold(tmp_path, monkeypatch)
    found = collected.metrics()
    tokens = {point.attributes["gen_ai.token.type"]: point.sum for point in found["gen_ai.client.token.usage"]}
    assert tokens == {
        "input": sum(row.usage.prompt for row in server.rows),
        "output": sum(row.usage.output_tokens for row in server.rows),
    }
    assert sum(point.count for point in found["gen_ai.client.operation.duration"]) == 4
    assert sum(point.value for point in found["reverie.cost"]) == pytest.approx(sum(row.cost for row in server.rows))
    outcomes = {
        (point.attributes["reverie.layer"], point.attributes["reverie.outcome"]): point.value
        for point in found["reverie.layer.outcomes"]
    }
    assert outcomes["request", "retried"] == 1 and outcomes["request", "failed"] == 1
    assert outcomes["compaction", "declined"] >= 2


def test_off_means_that_nothing_is_imported(tmp_path: Path) -> None:
    (tmp_path / "play.script").write_text("say Hello.")
    code = (
        "import sys, reverie; reverie.ask('hello', model='scripted:play.script');"
        "print([name for name in sys.modules if name.startswith('opentelemetry') or name.endswith('.telemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT_S)
    assert done.stdout.strip() == "[]", done.stderr


def test_on_without_the_extra_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "play.script").write_text("say Hello.")
    code = (
        "import sys; sys.modules['opentelemetry.trace'] = None;"
        "from reverie.__main__ import main; sys.argv = ['reverie', 'run', '--model', 'scripted:play.script', 'hi'];"
        "sys.exit(main())"
    )
    env = {"REVERIE_OTEL": "1", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "REVERIE_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT_S, env=env
    )
    assert done.returncode == 2 and "[otel]" in done.stderr and "Traceback" not in done.stderr
