"""Dreaming during a session: checks the gates after every turn, and runs a dream in the background or by hand.

A dream works on a copy while it holds the lock of the memory directory. Its result lands as one version, waits for the
user, or is dropped. Failures are counted and logged and release the lock; the conversation does not notice them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import field, replace
from datetime import date
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError, UserError
from reverie.events import Event
from reverie.layers.base import Fork, ForkResult, Forks
from reverie.layers.l6_dreaming.copy import MemoryCopy, sweep
from reverie.layers.l6_dreaming.dreamer import (
    DreamFailed,
    DreamProgress,
    Estimate,
    directive,
    estimate,
    expected_rounds,
    fresh_dreamer,
    is_cached,
    own_tokens,
    run_dream,
    to_the_end,
)
from reverie.layers.l6_dreaming.gates import (
    Circumstances,
    Closed,
    DreamGate,
    GateNumbers,
    Gates,
    Open,
    changed_transcripts,
    retry_after,
    transcript_folders,
)
from reverie.layers.l6_dreaming.guard import DreamGuard
from reverie.layers.l6_dreaming.landing import dream_info, land
from reverie.layers.l6_dreaming.lock import ConsolidationLock, Holding
from reverie.layers.l6_dreaming.proposal import Proposal, Proposals, propose
from reverie.layers.l6_dreaming.reporter import DreamOutcome, DreamReporter, describe_outcome
from reverie.layers.l6_dreaming.sources import FILE as TYPED
from reverie.layers.l6_dreaming.sources import list_typed
from reverie.layers.l6_dreaming.state import StateFile
from reverie.memory.daily_log import list_logs
from reverie.memory.opening import OpenedMemory
from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost
from reverie.models.registry import EMBEDDED
from reverie.moments import parse_time
from reverie.quick import dataclass
from reverie.runtime.parts import Parts
from reverie.runtime.tasks import Task, TaskHandle, Tasks
from reverie.storage.transcript.session_log import Clock
from reverie.types import Purpose

_ROOM: Final = 40_000  # tokens that a fork needs below the blocking limit


@dataclass(slots=True)
class _Run:
    transcripts: tuple[Path, ...]
    undistilled: tuple[Path, ...] = ()
    dry: bool = False
    by_hand: bool = False
    waits: bool = False
    """Its changes wait for the user, whatever the settings say."""
    guidance: str = ""
    confined: bool = False
    progress: DreamProgress = field(default_factory=DreamProgress)
    estimate: Estimate | None = None
    way: str = ""


class Dreaming:
    """The dreams of one session with a memory."""

    def __init__(
        self,
        parts: Parts,
        tasks: Tasks,
        forks: Forks,
        memory: OpenedMemory,
        *,
        ensure_header: Callable[[], None],
        emit: Callable[[Event], None],
        clock: Clock,
    ) -> None:
        self._parts = parts
        self._tasks = tasks
        self._forks = forks
        self._ensure_header = ensure_header
        self._now = clock
        self.memory = memory
        self.directory = memory.directory
        root = self.directory.root
        rule_s = parts.flags.number("dream.lock_minutes", parts.settings.dream.lock_minutes) * 60
        self.lock = ConsolidationLock(root, rule_s=rule_s)
        self.state = StateFile(root)
        self.reporter = DreamReporter(root, self.state, parts.background, emit)
        self.proposals = Proposals(root)
        self.running: DreamProgress | None = None
        self.shown: Proposal | None = None
        """The changes of the last dry run of this session."""
        self.closed: Counter[DreamGate] = Counter()
        """How often each gate was closed in this session."""
        self._waiting: dict[str, Holding] = {}
        self._distilled_on: date | None = None
        self.gates = Gates(
            self.lock,
            self.state,
            Circumstances(
                is_on=lambda: parts.flags.on("dream"),
                daily_log=self._keeps_log,
                is_remote=lambda: parts.settings.remote.enabled,
                numbers=lambda: parts.numbers(GateNumbers, "dream"),
                folders=transcript_folders(parts.places),
                current=lambda: parts.log.session_id,
                waiting=self.proposals.count,
                may_spend=lambda: forks.may_begin(Purpose.DREAM),
            ),
        )

    # -- when -----------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Cleans up after a crash when a session begins, and reports dreams that wait for the user."""
        try:
            if self.lock.recover(self._now().timestamp()):
                self._parts.background.write("dream_lock_recovered")
            sweep(self._copies)
            waiting = self.proposals.count()
        except ReverieError as error:
            self._parts.background.write("dream_recover_failed", error=str(error))
            return
        if waiting and self._parts.settings.dream.mode == "ask":
            wait = "1 dream waits" if waiting == 1 else f"{waiting} dreams wait"
            self.reporter.tell(f"{wait} for you: /dream review, or `reverie dream review`")

    def after_turn(self) -> Closed | None:
        """Starts a dream if all gates are open, else returns the closed one. Never raises."""
        try:
            if self._keeps_log() and self._distil_if_due():
                return None
            found = self.gates.look(self._now())
            if isinstance(found, Open):
                found = self._begin(_Run(found.transcripts)) or found
        except ReverieError as error:
            self._parts.background.write("dream_gates_failed", error=str(error))
            return None
        if not isinstance(found, Closed):
            return None
        self.closed[found.gate] += 1
        return found

    def start(
        self, *, dry_run: bool = False, waits: bool = False, guidance: str = "", confined: bool = False
    ) -> Task[DreamOutcome]:
        """Starts a dream by hand: only the lock can stop it. `UserError` if it cannot start.

        `guidance`: what to pay attention to. `confined`: it reads memory and the transcripts, and nothing else.
        """
        if not self._parts.flags.on("dream"):
            raise UserError("dreaming is switched off (the flag dream)")
        transcripts = changed_transcripts(
            transcript_folders(self._parts.places),
            self.lock.state(self._now().timestamp()).last_success,
            without=self._parts.log.session_id,
        )
        undistilled = tuple(self._undistilled(also_today=True)) if self._keeps_log() else ()
        run = _Run(transcripts, undistilled, dry_run, by_hand=True, waits=waits, guidance=guidance, confined=confined)
        begun = self._begin(run)
        if isinstance(begun, Closed):
            raise UserError(begun.reason)
        return begun

    def _begin(self, run: _Run) -> Task[DreamOutcome] | Closed:
        now = self._now().timestamp()
        holding = self.lock.take(now)
        if holding is None:
            holder = self.lock.state(now).pid
            own = "a dream is under way already; /dream status shows how it goes"
            return Closed(DreamGate.LOCK, own if self.running else f"another process dreams just now (PID {holder})")
        title = "dream (dry run)" if run.dry else "dream"
        begun = self._tasks.start(Purpose.DREAM, title, lambda task: self._dream(task, holding, run), serial="dream")
        self._waiting[begun.id] = holding
        return begun

    def task_over(self, id: str) -> None:
        """Called after every task: releases the lock of a dream that was killed before it began."""
        holding = self._waiting.pop(id, None)
        if holding is not None:
            holding.give_back(self._now().timestamp())

    # -- logs of the day ------------------------------------------------------------------------------------------

    def _undistilled(self, *, also_today: bool = False) -> list[Path]:
        """Returns logs of past days that no dream has read yet, with `also_today` the current one too."""
        known = self.state.read().distilled
        today, until = self._now().astimezone().date(), parse_time(known)
        after = until.date() if until is not None and until.date() <= today else None  # a future day is an error
        return list_logs(self.directory.root, after=after, before=None if also_today else today)

    def _keeps_log(self) -> bool:
        return self._parts.prefix_flag("daily_log")

    def _distil_if_due(self) -> bool:
        """Distils the logs of past days on the first turn of a new day. Returns whether it does."""
        today, may_begin = self._now().astimezone().date(), self._forks.may_begin
        if self._distilled_on == today or not self._parts.flags.on("dream") or self._parts.settings.remote.enabled:
            return False
        self._distilled_on = today
        found = self._undistilled()
        if not found or retry_after(self.state.read(), self._now().timestamp()) or may_begin(Purpose.DREAM):
            return False
        return not isinstance(self._begin(_Run((), tuple(found))), Closed)

    # -- one dream ------------------------------------------------------------------------------------------------

    async def _dream(self, task: TaskHandle, holding: Holding, run: _Run) -> DreamOutcome:
        self._waiting.pop(task.id, None)
        self.running = run.progress
        try:
            dreamt = await self._within_its_time(task, holding, run)
        except BaseException as error:
            self.reporter.failed(error, self._now().timestamp(), way=run.way, dry=run.dry, by_hand=run.by_hand)
            holding.give_back(self._now().timestamp())
            raise
        else:
            now = self._now().timestamp()
            if run.dry:
                holding.give_back(now)
                self.shown = dreamt.proposal
                self.reporter.tell(describe_outcome(dreamt))
            else:
                holding.succeed(now)
                asks = run.by_hand or (dreamt.outcome == "proposed" and self._parts.settings.dream.mode == "ask")
                today = self._now().astimezone().date().isoformat()  # its log is not over yet
                past = [path for path in run.undistilled if path.stem < today]
                self.reporter.succeeded(dreamt, now, undistilled=past, asks=asks)
            return dreamt
        finally:
            self.running = None

    async def _within_its_time(self, task: TaskHandle, holding: Holding, run: _Run) -> DreamOutcome:
        given, number = self._parts.settings.dream, self._parts.flags.number
        lock_s = number("dream.lock_minutes", given.lock_minutes) * 60
        seconds = min(number("dream.run_minutes", given.run_minutes) * 60, 0.9 * lock_s)
        copy = await asyncio.to_thread(MemoryCopy.make, self.directory.root, self._copies)
        guard = self._guard(copy, run, task)
        try:
            try:
                async with asyncio.timeout(seconds):
                    result = await self._ask(task, copy, guard, run)
            except TimeoutError:
                raise DreamFailed(f"the dream took longer than {seconds / 60:g} min and was ended") from None
            if result.reason != "answered":
                why = {
                    "max_rounds": "it was not done within its rounds",
                    "refused": "the model refused",
                    "cut_off": "its answer was cut off",
                }
                raise DreamFailed(f"the dream was dropped: {why.get(result.reason, result.reason)}")
            return await to_the_end(lambda: self._settle(copy, result, holding, guard, run))
        finally:
            copy.remove()

    def _guard(self, copy: MemoryCopy, run: _Run, task: TaskHandle) -> DreamGuard:
        def written(name: str) -> None:
            run.progress.phase = "updating"
            run.progress.touched[name] = None
            task.progress(run.progress.line())

        return DreamGuard(
            copy,
            self.memory.gate,
            self._parts.background,
            transcripts=run.transcripts,
            conversation=[
                (entry.message, entry.uuid or "", entry.timestamp or "") for entry in self._parts.log.view.history
            ],
            on_write=written,
            confined=run.confined,
        )

    async def _ask(self, task: TaskHandle, copy: MemoryCopy, guard: DreamGuard, run: _Run) -> ForkResult:
        parts = self._parts
        fork, run.way, run.estimate = self._fork()
        self.reporter.note("dream_started", way=run.way, estimate=run.estimate.told())
        asked = await asyncio.to_thread(self._directive, copy, guard, run)

        async def work(begun: Fork) -> ForkResult:
            if begun is not fork:  # the embedded model takes over from the beginning
                copy.restore()
                guard.held.clear()
                guard.waits.clear()
                begun, run.way = fresh_dreamer(begun, EMBEDDED), "embedded"
            return await run_dream(
                begun,
                asked,
                copy=copy,
                transcripts=run.transcripts,
                permission=guard.permission,
                keeper=guard.keeper,
                max_rounds=parts.flags.number("dream.max_rounds", parts.settings.dream.max_rounds),
                kind=run.way,
                progress=run.progress,
                on_progress=lambda: task.progress(run.progress.line()),
            )

        return await self._forks.attempt(Purpose.DREAM, fork, work)

    def _directive(self, copy: MemoryCopy, guard: DreamGuard, run: _Run) -> str:
        said, rest = list_typed(guard.typed(), str(self.directory.root / TYPED))
        if rest:
            copy.write(TYPED, rest.encode("utf-8", "replace"))
        return directive(
            self.directory,
            today=self._now().astimezone().date(),
            transcripts=run.transcripts,
            said=said,
            undistilled=run.undistilled,
            here=run.way == "fork",
            guidance=run.guidance,
        )

    def _fork(self) -> tuple[Fork, str, Estimate]:
        parts, fork = self._parts, self._forks.now()
        used = parts.log.view.meter.tokens
        found = estimate(
            parts.facts,
            conversation=used,
            own=own_tokens(fork),
            cached=is_cached(parts.log.view, self._now()),
            markers=parts.model.capabilities.cache_markers,
            rounds=expected_rounds(self.state.read().rounds),
        )
        if found.way == "fresh" or not parts.log.view.entries or used + _ROOM > parts.limits_now().blocking:
            return fresh_dreamer(fork), "fresh", found
        self._ensure_header()
        return fork, "fork", found

    # -- the result -----------------------------------------------------------------------------------------------

    def _settle(
        self, copy: MemoryCopy, result: ForkResult, holding: Holding, guard: DreamGuard, run: _Run
    ) -> DreamOutcome:
        """Turns a finished dream into a version or a proposal. Runs in a thread, to its end."""
        parts, now = self._parts, self._now().timestamp()
        given = parts.settings.dream
        proposal = propose(
            copy,
            result.text,
            id=secrets.token_hex(4),
            created=now,
            session=parts.log.session_id,
            max_loss_pct=parts.flags.number("dream.max_loss_pct", given.max_loss_pct),
            held=guard.held,
        )
        usage = result.usage
        facts = Catalogue.load(parts.settings.catalogue.files).facts_of_answer(result.model, parts.facts)
        dreamt = DreamOutcome(
            outcome="unchanged",
            way=run.way,
            rounds=result.rounds,
            cost_usd=0.0 if run.way == EMBEDDED else cost(usage, facts),
            hit_rate=usage.cache_read_input_tokens / usage.prompt if usage.prompt else 0.0,
            tokens=usage.prompt + usage.output_tokens,
            denied=result.denied,
            held=sum(map(len, guard.held.values())),
            waits=sum(guard.waits.values()),
            proposal=proposal,
        )
        if proposal is None:
            return dreamt
        if run.dry:
            return replace(dreamt, outcome="shown")
        with holding.landing(now):
            if run.waits or given.mode != "auto":
                self.proposals.add(proposal)
                return replace(dreamt, outcome="proposed")
            texts = [change.after for change in proposal.changes if change.after is not None]
            landed = land(self.directory, proposal, dream_info(proposal, guard.evidence(*texts)))
        return replace(dreamt, outcome="landed" if landed.version else "unchanged", landed=landed)

    @property
    def _copies(self) -> Path:
        return self._parts.places.home / "dreams"
