"""How long a command takes to start, as a multiple of the bare interpreter on the same machine.

Runs real processes in turn, so that a busy moment hits all of them alike, and takes medians. It works in its own home
with sessions that it wrote itself; it does not use the user's home.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.scratch import clean_env, count_option
from reverie.errors import UserError
from reverie.lab.measurement import Column, Result, Table, measurement
from reverie.paths import slug
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message, Origin, TextBlock

SESSIONS = 50
_NAMES = {
    "bare": "python -c pass",
    "version": "reverie --version",
    "sessions": "reverie sessions list",
    "remember": "reverie remember",
    "library": "from reverie import Memory",
}


@measurement("reverie lab startup --runs 31")
@count_option("--runs", 15, 1, "Runs per command.")
def startup(runs: int) -> Result:
    """Measure how long commands take to start, compared with Python alone.

    Runs `python -c pass`, three commands and `from reverie import Memory` in turn and compares the medians.
    """
    return report(measure_startup(runs), runs)


def report(ms: Mapping[str, float], runs: int) -> Result:
    """The medians by name, and their ratios to the bare interpreter."""
    ratios = {name: taken / ms["bare"] for name, taken in ms.items() if name != "bare"}
    times = {f"{name}_ms": taken for name, taken in ms.items()}
    rows = [{"command": _NAMES[name], "ms": taken, "ratio": ratios.get(name)} for name, taken in ms.items()]
    figures = {f"{name}_ratio": round(ratio, 2) for name, ratio in ratios.items()} | times | {"runs": runs}
    return Result(figures, [Table(rows, ("command", "ms", Column("ratio", "", "{:.2f}×")))])


def measure_startup(runs: int) -> dict[str, float]:
    """Medians in milliseconds: the bare interpreter, three commands and a program with a memory, in turn."""
    with TemporaryDirectory(prefix="reverie-startup-") as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        work.mkdir()
        write_sessions(home, work, SESSIONS)
        env = clean_env(REVERIE_HOME=home)
        reverie = _find_reverie()

        def run_each(number: int) -> list[float]:
            remember = [*reverie, "remember", f"The test server number {number} listens on port {8000 + number}."]
            commands = (
                [sys.executable, "-c", "pass"],
                [*reverie, "--version"],
                [*reverie, "sessions", "list"],
                remember,
                [sys.executable, "-c", _NAMES["library"]],
            )
            return [_time(command, work, env) for command in commands]

        # The first run of each fills the file cache and the bytecode cache; it is not counted.
        times = [run_each(number) for number in range(runs + 1)][1:]
    return dict(zip(_NAMES, map(median, zip(*times, strict=True)), strict=True))


def write_sessions(home: Path, cwd: Path, count: int) -> None:
    """Writes `count` small sessions of `cwd` into `home`."""
    here = cwd.resolve()
    for number in range(count):
        session = str(uuid.UUID(int=number + 1))
        log = SessionLog(home / "projects" / slug(here) / f"{session}.jsonl", session, cwd=here, version="0")
        for turn in range(2):
            said = TextBlock(f"Message {turn} of conversation {number}.", Origin.TYPED)
            log.append_message(Message("user", (said,)))
            usage = {"input_tokens": 20, "output_tokens": 8}
            fields = {"id": f"msg_{number}_{turn}", "type": "message", "model": "embedded", "usage": usage}
            log.append_message(Message("assistant", (TextBlock("So it is.", Origin.MODEL),), fields=fields))
        log.close()


def _find_reverie() -> list[str]:
    """The installed command of this environment, or else the module."""
    beside = Path(sys.executable).with_name("reverie")
    found = str(beside) if beside.exists() else shutil.which("reverie")
    return [found] if found else [sys.executable, "-m", "reverie"]


def _time(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    elapsed = (time.perf_counter() - start) * 1_000
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        shown = " ".join(Path(part).name if os.sep in part else part for part in command)
        raise UserError(
            f"`{shown}` ended with exit code {done.returncode}, so its start cannot be timed"
            f"{': ' + said[-1] if said else ''}. Run it by itself to see why."
        )
    return elapsed
