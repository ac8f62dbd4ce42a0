"""OpenTelemetry for requests to models: one span per attempt and the metrics of the GenAI semantic conventions.

Imported only if the setting `telemetry.otel` is on. It sends names, sizes and times, never content. If the program
around us has set up OpenTelemetry, its providers are used; else data goes where the OTEL_EXPORTER_OTLP_* variables say.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator
from functools import cache
from importlib import import_module
from typing import Any

from reverie import __version__
from reverie.errors import MissingExtra, ReverieError
from reverie.models.base import Capabilities, Finished, Model, ModelEvent, Request, Response
from reverie.models.wire import model_id
from reverie.paths.installed import pip_install
from reverie.types import JsonObject

_NAME = "reverie"


class Telemetry:
    """The instruments of this process, and the running turn of each conversation, which is the parent of its spans."""

    def __init__(self, tracers: Any, meters: Any) -> None:
        self.trace = import_module("opentelemetry.trace")
        self.tracer = tracers.get_tracer(_NAME, __version__)
        meter = meters.get_meter(_NAME, __version__)
        self.tokens = meter.create_histogram("gen_ai.client.token.usage", "{token}", "Tokens of requests.")
        self.seconds = meter.create_histogram("gen_ai.client.operation.duration", "s", "Duration of requests.")
        self.outcomes = meter.create_counter("reverie.layer.outcomes", "{outcome}", "What layers did or declined.")
        self.breaks = meter.create_counter("reverie.cache.breaks", "{break}", "Breaks of the prompt cache.")
        self.lost = meter.create_counter("reverie.cache.lost_tokens", "{token}", "Tokens paid again after a break.")
        self.cost = meter.create_counter("reverie.cost", "USD", "What requests cost.")
        self.results = meter.create_counter("reverie.clearing.results", "{result}", "Results cleared, requested again.")
        self.memories = meter.create_counter("reverie.memories", "{memory}", "Memories recalled and used.")
        self.parents: dict[str, Any] = {}

    def start(self, name: str, attributes: JsonObject, *, conversation: str = "", client: bool = False) -> Any:
        """Starts a span below the running turn of the conversation. The caller ends it."""
        kind = self.trace.SpanKind.CLIENT if client else self.trace.SpanKind.INTERNAL
        parent = self.parents.get(conversation.partition("/")[0])
        return self.tracer.start_span(name, context=parent, kind=kind, attributes=attributes)

    def failed(self, span: Any, kind: str, why: str) -> None:
        span.set_attribute("error.type", kind)
        span.set_status(self.trace.Status(self.trace.StatusCode.ERROR, why))


@cache
def open_telemetry() -> Telemetry:
    """Returns the instruments of this process. Raises `MissingExtra` if OpenTelemetry is not installed."""
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # a collector that is down is not our output
    try:
        trace, metrics = import_module("opentelemetry.trace"), import_module("opentelemetry.metrics")
        tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
        if isinstance(tracers, trace.ProxyTracerProvider):
            tracers, meters = _own_providers()
    except ImportError as error:
        how = f"install it with: {pip_install('otel')}"
        raise MissingExtra(f"telemetry.otel is on, but OpenTelemetry is not installed; {how}") from error
    return Telemetry(tracers, meters)


def _own_providers() -> tuple[Any, Any]:
    """Providers that send to a collector. They send what is left when the process ends."""
    sdk, exporter = "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"
    resource = import_module(f"{sdk}.resources").Resource.create({"service.name": _NAME})
    tracers = import_module(f"{sdk}.trace").TracerProvider(resource=resource)
    spans = import_module(f"{exporter}.trace_exporter").OTLPSpanExporter()
    tracers.add_span_processor(import_module(f"{sdk}.trace.export").BatchSpanProcessor(spans))
    figures = import_module(f"{exporter}.metric_exporter").OTLPMetricExporter()
    reader = import_module(f"{sdk}.metrics.export").PeriodicExportingMetricReader(figures)
    return tracers, import_module(f"{sdk}.metrics").MeterProvider([reader], resource=resource)


class TracedModel:
    """A model whose requests are traced. Everything else is the model's own."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._telemetry = open_telemetry()
        self._provider = model.name.partition(":")[0]

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def close(self) -> None:
        await self._model.close()

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent, None]:
        about: JsonObject = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": model_id(request.model),
        }
        own = {"gen_ai.request.max_tokens": request.max_tokens, "reverie.purpose": request.purpose.value}
        own |= {"gen_ai.conversation.id": request.conversation, "reverie.thread": request.thread}
        span = self._telemetry.start(
            f"chat {model_id(request.model)}", about | own, conversation=request.conversation, client=True
        )
        began, error = time.monotonic(), ""
        stream = self._model.stream(request)
        try:
            async for event in stream:
                if isinstance(event, Finished):
                    self._finished(span, about, event.response)
                yield event
        except ReverieError as problem:
            error = type(problem).__name__
            self._telemetry.failed(span, error, str(problem))
            raise
        finally:
            if (close := getattr(stream, "aclose", None)) is not None:
                await close()
            failed = {"error.type": error} if error else {}
            self._telemetry.seconds.record(time.monotonic() - began, about | failed)
            span.end()

    def _finished(self, span: Any, about: JsonObject, response: Response) -> None:
        usage = response.usage
        span.set_attributes(
            {
                "gen_ai.response.id": response.id or "",
                "gen_ai.response.model": response.model,
                "gen_ai.response.finish_reasons": [response.stop_reason or ""],
                "gen_ai.usage.input_tokens": usage.prompt,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_input_tokens,
            }
        )
        about = {**about, "gen_ai.response.model": response.model}
        for kind, tokens in (("input", usage.prompt), ("output", usage.output_tokens)):
            self._telemetry.tokens.record(tokens, {**about, "gen_ai.token.type": kind})
