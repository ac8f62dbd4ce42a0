"""What a compaction must not lose, read from a transcript by code: requests, constraints, failures, changed files.

A digest is a small file per session. The job after each turn writes it, and a compaction asks for a new one if the
transcript has grown. Large transcripts are read in a process of their own, so that the service stays small and quick.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, field
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from reverie.errors import ReverieError, StorageError
from reverie.layers.l4_compaction.by_code import operation_ledger, operations
from reverie.layers.l4_compaction.by_code.ledger import failure_lines
from reverie.layers.l4_compaction.requests import UserRequest, requests_in
from reverie.layers.l4_compaction.survival import inventory
from reverie.layers.l5_extraction.recordings import read_recording
from reverie.memory.secrets.scan import redact
from reverie.memory.upkeep.purged_record import PurgedRecord
from reverie.origins import split_material
from reverie.parsing import load_json
from reverie.paths.places import Places, check_session_id, hooks_folder
from reverie.quick import dataclass
from reverie.regular_files import open_regular, read_regular
from reverie.runtime.bounded import bounded
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.storage.transcript.view import Entry
from reverie.types import JsonObject

_IN_PROCESS: Final = 1_000_000
"""Larger transcripts are read by another process, for at most so many seconds."""
_SECONDS: Final = 60.0
_NEARLY: Final = 0.95
_LARGEST: Final = 400_000_000
_ENTRIES: Final = 4_000
_ITEMS, _ITEM = 60, 1_500
_LEDGER: Final = 4_000
_MOST_BYTES: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of one transcript, newest things last. `mark` is the file that it was made from, at its size."""

    mark: list[int] = field(default_factory=list[int])
    requests: list[str] = field(default_factory=list[str])
    constraints: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    """The commands that failed and did not work later."""
    failures: list[str] = field(default_factory=list[str])
    """A line for everything that failed, the most important first."""
    changed: list[str] = field(default_factory=list[str])
    ledger: str = ""
    notes: str = ""
    """The hash of the notes that code has written last."""

    @classmethod
    def of(cls, entries: tuple[Entry, ...], mark: list[int], cwd: str, notes: str) -> Digest:
        asked = [_without_material(one) for one in requests_in(entries)]
        found = inventory("", asked)
        done = operations(entries[-_ENTRIES:])
        worked = {one.target for one in done if one.ok}
        failed = [one.target for one in done if not one.ok and one.kind == "run" and one.target not in worked]
        here = cwd.rstrip("/") + "/"
        changed = [one.target.removeprefix(here) for one in done if one.ok and one.kind in ("edit", "write")]
        return cls(  # without secrets: this file is not the transcript
            mark,
            _newest(one for one in found["requests"] if one.strip()),
            _newest(found["constraints"]),
            _newest(failed),
            [redact(line[:_ITEM]) for line in failure_lines(done, cwd=cwd)[:_ITEMS]],
            _newest(filter(None, changed)),
            redact(operation_ledger(done, max_chars=_LEDGER, cwd=cwd)),
            notes,
        )


def _without_material(request: UserRequest) -> UserRequest:
    """A message as it is in a transcript of another agent, with what was pasted apart from the user's words."""
    parts = (split_material(one.text, one.origin) if one.origin.is_users else [one] for one in request.parts)
    return UserRequest(request.uuid, tuple(chain.from_iterable(parts)))


def _newest(items: Any) -> list[str]:
    """Each once, where it was last; the last of them, none too long, without secrets."""
    once = dict.fromkeys(reversed([str(one)[: 2 * _ITEM] for one in items]))
    return [redact(one)[:_ITEM] for one in reversed(list(once)[:_ITEMS])]  # a cut secret is not found any more


class Digests:
    """The digests of one home."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._folder = hooks_folder(home) / "digests"
        self._apart = ThreadPoolExecutor(1, thread_name_prefix="reverie-digest")
        self._running = dict[str, Future[None]]()
        self._process: subprocess.Popen[bytes] | None = None

    def stored(self, session: str) -> Digest:
        """Returns the last digest of a session; an empty one if there is none."""
        try:
            raw: Any = load_json(read_regular(self._path(session), _MOST_BYTES))
            given = cast(JsonObject, raw)
            return Digest(
                **{name: given[name] for name, value in asdict(Digest()).items() if _fits(given[name], value)}
            )
        except (OSError, ValueError, TypeError, KeyError):
            return Digest()

    def current(
        self, session: str, transcript: Path | None, cwd: Path, wait_s: float, *, nearly: bool = False
    ) -> Digest:
        """Returns the digest of a transcript as it is now; the last one if that takes longer than `wait_s`.

        `nearly`: a digest of nearly the whole transcript is enough, if that is large.
        """
        last = self.stored(session)
        mark = file_mark(transcript) if transcript is not None else []
        if transcript is None or not mark or mark == last.mark or mark[1] > _LARGEST:
            return last
        if mark[1] <= _IN_PROCESS:
            with suppress(ReverieError):
                return self.make(session, transcript, cwd)
            return last
        if nearly and last.mark[:1] == mark[:1] and last.mark[1] > mark[1] * _NEARLY:
            return last
        running = self._running.get(session)
        if running is None or running.done():
            running = self._running[session] = self._apart.submit(self._make_apart, session, transcript, cwd)
        with suppress(TimeoutError):
            running.result(wait_s)
        return self.stored(session)

    def _make_apart(self, session: str, transcript: Path, cwd: Path) -> None:
        words = [sys.executable, "-E", "-P", "-m", __name__, str(self._home), session, str(transcript), str(cwd)]
        null = subprocess.DEVNULL
        with suppress(OSError), subprocess.Popen(bounded(words), stdin=null, stdout=null, stderr=null) as process:
            self._process = process
            try:
                process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        self._process = None
        self._running.pop(session, None)

    def close(self) -> None:
        """Ends a process that still reads."""
        self._apart.shutdown(wait=False, cancel_futures=True)
        if self._process is not None:
            self._process.kill()

    def make(
        self,
        session: str,
        transcript: Path,
        cwd: Path,
        known: tuple[tuple[Entry, ...], list[int]] | None = None,
        *,
        notes: str | None = None,
    ) -> Digest:
        """Reads a transcript, unless its entries and its mark are `known`, and stores its digest."""
        if known is None:
            mark = file_mark(transcript)
            known = read_recording(transcript).entries, mark
        made = Digest.of(*known, str(cwd), self.stored(session).notes if notes is None else notes)
        made = Digest(**self._purged().clean(asdict(made)))
        with suppress(StorageError):
            make_private_dir(self._folder)
            data = json.dumps(asdict(made), ensure_ascii=False).encode("utf-8", "replace")
            write_atomic(self._path(session), data, fsync=False)
        return made

    def _purged(self) -> PurgedRecord:
        return PurgedRecord(Places(self._home, self._home, self._home, self._home).purged_record)

    def _path(self, session: str) -> Path:
        return self._folder / f"{check_session_id(session)}.json"


def file_mark(path: Path) -> list[int]:
    """Returns inode and size of a regular file; nothing if it is none."""
    try:
        fd = open_regular(path)
    except OSError:
        return []
    try:
        found = os.fstat(fd)
        return [found.st_ino, found.st_size]
    finally:
        os.close(fd)


def _fits(given: object, known: object) -> bool:
    if type(given) is not type(known):
        raise TypeError
    return True


def main(home: str, session: str, transcript: str, cwd: str) -> int:
    """Makes one digest; the exit code says whether it could."""
    signal.alarm(int(_SECONDS))  # if the service is gone, nobody else ends it
    try:
        Digests(Path(home)).make(session, Path(transcript), Path(cwd))
    except ReverieError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:5]))
