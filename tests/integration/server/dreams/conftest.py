"""Workers as real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.dreams.setup import StartWorker


@pytest.fixture
def start_worker(dsn: str, tmp_path: Path) -> Iterator[StartWorker]:
    """Starts a worker on the database of this test; more than one is possible."""
    started = list[subprocess.Popen[bytes]]()

    def start(*, lease: float = 20, jobs: int = 1, sweep: int = 1, env: dict[str, str] | None = None) -> Any:
        options = ["--dsn", dsn, "--lease", str(lease), "--jobs", str(jobs), "--sweep", str(sweep)]
        home = tmp_path / f"worker-{len(started)}"
        process = subprocess.Popen(
            [sys.executable, "-m", "reverie", "worker", *options],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(home), "REVERIE_HOME": str(home / ".reverie"), **(env or {})},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
    for process in started:
        with suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()
