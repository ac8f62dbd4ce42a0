"""Runs the scripted agent in one SDK against a simulator of its own, kills it once, and reads the bill.

Each run is two conversations in a scratch folder: the first with 120 steps, killed in the middle and started again, the
second with one question about a fact of the first.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from bench import CODE
from bench.adapters import task
from bench.adapters.mind import Mind
from bench.adapters.programs.program import REVERIE, WITHOUT
from bench.scratch import FOLDER
from reverie.context.cache_watch import LEAST_DROP, SHARE
from reverie.errors import UserError
from reverie.lab.measurement import Column, Result, Table, measurement, ratio, track
from reverie.models.window import scaled
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.simulator import Simulator
from reverie.simulator.http import running

WIDE, NARROW = 1_000_000, 64_000
LIMIT_S = 900
"""The most time for one conversation."""
_CLAUDE, _GPT = "claude-sonnet-5-5", "gpt-5.4"
_KEPT_ERROR = 300
_COLUMNS = (
    "sdk",
    "variant",
    "window",
    Column("bill", "", "${:,.3f}"),
    ratio("share"),
    "requests",
    "largest",
    "breaks",
    "extra_reads",
    "repeated",
    "report",
    "fact_used",
    "continued",
    "seconds",
)
_WORDS = (
    "share: of the bill of the same SDK without Reverie. largest: tokens of the largest prompt. breaks: requests that",
    "could not read what the one before them left in the cache. extra reads: of files that were no longer in view.",
    "report: right parts of the last answer. fact used: a fact of the first conversation, in the second. continued:",
    "the program was killed with -9 in the middle and went on.",
)


@dataclass(frozen=True, slots=True)
class Sdk:
    """An SDK: its program, and the packages that the program needs."""

    name: str
    module: str
    packages: tuple[str, ...]
    model: str
    extra: str
    peers: tuple[tuple[str, int], ...] = ()
    """Its own ways to keep a context small, each with a window."""
    most_share: float = 0.75
    """The bill with Reverie is at most this share of the bill without it."""

    @property
    def missing(self) -> str:
        """Why it cannot run here; empty if it can."""
        gone = [package for package in self.packages if importlib.util.find_spec(package) is None]
        return f"{', '.join(gone)} is not installed: pip install 'reverie[{self.extra}]'" if gone else ""


SDKS = (
    Sdk("anthropic", "anthropic", ("anthropic",), _CLAUDE, "anthropic"),
    Sdk(
        "langchain",
        "langchain",
        ("langchain", "langchain_anthropic", "langgraph.checkpoint.sqlite"),
        _CLAUDE,
        "langchain",
        (("summarization", NARROW), ("editing", NARROW), ("both", NARROW)),
    ),
    Sdk(
        "openai-agents",
        "openai_agents",
        ("agents",),
        _GPT,
        "openai-agents",
        # It compacts only between the turns of the user, so a long turn does not fit the narrow window.
        (("compaction", NARROW), ("compaction", WIDE)),
    ),
    Sdk("pydantic-ai", "pydantic_ai", ("pydantic_ai", "openai"), _GPT, "pydantic-ai"),
    Sdk("claude-agent", "claude_agent", ("claude_agent_sdk",), _CLAUDE, "claude-agent", most_share=1.0),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One run: an SDK, what keeps its context small, and the window."""

    sdk: Sdk
    variant: str
    window: int

    @property
    def name(self) -> str:
        return f"{self.sdk.name} {self.variant}"


def cases(names: Sequence[str], variants: Sequence[str] = ()) -> list[Case]:
    """The runs of these SDKs (all without names): without Reverie, with it, and with the SDK's own means."""
    known = {sdk.name: sdk for sdk in SDKS}
    for name in names:
        if name not in known:
            raise UserError(f"{name!r} is not one of the SDKs: {', '.join(known)}.")
    found = list[Case]()
    for sdk in (known[name] for name in names) if names else SDKS:
        found.append(Case(sdk, WITHOUT, WIDE))
        found += [Case(sdk, peer, window) for peer, window in sdk.peers]
        found.append(Case(sdk, REVERIE, NARROW))
    chosen = [case for case in found if not variants or case.variant in variants]
    if not chosen:
        ways = ", ".join(dict.fromkeys(case.variant for case in found))
        raise UserError(f"No run is called so; these SDKs run with: {ways}.")
    return chosen


@dataclass(slots=True)
class Outcome:
    """How a run ended, and what it cost. `breaks`: causes of cache misses, with the tokens that they lost."""

    case: Case
    skipped: str = ""
    failed: str = ""
    bill: float = 0.0
    requests: int = 0
    refused: int = 0
    largest: int = 0
    output_tokens: int = 0
    hit_rate: float = 0.0
    breaks: dict[str, int] = field(default_factory=dict[str, int])
    lost_tokens: int = 0
    announced: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """The breaks that Reverie announced: why, and the tokens that the request could read."""
    unannounced: int = 0
    steps: int = 0
    extra_reads: int = 0
    repeated: int = 0
    summaries: int = 0
    report: str = ""
    report_right: bool = False
    fact_used: bool = False
    continued: bool = False
    seconds: float = 0.0

    def figures(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "case"}
        return {"sdk": self.case.sdk.name, "variant": self.case.variant, "window": self.case.window} | found


@measurement("reverie lab adapters", "reverie lab adapters --only langchain --json")
@click.option(
    "--only",
    "names",
    metavar="NAME",
    multiple=True,
    help="Only this SDK: anthropic, langchain, openai-agents, pydantic-ai or claude-agent. Repeatable.",
)
@click.option(
    "--variant",
    "variants",
    metavar="NAME",
    multiple=True,
    help="Only runs with this: without, reverie, or a name in the second column of the table. Repeatable.",
)
@click.option("--keep", metavar="DIR", type=FOLDER, help="Keep the scratch here.")
def adapters(names: tuple[str, ...], variants: tuple[str, ...], keep: Path | None) -> Result:
    """Run one scripted agent in the SDKs of others, with Reverie and without, and compare the bills.

    The agent reads 110 files in 120 steps, three of them with 200 KB, over the simulator. It sees only what is in its
    requests: what it needs and does not see it reads again. In the middle its program is killed and started again, and
    a second conversation asks for a fact of the first. Without Reverie the window has a million tokens, with it 64,000.
    Next to them are the SDKs' own ways to keep a context small. An SDK that is not installed is left out:
    `pip install 'reverie[adapters]'` installs all of them.

    Exit codes: 0: everything that must hold with Reverie holds; 1: something does not; 2: wrong usage.
    """
    chosen = cases(names, variants)
    return report([run(case, keep) for case in track(chosen, len(chosen), "runs")])


def report(done: Sequence[Outcome]) -> Result:
    """One row per run, then every run that failed, was skipped or is wrong."""
    rows: list[dict[str, Any]] = [one.figures() | {"share": _share(one, done)} for one in done]
    bad = [f"{one.case.name}: {what}" for one in done for what in wrong(one, done)]
    shown = [{**row, "breaks": sum(row["breaks"].values())} for row in rows if not row["skipped"]]
    notes = {f"{one.case.sdk.name} is left out: {one.skipped}": None for one in done if one.skipped}
    notes |= {f"{one.case.name} failed: {one.failed}": None for one in done if one.failed}
    return Result({"runs": rows, "wrong": bad}, (Table(shown, _COLUMNS), *notes, *bad, *_WORDS), holds=not bad)


def wrong(one: Outcome, done: Sequence[Outcome]) -> list[str]:
    """What a run with Reverie does not hold; empty for other runs and for those that were skipped."""
    if one.case.variant != REVERIE or one.skipped:
        return []
    if one.failed:
        return [one.failed]
    share = _share(one, done)
    checks = {
        f"the bill is {share} of the one without": share is not None and share > one.case.sdk.most_share,
        f"a prompt has {one.largest:,} tokens": one.largest > one.case.window,
        # Hooks cannot compact: Claude Code itself sends a prompt that is too long, and then shortens it.
        f"{one.refused} requests were refused": one.refused > 0 and one.case.sdk.most_share < 1,
        f"{one.unannounced} cache breaks were not announced": one.unannounced > 0,
        f"the report has {one.report} right parts": not one.report_right,
        "the fact of the first conversation is not used": not one.fact_used,
        "it did not go on after the kill": not one.continued,
    }
    return [text for text, holds in checks.items() if holds]


def _share(one: Outcome, done: Sequence[Outcome]) -> float | None:
    """The bill as a share of the bill of the same SDK without Reverie; None if one of them failed."""
    base = next((each for each in done if each.case.sdk == one.case.sdk and each.case.variant == WITHOUT), None)
    if base is None or base.failed or not base.bill or one.failed:
        return None
    return round(one.bill / base.bill, 3)


def run(case: Case, keep: Path | None = None) -> Outcome:
    """Runs one case in a scratch folder."""
    if case.sdk.missing:
        return Outcome(case, skipped=case.sdk.missing)
    if keep is not None:
        folder = keep / f"{case.sdk.name}-{case.variant}-{case.window}"
        folder.mkdir(parents=True)
        return _Run(case, folder).measure()
    with TemporaryDirectory(prefix="reverie-adapters-") as scratch:
        return _Run(case, Path(scratch)).measure()


class _Run:
    """One case: a simulator with a mind, and the program that is killed once."""

    def __init__(self, case: Case, folder: Path) -> None:
        self._case, self._folder = case, folder
        self._mind = Mind(self._on_step)
        self._simulator = Simulator(self._mind, window=case.window)
        self._process: subprocess.Popen[str] | None = None
        self._killed = False

    def measure(self) -> Outcome:
        outcome = Outcome(self._case)
        task.write_files(self._folder / "archive")
        began = time.monotonic()
        with running(self._simulator) as url:
            try:
                first = self._converse(url, "first", task.messages())
                report = task.check(first["answers"][-1])
                outcome.report, outcome.report_right = report.points, report.is_right
                outcome.continued = self._killed and len(self._mind.steps) == task.STEPS
                second = self._converse(url, "second", [task.QUESTION])
                outcome.fact_used = task.FACT in second["answers"][-1]
                outcome.announced = second["announced"]
            except _Stopped as stopped:
                outcome.failed = stopped.args[0]
        outcome.seconds = time.monotonic() - began
        self._count(outcome)
        return outcome

    def _on_step(self, step: int) -> None:
        """Kills the program, as a crash would, while its request for this step is answered."""
        if step == task.KILLED_AT and not self._killed and self._process is not None:
            self._killed = True
            self._kill()

    def _kill(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _converse(self, url: str, name: str, texts: Sequence[str]) -> dict[str, Any]:
        """What the program of a conversation prints; one that was killed is started again."""
        code, output, errors = self._start(url, name, texts)
        if code == -signal.SIGKILL and self._killed:
            self._mind.steps.discard(task.KILLED_AT)  # it is asked for again, and that is right
            code, output, errors = self._start(url, name, texts)
        if code or not output.strip():
            said = next((line for line in reversed(errors.splitlines()) if line.strip()), "")
            raise _Stopped(f"ended with {code} after step {max(self._mind.steps, default=0)}: {said[:_KEPT_ERROR]}")
        return load_json(output.strip().splitlines()[-1])

    def _start(self, url: str, name: str, texts: Sequence[str]) -> tuple[int, str, str]:
        case = self._case
        module = f"bench.adapters.programs.{case.sdk.module}"
        told = ("--url", url, "--model", case.sdk.model, "--state", str(self._folder), "--conversation", name)
        told = (*told, "--variant", case.variant, "--window", str(case.window))
        home = self._folder / "home"
        home.mkdir(exist_ok=True)
        with (self._folder / f"{name}.errors").open("a+", encoding="utf-8") as errors:
            at = errors.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *told, *texts],
                cwd=self._folder,
                env={
                    "PATH": os.defpath,
                    "HOME": str(home),
                    "LANG": "C.UTF-8",
                    "TMPDIR": str(self._folder),
                    "PYTHONPATH": CODE,
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            try:
                output, _ = self._process.communicate(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                self._kill()
                self._process.communicate()
                raise _Stopped(f"not finished after {LIMIT_S} s, at step {max(self._mind.steps, default=0)}") from None
            finally:
                self._kill()
            errors.seek(at)
            return self._process.returncode, output, errors.read()

    def _count(self, outcome: Outcome) -> None:
        ledger, mind = self._simulator.ledger, self._mind
        totals = ledger.totals()
        outcome.bill, outcome.hit_rate = totals["cost_usd"], totals["hit_rate"]
        outcome.requests, outcome.refused = totals["requests"], totals["errors"]
        outcome.output_tokens = totals["usage"]["output_tokens"]
        outcome.largest = max((row.usage.prompt for row in ledger.rows), default=0)
        outcome.breaks = dict(Counter(row.miss.cause for row in ledger.rows if row.miss is not None))
        outcome.lost_tokens = totals["missed_tokens"]
        least = scaled(LEAST_DROP, self._case.window)
        missed = Counter(
            read
            for row in ledger.rows
            if row.miss is not None
            and (lost := row.miss.lost_tokens) >= least
            # As Reverie counts breaks: a few tokens at the end of a long prompt are none.
            and (read := row.usage.cache_read_input_tokens) < SHARE * (read + lost)
        )
        outcome.unannounced = (missed - Counter(one["read"] for one in outcome.announced)).total()
        outcome.steps, outcome.extra_reads = len(mind.steps), mind.extra_reads
        outcome.repeated, outcome.summaries = mind.repeated, mind.summaries


class _Stopped(Exception):
    """The program ended without an answer."""
