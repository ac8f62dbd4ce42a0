"""What a turn costs that is not looked at, gate by gate: a real session of 50,000 tokens, in microseconds."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from reverie.layers.l5_extraction.gates import Gate
from reverie.models.script import Script
from reverie.models.scripted import ScriptedModel
from reverie.session.session import Session
from reverie.settings import Settings, load_settings
from reverie.types import JsonObject, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock

ROUNDS = 100
_RESULT = "All work and no play makes a dull file. " * 45  # a round of about 500 tokens
_HANGS = "[extraction]\nwait 3600\nsay never\n"


def measure_gates(repeats: int = 200) -> JsonObject:
    """The median time in µs until each gate turns a turn away; `open`: until a run has been started."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="reverie-lab-") as folder:
        for number, (gate, setting) in enumerate(_settings().items()):
            figures[gate.name.lower()] = asyncio.run(_measured(Path(folder) / str(number), gate, setting, repeats))
        figures["open"] = asyncio.run(_measured(Path(folder) / "open", None, {}, 20))
    return {"microseconds": {name: round(value, 1) for name, value in figures.items()}, "rounds": ROUNDS}


def _settings() -> dict[Gate, JsonObject]:
    """What shuts each gate: overrides of the settings, by their section."""
    return {
        Gate.NOT_ANSWERED: {},
        Gate.MEMORY: {"memory.enabled": False},
        Gate.MAIN_AGENT: {},
        Gate.REMOTE: {},
        Gate.DAILY_LOG: {},
        Gate.FLAG: {},
        Gate.INTERACTIVE: {},
        Gate.THROTTLE: {"extraction.every_turns": 1_000_000},
        Gate.RUNNING: {},
        Gate.NOTHING_NEW: {},
        Gate.OWN_WRITE: {},
        Gate.BUDGET: {"budget.background_tokens_per_day": 1, "background.fallback": False},
    }


async def _measured(folder: Path, gate: Gate | None, overrides: JsonObject, repeats: int) -> float:
    cwd = folder / "work"
    cwd.mkdir(parents=True)
    settings = _with(load_settings(cwd, overrides=overrides), folder, gate)
    model = ScriptedModel(Script.parse(_HANGS), "scripted:gates")
    session = await Session.open(cwd=cwd, model=model, settings=settings, interactive=gate is not Gate.INTERACTIVE)
    try:
        session.ensure_header()
        _talk(session, person=gate is not Gate.NOTHING_NEW)
        if gate is Gate.BUDGET:
            _spend(session)
        elif gate is Gate.RUNNING:
            assert session.engine.extractor.turn_ended(answered=True) is None
        return await _median(session, gate, repeats)
    finally:
        for info in session.tasks.running:
            await session.tasks.kill(info.id)
        await session.close()


def _with(settings: Settings, folder: Path, gate: Gate | None) -> Settings:
    home = folder / "home"
    found = replace(settings, places=type(settings.places)(home=home, user_home=home))
    flags = dict[str, str]()
    if gate is Gate.FLAG:
        flags["REVERIE_FLAG_EXTRACTION"] = "0"
    if gate is Gate.DAILY_LOG:
        flags["REVERIE_FLAG_DAILY_LOG"] = "1"
    if gate is Gate.REMOTE:
        found = replace(found, remote=type(found.remote)(enabled=True, memory_directory=home))
    return replace(found, flag_env=MappingProxyType(flags))


async def _median(session: Session, gate: Gate | None, repeats: int) -> float:
    taken: list[float] = []
    for _ in range(repeats):
        if gate is Gate.OWN_WRITE:
            _save(session)
        began = time.perf_counter()
        stopped = session.engine.extractor.turn_ended(
            answered=gate is not Gate.NOT_ANSWERED, main_agent=gate is not Gate.MAIN_AGENT
        )
        taken.append(time.perf_counter() - began)
        assert stopped is gate, f"{stopped} instead of {gate}"
        if gate is None:
            for info in session.tasks.running:
                await session.tasks.kill(info.id)
    return statistics.median(taken) * 1e6


def _talk(session: Session, *, person: bool) -> None:
    log = session.log
    log.append_message(Message("user", (TextBlock("Look at the files.", Origin.TYPED if person else Origin.HOOK),)))
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
    from reverie.context.day_book import DayBook
    from reverie.context.ledger import entry
    from reverie.types import Purpose, Usage

    spent = entry(Usage(input_tokens=100), "claude-sonnet-5-5", session.accounts.catalogue, purpose=Purpose.NOTES.value)
    DayBook(session.places.day_books).add(spent)


def table(found: JsonObject) -> str:
    """A line a gate."""
    return "\n".join(f"{name:<14} {taken:>9.1f} µs" for name, taken in found["microseconds"].items())
