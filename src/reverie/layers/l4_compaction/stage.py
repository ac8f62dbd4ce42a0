"""The steps of a compaction: hooks, the cheapest writer that can, the working set, then one block of records.

The pipeline's stages (before a request that is too full, after a prompt that was too long) and a compaction by hand all
take these steps. They are driven from outside; nothing here reads a file, asks a model or waits.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from reverie.layers.base import Effect, EffectResult, Now, RunHook, StageCommit, Steps
from reverie.layers.l4_compaction.compose import CompactionScope, SummaryText, find_summary
from reverie.layers.l4_compaction.draft import Draft
from reverie.layers.l4_compaction.partial import scope_from, scope_up_to, scope_whole
from reverie.layers.l4_compaction.requests import requests_in
from reverie.layers.l4_compaction.restore import restore_blocks, working_set
from reverie.layers.l4_compaction.setup import CompactionNumbers, CompactionRequest, CompactionSetup
from reverie.layers.l4_compaction.writers import Writers
from reverie.quick import dataclass
from reverie.storage.transcript.records import BreakerState, LayerFailure, from_record
from reverie.storage.transcript.view import View
from reverie.types import Purpose, Record

MAY_COMPACT = frozenset({Purpose.MAIN, Purpose.AGENT})
"""The main thread, fork children and sub-agents. A fork that serves a layer would wait for itself."""

_LAYER = "compaction"

_SHARES = (1.0, 0.5, 0.25, 0.1)
"""Shares of their budgets that the parts may use; less is tried when the result would not fit."""
_RESTORED = (1.0, 0.5, 0.25)
"""The same for files that come back. They are shortened first."""


def may_compact(purpose: Purpose) -> bool:
    """Returns whether a conversation for this purpose may be compacted automatically."""
    return purpose in MAY_COMPACT


@dataclass(slots=True)
class Breakers:
    """Stops auto-compaction of a session when summaries keep failing, or the context is full again at once.

    `open_reason` is why it has stopped, None while it runs. A compaction by hand always works.
    """

    failures: int = 0
    refills: int = 0
    last_at: tuple[int, int] | None = None
    open_reason: str | None = None

    @classmethod
    def of(cls, records: Sequence[Record]) -> Breakers:
        """Returns the breakers of a session as its records left them, so that a resume does not close them."""
        for record in reversed(records):
            if record.subtype == BreakerState.subtype and isinstance(found := from_record(record), BreakerState):
                last = (found.turns, found.rounds) if found.compacted else None
                return cls(found.failures, found.refills, last, found.open_reason or None)
        return cls()

    def state(self) -> BreakerState:
        """Returns the form for the transcript."""
        turns, rounds = self.last_at or (0, 0)
        return BreakerState(
            self.failures, self.refills, turns, rounds, self.last_at is not None, self.open_reason or ""
        )

    def failed(self, why: str, numbers: CompactionNumbers) -> str | None:
        """Counts that no model could write a summary. Returns a notice if that opens the breaker."""
        self.failures += 1
        if self.failures < numbers.failures:
            return None
        return self._open(
            f"no model wrote a usable summary {self.failures} times in a row (last: {why}). /compact still works"
        )

    def succeeded(self) -> None:
        """Starts counting failures again after a summary, by hand too: a breaker that they opened closes."""
        if self.failures and not self.refills:
            self.open_reason = None
        self.failures = 0

    def compacted(self, turns: int, rounds: int, numbers: CompactionNumbers) -> str | None:
        """Counts an automatic compaction. Returns a notice if the context was full again at once too often."""
        before, self.last_at = self.last_at, (turns, rounds)
        at_once = (
            before is not None
            and turns - before[0] <= numbers.refill_turns
            and rounds - before[1] <= numbers.refill_rounds
        )
        self.refills = self.refills + 1 if at_once else 0
        if self.refills < numbers.refill_times:
            return None
        return self._open(
            f"{self.refills} times in a row the context was full again within {numbers.refill_turns} turns. Ask for "
            "less at a time, or begin with /clear; /compact still works"
        )

    def _open(self, why: str) -> str | None:
        if self.open_reason is not None:
            return None
        self.open_reason = f"auto-compaction has stopped for this session: {why}"
        return self.open_reason


class Compaction:
    """The compaction of one conversation."""

    def __init__(self, ground: CompactionSetup, breakers: Breakers | None = None) -> None:
        self.ground = ground
        self.breakers = breakers or Breakers()
        self._refused: str | None = None

    def steps(self, view: View, now: Now, wanted: CompactionRequest) -> Steps:
        """The steps of one compaction. It has no appends if a hook refused it or nothing would be gained."""
        before = self.breakers.state()
        commit = yield from self._steps(view, now, wanted)
        if commit.appends:
            payload = {"trigger": wanted.trigger, "compact_summary": find_summary(commit.appends)}
            yield [RunHook("PostCompact", payload, match_on=wanted.trigger)]
        after = self.breakers.state()
        return commit if after == before else replace(commit, payloads=(*commit.payloads, after))

    def _steps(self, view: View, now: Now, wanted: CompactionRequest) -> Steps:
        numbers = self.ground.numbers()
        payload = {"trigger": wanted.trigger, "custom_instructions": wanted.instructions}
        (asked,) = yield [RunHook("PreCompact", payload, match_on=wanted.trigger)]
        if not asked.ok:
            return self._refusal(asked.text)
        self._refused = None
        given = "\n\n".join(filter(str.strip, (wanted.instructions, asked.text)))
        writers = Writers(self.ground, view, now)
        scope = self._scope(view, wanted, numbers)
        found = None
        if scope.extent == "whole" and not given:
            found = yield from writers.from_notes(wanted.trigger)
        if found is not None:
            trial = yield from self._commit(view, now, wanted, *found)
            if isinstance(trial, StageCommit):
                self.breakers.succeeded()
                return self._count_compaction(view, wanted, trial, numbers)
        instructions = "\n\n".join(filter(str.strip, (given, self.ground.instructions(view))))
        prose = yield from writers.summary(scope, instructions, reactive=wanted.reactive)
        if prose is None:
            return self._not_done("a summary would be larger than what it replaces", wanted, numbers)
        commit = yield from self._commit(view, now, wanted, scope, prose)
        if isinstance(commit, str):
            return self._not_done(commit, wanted, numbers)
        told = self._count_failures(prose, wanted, numbers)
        failed = tuple(LayerFailure(_LAYER, f"no model wrote the summary: {why}") for why in prose.failures[-1:])
        commit = replace(commit, payloads=(*commit.payloads, *failed))
        return self._count_compaction(view, wanted, _add_notice(commit, told), numbers)

    def may_run(self) -> bool:
        """Returns whether auto-compaction is on and no breaker has stopped it."""
        return self.ground.auto_on() and self.breakers.open_reason is None

    def _refusal(self, reason: str) -> StageCommit:
        """A hook runs before every request, so only a new refusal gets a notice."""
        told = None if reason == self._refused else f"a PreCompact hook refused the compaction: {reason}"
        self._refused = reason
        return StageCommit(notice=told)

    def _scope(self, view: View, wanted: CompactionRequest, numbers: CompactionNumbers) -> CompactionScope:
        if wanted.from_ is not None:
            return scope_from(view, wanted.from_)
        if wanted.up_to is not None:
            return scope_up_to(view, wanted.up_to)
        return scope_whole(view, numbers.last_message_tokens)

    def _count_failures(self, prose: SummaryText, wanted: CompactionRequest, numbers: CompactionNumbers) -> str | None:
        if prose.failures:
            return self._failed(prose.failures[-1], wanted, numbers)
        self.breakers.succeeded()
        return None

    def _failed(self, why: str, wanted: CompactionRequest, numbers: CompactionNumbers) -> str | None:
        return self.breakers.failed(why, numbers) if wanted.trigger == "auto" else None

    def _not_done(self, why: str, wanted: CompactionRequest, numbers: CompactionNumbers) -> StageCommit:
        told = self._failed(why, wanted, numbers)
        notice = "; ".join(filter(None, (f"the conversation was not compacted: {why}", told)))
        return StageCommit((LayerFailure(_LAYER, f"not compacted: {why}"),), notice=notice)

    def _count_compaction(
        self, view: View, wanted: CompactionRequest, commit: StageCommit, numbers: CompactionNumbers
    ) -> StageCommit:
        if wanted.trigger == "manual" or not commit.appends:
            return commit
        return _add_notice(commit, self.breakers.compacted(len(requests_in(view.history)), view.rounds, numbers))

    def _commit(
        self, view: View, now: Now, wanted: CompactionRequest, scope: CompactionScope, prose: SummaryText
    ) -> Generator[Sequence[Effect], Sequence[EffectResult], StageCommit | str]:
        """Returns the records, as large as fits below the threshold; if nothing fits, the reason."""
        ground, numbers = self.ground, self.ground.numbers()
        draft = Draft(ground, view, now, wanted, scope, prose)
        if prose.writer == "notes" and draft.made((), "", frozenset(), numbers) is None:
            return "the notes and what is kept beside them are too large"
        writes = draft.writes()
        working = working_set(view.history, scope.kept, ground.cwd, ground.home, numbers, ground.leave_out)
        reads = working.reads
        hook = RunHook("SessionStart", {"source": "compact"}, match_on="compact")
        results = yield [*writes, *reads, hook]
        unsaved = frozenset(w.path for w, result in zip(writes, results, strict=False) if not result.ok)
        files = results[len(writes) : len(writes) + len(reads)]
        heard = results[-1].text.strip()
        for share in _RESTORED:
            attachments = (*ground.attachments(), *restore_blocks(working, files, numbers.tighter(share)))
            made = draft.made(attachments, heard, unsaved, numbers, roomy=True)
            if made is not None:
                return made
        for share in _SHARES:
            tight = numbers.tighter(share)
            attachments = (*ground.attachments(), *restore_blocks(working, files, tight.tighter(_RESTORED[-1])))
            made = draft.made(attachments, heard, unsaved, tight)
            if made is not None:
                return made
        if draft.smallest >= now.used:
            return f"the new context would not be smaller ({now.used:,} → {draft.smallest:,} tokens)"
        return "what must stay (pins, system prompt, tools) fills the window: remove pins, or start again (/clear)"


@dataclass(frozen=True, slots=True)
class AutoCompact:
    """The last stage before a request: compacts when the count is over the threshold."""

    compaction: Compaction
    flag: str = "compaction.auto"

    def fresh(self) -> AutoCompact:
        """Returns the same for another conversation, which counts its own failures."""
        return AutoCompact(Compaction(self.compaction.ground))

    def steps(self, view: View, now: Now) -> Steps | None:
        full = now.blocking if view.undone else now.autocompact_at  # after an undo the user wants the full history
        if now.used <= full or not self.compaction.may_run():
            return None
        if view.with_entries(()).meter.tokens > full:
            return None  # the system prompt and the tools alone fill the window: a summary does not help
        return self.compaction.steps(view, now, CompactionRequest("auto"))

    def why_not(self, now: Now) -> str:
        """Returns why it does not compact now."""
        if not self.compaction.ground.auto_on():
            return "auto-compaction is off"
        full = now.used > now.blocking
        why = "what it cannot remove fills the window" if full else "the context is below the threshold"
        return (self.compaction.breakers.open_reason or why).partition(" (last:")[0]


@dataclass(frozen=True, slots=True)
class Reactive:
    """Compacts once after a prompt that the server found too long, whatever our own count says."""

    compaction: Compaction
    flag: str = "compaction.reactive"

    def fresh(self) -> Reactive:
        return Reactive(Compaction(self.compaction.ground))

    def steps(self, view: View, now: Now) -> Steps | None:
        if not self.compaction.may_run():
            return None
        return self.compaction.steps(view, now, CompactionRequest("auto", reactive=True))


def _add_notice(commit: StageCommit, more: str | None) -> StageCommit:
    return replace(commit, notice="; ".join(filter(None, (commit.notice, more))) or None)
