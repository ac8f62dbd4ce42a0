"""Prints the folder for the files of the tests in `make test`: one in memory if there is room, else nothing.

The tests write and flush thousands of small files; on a disk that is a third of their time. `make soak` uses the disk.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

IN_MEMORY = Path("/dev/shm")
NEEDED = 4_000_000_000
"""Free bytes; the tests of all workers together use a small part of it."""


def is_usable(folder: Path) -> bool:
    """Whether it has room, and we can write there and start programs."""
    try:
        with TemporaryDirectory(dir=folder) as mine:
            program = Path(mine) / "program"
            program.write_text("#!/bin/sh\n")
            program.chmod(0o700)
            subprocess.run([str(program)], check=True)
        return shutil.disk_usage(folder).free >= NEEDED
    except (OSError, subprocess.CalledProcessError):
        return False


if __name__ == "__main__" and not {"TMPDIR", "PYTEST_DEBUG_TEMPROOT"} & os.environ.keys() and is_usable(IN_MEMORY):
    print(IN_MEMORY)
