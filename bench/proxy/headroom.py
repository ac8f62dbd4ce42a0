"""Headroom, another proxy, in an environment of its own: started in front of a simulated server for one session."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.scratch import wait_for_server
from reverie.runtime.loopback import listen

PROGRAM: Final = Path(".venv-clients/headroom/bin/headroom")
"""Where `make integration` installs it."""
_START_S = 90.0
_OPTIONS = ("--no-rate-limit", "--no-cache", "--no-subscription-tracking", "--no-telemetry")


@contextmanager
def headroom(program: Path, upstream: str) -> Generator[str]:
    """Headroom with its defaults, for the time of the block; yields its address. It keeps no answers of its own."""
    with listen(0) as free:
        port = int(free.getsockname()[1])
    command = [str(program.absolute()), "proxy", "--port", str(port), "--anthropic-api-url", upstream, *_OPTIONS]
    with TemporaryDirectory(prefix="reverie-lab-") as home:
        env = {"PATH": os.defpath, "HOME": home, "HF_HUB_OFFLINE": "1", "HEADROOM_SKIP_UPSTREAM_CHECK": "1"}
        process = subprocess.Popen(command, cwd=home, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for_server(process, port, "/livez", "headroom", _START_S)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
