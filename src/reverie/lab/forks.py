"""The cost of forks after a long history, compared with fresh agents that get the same context.

A real session over HTTP against the simulator. Every request of every fork is also billed with its own empty cache, as
for a fresh agent. Other layers are off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reverie.models import wire
from reverie.models.base import Finished, Model, ModelEvent, Request
from reverie.models.catalogue import Catalogue
from reverie.models.prices import input_equivalents
from reverie.models.registry import model_access, open_model
from reverie.models.script import Script
from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.settings import Settings
from reverie.settings.sections import PlaceSettings
from reverie.simulator import Meter, ScriptResponder, Simulator
from reverie.simulator.http import running
from reverie.text.columns import table as columns
from reverie.types import Purpose, ToolUseBlock, Usage

CHILDREN = 8
TOKENS = 100_000
MODEL = "anthropic:claude-sonnet-5-5"
_READ_BYTES = 20_000
_OFF = ("MICROCOMPACT_TIME", "MICROCOMPACT_ECONOMIC", "SESSION_NOTES", "EXTRACTION", "DREAM", "RECALL", "CACHE_WATCH")


@dataclass(frozen=True, slots=True)
class Child:
    """The prompts of one fork: of its first request, and of all requests. Costs are in tokens of input."""

    first: Usage
    first_cost: float
    rounds: int
    usage: Usage
    cost: float
    fresh_first_cost: float
    fresh_cost: float

    @property
    def share(self) -> float:
        """The share of its first prompt that it read from the cache."""
        return self.first.cache_read_input_tokens / self.first.prompt

    def wire(self) -> dict[str, float]:
        return {
            "prompt_tokens": self.first.prompt,
            "read_tokens": self.first.cache_read_input_tokens,
            "read_share": round(self.share, 5),
            "first_cost": round(self.first_cost, 1),
            "fresh_first_cost": round(self.fresh_first_cost, 1),
            "rounds": self.rounds,
            "read_share_all_rounds": round(self.usage.cache_read_input_tokens / self.usage.prompt, 5),
            "cost": round(self.cost, 1),
            "fresh_cost": round(self.fresh_cost, 1),
        }


@dataclass(frozen=True, slots=True)
class ForkFigures:
    """The forks in the order of their first answers."""

    history: int
    children: tuple[Child, ...]

    @property
    def ratio(self) -> float:
        """The cost of all forks, as a share of that of fresh agents."""
        return self.cost / self.fresh_cost

    @property
    def cost(self) -> float:
        return sum(child.cost for child in self.children)

    @property
    def fresh_cost(self) -> float:
        return sum(child.fresh_cost for child in self.children)

    def summary(self) -> dict[str, Any]:
        """The figures for programs."""
        first, *further = self.children
        return {
            "model": MODEL,
            "history_tokens": self.history,
            "children": len(self.children),
            "first": first.wire(),
            "further": [child.wire() for child in further],
            "least_read_share": round(min(child.share for child in self.children), 5),
            "cost": round(self.cost, 1),
            "fresh_cost": round(self.fresh_cost, 1),
            "ratio": round(self.ratio, 4),
        }


def measure_forks(children: int = CHILDREN, tokens: int = TOKENS) -> ForkFigures:
    """Runs a session whose agent forks itself `children` times after about `tokens` of history."""
    with TemporaryDirectory(prefix="reverie-forks-") as folder:
        return asyncio.run(_measure(Path(folder), children, tokens))


async def _measure(folder: Path, children: int, tokens: int) -> ForkFigures:
    project = folder / "project"
    project.mkdir()
    files = max(1, -(-tokens * 4 // _READ_BYTES))
    for number in range(1, files + 1):
        (project / f"part{number}.txt").write_text(_prose(number))
    simulator = Simulator(ScriptResponder(Script.parse(_play(files, children), "forks")))
    with running(simulator) as url:
        settings = _settings(folder, url)
        model = _RecordingModel(open_model(MODEL, model_access(settings), Catalogue.load()))
        async with await Session.open(cwd=project, model=model, settings=settings) as session:
            async for _ in session.send("Read everything, then split the work."):
                pass
    return ForkFigures(model.history, tuple(_child(one) for one in model.children.values()))


class _RecordingModel:
    """A model that keeps the requests of forks and their usage, by thread."""

    def __init__(self, inner: Model) -> None:
        self._inner = inner
        self.name, self.capabilities = inner.name, inner.capabilities
        self.history = 0
        """Tokens of the request whose answer made the forks."""
        self.children: dict[str, list[tuple[Request, Usage]]] = {}

    async def stream(self, request: Request) -> AsyncIterator[ModelEvent]:
        async for event in self._inner.stream(request):
            if isinstance(event, Finished):
                response = event.response
                if request.purpose is Purpose.AGENT:
                    self.children.setdefault(request.thread, []).append((request, response.usage))
                elif any(isinstance(block, ToolUseBlock) and block.name == "Agent" for block in response.content):
                    self.history = response.usage.prompt
            yield event

    async def close(self) -> None:
        await self._inner.close()


def _child(sent: list[tuple[Request, Usage]]) -> Child:
    facts = Catalogue.load().facts(MODEL.partition(":")[2])
    meter, alone = Meter(), list[float]()
    for number, (request, _) in enumerate(sent):
        billed = meter.bill(wire.body(request), float(number)).usage
        alone.append(input_equivalents(billed, facts))
    paid = [input_equivalents(replace(usage, output_tokens=0), facts) for _, usage in sent]
    total = sum((usage for _, usage in sent), Usage())
    return Child(sent[0][1], paid[0], len(sent), total, sum(paid), alone[0], sum(alone))


def _settings(folder: Path, url: str) -> Settings:
    given = Settings()
    return replace(
        given,
        places=PlaceSettings(home=folder / "home", user_home=folder),
        model=replace(given.model, anthropic_base_url=url, anthropic_api_key="simulated"),
        flag_env={f"REVERIE_FLAG_{flag}": "0" for flag in _OFF},
    )


def _play(files: int, children: int) -> str:
    """The script: the main agent reads all files, a few per round, and forks; each fork reads one file again."""
    rounds = [
        "\n".join(f'call Read {{"file_path": "part{n}.txt"}}' for n in range(at, min(at + 5, files + 1)))
        for at in range(1, files + 1, 5)
    ]
    forks = "\n".join(
        f'call Agent {{"description": "part {n}", "prompt": "Take part{(n - 1) % files + 1}.txt: find what it says of '
        f'the lighthouse in section {n}, check it against the other parts, and report what differs, as path:line."}}'
        for n in range(1, children + 1)
    )
    main = "\n---\n".join([*rounds, f"say I split the work.\n{forks}", "repeat forever\n  say I wait.\nend"])
    child = '[agent]\ncall Read {"file_path": "part1.txt", "limit": 5}\n---\nsay Nothing differs.\n'
    return f"{main}\n\n{child}"


def _prose(number: int) -> str:
    line = f"In part {number} the keeper of the lighthouse writes down the hour, the wind and the ships that pass. "
    lines = [f"{at}: {line}" for at in range(1, _READ_BYTES // (len(line) + 5) + 1)]
    return "\n".join(lines) + "\n"


def table(found: ForkFigures) -> str:
    """The figures for people."""
    rows = [("child", "prompt", "read", "paid", "fresh", "share")]
    for number, child in enumerate(found.children, 1):
        first = (str(number), f"{child.first.prompt:,}", f"{child.share:.2%}")
        rows.append((*first, f"{child.cost:,.0f}", f"{child.fresh_cost:,.0f}", f"{child.cost / child.fresh_cost:.3f}"))
    rows.append(("all", "", "", f"{found.cost:,.0f}", f"{found.fresh_cost:,.0f}", f"{found.ratio:.3f}"))
    title = f"{len(found.children)} children of one message after {found.history:,} tokens; costs in input tokens."
    words = "prompt and read: of the first request. paid: all rounds. fresh: the same bytes with their own cache."
    return "\n".join([*columns(rows, right=range(1, 6)), "", title, words])
