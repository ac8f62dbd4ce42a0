"""Replays of recorded sessions for the web view: which files a folder has, and the one job that runs.

The job is a process of its own (`lab/replay/job.py`) and can be cancelled at any time. Results stay until the next job
or the end of the server. Only `.jsonl` files below the chosen folder are read, and links are not followed.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Literal, TypeAlias, cast

from reverie.errors import UserError
from reverie.parsing import Unparsable, load_json
from reverie.quick import dataclass
from reverie.types import JsonObject
from reverie.web.site import is_folder
from reverie.web.visit import Data

MOST_FILES = 2_000
MOST_BYTES = 64_000_000
"""A larger transcript is skipped: a replay holds all of it in memory."""
_MOST_ENTRIES = 200_000
_MOST_SKIPPED = 500

State: TypeAlias = Literal["running", "done", "cancelled", "failed"]


@dataclass(slots=True)
class Found:
    """The transcripts below a folder, the newest first, and what is skipped with the reason."""

    folder: Path
    files: list[tuple[Path, int]] = field(default_factory=list[tuple[Path, int]])
    skipped: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    skipped_count: int = 0

    def skip(self, path: str, why: str) -> None:
        self.skipped_count += 1
        if len(self.skipped) < _MOST_SKIPPED:
            self.skipped.append((path, why))


def find_transcripts(folder: Path) -> Found:
    """Looks for transcripts below a folder. Raises UserError if it is none."""
    if not is_folder(folder):
        raise UserError(f"{folder} is not a folder that can be read. Name a folder of transcripts (*.jsonl).")
    found, seen = Found(folder), 0
    dated = list[tuple[float, Path, int]]()
    for top, folders, names in os.walk(folder, onerror=lambda error: found.skip(str(error.filename), "not readable")):
        folders.sort()
        seen += len(folders)
        for name in sorted(names):
            seen += 1
            path = Path(top, name)
            if name.endswith(".jsonl"):
                try:
                    status = path.lstat()
                except OSError:
                    found.skip(str(path), "not readable")
                    continue
                if (why := _reason_to_skip(path, status)) is not None:
                    found.skip(str(path), why)
                    continue
                dated.append((status.st_mtime_ns, path, status.st_size))
        if seen > _MOST_ENTRIES:
            found.skip(top, f"the folder has more than {_MOST_ENTRIES:,} files; the rest is not looked at")
            break
    dated.sort(key=lambda one: (-one[0], one[1]))
    found.files = [(path, size) for _, path, size in dated[:MOST_FILES]]
    for _, path, _ in dated[MOST_FILES:]:
        found.skip(str(path), f"more than {MOST_FILES:,} transcripts; the newest are taken")
    return found


def _reason_to_skip(path: Path, status: os.stat_result) -> str | None:
    if stat.S_ISLNK(status.st_mode):
        return "a link"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if path.name.startswith("agent-"):
        return "the conversation of an agent; it is billed with its session"
    if status.st_size == 0:
        return "empty"
    if status.st_size > MOST_BYTES:
        return f"larger than {MOST_BYTES // 1_000_000} MB"
    return None if os.access(path, os.R_OK) else "not readable"


class ReplayJob:
    """One replay. It starts with the object, and a thread reads what the process says."""

    def __init__(self, found: Found, policies: list[str], prefix_tokens: int, window: int) -> None:
        self._lock = Lock()
        self.found, self.policies, self.prefix_tokens, self.window = found, policies, prefix_tokens, window
        self.state: State = "running"
        self.error = ""
        self.started, self.ended = time.time(), 0.0
        self._steps = dict[str, int]()
        """Policies that are done, by the file that is being replayed."""
        self._rows = list[JsonObject]()
        self._left_out = list[tuple[str, str]]()
        self._totals: JsonObject | None = None
        order = {
            "files": [str(path) for path, _ in found.files],
            "policies": policies,
            "prefix_tokens": prefix_tokens,
            "window": window,
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "reverie.lab.replay.job"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        Thread(target=self._run, args=(json.dumps(order).encode() + b"\n",), name="replay", daemon=True).start()

    def cancel(self) -> None:
        """Ends the process and its workers. What is done stays."""
        with self._lock:
            if self.state != "running":
                return
            self.state, self.ended = "cancelled", time.time()
        self._kill()

    def _kill(self) -> None:
        if self._process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _run(self, order: bytes) -> None:
        process = self._process
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        complaint = b""
        with suppress(OSError):
            process.stdin.write(order)
            process.stdin.flush()  # it stays open: the job ends when it closes
        for line in process.stdout:
            with suppress(Unparsable):
                self._hear(cast(JsonObject, load_json(line)))
        with suppress(OSError):
            complaint = process.stderr.read(100_000)
        code = process.wait()
        with self._lock:
            if self.state == "running":
                self.state = "done" if code == 0 and not self.error else "failed"
                last = complaint.decode("utf-8", "replace").strip().splitlines()[-1:]
                self.error = self.error or ("" if code == 0 else f"The replay ended with code {code}. {''.join(last)}")
                self.ended = time.time()
            self._steps.clear()
        process.stdin.close()

    def _hear(self, said: JsonObject) -> None:
        with self._lock:
            file = str(said.get("file") or "")
            if "policy" in said:
                self._steps[file] = self._steps.get(file, 0) + 1
            elif "left_out" in said:
                self._left_out.append((file, str(said["left_out"])))
                self._steps.pop(file, None)
            elif "session" in said:
                self._rows.append({**said["session"], "file": file})
                self._totals = said.get("totals")
                self._steps.pop(file, None)
            elif "error" in said:
                self.error = str(said["error"])

    def describe(self) -> Data:
        """Progress and totals; the sessions are in `rows`."""
        with self._lock:
            all_files = len(self.found.files)
            done = len(self._rows) + len(self._left_out)
            policies = len(self.policies) + 1  # and the one with foresight
            part = sum(min(1.0, steps / policies) for steps in self._steps.values())
            return {
                "state": self.state,
                "error": self.error,
                "folder": str(self.found.folder),
                "policies": self.policies,
                "prefix_tokens": self.prefix_tokens,
                "window": self.window,
                "done": done,
                "total": all_files,
                "share": round(min(1.0, (done + part) / all_files), 4) if all_files else 1.0,
                "now": [{"file": Path(file).stem, "policies_done": n} for file, n in self._steps.items()],
                "seconds": round((self.ended or time.time()) - self.started, 1),
                "left_out": [{"file": file, "why": why} for file, why in self._left_out[:_MOST_SKIPPED]],
                "skipped": self.found.skipped_count,
                "totals": self._totals,
            }

    def rows(self) -> list[JsonObject]:
        with self._lock:
            return list(self._rows)


class Replays:
    """The job of this server: one at a time, and its results until the next one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.job: ReplayJob | None = None

    def start(self, found: Found, policies: list[str], prefix_tokens: int, window: int) -> ReplayJob:
        with self._lock:
            if self.job is not None and self.job.state == "running":
                raise UserError("A replay is already running. Cancel it first, or wait for its end.")
            self.job = ReplayJob(found, policies, prefix_tokens, window)
            return self.job


def policy_names() -> tuple[dict[str, Any], list[str]]:
    """The policies with what each does, and those that are not installed."""
    from reverie.lab.replay.policies import POLICIES, choose_policies

    installed = {policy.name for policy in choose_policies(())}
    return {name: one.what for name, one in POLICIES.items()}, [name for name in POLICIES if name not in installed]
