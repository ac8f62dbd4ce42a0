"""How long the hooks of other agents take, and whether the service behind them stays small and within its limits.

Runs real hooks as Claude Code does, through `sh`, in a home of its own with 200 invented memories. It does not use the
user's home. Everything that it started has ended afterwards, or is counted.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, cast

from bench.recall.scale import write_notes
from bench.scratch import clean_env, count_option
from reverie.connect.plugin_files import hook_script
from reverie.daemon.client import daemon_status, stop_daemon
from reverie.errors import ReverieError
from reverie.lab.measurement import Column, Result, Table, measurement, named, plain, track
from reverie.models.tokens import estimate_text
from reverie.parsing import load_json
from reverie.paths import Places, daemon_socket
from reverie.quick import dataclass
from reverie.settings import load_settings
from reverie.types import JsonObject

MEMORIES = 200
SESSIONS = 10
EVENTS = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PreCompact", "PostCompact", "Stop", "SessionEnd")
LIMITS = {"prompt_characters": 2_000, "session_tokens": 6_000, "day_tokens": 40_000}
"""Lower than the defaults, so that the prompts of a measurement reach them."""

_SHOWN = re.compile(r"^## (.+?\.md) \(saved", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompts:
    """What many prompts in ten sessions led to. The limits are those of `LIMITS`."""

    prompts: int
    memories_given: int
    given_twice: int
    repeated_with_room: int
    """Prompts that were sent before in their session while its limits left room for a memory once more."""
    most_characters: int
    most_session_tokens: int
    day_tokens: int
    memory_before_mb: float
    memory_after_mb: float
    jobs_done: int
    jobs_failed: int
    processes_left: int

    @property
    def wrong(self) -> list[str]:
        """What does not hold, in words."""
        checks = {
            "no memory was given": self.memories_given > 0,
            "no prompt was repeated while there was room": self.repeated_with_room > 0,
            "a memory was given twice in a session": self.given_twice == 0,
            "a prompt got too many characters": self.most_characters <= LIMITS["prompt_characters"],
            "a session got too many tokens": self.most_session_tokens <= LIMITS["session_tokens"],
            "the day got too many tokens": self.day_tokens <= LIMITS["day_tokens"],
            "the memory of the service grows": self.memory_after_mb <= 1.1 * self.memory_before_mb + 4,
            "a job failed": self.jobs_failed == 0,
            "processes are left over": self.processes_left == 0,
        }
        return [name for name, holds in checks.items() if not holds]


@measurement("reverie lab hooks", "reverie lab hooks --runs 20 --prompts 100 --json")
@count_option("--runs", 100, 1, "Runs per event.")
@count_option("--prompts", 1_000, 1, "Prompts to send.")
def hooks(runs: int, prompts: int) -> Result:
    """Measure how long the hooks of other agents take, and what many prompts leave behind.

    Runs hooks as Claude Code does, in a scratch home with 200 memories, and compares them with `python -c pass`. Then
    sends prompts and checks that no memory is given twice, the limits hold and no process is left over.

    Exit codes: 0: everything holds; 1: something does not; 2: wrong usage.
    """
    with open_hooks({}) as warm:
        start_ms, _ = warm.run("SessionStart", "first", source="startup")
        warm.pid()
        bare_ms, events = _measure_latency(warm, runs)
    with open_hooks(LIMITS) as limited:
        many = _send_prompts(limited, prompts)
    wrong = many.wrong
    figures = {
        "bare_ms": bare_ms,
        "start_ms": start_ms,
        "worst_p95_ratio": max(one["p95_ratio"] for one in events.values()),
        "events": events,
        "runs": runs,
        **plain(many),
        "limits": LIMITS,
        "wrong": wrong,
    }
    times = named({"python -c pass": {"p50_ms": bare_ms, "p95_ms": None, "p95_ratio": None}, **events})
    facts = [{"prompts": name, "": value} for name, value in plain(many).items()]
    facts += [{"prompts": f"{name} may be", "": value} for name, value in LIMITS.items()]
    table = Table(times, (Column("name", "event"), "p50_ms", "p95_ms", Column("p95_ratio", "", "{:.2f}×")))
    bad = [f"wrong: {what}" for what in wrong]
    return Result(figures, (table, Table(facts, ("prompts", "")), *bad), holds=not wrong)


class Hooks:
    """A scratch home with memories, and the hooks of one agent in it."""

    def __init__(self, folder: Path, limits: Mapping[str, int]) -> None:
        self.folder, self.home, self.work = folder, folder / "home", folder / "work"
        for made in (self.home, self.work):
            made.mkdir()
        lines = ["[connect]", *(f"{name} = {value}" for name, value in limits.items())]
        (self.home / "settings.toml").write_text("\n".join(lines) + "\n")
        self.memory = Places.of(self.work, load_settings(self.work, home=self.home)).default_memory
        write_notes(self.memory, MEMORIES)
        self._script = folder / "hook.sh"
        self._script.write_bytes(hook_script("claude-code", self.home, daemon_socket(self.home)))
        self.env = clean_env(HOME=folder)

    def run(self, event: str, session: str, **more: object) -> tuple[float, str]:
        """Runs one hook; returns its milliseconds and the text that it adds."""
        payload = {"session_id": session, "cwd": str(self.work), "hook_event_name": event, **more}
        payload["transcript_path"] = str(self.folder / f"{session}.jsonl")
        taken, printed = self.time(["sh", str(self._script), event], json.dumps(payload).encode())
        if not printed.startswith(b"{"):
            return taken, printed.decode()
        output: Any = load_json(printed)
        added = cast(JsonObject, cast(JsonObject, output).get("hookSpecificOutput") or {})
        return taken, str(added.get("additionalContext") or "")

    def time(self, command: list[str], given: bytes = b"") -> tuple[float, bytes]:
        """Runs a process; returns its milliseconds and its output."""
        start = time.perf_counter()
        done = subprocess.run(command, input=given, stdout=subprocess.PIPE, cwd=self.work, env=self.env, check=False)
        return (time.perf_counter() - start) * 1_000, done.stdout

    def pid(self) -> int:
        found = daemon_status(self.home)
        if found is None or not found["answers"]:
            raise ReverieError("The service did not start; nothing can be measured.")
        return int(found["pid"])

    def resident_mb(self) -> float:
        return int(_ps("-o", "rss=", "-p", str(self.pid()))) / 1_024

    def count_processes(self) -> int:
        return sum(str(self.home) in line for line in _ps("-A", "-ww", "-o", "args=").splitlines())


@contextmanager
def open_hooks(limits: Mapping[str, int]) -> Generator[Hooks]:
    """Hooks in a scratch folder; the service is stopped at the end."""
    with TemporaryDirectory(prefix="reverie-hooks-") as folder:
        hooks = Hooks(Path(folder).resolve(), limits)
        try:
            yield hooks
        finally:
            stop_daemon(hooks.home)


def _measure_latency(hooks: Hooks, runs: int) -> tuple[float, dict[str, dict[str, float]]]:
    """In turn, so that a busy moment hits all alike. The first round warms caches and is not counted."""
    asked = _questions(hooks.memory)
    bare: list[float] = []
    taken: dict[str, list[float]] = {event: [] for event in EVENTS}
    result = {"stdout": "a line of output\n" * 200, "stderr": "", "interrupted": False, "isImage": False}
    for number in range(runs + 1):
        bare.append(hooks.time([sys.executable, "-c", "pass"])[0])
        more: dict[str, dict[str, object]] = {
            "SessionStart": {"source": "startup"},
            "UserPromptSubmit": {"prompt": asked[number % len(asked)]},
            "PostToolUse": {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": result},
            "PreCompact": {"trigger": "manual", "custom_instructions": ""},
            "PostCompact": {"trigger": "manual", "compact_summary": "We looked at files."},
            "SessionEnd": {"reason": "other"},
        }
        for event in EVENTS:
            taken[event].append(hooks.run(event, f"latency-{number}", **more.get(event, {}))[0])
    usual = median(bare[1:])
    return usual, {event: _latency(times[1:], usual) for event, times in taken.items()}


def _latency(times: list[float], bare: float) -> dict[str, float]:
    """Milliseconds of the whole process, through `sh`; the ratio is to the median of `python -c pass`."""
    late = quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]
    return {"p50_ms": median(times), "p95_ms": late, "p95_ratio": round(late / bare, 2)}


def _send_prompts(hooks: Hooks, count: int) -> Prompts:
    asked = _questions(hooks.memory)
    given = Counter[tuple[str, str]]()
    tokens = Counter[str]()
    longest, before, repeated = 0, 0.0, 0
    sent = set[tuple[str, str]]()
    cycle = min(5, max(1, count // SESSIONS // 2))
    for number in track(range(count), count, "prompts"):
        part = number * SESSIONS // count
        session = f"prompts-{part}"
        # Every other session repeats a few prompts, so that its limits leave room; the others reach their limits.
        prompt = asked[(part * cycle + number % cycle if part % 2 == 0 else number) % len(asked)]
        room = min(LIMITS["session_tokens"] - tokens[session], LIMITS["day_tokens"] - tokens.total())
        repeated += (session, prompt) in sent and room * 4 > LIMITS["prompt_characters"]
        sent.add((session, prompt))
        _, text = hooks.run("UserPromptSubmit", session, prompt=prompt)
        given.update((session, name) for name in _SHOWN.findall(text))
        tokens[session] += estimate_text(text)
        longest = max(longest, len(text))
        if number == count // 5:
            before = hooks.resident_mb()
        if (number + 1) * SESSIONS % count < SESSIONS:
            _write_transcript(hooks, session, prompt)
            hooks.run("Stop", session)
    after = hooks.resident_mb()
    jobs = cast(JsonObject, (daemon_status(hooks.home) or {}).get("jobs") or {})
    stop_daemon(hooks.home)
    return Prompts(
        prompts=count,
        memories_given=given.total(),
        given_twice=sum(times - 1 for times in given.values()),
        repeated_with_room=repeated,
        most_characters=longest,
        most_session_tokens=max(tokens.values()),
        day_tokens=tokens.total(),
        memory_before_mb=round(before, 1),
        memory_after_mb=round(after, 1),
        jobs_done=int(jobs.get("done") or 0),
        jobs_failed=int(jobs.get("failed") or 0),
        processes_left=hooks.count_processes(),
    )


def _write_transcript(hooks: Hooks, session: str, prompt: str) -> None:
    """Writes one turn, as Claude Code records it."""
    answer = {
        "role": "assistant",
        "id": "msg_1",
        "model": "none",
        "content": [{"type": "text", "text": "Nothing yet."}],
    }
    turns = [("user", {"role": "user", "content": prompt}), ("assistant", answer)]
    lines = [
        {"type": kind, "uuid": f"{session}-{kind}", "parentUuid": None if kind == "user" else f"{session}-user"}
        | {"sessionId": session, "cwd": str(hooks.work), "isSidechain": False, "message": message}
        | {"timestamp": f"2026-01-02T03:04:0{number}.000Z"}
        for number, (kind, message) in enumerate(turns)
    ]
    (hooks.folder / f"{session}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _questions(memory: Path) -> list[str]:
    """One question per memory, with words of its description."""
    found = [
        re.search(r"^description: (.*)$", path.read_text(), re.MULTILINE) for path in sorted(memory.glob("*_*.md"))
    ]
    return [f"What do we know about {one[1]}?" for one in found if one]


def _ps(*options: str) -> str:
    return subprocess.run(["ps", *options], capture_output=True, text=True, check=False).stdout
