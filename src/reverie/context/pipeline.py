"""The order of the layers, written here and nowhere else: what happens to the context before every request.

A stage that fails is contained at this edge, logged and shown; the next stage runs and nothing is lost. A stage whose
flag is off does not run at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from reverie.layers.base import CarryOut, Commit, Now, Stage
from reverie.storage.session_log import SessionLog
from reverie.types import Message

ORDER = ("tool_result_budget", "snip", "microcompact", "collapse", "autocompact")
RECOVERY = "reactive"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the stages did before this request."""

    announced_break: str | None = None
    notices: tuple[str, ...] = ()
    acted: tuple[str, ...] = ()


def _always_on(_flag: str) -> bool:
    return True


@dataclass(slots=True)
class Pipeline:
    """The stages of one conversation. An absent stage is a layer that is not there."""

    stages: Mapping[str, Stage] = field(default_factory=dict[str, Stage])
    is_on: Callable[[str], bool] = _always_on
    on_failure: Callable[[str, Exception], None] = lambda _name, _error: None

    def only(self, *names: str) -> Pipeline:
        """The same pipeline with these stages alone: what a fork runs."""
        kept = {name: stage for name, stage in self.stages.items() if name in names}
        return Pipeline(kept, self.is_on, self.on_failure)

    async def prepare(self, log: SessionLog, now: Callable[[], Now], carry_out: CarryOut) -> Prepared:
        """Runs every stage once, in order, each on what the one before it left."""
        breaks, notices, acted = list[str](), list[str](), list[str]()
        for name in ORDER:
            done = await self._run(name, log, now, carry_out)
            if done is not None:
                acted.append(name)
                breaks += [done.breaks_prefix] if done.breaks_prefix else []
                notices += [done.notice] if done.notice else []
        return Prepared("; ".join(breaks) or None, tuple(notices), tuple(acted))

    async def recover(self, log: SessionLog, now: Callable[[], Now], carry_out: CarryOut) -> Prepared | None:
        """After a prompt that was too long: one try at making it shorter. None if nothing could be done."""
        done = await self._run(RECOVERY, log, now, carry_out)
        if done is None:
            return None
        return Prepared(done.breaks_prefix, (done.notice,) if done.notice else (), (RECOVERY,))

    async def _run(self, name: str, log: SessionLog, now: Callable[[], Now], carry_out: CarryOut) -> Commit | None:
        stage = self.stages.get(name)
        if stage is None or (stage.flag and not self.is_on(stage.flag)):
            return None
        try:
            effects = stage.plan(log.view, now())
            if effects is None:
                return None
            results = await asyncio.gather(*(carry_out(effect) for effect in effects))
            commit = stage.commit(log.view, now(), results)
        except Exception as error:  # noqa: BLE001  one of the two edges where errors stop: a layer may fail, a turn may not
            self.on_failure(name, error)
            return None
        for payload in commit.payloads:
            log.append(payload)
        for append in commit.appends:
            if isinstance(append.what, Message):
                log.append_message(append.what, **append.fields)
            else:
                log.append(append.what, **append.fields)
        return commit
