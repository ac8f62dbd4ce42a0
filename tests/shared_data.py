"""Finds the data that tests measure on: samples of our own, always there, and larger sets beside the project.

A test takes its data as a parameter, one case per set: `@pytest.mark.parametrize("folder", sources("transcripts"))`.
The sets beside the project cannot be shipped; where they are away, their cases are away, and nothing is skipped.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(os.environ.get("REVERIE_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
_OWN = Path(__file__).resolve().parent / "data"
EVALS = Path(__file__).resolve().parents[1] / "evals"
"""The labelled sets of our own."""
_ELSEWHERE = {"dream-dev": EVALS / "dream-third", "extraction/extraction-dev.jsonl": EVALS / "extraction-own.jsonl"}


def sample(relative: str) -> Path:
    """Our own set of this kind."""
    first, _, rest = relative.partition("/")
    whole = _ELSEWHERE.get(relative)
    return whole or (_ELSEWHERE[first] / rest if first in _ELSEWHERE else _OWN / "samples" / relative)


def sources(relative: str, *, own: Any = None, shared: Any = None, long: bool = False) -> list[Any]:
    """The sets of this kind, as parameters of a test. `own` and `shared` go with the path, if they are given.

    A tuple gives several parameters. `long`: the larger set takes seconds and is left to `make evals`.
    """
    found = [pytest.param(*_with(sample(relative), own), id=f"sample {relative}")]
    if (ROOT / relative).exists():
        marks = [pytest.mark.evals] if long else []
        found.append(pytest.param(*_with(ROOT / relative, shared), id=f"shared {relative}", marks=marks))
    return found


def _with(path: Path, more: Any) -> tuple[Any, ...]:
    if more is None:
        return (path,)
    return (path, *more) if isinstance(more, tuple) else (path, more)


def data(relative: str) -> Path:
    """Data that has no sample; skips the calling test when it is not on this machine. For `make soak` alone."""
    path = ROOT / relative
    if not path.exists():
        pytest.skip(f"measuring data {relative} is not on this machine (set REVERIE_TEST_DATA to its folder)")
    return path
