"""OpenTelemetry for a session: a span per turn, tool call and background task, and the figures of `reverie health`.

Imported only if the setting `telemetry.otel` is on. It listens to the events of the session and reads its records; the
session does not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from reverie.context.health import Health
from reverie.events import Event, TaskChanged, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from reverie.models.catalogue import Catalogue
from reverie.models.telemetry import open_telemetry
from reverie.models.wire import model_id
from reverie.runtime.parts import Parts
from reverie.runtime.tasks import TaskState

_OVER = frozenset(state.value for state in TaskState if state.is_over)


class SessionTelemetry:
    """The spans and figures of one session."""

    def __init__(self, parts: Parts) -> None:
        self._telemetry = open_telemetry()
        self._log = parts.log
        self._health = Health(Catalogue.load(parts.settings.catalogue.files))
        self._about = {
            "gen_ai.conversation.id": parts.log.session_id,
            "gen_ai.request.model": model_id(parts.model_name),
        }
        self._open: dict[str, Any] = {}
        self._records, self._told = len(parts.log.records), (0, 0, 0, 0, 0)

    def listening(self, emit: Callable[[Event], None]) -> Callable[[Event], None]:
        """Returns `emit` with us as a listener."""

        def heard(event: Event) -> None:
            self.hear(event)
            emit(event)

        return heard

    def hear(self, event: Event) -> None:
        session = self._log.session_id
        match event:
            case TurnStarted():
                about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "reverie"}
                span = self._open["turn"] = self._telemetry.start("invoke_agent reverie", about | self._about)
                self._telemetry.parents[session] = self._telemetry.trace.set_span_in_context(span)
            case TurnEnded():
                self.flush()
                self._telemetry.parents.pop(session, None)
                self._end("turn", "" if event.exit_code == 0 else event.reason, event.error or event.reason)
            case ToolStarted():
                about = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": event.name,
                    "gen_ai.tool.call.id": event.id,
                    "gen_ai.tool.type": "function",
                }
                self._open[event.id] = self._telemetry.start(f"execute_tool {event.name}", about, conversation=session)
            case ToolFinished():
                self._end(event.id, "tool_error" if event.is_error else "", "the tool reported an error")
            case TaskChanged() if event.state in _OVER:
                self._end(event.id, event.state if event.state != TaskState.COMPLETED else "", event.state)
            case TaskChanged() if event.id not in self._open:
                about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": event.purpose.value}
                name = f"invoke_agent {event.purpose.value}"
                self._open[event.id] = self._telemetry.start(name, about | self._about, conversation=session)
            case _:
                pass

    def _end(self, name: str, error: str, why: str) -> None:
        span = self._open.pop(name, None)
        if span is None:
            return
        if error:
            self._telemetry.failed(span, error, why)
        span.end()

    def flush(self) -> None:
        """Reports what was recorded since the last time."""
        health, telemetry, before = self._health, self._telemetry, self._told
        for record in self._log.records[self._records :]:
            health.add(record)
        self._records = len(self._log.records)
        span = self._open.get("turn")
        for event in health.events[before[0] :]:
            kind = {"reverie.layer": event.layer, "reverie.outcome": event.outcome}
            telemetry.outcomes.add(event.count, kind)
            if event.outcome == "failed" and span is not None:
                span.add_event("layer failed", {**kind, "reverie.reason": event.why})
            if event.layer == "clearing" and event.outcome in ("fired", "again"):
                telemetry.results.add(event.amount or event.count, kind)
        for one in health.ledger.breaks[before[1] :]:
            cause = {"reverie.cause": one.broken.cause, "reverie.announced": one.broken.announcement is not None}
            telemetry.breaks.add(1, cause)
            telemetry.lost.add(one.broken.lost_tokens, cause)
        for entry in health.ledger.entries[before[2] :]:
            about = {"gen_ai.response.model": entry.model, "reverie.purpose": entry.purpose}
            telemetry.cost.add(entry.cost, about)
        recalled, used = health.recalled
        telemetry.memories.add(recalled - before[3], {"reverie.outcome": "recalled"})
        telemetry.memories.add(used - before[4], {"reverie.outcome": "used"})
        counts = len(health.events), len(health.ledger.breaks), len(health.ledger.entries)
        self._told = (*counts, recalled, used)
