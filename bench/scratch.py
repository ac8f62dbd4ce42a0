"""What measurements share: options, labelled data, a scratch home, and the files of a memory directory."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import click

from reverie.cli.output import show_progress
from reverie.errors import ReverieError, UserError
from reverie.lab.measurement import Column, Result, Table
from reverie.memory.topic_file import decode
from reverie.models.base import Model
from reverie.models.catalogue import Catalogue
from reverie.models.registry import default_model_name, model_access, open_model
from reverie.parsing import RECORD_DEPTH, load_json
from reverie.regular_files import LARGEST, read_regular_text
from reverie.settings import Settings, load_settings
from reverie.settings.sections import PlaceSettings
from reverie.types import JsonObject

T = TypeVar("T")
S = TypeVar("S")
F = TypeVar("F", bound=Callable[..., Any])
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
file_argument = click.argument("file", metavar="FILE", type=FILE)


def model_option(what: str = "The model that answers") -> Callable[[F], F]:
    return click.option("-m", "--model", metavar="NAME", help=f"{what}.  [default: from the settings]")


def count_option(name: str, default: int, least: int, help: str, most: int | None = None) -> Callable[[F], F]:
    return click.option(name, default=default, show_default=True, type=click.IntRange(least, most), help=help)


def jobs_option(what: str) -> Callable[[F], F]:
    return count_option("--jobs", 1, 1, f"{what} at the same time.")


def gates_option(what: str) -> Callable[[F], F]:
    checks = f"Reverie checks after each turn whether {what} should run. Measure only how long this check takes if the"
    return click.option("--gates", is_flag=True, help=f"{checks} answer is no, for each possible reason.")


def show_gates(figures: JsonObject) -> Result:
    """What each gate takes, in microseconds."""
    rows = [{"gate": gate, "µs": taken} for gate, taken in figures["microseconds"].items()]
    return Result(figures, [Table(rows, ("gate", Column("µs", "", "{:,.1f}")))])


async def at_once(items: Sequence[T], work: Callable[[T], Awaitable[S]], jobs: int, what: str = "cases") -> list[S]:
    """The results of all items, `jobs` of them at the same time."""
    room, done = asyncio.Semaphore(jobs), 0

    async def do(item: T) -> S:
        nonlocal done
        async with room:
            result = await work(item)
        done += 1
        show_progress(f"{done} of {len(items)} {what}", ends_line=done == len(items))
        return result

    return await asyncio.gather(*map(do, items))


def open_named_model(name: str | None) -> tuple[Model, Settings]:
    """A model, and the settings of this folder; None: the model of the settings."""
    settings = load_settings(Path.cwd())
    access = model_access(settings)
    name = name or settings.model.name or default_model_name(access)
    return open_model(name, access, Catalogue.load(settings.catalogue.files)), settings


def home_settings(folder: Path, off: Sequence[str] = ()) -> Settings:
    """The default settings with a home in this folder, and with these flags switched off."""
    places = PlaceSettings(home=folder / "home", user_home=folder)
    return replace(Settings(), places=places, flag_env={f"REVERIE_FLAG_{flag}": "0" for flag in off})


def clean_env(**more: str | Path) -> dict[str, str]:
    """The environment of a program, without the settings of Reverie of the user."""
    kept = {name: value for name, value in {**os.environ}.items() if not name.startswith(("REVERIE_", "NO_COLOR"))}
    return kept | {name: str(value) for name, value in more.items()}


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
