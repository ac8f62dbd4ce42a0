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

from bench.scratch import count_option, home_settings
from reverie.lab.measurement import Result, Table, measurement, ratio, share, whole
from reverie.models import wire
from reverie.models.base import Finished, Model, ModelEvent, Request
from reverie.models.catalogue import Catalogue
from reverie.models.prices import input_equivalents
from reverie.models.registry import model_access, open_model
from reverie.models.script import Script
from reverie.quick import dataclass
from reverie.session.session import Session
from reverie.settings import Settings
from reverie.simulator import Meter, ScriptResponder, Simulator
from reverie.simulator.http import running
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

    def figures(self) -> dict[str, float]:
        return {
            "prompt_tokens": self.first.prompt,
            "read_tokens": self.first.cache_read_input_tokens,
            "read_share": self.share,
            "first_cost": self.first_cost,
            "fresh_first_cost": self.fresh_first_cost,
            "rounds": self.rounds,
            "read_share_all_rounds": self.usage.cache_read_input_tokens / self.usage.prompt,
            "cost": self.cost,
            "fresh_cost": self.fresh_cost,
            "ratio": self.cost / self.fresh_cost,
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


@measurement("reverie lab forks --children 4 --json")
@count_option("--children", CHILDREN, 1, "The number of forks.", most=10)
@count_option("--tokens", TOKENS, 1_000, "The length of the conversation before the forks, in tokens.", most=140_000)
def forks(children: int, tokens: int) -> Result:
    """Measure what forks cost, compared with new agents that get the same context.

    A fork is an agent whose request begins with the same bytes as the conversation, so that both share the cache. In
    this test, a session is connected to the simulator and reads files until its conversation is long. Then one message
    starts all forks. The unit of cost is the price of one uncached input token; a token that is read from the
    cache costs a fraction of it. The first fork pays for the last message, the others only for their own instruction.
    """
    done = measure_forks(children, tokens)
    each = [child.figures() for child in done.children]
    figures = {
        "model": MODEL,
        "history_tokens": done.history,
        "children": len(each),
        "first": each[0],
        "further": each[1:],
        "least_read_share": min(child.share for child in done.children),
        "cost": done.cost,
        "fresh_cost": done.fresh_cost,
        "ratio": done.ratio,
    }
    rows = [{"child": number, **child} for number, child in enumerate(each, 1)]
    total = {"child": "all", "cost": done.cost, "fresh_cost": done.fresh_cost, "ratio": done.ratio}
    costs = (whole("cost", "paid"), whole("fresh_cost", "fresh"), ratio("ratio", "share"))
    table = Table([*rows, total], ("child", whole("prompt_tokens", "prompt"), share("read_share", "read"), *costs))
    title = f"{len(each)} children of one message after {done.history:,} tokens; costs in input tokens."
    words = "prompt and read: of the first request. paid: all rounds. fresh: the same bytes with their own cache."
    return Result(figures, (table, title, words))


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
    settings = home_settings(folder, _OFF)
    model = replace(settings.model, anthropic_base_url=url, anthropic_api_key="simulated")
    return replace(settings, model=model)


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
