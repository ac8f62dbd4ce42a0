"""What measurements share: recordings, labelled data, a scratch home, and the files of a memory directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TypeVar, cast

from reverie.errors import ReverieError, UserError
from reverie.memory.topic_file import decode
from reverie.models.base import Capabilities, ModelEvent, Request
from reverie.parsing import RECORD_DEPTH, load_json
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, read_regular_text
from reverie.settings import Settings, load_settings
from reverie.types import Json, JsonObject

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SilentModel:
    """A model with a name and capabilities that never answers."""

    name: str
    capabilities: Capabilities

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent]:
        raise NotImplementedError("nothing is sent while this is measured")
        yield

    async def close(self) -> None:
        pass


def find_recordings(paths: Sequence[Path], pattern: str = "*.jsonl") -> list[Path]:
    """These transcripts, and those in these folders. UserError if a path does not exist."""
    found = list[Path]()
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist; name a folder of transcripts, or transcripts (*.jsonl).")
        found += sorted(path.rglob(pattern)) if path.is_dir() else [path]
    return found


@contextmanager
def scratch_home(overrides: JsonObject | None = None) -> Generator[tuple[Path, Settings]]:
    """A working folder, and settings with a home and a memory next to it; all of it is removed afterwards."""
    with TemporaryDirectory(prefix="reverie-lab-") as folder:
        cwd, home = Path(folder) / "work", Path(folder) / "home"
        cwd.mkdir()
        settings = load_settings(cwd, overrides=overrides)
        places = type(settings.places)(home=home, user_home=home, runtime=settings.places.runtime)
        yield cwd, replace(settings, places=places, memory=type(settings.memory)())


def read_json_lines(path: Path, parse: Callable[[JsonObject], T], what: str) -> list[T]:
    """The objects of a file, one per line. UserError names a line that is not `what`."""
    try:
        lines = read_regular_text(path, LARGEST).splitlines()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    found = list[T]()
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(parse(load_json(line)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UserError(f"{path}:{number}: is not {what} ({error!r}).") from error
    return found


def read_json_object(path: Path) -> JsonObject:
    """The JSON object in a file, or a UserError."""
    try:
        found: object = load_json(path.read_text("utf-8"), depth=RECORD_DEPTH)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from error
    if not isinstance(found, dict):
        raise UserError(f"{path} is not a JSON object.")
    return cast("JsonObject", found)


def read_time(text: str, where: str) -> datetime:
    """A time such as 2025-10-12T03:00:00Z; UserError names `where` it is."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{where}: {text[:40]!r} is not a time; write one like 2025-10-12T03:00:00Z.") from None
    return moment if moment.tzinfo is not None else moment.astimezone()


def copy_memory(source: Path, memory: Path, times: Path) -> None:
    """Copies a memory directory, with the modes of a real one and the mtimes in the file `times`, if there is one."""
    shutil.copytree(source, memory, copy_function=shutil.copyfile)
    for path in (memory, *memory.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    for name, given in (read_json_object(times) if times.exists() else {}).items():
        when = read_time(str(given), f"{times}: {name}").timestamp()
        if (memory / name).is_file():
            os.utime(memory / name, (when, when))


def memory_texts(root: Path) -> dict[str, str]:
    """The texts of a memory directory, by relative path."""
    return {name: decode(path.read_bytes()) for name, path in memory_files(root).items()}


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None, rounded; None if there are none."""
    known = [value for value in values if value is not None]
    return round(fmean(known), 4) if known else None


def strings_in(value: Json) -> Iterator[str]:
    """Every string in a JSON value, without the keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast(JsonObject, value).values():
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in cast(list[Json], value):
            yield from strings_in(inner)


def memory_files(root: Path) -> dict[str, Path]:
    """Every visible `.md` file of a directory, by relative path."""
    named = ((path.relative_to(root), path) for path in sorted(root.rglob("*.md")) if path.is_file())
    return {name.as_posix(): path for name, path in named if not any(part.startswith(".") for part in name.parts)}


def wait_for_server(process: subprocess.Popen[bytes], port: int, path: str, name: str, seconds: float) -> None:
    """Waits until a server that was just started answers `path` with 200."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            asked = HTTPConnection("127.0.0.1", port, timeout=5)
            asked.request("GET", path)
            if asked.getresponse().status == 200:
                return
        except (OSError, HTTPException):
            time.sleep(0.2)
    raise ReverieError(f"{name} did not start.")
