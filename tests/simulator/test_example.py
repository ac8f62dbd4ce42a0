"""The example in `examples/` holds: the documented numbers, through the vendor's SDK."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "simulated_billing.py"


def test_the_documented_numbers_come_out() -> None:
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "All as documented." in done.stdout
    assert done.stdout.count("read ") > 45
    for part in ("thread_unsupported_request", "thread_not_found", "0 misses", "expired, ", "cached 2,944 of"):
        assert part in done.stdout
