"""The order of the layers before every request. It is written here only.

A stage that fails is logged and shown; the next stage runs and nothing is lost. A stage whose flag is off does not run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import cast

from reverie.flags import FLAGS
from reverie.layers.base import Break, CarryOut, Now, Stage, StageCommit, SteppedStage, Steps
from reverie.quick import dataclass
from reverie.storage.transcript.records import LayerFailure
from reverie.storage.transcript.session_log import SessionLog

ORDER = ("tool_result_budget", "snip", "microcompact", "collapse", "autocompact")
RECOVERY = "reactive"
_IDLE = {
    "tool_result_budget": "no new results",
    "snip": "nothing to drop",
    "collapse": "the window is not full enough",
}
"""Why a stage usually has nothing to do. A stage that knows it better has `why_not`."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the stages did before this request."""

    breaks: tuple[Break, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(slots=True)
class Pipeline:
    """The stages of one conversation."""

    stages: Mapping[str, Stage | SteppedStage] = field(default_factory=dict[str, Stage | SteppedStage])
    is_on: Callable[[str], bool] = lambda _flag: True
    on_failure: Callable[[str, Exception], None] = lambda _name, _error: None
    on_report: Callable[[LayerFailure], None] = lambda _failure: None
    """Called with a failure that a stage reports by itself, after it is recorded."""
    on_decline: Callable[[str, str], None] = lambda _name, _why: None
    breaking: tuple[Break, ...] = ()
    """While the stages run: the breaks announced so far. A fork that a later stage makes has them too."""

    def only(self, *names: str) -> Pipeline:
        """Returns a pipeline with these stages only, for a fork. Stages that count start again."""
        kept = {name: _fresh(stage) for name, stage in self.stages.items() if name in names}
        return Pipeline(kept, self.is_on, self.on_failure, self.on_report)

    async def prepare(self, log: SessionLog, now: Callable[[], Now], carry_out: CarryOut) -> Prepared:
        """Runs every stage once, in order, each on the result of the stage before."""
        breaks, notices = list[Break](), list[str]()
        try:
            for name in ORDER:
                done = await self._run(name, log, now, carry_out)
                if done is not None:
                    breaks += [done.breaks] if done.breaks else []
                    notices += [done.notice] if done.notice else []
                    self.breaking = tuple(breaks)
        finally:
            self.breaking = ()
        return Prepared(tuple(breaks), tuple(notices))

    async def recover(self, log: SessionLog, now: Callable[[], Now], carry_out: CarryOut) -> Prepared | None:
        """Tries once to make a prompt shorter that was too long. Returns None if nothing could be done."""
        done = await self._run(RECOVERY, log, now, carry_out)
        if done is None or not done.appends:
            return None
        return Prepared((done.breaks,) if done.breaks else (), (done.notice,) if done.notice else ())

    async def _run(self, name: str, log: SessionLog, now: Callable[[], Now], carry_out: CarryOut) -> StageCommit | None:
        stage = self.stages.get(name)
        if stage is None:
            return None
        if stage.flag and not self.is_on(stage.flag):
            if FLAGS[stage.flag].default:
                self.on_decline(name, f"the flag `{stage.flag}` is off")
            return None
        try:
            if hasattr(stage, "steps"):
                steps = cast(SteppedStage, stage).steps(log.view, now())
                if steps is None:
                    self._decline(name, stage, now())
                    return None
                commit = await follow(steps, carry_out)
            else:
                planned = cast(Stage, stage)
                effects = planned.plan(log.view, now())
                if effects is None:
                    self._decline(name, stage, now())
                    return None
                results = await asyncio.gather(*(carry_out(effect) for effect in effects))
                commit = planned.commit(log.view, now(), results)
        except Exception as error:  # noqa: BLE001  one of the two edges where errors stop: a layer may fail, a turn may not
            self.on_failure(name, error)
            return None
        record(log, commit)
        for payload in commit.payloads:
            if isinstance(payload, LayerFailure):
                self.on_report(payload)
        return commit

    def _decline(self, name: str, stage: Stage | SteppedStage, now: Now) -> None:
        why_not = getattr(stage, "why_not", None)
        self.on_decline(name, why_not(now) if why_not is not None else _IDLE.get(name, "nothing to do"))


def _fresh(stage: Stage | SteppedStage) -> Stage | SteppedStage:
    fresh = getattr(stage, "fresh", None)
    return cast(SteppedStage, fresh()) if fresh is not None else stage


async def follow(steps: Steps, carry_out: CarryOut) -> StageCommit:
    """Drives the steps to their end: carries out all effects of one step, then asks for the next."""
    try:
        effects = next(steps)
        while True:
            effects = steps.send(await asyncio.gather(*(carry_out(effect) for effect in effects)))
    except StopIteration as done:
        return cast(StageCommit, done.value)
    finally:
        steps.close()


def record(log: SessionLog, commit: StageCommit) -> None:
    """Records the decisions of a stage, and what it appends as one block: all of it or nothing."""
    for payload in commit.payloads:
        log.append(payload)
    log.append_all([(append.what, append.fields) for append in commit.appends])
