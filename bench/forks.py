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
    with TemporaryDirectory(prefix="reverie-forks-") as folder:
        history, each = asyncio.run(_measure(Path(folder), children, tokens))
    cost, fresh = (sum(child[key] for child in each) for key in ("cost", "fresh_cost"))
    total = {"cost": cost, "fresh_cost": fresh, "ratio": cost / fresh}
    figures = {
        "model": MODEL,
        "history_tokens": history,
        "children": len(each),
        "first": each[0],
        "further": each[1:],
        "least_read_share": min(child["read_share"] for child in each),
        **total,
    }
    rows = [{"child": number, **child} for number, child in enumerate(each, 1)]
    costs = (whole("cost", "paid"), whole("fresh_cost", "fresh"), ratio("ratio", "share"))
    table = Table(
        [*rows, {"child": "all", **total}],
        ("child", whole("prompt_tokens", "prompt"), share("read_share", "read"), *costs),
    )
    title = f"{len(each)} children of one message after {history:,} tokens; costs in input tokens."
    words = "prompt and read: of the first request. paid: all rounds. fresh: the same bytes with their own cache."
    return Result(figures, (table, title, words))


async def _measure(folder: Path, children: int, tokens: int) -> tuple[int, list[dict[str, float]]]:
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
    return model.history, [_child(one) for one in model.children.values()]


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


def _child(sent: list[tuple[Request, Usage]]) -> dict[str, float]:
    """One fork: its first request, and what all its requests cost, in tokens of input; `fresh`: with its own cache."""
    facts = Catalogue.load().facts(MODEL.partition(":")[2])
    meter, alone = Meter(), list[float]()
    for number, (request, _) in enumerate(sent):
        billed = meter.bill(wire.body(request), float(number)).usage
        alone.append(input_equivalents(billed, facts))
    paid = [input_equivalents(replace(usage, output_tokens=0), facts) for _, usage in sent]
    total = sum((usage for _, usage in sent), Usage())
    first = sent[0][1]
    return {
        "prompt_tokens": first.prompt,
        "read_tokens": first.cache_read_input_tokens,
        "read_share": first.cache_read_input_tokens / first.prompt,
        "first_cost": paid[0],
        "fresh_first_cost": alone[0],
        "rounds": len(sent),
        "read_share_all_rounds": total.cache_read_input_tokens / total.prompt,
        "cost": sum(paid),
        "fresh_cost": sum(alone),
        "ratio": sum(paid) / sum(alone),
    }


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
