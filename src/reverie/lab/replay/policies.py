"""The policies of a replay: ours, and those of others.

A policy is the stages of the real pipeline, the capabilities of its endpoint, and changes of a request before it is
sent. Those of others are real (LangChain's middleware, the edits of the server) or the simplest form of an idea.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Literal
from uuid import uuid4

from reverie.errors import UserError
from reverie.lab.replay.compaction import auto_compact, summary_tokens
from reverie.lab.replay.recorded import FOLDER, ReplaySetting
from reverie.layers import base
from reverie.layers.l1_tool_results.message_budget import MessageBudget
from reverie.layers.l1_tool_results.replacement import ResultLimits
from reverie.layers.l2_microcompact.economic import Outlook, Rates, outlook
from reverie.layers.l2_microcompact.results import ResultIndex
from reverie.layers.l2_microcompact.stage import ECONOMIC, SERVER, TIME, Microcompact
from reverie.models.base import Capabilities
from reverie.paths.installed import pip_install
from reverie.quick import dataclass
from reverie.storage.transcript.records import CompactBoundary
from reverie.storage.transcript.view import View
from reverie.types import Message, Origin, Purpose, TextBlock

CACHED = Capabilities(cache_markers=True, ttls=("5m", "1h"))


Foresight = Callable[[ResultIndex, int, Rates], Outlook]
WhenFull = Literal["nothing", "plain", "summary", "notes", "economic"]
"""The action at the threshold: nothing, a plain summary, layer 4 alone, or layers 3 and 4 with notes of a cadence."""


class Stages:
    """Makes the stages of a policy for one session."""

    def __init__(
        self, *ways: str, layer1: bool = False, when_full: WhenFull = "nothing", foresight: Foresight = outlook
    ) -> None:
        self.ways, self.layer1, self.foresight = frozenset(ways), layer1, foresight
        self.when_full: WhenFull = when_full

    def of(self, setting: ReplaySetting, capabilities: Capabilities) -> dict[str, base.Stage | base.SteppedStage]:
        made = dict[str, base.Stage | base.SteppedStage]()
        if self.layer1:
            made["tool_result_budget"] = MessageBudget(FOLDER, lambda: ResultLimits().for_window(setting.limits.window))
        if self.ways:
            made["microcompact"] = Microcompact(
                setting.facts,
                capabilities,
                warning_at=setting.limits.warning,
                is_on=self.ways.__contains__,
                folder=FOLDER,
                outlook=self.foresight,
            )
        if self.when_full == "plain":
            made["autocompact"] = Summarise()
        elif self.when_full != "nothing":
            made["autocompact"] = auto_compact(setting, self.when_full)
        return made


@dataclass(frozen=True, slots=True)
class Policy:
    """`outside`: changes of its requests before they are sent (see `outside.py`). `window`: its own one."""

    name: str
    what: str
    stages: Stages = field(default_factory=Stages)
    capabilities: Capabilities = CACHED
    outside: str | None = None
    window: int | None = None


class Summarise:
    """At the threshold everything except for the last round becomes a summary, whose request is paid."""

    flag = ""

    def plan(self, view: View, now: base.Now) -> Sequence[base.Effect] | None:
        if now.used <= now.autocompact_at or not any(e.message.role == "assistant" for e in view.entries):
            return None
        return (base.AskFork(Purpose.COMPACTION, "Summarise this conversation.", summary_tokens(now.window)),)

    def commit(self, view: View, now: base.Now, results: Sequence[base.EffectResult]) -> base.StageCommit:
        last = max(i for i, entry in enumerate(view.entries) if entry.message.role == "assistant")
        kept, anchor = view.entries[last:], str(uuid4())
        names = [entry.uuid or "" for entry in (kept[0], kept[-1])]
        boundary = CompactBoundary("auto", now.used, kept[-1].uuid, (names[0], anchor, names[1]))
        summary = Message("user", (TextBlock(results[0].text, Origin.SUMMARY),))
        said = base.Append(summary, {"uuid": anchor, "isCompactSummary": True})
        return base.StageCommit(
            appends=(base.Append(boundary), said),
            breaks=base.Break(base.BreakCause.COMPACTED, "the conversation was summarised"),
        )


_OURS = Stages(TIME, ECONOMIC, layer1=True, when_full="economic")
_ALL = (
    Policy("resend", "everything is sent again, nothing is cached", capabilities=Capabilities()),
    Policy("cached", "everything is cached, nothing is cleared, the window has no end"),
    Policy("summarise", "at the threshold the history becomes a summary", Stages(when_full="plain")),
    Policy("langchain", "LangChain's ContextEditingMiddleware with its defaults", outside="langchain"),
    Policy(
        "server",
        "the server clears by itself (context_management)",
        Stages(SERVER),
        Capabilities(cache_markers=True, ttls=("5m", "1h"), context_edits=True),
        outside="server",
    ),
    Policy("time", "layer 2 without the economic rule: after an hour's pause only", Stages(TIME)),
    Policy("economic", "layer 2 with its defaults: when it pays, and after an hour's pause", Stages(TIME, ECONOMIC)),
    Policy("summary", "layer 4 alone: a summary with the facts next to it", Stages(when_full="summary")),
    Policy("notes", "layers 3 and 4: notes (notes.cadence reference) replace the old part", Stages(when_full="notes")),
    Policy("reverie", "layers 1 to 4 with their defaults", _OURS),
    Policy("reverie-1m", "the same in a window of a million tokens", _OURS, window=1_000_000),
)
POLICIES: Mapping[str, Policy] = {policy.name: policy for policy in _ALL}
OURS = "reverie"
BASELINE = "cached"
OTHERS = frozenset({"resend", "cached", "summarise", "langchain", "server"})
"""Policies that are not part of ours."""


def choose_policies(names: Sequence[str]) -> list[Policy]:
    """The named policies and `cached`, to which all are compared; all that are installed if there are no names."""
    unknown = [name for name in names if name not in POLICIES]
    if unknown:
        raise UserError(f"There is no policy {unknown[0]!r}; there are {', '.join(POLICIES)}.")
    is_installed = importlib.util.find_spec("langchain") is not None
    if "langchain" in names and not is_installed:
        raise UserError(f"The policy langchain needs LangChain: install it with `{pip_install('lab')}`.")
    wanted = [policy for policy in _ALL if not names or policy.name in (*names, BASELINE)]
    return [policy for policy in wanted if policy.outside != "langchain" or is_installed]
