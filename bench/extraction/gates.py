"""How long each gate takes to skip a turn, in microseconds, in a real session of 50,000 tokens."""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import replace
from types import MappingProxyType

from bench.scratch import scratch_home
from reverie.context.day_book import DayBook
from reverie.context.ledger import make_entry
from reverie.layers.l5_extraction.gates import ExtractionGate
from reverie.models.script import Script
from reverie.models.scripted import ScriptedModel
from reverie.session.session import Session
from reverie.settings import Settings
from reverie.types import JsonObject, Message, Origin, Purpose, TextBlock, ToolResultBlock, ToolUseBlock, Usage

ROUNDS = 100
_RESULT = "All work and no play makes a dull file. " * 45  # a round of about 500 tokens
_HANGS = "[extraction]\nwait 3600\nsay never\n"
_OVERRIDES: dict[ExtractionGate | None, JsonObject] = {
    ExtractionGate.THROTTLE: {"extraction.every_turns": 1_000_000},
    ExtractionGate.BUDGET: {"budget.background_tokens_per_day": 1, "background.fallback": False},
}


def measure_gates(repeats: int = 200) -> JsonObject:
    """The median time in µs until each gate skips a turn; `open`: until a run has started."""
    figures = {gate.name.lower(): asyncio.run(_measure(gate, repeats)) for gate in ExtractionGate}
    figures["open"] = asyncio.run(_measure(None, 20))
    return {"microseconds": figures, "rounds": ROUNDS}


async def _measure(gate: ExtractionGate | None, repeats: int) -> float:
    with scratch_home(_OVERRIDES.get(gate)) as (cwd, settings):
        model = ScriptedModel(Script.parse(_HANGS), "scripted:gates")
        interactive = gate is not ExtractionGate.INTERACTIVE
        session = await Session.open(
            cwd=cwd, model=model, settings=_close_gate(settings, gate), interactive=interactive
        )
        try:
            session.ensure_header()
            _talk(session, by_user=gate is not ExtractionGate.NOTHING_NEW)
            if gate is ExtractionGate.BUDGET:
                _spend(session)
            elif gate is ExtractionGate.RUNNING:
                assert session.engine.extractor.turn_ended(answered=True) is None
            return await _median(session, gate, repeats)
        finally:
            for info in session.tasks.running:
                await session.tasks.kill(info.id)
            await session.close()


def _close_gate(settings: Settings, gate: ExtractionGate | None) -> Settings:
    """Settings that close a gate, besides the overrides."""
    flags = {
        ExtractionGate.FLAG: {"REVERIE_FLAG_EXTRACTION": "0"},
        ExtractionGate.DAILY_LOG: {"REVERIE_FLAG_DAILY_LOG": "1"},
        None: {},
    }
    if gate is ExtractionGate.REMOTE:
        settings = replace(settings, remote=type(settings.remote)(enabled=True, memory_directory=settings.places.home))
    if gate is ExtractionGate.MEMORY:
        settings = replace(settings, memory=replace(settings.memory, enabled=False))
    return replace(settings, flag_env=MappingProxyType(flags.get(gate, flags[None])))


async def _median(session: Session, gate: ExtractionGate | None, repeats: int) -> float:
    taken: list[float] = []
    for _ in range(repeats):
        if gate is ExtractionGate.OWN_WRITE:
            _save(session)
        began = time.perf_counter()
        stopped = session.engine.extractor.turn_ended(
            answered=gate is not ExtractionGate.NOT_ANSWERED, main_agent=gate is not ExtractionGate.MAIN_AGENT
        )
        taken.append(time.perf_counter() - began)
        assert stopped is gate, f"{stopped} instead of {gate}"
        if gate is None:
            for info in session.tasks.running:
                await session.tasks.kill(info.id)
    return statistics.median(taken) * 1e6


def _talk(session: Session, *, by_user: bool) -> None:
    log = session.log
    log.append_message(Message("user", (TextBlock("Look at the files.", Origin.TYPED if by_user else Origin.HOOK),)))
    for number in range(ROUNDS):
        call = ToolUseBlock(f"call_{number}", "Read", {"file_path": f"f{number}.txt"})
        log.append_message(Message("assistant", (call,)))
        log.append_message(Message("user", (ToolResultBlock(call.id, _RESULT),)))
    log.append_message(Message("assistant", (TextBlock("Done.", Origin.MODEL),)))


def _save(session: Session) -> None:
    """A turn in which the agent saves a memory itself."""
    assert session.memory is not None
    log, path = session.log, session.memory.directory.root / "user_role.md"
    log.append_message(Message("user", (TextBlock("I am a nurse, remember that.", Origin.TYPED),)))
    call = ToolUseBlock(f"save_{len(log.records)}", "Write", {"file_path": str(path), "content": "…"})
    log.append_message(Message("assistant", (call,)))
    log.append_message(Message("user", (ToolResultBlock(call.id, "Created."),)))
    log.append_message(Message("assistant", (TextBlock("Saved.", Origin.MODEL),)))


def _spend(session: Session) -> None:
    spent = make_entry(
        Usage(input_tokens=100), "claude-sonnet-5-5", session.accounts.catalogue, purpose=Purpose.NOTES.value
    )
    DayBook(session.places.day_books).add(spent)
