"""The tool of the agents in the tests of adapters."""

from __future__ import annotations

import os
import signal
from pathlib import Path

ABOUT = "You are a clerk who reads logs. " * 250
LINES = {"large": 20_000, "middle": 180, "small": 20, "other": 20}


def read_log(name: str) -> str:
    """Reads a log."""
    mark = Path(os.environ["STATE"], "died")
    if name == "die" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "".join(f"line {number} of {name}\n" for number in range(LINES.get(name.partition("-")[0], 3)))
