"""Killed between the file and the record, at every step of layers 1 and 2: what was decided is decided the same again.

The watch over all requests (tests/conftest.py) sees the requests of every process here: whatever a killed session had
sent, the one that goes on extends it, or announces the break.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.paths import Places
from reverie.settings import load_settings
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import Clears, ResultDecisions, from_record
from tests import warm
from tests.counts import count
from tests.sessions import script

PARALLEL = 8
PLAY = "\n---\n".join(
    [
        'call Bash {"command": "bash print.sh 40000"}',  # over its tool's limit: to disk by itself
        "\n".join(f'call Bash {{"command": "bash print.sh {29_000 + i}"}}' for i in range(PARALLEL)),  # over the budget
        *(f'call Bash {{"command": "bash print.sh {900 + i}"}}' for i in range(3)),
        "say The first part is done.",
        'call Bash {"command": "bash print.sh 950"}',  # hours later: old results are cleared before this request
        "say All is done.",
    ]
)


def run(folder: Path, model: str, *, kill_at: int, hours: float) -> int:
    asked = (str(folder), model, str(kill_at), str(hours), "go on")
    root = Path(__file__).parents[2]
    done = warm.run_text(*asked, module="tests.layers.killed_at", cwd=root, env=os.environ, timeout=120)
    assert done.returncode in (0, -9), done.stderr
    return done.returncode


def transcript(folder: Path) -> Path:
    (path,) = Places.of(folder, load_settings(folder)).project.glob("*.jsonl")
    return path


def decisions(path: Path) -> dict[str, list[str]]:
    """Every marker and replacement on record, by call."""
    found = dict[str, list[str]]()
    for payload in map(from_record, read_records(path).records):
        if isinstance(payload, ResultDecisions):
            for call, text in payload.replaced.items():
                found.setdefault(f"replaced {call}", []).append(text)
        elif isinstance(payload, Clears):
            for call, text in payload.cleared.items():
                found.setdefault(f"cleared {call}", []).append(text)
    return found


@pytest.mark.soak
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="tells files by /proc, which this system does not have")
def test_killed_at_every_step_and_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for layer in ("SESSION_NOTES", "EXTRACTION", "DREAM", "RECALL", "COMPACTION_AUTO"):
        monkeypatch.setenv(f"REVERIE_FLAG_{layer}", "0")
    whole = tmp_path / "whole"
    steps = _prepare(whole)
    run(whole, steps, kill_at=0, hours=0)
    run(whole, steps, kill_at=0, hours=3)
    made = decisions(transcript(whole))
    assert any(name.startswith("replaced") for name in made) and any(name.startswith("cleared") for name in made)
    writes = len(read_records(transcript(whole)).records)
    step = max(1, writes // count(3, writes))
    for kill_at in range(3, writes, step):  # before that there is no conversation to go on with
        folder = tmp_path / f"k{kill_at}"
        model = _prepare(folder)
        killed = run(folder, model, kill_at=kill_at, hours=0) == -9
        if not killed:  # it falls into the second part
            first = len(read_records(transcript(folder)).records)
            killed = run(folder, model, kill_at=max(1, kill_at - first), hours=3) == -9
        assert killed
        before = decisions(transcript(folder))
        run(folder, model, kill_at=0, hours=3)
        run(folder, model, kill_at=0, hours=3)
        after = decisions(transcript(folder))
        assert all(after[name] == texts for name, texts in before.items()), "nothing was decided again"
        assert all(len(set(texts)) == 1 for texts in after.values())
        kept = transcript(folder).with_suffix("") / "tool-results"
        for name, (text, *_) in after.items():
            if name.startswith("replaced"):
                path = kept / f"{name.removeprefix('replaced ')}.txt"
                assert str(path) in text and path.stat().st_size >= 29_000, "a replaced result is safely on disk"


def _prepare(folder: Path) -> str:
    folder.mkdir()
    (folder / "print.sh").write_text("head -c $1 < /dev/zero | tr '\\0' x\n")
    return script(folder, PLAY)
