"""The example in `examples/` holds: the documented numbers, through the vendor's SDK."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "simulated_billing.py"


def test_the_documented_numbers_come_out(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("anthropic")
    pytest.importorskip("openai")
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    shown = capsys.readouterr().out
    assert "All as documented." in shown
    assert shown.count("read ") > 45
    for part in ("thread_unsupported_request", "thread_not_found", "0 misses", "expired, ", "cached 2,944 of"):
        assert part in shown
