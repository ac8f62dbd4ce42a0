"""What Reverie is measured with: the figures of docs/benchmarks.md. It is not in the wheel; `reverie lab` runs it.

Each measurement is a function that declares its command and returns a `Result` (see `reverie.lab.measurement`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

MEASUREMENTS: Mapping[str, str] = {
    "adapters": "bench.adapters.run",
    "billing": "bench.billing",
    "dream": "bench.dream.run",
    "extraction": "bench.extraction.run",
    "forks": "bench.forks",
    "hooks": "bench.hooks",
    "mcp": "bench.mcp",
    "mind": "bench.mind",
    "overhead": "bench.overhead",
    "proxy": "bench.proxy.run",
    "questions": "bench.questions.run",
    "recall": "bench.recall.run",
    "screen": "bench.screen",
    "serve": "bench.serve.run",
    "startup": "bench.startup",
    "thrash": "bench.thrash",
    "tokens": "bench.tokens",
    "web": "bench.web",
    "writes": "bench.writes",
}
"""The module of each measurement; the measurement has the same name in it."""
ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""
CODE = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
"""`PYTHONPATH` of a process that runs a module of `bench`."""
