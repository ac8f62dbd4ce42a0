"""Bills a request body, in tokens and US dollars. The caller passes the time.

`bill` does everything at once. A server needs two steps, because an entry can be read only after its response began:
`open` reads and counts, `begin` writes and books.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from reverie.models.catalogue import ONE_MILLION, Catalogue, ModelFacts
from reverie.models.prices import cost, input_equivalents
from reverie.quick import dataclass
from reverie.simulator.cache import STEP, AutomaticCache, PromptCache, Split
from reverie.simulator.chat import too_long
from reverie.simulator.check import MAX_NAME, check_body, check_objects
from reverie.simulator.edits import Compact, EditedMessages, MessageView, apply_edits, views_of
from reverie.simulator.errors import invalid
from reverie.simulator.explain import (
    MOST_POSITIONS,
    Footprint,
    Footprints,
    Miss,
    RequestHistory,
    diagnose,
    unread_cause,
)
from reverie.simulator.ledger import Billing, Ledger
from reverie.simulator.prompt import Prompt, render
from reverie.simulator.tokens import Fingerprints, text_tokens
from reverie.types import Usage

_DIAGNOSED = 1_000
_WORKSPACES = 64
_FEW_CHARACTERS = 4_000_000
"""Text of blocks whose counts a meter remembers if it keeps no requests."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request. Entries are only shared within a workspace."""

    workspace: str = ""
    betas: tuple[str, ...] | None = None
    """Beta features of the request; None: they are not checked."""
    purpose: str = "main"


@dataclass(slots=True)
class _Step:
    """One run of the model: a prompt, and how it is read from the cache."""

    prompt: Prompt
    split: Split


@dataclass(slots=True)
class OpenRequest:
    """A request that is counted but not answered yet. Pass it to `Meter.begin`."""

    body: Mapping[str, Any]
    facts: ModelFacts
    caller: Caller
    started: float
    window: int
    step: _Step
    compaction: _Step | None
    summary: str | None
    compact: Compact | None
    applied: list[dict[str, Any]]
    automatic: bool = False
    """It is cached without markers, as in chat completions."""
    diagnosis: dict[str, Any] | None = None

    @property
    def usage(self) -> Usage:
        """The usage without the output."""
        return Usage() if self.paused else self.step.split.usage

    @property
    def paused(self) -> bool:
        """The server compacted and stops, so that the client can add to the summary."""
        return self.summary is not None and self.compact is not None and self.compact.pause

    @property
    def summary_usage(self) -> Usage | None:
        """The usage of the server's summary, if it wrote one."""
        if self.compaction is None or self.summary is None:
            return None
        return self.compaction.split.usage + Usage(output_tokens=text_tokens(self.summary))


class Meter:
    """The cache and the ledger of one simulated server."""

    def __init__(
        self,
        catalogue: Catalogue | None = None,
        *,
        window: int | None = None,
        ledger: Ledger | None = None,
        explains: bool = True,
    ) -> None:
        """`explains`: it keeps earlier requests, to say why one missed the cache."""
        self.catalogue = catalogue or Catalogue.load()
        self.ledger = ledger or Ledger()
        self.cache = PromptCache()
        self.automatic = AutomaticCache()
        self._window = window
        self._explains = explains
        self._seen = Fingerprints(None if explains else _FEW_CHARACTERS)
        self._histories: dict[str, RequestHistory] = {}
        self._diagnosed: Footprints[str] = Footprints(_DIAGNOSED)

    def bill(self, body: Mapping[str, Any], now: float, *, output_tokens: int = 0, workspace: str = "") -> Billing:
        """Bills a request as if it was answered at once. Raises `ApiError` if the API refuses it."""
        return self.begin(self.open(body, now, Caller(workspace)), output_tokens)

    def count(self, body: Mapping[str, Any], caller: Caller | None = None) -> tuple[int, int]:
        """Tokens of a prompt after context edits and before them, without a cache."""
        caller = caller or Caller()
        check_body(body, counting=True, betas=caller.betas)
        facts = self.catalogue.facts(str(body["model"]))
        original = render(body, views_of(_messages(body)), facts, self._seen, caller.workspace).total
        result = self._edit(body, facts, caller)
        return render(body, result.views, facts, self._seen, caller.workspace).total, original

    def open(self, body: Mapping[str, Any], now: float, caller: Caller | None = None) -> OpenRequest:
        """Checks and counts a request, and finds what the cache has of it. Changes nothing."""
        caller = caller or Caller()
        check_body(body, betas=caller.betas)
        facts = self.catalogue.facts(str(body["model"]))
        result = self._edit(body, facts, caller)
        prompt = render(body, result.views, facts, self._seen, caller.workspace, caller.betas or ())
        window = self._window_of(facts, caller)
        _check_window(body, prompt.total, window, facts)
        step = _Step(prompt, self.cache.read(prompt, facts.cache_minimum, now))
        opened = OpenRequest(body, facts, caller, now, window, step, None, None, result.compact, result.applied)
        if result.compact is not None and prompt.total >= result.compact.trigger:
            self._compact(opened, result)
        if body.get("diagnostics"):
            opened.diagnosis = self._diagnose(body, opened)
        return opened

    def open_chat(self, body: Mapping[str, Any], now: float, caller: Caller | None = None) -> OpenRequest:
        """The same for a chat request in the form of the Messages API, whose prefix is cached without markers."""
        caller = caller or Caller()
        facts = self.catalogue.facts(str(body["model"]))
        # On this wire the choice of a tool is not part of the prompt.
        shown = {**body, "tool_choice": None}
        prompt = render(shown, views_of(_messages(body)), facts, self._seen, f"chat/{caller.workspace}")
        window = self._window_of(facts, caller)
        if prompt.total > window:
            raise too_long(prompt.total, window)
        step = _Step(prompt, self.automatic.read(prompt, facts.cache_minimum, now))
        return OpenRequest(body, facts, caller, now, window, step, None, None, None, [], automatic=True)

    def begin(
        self, opened: OpenRequest, output_tokens: int, *, message_id: str | None = None, endpoint: str = "/v1/messages"
    ) -> Billing:
        """Writes the entries and books the request, when the response begins."""
        facts, caller = opened.facts, opened.caller
        history = self._history(f"{endpoint} {caller.workspace}")
        written: list[str] = []
        miss: Miss | None = None
        for step in (opened.compaction, opened.step):
            if step is None or (step is opened.step and opened.paused):
                continue
            if self._explains:
                miss = miss or self._miss(history, opened, step)
            cached = step.split.until_5m
            if opened.automatic:
                self.automatic.use(step.prompt, opened.started)
                cached = len(step.prompt.chain) - 1 if step.prompt.total >= facts.cache_minimum else -1
            else:
                places = self.cache.use(step.prompt, step.split, facts.cache_minimum, opened.started)
                written.extend(step.prompt.path(place) for place in places)
            if self._explains:
                history.add(Footprint(self._next(), step.prompt, cached))
        usage = opened.usage + Usage(output_tokens=output_tokens)
        summary = opened.summary_usage
        spent = [usage] if summary is None else [usage, summary]
        hit = opened.step.split.hit
        billing = Billing(
            number=self._next(),
            at=opened.started,
            endpoint=endpoint,
            model=str(opened.body["model"]),
            workspace=caller.workspace,
            purpose=caller.purpose,
            usage=usage,
            cost=sum(cost(each, facts) for each in spent),
            input_equivalents=sum(input_equivalents(each, facts) for each in spent),
            positions=len(opened.step.prompt.chain),
            hit=opened.step.prompt.path(hit) if hit >= 0 else None,
            written=tuple(written),
            miss=miss,
            compaction=summary,
            applied_edits=tuple(opened.applied),
            message_id=message_id,
        )
        self.ledger.book(billing)
        if message_id is not None and "diagnostics" in opened.body:
            footprint = Footprint(billing.number, opened.step.prompt, opened.step.split.until_5m)
            self._diagnosed.put(message_id, footprint)
        return billing

    def refuse(
        self, body: Mapping[str, Any], now: float, error: str, caller: Caller, endpoint: str = "/v1/messages"
    ) -> None:
        """Books a request that got an error, without a cost."""
        model = str(body.get("model", ""))[:MAX_NAME]
        who = (caller.workspace, caller.purpose)
        self.ledger.book(Billing(self._next(), now, endpoint, model, *who, Usage(), 0.0, 0.0, error=error))

    def _miss(self, history: RequestHistory, opened: OpenRequest, step: _Step) -> Miss | None:
        def cause(best: Footprint) -> str:
            return unread_cause(best, step.prompt, opened.facts, self.cache, opened.started)

        def age(best: Footprint) -> str:
            kept = self.automatic.is_alive(best.prompt.chain[best.cached], opened.started)
            return "lookback" if kept else "expired"

        if opened.automatic:
            return history.miss(step.prompt, step.split, opened.facts, age, slack=STEP)
        return history.miss(step.prompt, step.split, opened.facts, cause)

    def _next(self) -> int:
        return len(self.ledger.rows) + 1

    def _edit(self, body: Mapping[str, Any], facts: ModelFacts, caller: Caller) -> EditedMessages:
        management = cast("Mapping[str, Any] | None", body.get("context_management"))
        if management and caller.betas is not None:
            _check_betas(management, caller.betas)
        views = views_of(_messages(body))

        def total() -> int:
            return render(body, views, facts, self._seen, caller.workspace).total

        result = apply_edits(views, management, keeps_thinking=facts.keeps_thinking, count=total)
        if body.get("compaction"):
            result.compact = Compact(0, True, cast("Mapping[str, Any]", body["compaction"]).get("instructions"))
        return result

    def _compact(self, opened: OpenRequest, result: EditedMessages) -> None:
        messages, prompt = len(result.views), opened.step.prompt
        conversation = prompt.total - (prompt.tokens[prompt.messages_start - 1] if prompt.messages_start else 0)
        opened.summary = f"Summary of {messages} messages ({conversation} tokens) up to this point."
        opened.compaction = opened.step
        block = {"type": "compaction", "content": opened.summary}
        view = MessageView(len(_messages(opened.body)), "assistant", (block,), "compaction")
        body = {**opened.body, "cache_edits": None}
        caller = opened.caller
        rest = render(body, [view], opened.facts, self._seen, caller.workspace, caller.betas or ())
        opened.step = _Step(rest, self.cache.read(rest, opened.facts.cache_minimum, opened.started))

    def _window_of(self, facts: ModelFacts, caller: Caller) -> int:
        if self._window is not None:
            return self._window
        asked = any(beta.startswith("context-1m-") for beta in caller.betas or ())
        return ONE_MILLION if asked and facts.window_1m == "beta" else facts.window

    def _diagnose(self, body: Mapping[str, Any], opened: OpenRequest) -> dict[str, Any] | None:
        previous = cast("Mapping[str, Any]", body["diagnostics"]).get("previous_message_id")
        if previous is None:
            return None
        known = self._diagnosed.get(str(previous))
        if known is None:
            return {"cache_miss_reason": {"type": "previous_message_not_found"}}
        reason = diagnose(known, opened.step.prompt)
        return None if reason is None else {"cache_miss_reason": reason}

    def _history(self, name: str) -> RequestHistory:
        """The requests of one workspace and endpoint; forgets the workspaces that were used longest ago."""
        history = self._histories[name] = self._histories.pop(name, None) or RequestHistory()
        while len(self._histories) > _WORKSPACES or (
            len(self._histories) > 1 and sum(each.positions for each in self._histories.values()) > 2 * MOST_POSITIONS
        ):
            del self._histories[next(iter(self._histories))]
        return history


def _messages(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return cast("list[Mapping[str, Any]]", body["messages"])


def _check_betas(management: Mapping[str, Any], betas: tuple[str, ...]) -> None:
    edits = check_objects(management.get("edits"), "context_management.edits")
    kinds = {"compact-" if edit.get("type") == "compact_20260112" else "context-management-" for edit in edits}
    for kind in kinds or {"context-management-"}:
        if not any(beta.startswith(kind) for beta in betas):
            raise invalid("context_management: Extra inputs are not permitted")


def _check_window(body: Mapping[str, Any], tokens: int, window: int, facts: ModelFacts) -> None:
    limit = cast("int", body["max_tokens"])
    if facts.known and limit > facts.max_output:
        raise invalid(
            f"max_tokens: {limit} > {facts.max_output}, which is the maximum allowed number of output tokens for "
            f"{body['model']}"
        )
    if tokens > window:
        raise invalid(f"prompt is too long: {tokens} tokens > {window} maximum")
    if facts.overflow == "error" and tokens + limit > window:
        raise invalid(
            f"input length and `max_tokens` exceed context limit: {tokens} + {limit} > {window}, decrease input length "
            "or `max_tokens` and try again"
        )
