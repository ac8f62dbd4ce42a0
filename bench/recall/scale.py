"""How the cost of recall grows with the number of files: warm and cold searches, a one-file update, memory.

Invented notes, the same every time, in a scratch folder. Each size and each cold search has its own process.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench import CODE
from reverie.errors import ReverieError

WARM_QUERIES = 300
COLD_RUNS = 7
UPDATES = 5
_COLD = """
import sys
from pathlib import Path
from reverie.memory.recall.ranker import Ranker
with Ranker.open(Path(sys.argv[1]), Path(sys.argv[2]), tier="builtin") as ranker:
    ranker.rank(sys.argv[3])
"""
_RSS_UNITS = 1e6 if sys.platform == "darwin" else 1e3
"""`ru_maxrss` is in bytes on macOS and in kilobytes elsewhere."""
_SYLLABLES = "ba be bi bo da de di do fa fe ga go ha he ka ke ki ko la le li lo ma me mi mo na ne no pa pe po ra re ro"
_LITTLE_WORDS = "the a of to in and is for on with we it that this from by at as not be our has was when never always"
_KINDS = ("user", "feedback", "project", "reference")


def measure_scale(sizes: Sequence[int]) -> dict[str, Any]:
    """The figures for each number of files, in milliseconds and megabytes; `bare_ms` is `python -c pass`."""
    found: dict[str, Any] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="reverie-scale-") as name:
            memory, index = Path(name) / "memory", Path(name) / "index.sqlite"
            write_notes(memory, size)
            figures: dict[str, Any] = json.loads(_python("-m", __name__, str(memory), str(index)))
            cold: list[float] = []
            bare: list[float] = []
            for question in questions(COLD_RUNS, seed=99):
                cold.append(_time(partial(_python, "-c", _COLD, str(memory), str(index), question)))
                bare.append(_time(partial(_python, "-c", "pass")))
            figures |= {"cold_ms": median(cold), "bare_ms": median(bare)}
            figures["cold_ratio"] = median(cold) / median(bare)
            found[str(size)] = figures
    return found


def write_notes(memory: Path, count: int) -> None:
    """Writes `count` notes of about 80 words each, in folders of a thousand; some words are rare, as in real text."""
    chance = random.Random(4)
    words, weights = _vocabulary()
    little = _LITTLE_WORDS.split()
    for n in range(count):
        folder = memory / f"part{n // 1000}" if count > 1000 else memory
        if n % 1000 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        kind = _KINDS[n % len(_KINDS)]
        rare = chance.choices(words, cum_weights=weights, k=70)
        common = chance.choices(little, k=30)
        body = [word for pair in zip(rare[20:], [*common, *rare[:20]], strict=True) for word in pair]
        lines = "\n".join(" ".join(body[i : i + 12]).capitalize() + "." for i in range(0, len(body), 12))
        text = f"---\nname: {' '.join(rare[:3])}\ndescription: {' '.join(rare[3:12])}\ntype: {kind}\n---\n\n{lines}\n"
        (folder / f"{kind}_{rare[0]}_{n}.md").write_text(text, encoding="utf-8")


def questions(count: int, seed: int = 5) -> list[str]:
    """Questions of about twelve words; some words are in few notes and some in many."""
    chance = random.Random(seed)
    words, weights = _vocabulary()
    little = _LITTLE_WORDS.split()
    found: list[str] = []
    for _ in range(count):
        asked = [*chance.choices(words, cum_weights=weights, k=chance.randint(3, 8)), *chance.choices(little, k=5)]
        chance.shuffle(asked)
        found.append(" ".join(asked) + "?")
    return found


def _vocabulary() -> tuple[list[str], list[float]]:
    chance = random.Random(3)
    syllables = _SYLLABLES.split()
    words = sorted({"".join(chance.choices(syllables, k=chance.randint(2, 5))) for _ in range(30_000)})
    chance.shuffle(words)
    return words, list(accumulate(1 / (n + 20) for n in range(len(words))))


def measure_warm(memory: Path, index: Path) -> dict[str, Any]:
    """Builds the index and measures searches and updates in this process."""
    import resource

    from reverie.memory.recall.ranker import Ranker

    began = time.perf_counter()
    with Ranker.open(memory, index, tier="builtin") as ranker:
        ranker.prepare()
        build = time.perf_counter() - began
        took = [_time(partial(ranker.rank, question)) for question in questions(WARM_QUERIES)]
        updates: list[float] = []
        for n in range(UPDATES):
            path = next(memory.rglob(f"*_{n}.md"))
            fresh = path.with_suffix(".new")
            fresh.write_text(path.read_text(encoding="utf-8") + f"\nchanged{n}zz\n", encoding="utf-8")
            fresh.replace(path)
            updates.append(_time(partial(ranker.rank, f"changed{n}zz")))
    return {
        "p50_ms": median(took),
        "p99_ms": quantiles(took, n=100)[98],
        "update_ms": median(updates),
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _RSS_UNITS,
        "build_s": build,
        "index_mb": index.stat().st_size / 1e6,
    }


def _python(*args: str) -> str:
    done = subprocess.run(
        [sys.executable, *args], env={**os.environ, "PYTHONPATH": CODE}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ReverieError(f"A measuring process failed: {done.stderr.strip()[-500:]}")
    return done.stdout


def _time(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    print(json.dumps(measure_warm(Path(sys.argv[1]), Path(sys.argv[2]))))
