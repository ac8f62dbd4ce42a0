"""Replays a recorded session under a policy: the real pipeline decides, the simulator bills, the recording answers.

Each request is prepared as in a session, at its recorded time. If the answer used content that the policy had removed
(see `uses.py`), the policy pays for it again: the calls are repeated in an extra round before the answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import field, fields, replace
from datetime import datetime

from reverie.context.conversation import Around, Conversation
from reverie.context.pipeline import Pipeline
from reverie.context.request import assemble
from reverie.lab.recordings import SilentModel
from reverie.lab.replay.compaction import DRAFT_TOKENS, ReplayDisk, ReplayNotes, answer, summary_tokens
from reverie.lab.replay.outside import outside_edits
from reverie.lab.replay.policies import Policy
from reverie.lab.replay.recorded import FOLDER, NEVER_FULL, PREFIX_TOKENS, WINDOW, RecordedSession, ReplaySetting
from reverie.lab.replay.uses import Need
from reverie.layers.base import AskFork, Effect, EffectResult
from reverie.layers.l1_tool_results.replacement import ResultLimits, judge
from reverie.layers.l4_compaction.stage import AutoCompact
from reverie.models import wire
from reverie.models.base import Request
from reverie.models.prices import input_equivalents
from reverie.models.window import REFERENCE_WINDOW, scaled
from reverie.moments import to_datetime
from reverie.quick import dataclass
from reverie.settings.sections import ToolSettings
from reverie.simulator import Billing, Meter
from reverie.simulator.tokens import block_tokens
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Block, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock, Usage

_MAX_TOKENS = 8_000
PAGE = 16_000
"""Characters of one read from a result on disk, about 400 lines."""
NOT_A_BREAK = ("expired", "thinking_stripped", "images")
"""Misses that no policy causes: time, a rule of the model, the first image of a conversation."""


@dataclass(slots=True)
class PolicyOutcome:
    """The cost of a policy for one session, in tokens of fresh input and in US dollars."""

    policy: str
    cost: float = 0.0
    dollars: float = 0.0
    usage: Usage = field(default_factory=Usage)
    requests: int = 0
    announced_breaks: int = 0
    unannounced_breaks: int = 0
    regret: float = 0.0
    """The part of the cost for reading content again."""
    read_back: int = 0
    cleared: int = 0
    cleared_tokens: int = 0
    over_window: int = 0
    """Requests that are too large for the window."""
    compactions: int = 0
    without_model: int = 0
    """Compactions without a model."""
    stopped: bool = False
    """A breaker ended auto-compaction."""
    notes_updates: int = 0
    notes_cost: float = 0.0
    """The part of the cost for notes."""
    by_round: list[float] = field(default_factory=list[float])
    """The cost after each recorded round."""
    breaks: list[str] = field(default_factory=list[str])
    """The causes and places of unannounced breaks."""

    @classmethod
    def sum(cls, outcomes: Iterable[PolicyOutcome]) -> PolicyOutcome:
        """The cost of several sessions."""
        whole = cls("all")
        for each in outcomes:
            for name in (one.name for one in fields(cls) if one.name != "policy"):
                setattr(whole, name, getattr(whole, name) + getattr(each, name))
        return whole

    @property
    def read_share(self) -> float:
        return self.usage.cache_read_input_tokens / self.usage.prompt if self.usage.prompt else 0.0

    def figures(self, baseline: float) -> dict[str, float]:
        """The figures for programs; `baseline` is the cost of `cached`."""
        return {
            "cost": round(self.cost),
            "cost_usd": self.dollars,
            "ratio_to_cached": self.cost / baseline,
            "cache_read_share": self.read_share,
            "announced_breaks": self.announced_breaks,
            "unannounced_breaks": self.unannounced_breaks,
            "regret": round(self.regret),
            "read_back": self.read_back,
            "cleared_results": self.cleared,
            "cleared_tokens": self.cleared_tokens,
            "requests": self.requests,
            "over_window": self.over_window,
            "compactions": self.compactions,
            "compactions_without_model": self.without_model,
            "stopped_by_breaker": int(self.stopped),
            "notes_updates": self.notes_updates,
            "notes_cost": round(self.notes_cost),
            "ratio_to_cached_with_notes": self.cost / baseline,
        }


def replay(
    session: RecordedSession,
    needs: Sequence[Sequence[Need]],
    policy: Policy,
    *,
    prefix_tokens: int = PREFIX_TOKENS,
    window: int = WINDOW,
) -> PolicyOutcome:
    """Replays one session under one policy."""
    return asyncio.run(Replay(session, policy, prefix_tokens, policy.window or window).run(needs))


class Replay:
    """One session under one policy."""

    def __init__(self, session: RecordedSession, policy: Policy, prefix_tokens: int, window: int = WINDOW) -> None:
        self._session = session
        self._policy = policy
        self._setting = ReplaySetting.of(session.model, prefix_tokens, window)
        self._meter = Meter(window=NEVER_FULL)
        self._outside = outside_edits(policy.outside)
        self._at = 0.0
        self._log = SessionLog(None, session.name, cwd=FOLDER, version="lab", clock=self._now)
        self._log.append(self._setting.header)
        stages = policy.stages.of(self._setting, policy.capabilities)
        self._conversation = Conversation(
            log=self._log,
            model=SilentModel(self._setting.header.model, policy.capabilities),
            thresholds=self._setting.limits,
            emit=lambda _event: None,
            pipeline=Pipeline(stages, on_failure=_reraise),
            around=Around(carry_out=self._carry_out),
            clock=self._now,
        )
        self._results: dict[str, ToolResultBlock] = {}
        self._calls: dict[str, ToolUseBlock] = {}
        self._previews: dict[str, str] = {}
        self._cut: dict[str, str] = {}
        self._copies: dict[str, list[str]] = {}
        self._counted: set[str] = set()
        self._limits = ResultLimits().for_window(window)
        self._disk = ReplayDisk()
        cadence = policy.stages.when_full
        is_kept = cadence in ("notes", "economic")
        self._notes = ReplayNotes(self._setting, is_economic=cadence == "economic") if is_kept else None
        self._forks = set[int]()
        self._asked = False
        self._restored = (0, "")
        self._out = PolicyOutcome(policy.name)

    def _now(self) -> datetime:
        return to_datetime(self._at)

    async def run(self, needs: Sequence[Sequence[Need]]) -> PolicyOutcome:
        for number, (each, needed) in enumerate(zip(self._session.rounds, needs, strict=True)):
            self._at = each.at
            for message in each.entered:
                self._enter(message)
            await self._round(f"r{number}", each.response, needed)
            if not each.response.tool_uses:
                self._take_notes()
            self._out.by_round.append(self._out.cost)
        full = self._conversation.pipeline.stages.get("autocompact")
        self._out.stopped = isinstance(full, AutoCompact) and full.compaction.breakers.open_reason is not None
        return self._out

    async def _round(self, name: str, response: Message, needed: Sequence[Need]) -> None:
        request, extra = await self._prepare(), 0.0
        for number, (call, used) in enumerate(self._missing(needed).items()):
            if number and self._in_view(call, used):
                continue  # an earlier read has brought it too
            asked = self._read_back(f"{name}-again-{number}", call, used, request)
            extra += self._output_cost(asked) + (self._input_cost(asked) if number else 0.0)
            request = await self._prepare()
        billing = self._bill(request, _tokens(response.content))
        self._out.regret += extra + self._input_cost(billing) if extra else 0.0
        self._take_notes()  # when the answer has begun
        self._respond(name, response.content, billing)

    async def _prepare(self) -> Request:
        before, self._asked = self._log.view.boundaries, False
        request = await self._conversation.prepare(_MAX_TOKENS)
        self._conversation.went_out(request)
        if self._log.view.boundaries > before:
            self._out.compactions += 1
            self._out.without_model += not self._asked
        return request

    def _enter(self, message: Message) -> None:
        blocks = tuple(
            self._keep_result(block) if isinstance(block, ToolResultBlock) else block for block in message.content
        )
        self._log.append_message(replace(message, content=blocks, plain=False))

    def _keep_result(self, block: ToolResultBlock) -> ToolResultBlock:
        call = block.tool_use_id
        self._results[call] = block
        if call in self._calls:
            self._disk.record(self._calls[call], block)
            block = self._limit_read(self._calls[call], block)
        if not self._policy.stages.layer1 or call not in self._calls:
            return block
        judged = judge(self._calls[call].name, call, block.content or "", self._limits, FOLDER)
        if judged.write is None:
            return block
        self._previews[call] = str(judged.shown)
        return replace(block, content=judged.shown)

    def _limit_read(self, call: ToolUseBlock, block: ToolResultBlock) -> ToolResultBlock:
        shown = limit_read(call, block, self._setting.limits.window)
        if shown is not block:
            self._cut[call.id] = shown.text
        return shown

    def _respond(self, name: str, blocks: tuple[Block, ...], billing: Billing) -> None:
        self._calls |= {block.id: block for block in blocks if isinstance(block, ToolUseBlock)}
        fields = {"id": f"msg_{name}", "model": self._session.model, "usage": billing.usage.wire()}
        self._log.append_message(Message("assistant", blocks, fields=fields))

    async def _carry_out(self, effect: Effect) -> EffectResult:
        view, tokens = self._log.view, summary_tokens(self._setting.limits.window)
        alone = self._policy.stages.when_full == "plain"
        if isinstance(effect, AskFork):
            self._asked = True
            self._bill(self._fork_request(effect.directive, effect), tokens + (0 if alone else DRAFT_TOKENS))
        return answer(effect, view, self._disk, self._notes, summary_tokens=tokens, alone=alone)

    def _fork_request(self, directive: str, effect: AskFork | None = None) -> Request:
        """The request of a fork: the conversation, or what the effect shows of it, with a directive."""
        header, messages = self._setting.header, self._log.view.messages()
        if effect is not None and effect.messages is not None:
            messages = effect.messages
        if effect is not None and effect.system is not None:
            header = replace(header, system=(effect.system,))
        *before, last = messages
        text = TextBlock(directive, Origin.CODE)
        asked = replace(last, content=(*last.content, text))
        return assemble(
            header,
            (*before, asked) if last.role == "user" else (*messages, Message("user", (text,))),
            max_tokens=_MAX_TOKENS,
            capabilities=self._policy.capabilities,
            announced_break="it shares no prefix" if effect is not None and effect.messages is not None else None,
            reused=False,
            sent=self._conversation.sent,
            own_from=len(messages) - 1,
        )

    def _take_notes(self) -> None:
        """Updates the notes if the policy has layer 3 and they are due; a fork makes all edits in one response."""
        notes = self._notes
        if notes is None or not notes.is_due(self._log.view):
            return
        request = self._fork_request(notes.directive())
        billing = self._meter.bill(wire.body(request), self._at, output_tokens=notes.update_tokens)
        self._forks.add(billing.number)
        self._out.cost += billing.input_equivalents
        self._out.dollars += billing.cost
        self._out.notes_cost += billing.input_equivalents
        self._out.notes_updates += 1
        notes.update(self._log)

    def _bill(self, request: Request, output_tokens: int) -> Billing:
        body = self._outside.edit(wire.body(request), request.messages)
        billing = self._meter.bill(body, self._at, output_tokens=output_tokens)
        self._outside.read_billing(body, billing)
        out = self._out
        out.requests += 1
        out.cost += billing.input_equivalents
        out.dollars += billing.cost
        out.usage += billing.usage
        out.over_window += billing.usage.prompt > self._setting.limits.window
        miss = billing.miss
        if miss is not None and miss.cause not in NOT_A_BREAK:
            if request.announced_break is not None or miss.cause == "context_management":
                out.announced_breaks += 1
            elif miss.against not in self._forks:  # the conversation cannot read the end of a fork
                out.unannounced_breaks += 1
                out.breaks.append(f"{miss.cause} at {miss.path}")
        self._count_cleared()
        return billing

    def _count_cleared(self) -> None:
        view = self._log.view
        gone = (
            view.cleared.keys() | view.replaced.keys() | view.cache_edits.keys() | self._outside.gone
        ) - self._counted
        gone |= self._previews.keys() - self._counted
        self._counted |= gone
        self._out.cleared += len(gone)
        self._out.cleared_tokens += sum(
            block_tokens(self._results[call].wire()) for call in gone if call in self._results
        )

    def _missing(self, needed: Sequence[Need]) -> dict[str, str]:
        """The results that this answer used and that are not in view: the newest source of each need, with the text."""
        found = dict[str, str]()
        for need in needed:
            if need.text not in self._restored_text() and not any(self._in_view(c, need.text) for c in need.sources):
                found.setdefault(need.sources[-1], need.text)
        return found

    def _restored_text(self) -> str:
        view = self._log.view
        if self._restored[0] != view.boundaries:
            texts = [entry.message.text for entry in view.entries if entry.brought]
            self._restored = (view.boundaries, "\n".join(texts))
        return self._restored[1]

    def _in_view(self, call: str, text: str) -> bool:
        view = self._log.view
        for each in (call, *self._copies.get(call, ())):
            if each in view.cleared or each in view.cache_edits or each in self._outside.gone:
                continue
            if view.call_name(each) is None:
                continue  # it was summarised, or never in the conversation
            shown = self._previews.get(each, view.replaced.get(each, self._cut.get(each)))
            if shown is None or text in shown:
                return True
        return False

    def _read_back(self, name: str, call: str, used: str, request: Request) -> Billing:
        """Repeats a call in a round of its own. Of a result on disk, only a page around the used text is read."""
        copies = self._copies.setdefault(call, [])
        again, before, result = f"{call}-again-{len(copies) + 1}", self._calls[call], self._results[call]
        copies.append(again)
        if call in self._previews or call in self._cut:
            start = max(0, result.text.find(used) - PAGE // 2)
            page = self._cut[again] = result.text[start : start + PAGE]
            before = ToolUseBlock(again, "Read", {"file_path": str(FOLDER / f"{call}.txt"), "offset": start})
            result = replace(result, content=page)
        asked = replace(before, id=again)
        billing = self._bill(request, _tokens([asked]))
        self._out.read_back += 1
        self._respond(name, (asked,), billing)
        self._enter(Message("user", (replace(result, tool_use_id=again),)))
        return billing

    def _output_cost(self, billing: Billing) -> float:
        return input_equivalents(Usage(output_tokens=billing.usage.output_tokens), self._setting.facts)

    def _input_cost(self, billing: Billing) -> float:
        return billing.input_equivalents - self._output_cost(billing)


def limit_read(call: ToolUseBlock, block: ToolResultBlock, window: int) -> ToolResultBlock:
    """Cuts a result of Read in a small window, where its limits are smaller too."""
    if call.name != "Read" or window >= REFERENCE_WINDOW or not isinstance(block.content, str):
        return block
    lines = block.content.splitlines(keepends=True)[: scaled(ToolSettings().read_lines, window)]
    shown = "".join(lines)[: scaled(ToolSettings().read_bytes, window)]
    return block if len(shown) == len(block.content) else replace(block, content=shown)


def _tokens(blocks: Sequence[Block]) -> int:
    return sum(block_tokens(block.wire()) for block in blocks)


def _reraise(name: str, error: Exception) -> None:
    raise error
