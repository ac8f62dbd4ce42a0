"""Runs an agent of an SDK in the environment that has all SDKs, over a simulator in this process."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.adapters.programs.program import announced_breaks
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import CompactBoundary, from_record
from tests.adapters.minds import Mind, Served, serve

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("REVERIE_TEST_ADAPTERS") or ROOT / ".venv-adapters" / "bin" / "python")
FACT = "Please remember: I always want the prices of pears in euros, rounded to full euros."
LIMIT_S = 120


def call(name: str) -> str:
    return f'call read_log {{"name": "{name}"}}'


def start(script: str, folder: Path, url: str = "", *arguments: str, dies: bool = False) -> str:
    """Runs a script of this repository and returns the last line that it prints."""
    if not PYTHON.exists():
        pytest.skip("there is no environment with the SDKs of adapters (REVERIE_TEST_ADAPTERS)")
    given = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    given |= {"SIMULATOR": url, "STATE": str(folder), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [str(PYTHON), "-P", str(ROOT / script), *arguments]
    done = subprocess.run(command, env=given, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    print(done.stdout, done.stderr, file=sys.stderr)
    assert done.returncode == (-signal.SIGKILL if dies else 0), done.stderr[-2_000:]
    for failure in ("without layers", "not recorded", "not kept"):
        assert failure not in done.stderr
    return (done.stdout.strip().splitlines() or [""])[-1]


class Agent:
    """One agent of an SDK; every run is a process of its own on the same home."""

    def __init__(self, sdk: str, folder: Path, server: Served, window: int = 1_000_000) -> None:
        self._sdk, self._folder, self._server, self._window = sdk, folder, server, window

    def run(self, *texts: str, conversation: str = "first", dies: bool = False, **more: Any) -> dict[str, Any]:
        plan = json.dumps({"texts": texts, "conversation": conversation, "window": self._window, **more})
        said = start(f"tests/adapters/{self._sdk}_driver.py", self._folder, self._server.url, plan, dies=dies)
        return {} if dies else json.loads(said)

    @property
    def kept(self) -> list[Path]:
        return sorted(self._folder.glob("home/projects/**/tool-results/*"))

    @property
    def compactions(self) -> int:
        """Compactions in all conversations."""
        files = self._folder.glob("home/projects/*/*.jsonl")
        records = [from_record(record) for path in files for record in read_records(path).records]
        return sum(isinstance(one, CompactBoundary) for one in records)


def misses(server: Served) -> list[Any]:
    return [(row.number, row.miss) for row in server.simulator.ledger.rows if row.miss is not None or row.error]


def continues(earlier: dict[str, Any], later: dict[str, Any]) -> bool:
    """Whether a request begins with all bytes of an earlier one."""
    one, two = (json.dumps([body.get("system"), body["messages"]])[:-2] for body in (earlier, later))
    return two.startswith(one[: one.rindex("}")])


# -- what every adapter must do ----------------------------------------------------------------------------------------


def check_results_restarts_and_recall(sdk: str, folder: Path) -> None:
    """Parallel calls, a large result, a restart between two turns, streams, and a memory in another conversation."""
    mind = Mind([f"{call('large-a')}\n{call('small')}", "say Three euros.", call("other"), "say Four.", "say Five."])
    with serve(mind) as server:
        agent = Agent(sdk, folder, server)
        assert agent.run(FACT)["answers"] == ["Three euros."]
        assert len(agent.kept) == 1 and agent.kept[0].read_text().startswith("line 0 of large-a")
        assert str(agent.kept[0]) in mind.sent[-1] and "line 19 of small" in mind.sent[-1]
        assert len(mind.sent[-1]) < 20_000
        second = agent.run("And the pears of the other log?", stream=True)
        assert second["answers"] == ["Four."]
        assert all(continues(*pair) for pair in itertools.pairwise(mind.bodies))
        assert second["cost"]["requests"] == 4
        assert second["cost"]["cache_read_tokens"] > 0 and second["cost"]["dollars"] > 0
        assert agent.run("What are the prices of pears?", conversation="second", stream=True)["answers"] == ["Five."]
        assert "> I always want the prices of pears" in mind.sent[-1]
    assert misses(server) == []


def check_compaction(sdk: str, folder: Path) -> None:
    """A conversation that does not fit the window goes on, also after a restart."""
    replies = [call(f"middle-{number}") for number in range(40)]
    with serve(Mind([*replies, "say All read.", "say Yes."]), window=24_000) as server:
        agent = Agent(sdk, folder, server, window=24_000)
        assert agent.run("Read all logs, and close with the word heron.")["answers"] == ["All read."]
        assert agent.compactions >= 1
        sent = len(server.simulator.ledger.rows)
        assert agent.run("Are you done?")["answers"] == ["Yes."]
        assert len(server.simulator.ledger.rows) == sent + 1
    rows = server.simulator.ledger.rows
    missed = Counter(row.usage.cache_read_input_tokens for row in rows if row.miss is not None)
    announced = Counter(one["read"] for one in announced_breaks(folder / "home"))
    assert not missed - announced and not any(row.error for row in rows), "every break was announced"
    assert max(row.usage.prompt for row in server.simulator.ledger.rows) < 24_000


def check_kill(sdk: str, folder: Path) -> None:
    """A program that is killed in a tool goes on with the same bytes."""
    mind = Mind([call("small"), call("die"), call("die"), "say Done after all."])
    with serve(mind) as server:
        agent = Agent(sdk, folder, server)
        agent.run("Read two logs.", dies=True)
        assert agent.run("Read two logs.", resumed=True)["answers"] == ["Done after all."]
        assert all(continues(*pair) for pair in itertools.pairwise(mind.bodies))
    assert misses(server) == []
