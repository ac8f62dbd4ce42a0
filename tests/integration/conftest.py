"""The fixture that runs a program of somebody else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.programs import LIMIT_S, Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a program in an empty folder and an empty home, and returns what it prints."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()

    def start(*arguments: str | Path, **environment: str) -> str:
        given = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": str(tmp_path)}
        done = subprocess.run(
            [str(argument) for argument in arguments],
            cwd=work,
            env=given | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        print(done.stdout, done.stderr, file=sys.stderr)
        assert done.returncode == 0, f"{arguments[0]} ended with {done.returncode}: {done.stderr[-2_000:]}"
        return done.stdout

    return start
