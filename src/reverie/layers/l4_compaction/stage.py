"""The steps of a compaction: hooks, then the cheapest writer that can, then the working set, then one block of records.

The stages of the pipeline (before a request that is too full, after a prompt that was too long) and a compaction by
hand all walk the same steps. They are driven from outside; nothing here reads a file, asks a model or waits.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from reverie.layers.base import Commit, Effect, EffectResult, Now, RunHook, Steps
from reverie.layers.l4_compaction.breakers import Breakers
from reverie.layers.l4_compaction.compose import Prose, Scope
from reverie.layers.l4_compaction.draft import Draft
from reverie.layers.l4_compaction.ground import Ground, Wanted
from reverie.layers.l4_compaction.numbers import CompactionNumbers
from reverie.layers.l4_compaction.partial import scope_from, scope_up_to, scope_whole
from reverie.layers.l4_compaction.requests import requests_in
from reverie.layers.l4_compaction.restore import restored, working_set
from reverie.layers.l4_compaction.writers import Writers
from reverie.storage.transcript.view import View

_SHARES = (1.0, 0.5, 0.25, 0.1)
"""How much of their budgets the parts may use; less is tried when the result would not fit."""
_RESTORED = (1.0, 0.5, 0.25)
"""The same for files that come back: they give way first, since a context that is full again at once helps nobody."""


class Compaction:
    """One a conversation."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.breakers = Breakers()
        self._refused: str | None = None

    def steps(self, view: View, now: Now, wanted: Wanted) -> Steps:
        """Walks one compaction. Its commit brings no records where a hook refused or nothing would be gained."""
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
            found = yield from writers.from_notes()
        if found is not None:
            trial = yield from self._commit(view, now, wanted, *found)
            if isinstance(trial, Commit):
                self.breakers.succeeded()
                return self._counted(view, wanted, trial, numbers)
        instructions = "\n\n".join(filter(str.strip, (given, self.ground.instructions(view))))
        prose = yield from writers.summary(scope, instructions, reactive=wanted.reactive)
        if prose is None:
            return self._not_done("a summary would be larger than what it replaces", wanted, numbers)
        commit = yield from self._commit(view, now, wanted, scope, prose)
        if isinstance(commit, str):
            return self._not_done(commit, wanted, numbers)
        told = self._judge(prose, wanted, numbers)
        return self._counted(view, wanted, _told(commit, told), numbers)

    def may_run(self) -> bool:
        """Whether auto-compaction is on and no breaker has stopped it."""
        return self.ground.auto_on() and self.breakers.open_reason is None

    def _refusal(self, reason: str) -> Commit:
        """A hook's refusal is told when it is new: it is asked again before every request."""
        told = None if reason == self._refused else f"a PreCompact hook refused the compaction: {reason}"
        self._refused = reason
        return Commit(notice=told)

    def _scope(self, view: View, wanted: Wanted, numbers: CompactionNumbers) -> Scope:
        if wanted.from_ is not None:
            return scope_from(view, wanted.from_)
        if wanted.up_to is not None:
            return scope_up_to(view, wanted.up_to)
        return scope_whole(view, numbers.last_message_tokens)

    def _judge(self, prose: Prose, wanted: Wanted, numbers: CompactionNumbers) -> str | None:
        """Counts whether a model wrote it; what to tell if that opens the breaker."""
        if not prose.failures:
            self.breakers.succeeded()
            return None
        return self._failed(prose.failures[-1], wanted, numbers)

    def _failed(self, why: str, wanted: Wanted, numbers: CompactionNumbers) -> str | None:
        return self.breakers.failed(why, numbers) if wanted.trigger == "auto" else None

    def _not_done(self, why: str, wanted: Wanted, numbers: CompactionNumbers) -> Commit:
        told = self._failed(why, wanted, numbers)
        return Commit(notice="; ".join(filter(None, (f"the conversation was not compacted: {why}", told))))

    def _counted(self, view: View, wanted: Wanted, commit: Commit, numbers: CompactionNumbers) -> Commit:
        if wanted.trigger == "manual" or not commit.appends:
            return commit
        return _told(commit, self.breakers.compacted(len(requests_in(view.history)), view.rounds, numbers))

    def _commit(
        self, view: View, now: Now, wanted: Wanted, scope: Scope, prose: Prose
    ) -> Generator[Sequence[Effect], Sequence[EffectResult], Commit | str]:
        """The records, as large as fits below the threshold; if nothing does, why."""
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
            attachments = (*ground.attachments(), *restored(working, files, numbers.tighter(share)))
            made = draft.made(attachments, heard, unsaved, numbers, roomy=True)
            if made is not None:
                return made
        for share in _SHARES:
            tight = numbers.tighter(share)
            attachments = (*ground.attachments(), *restored(working, files, tight.tighter(_RESTORED[-1])))
            made = draft.made(attachments, heard, unsaved, tight)
            if made is not None:
                return made
        if draft.smallest >= now.used:
            return f"the new context would be no smaller ({now.used:,} → {draft.smallest:,} tokens)"
        return "what must stay (pins, system prompt, tools) leaves no room: remove pins, or start again (/clear)"


@dataclass(frozen=True, slots=True)
class AutoCompact:
    """The pipeline's last stage before a request: compacts when the count is over the threshold."""

    compaction: Compaction
    flag: str = "compaction.auto"

    def fresh(self) -> AutoCompact:
        """The same for a conversation beside this one: its failures are its own."""
        return AutoCompact(Compaction(self.compaction.ground))

    def steps(self, view: View, now: Now) -> Steps | None:
        full = now.blocking if view.undone else now.autocompact_at  # whoever took one back wants the full history
        if now.used <= full or not self.compaction.may_run():
            return None
        return self.compaction.steps(view, now, Wanted("auto"))


@dataclass(frozen=True, slots=True)
class Reactive:
    """After a prompt that the server found too long: one compaction, whatever our own count says."""

    compaction: Compaction
    flag: str = "compaction.reactive"

    def fresh(self) -> Reactive:
        """As for `AutoCompact`."""
        return Reactive(Compaction(self.compaction.ground))

    def steps(self, view: View, now: Now) -> Steps | None:
        if not self.compaction.may_run():
            return None
        return self.compaction.steps(view, now, Wanted("auto", reactive=True))


def _told(commit: Commit, more: str | None) -> Commit:
    return replace(commit, notice="; ".join(filter(None, (commit.notice, more))) or None)
