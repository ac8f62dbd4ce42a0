"""Version queries such as `python --version`: which program answers, and whether a project could choose it.

The program must be the first on the user's PATH and outside the project, and runs in `/`: there no file of the project
selects a version, a toolchain or a module. If a shim would select a version here, the answer would differ, so it asks.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from reverie.permissions.rules import NotReadOnly

_LONG = ("--version",)
_BOTH = ("--version", "-V")
_SMALL = ("--version", "-v")
_QUERIES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("python", "python3", "pip", "pip3", "cargo", "rustc", "rustfmt", "uv", "ruff", "mypy", "rg"), _BOTH
    ),
    **dict.fromkeys(("node", "npm", "perl", "php", "make", "ruby", "deno", "bun", "gdb", "strace"), _SMALL),
    **dict.fromkeys(("git", "bash", "gcc", "g++", "cc", "clang", "cmake", "docker", "jq", "tree", "sqlite3"), _LONG),
    **dict.fromkeys(("curl", "wget", "tar", "zip", "tmux", "vim", "gh", "psql", "ninja", "meson", "ld"), _LONG),
    "java": ("--version", "-version"),
    "javac": ("--version", "-version"),
    "go": ("version",),
}
_NUMBERED = re.compile(r"(python|pip)3\.\d{1,2}")
# Files by which a shim or a proxy selects another version, and the programs that are asked about.
_SELECTORS: Mapping[str, str] = {
    ".python-version": "python pip",
    "rust-toolchain": "cargo rustc rustfmt",
    "rust-toolchain.toml": "cargo rustc rustfmt",
    ".node-version": "node npm",
    ".nvmrc": "node npm",
    "package.json": "node npm",
    ".ruby-version": "ruby",
    "go.mod": "go",
    "go.work": "go",
    **dict.fromkeys((".tool-versions", "mise.toml", ".mise.toml", ".config/mise"), "*"),
}
_MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def is_version_query(words: list[str]) -> bool:
    name = words[0]
    known = _QUERIES.get(name) or (_BOTH if _NUMBERED.fullmatch(name) else ())
    return len(words) == 2 and words[1] in known


def find_program(name: str, cwd: Path, project: Path) -> Path | None:
    """Returns the program that answers; None if there is none. Raises `NotReadOnly` if the project has a say in it."""
    for entry in os.get_exec_path():
        found = shutil.which(name, path=os.path.join(cwd, entry))  # noqa: PTH118 (a relative entry of PATH counts)
        if found is None:
            continue
        roots = (project, Path(os.path.realpath(cwd)))
        places = [Path(os.path.realpath(place)) for place in (os.path.dirname(found), found)]  # noqa: PTH120
        if not Path(entry).is_absolute() or any(place.is_relative_to(root) for place in places for root in roots):
            raise NotReadOnly(f"{name} is a program of this project")
        if not _answers_itself(Path(found), name) and (selector := _find_selector(name, cwd)):
            raise NotReadOnly(f"{selector} may select another {name}")
        return Path(found)
    return None


def _answers_itself(program: Path, name: str) -> bool:
    """Whether it is the program itself, not a shim that looks for another one."""
    real = Path(os.path.realpath(program))
    stem = name.rstrip("0123456789.")
    if real.name == "npm-cli.js":
        return True
    if stem not in real.name or name == "go" or (program.parent / "rustup").exists():
        return False
    try:
        with real.open("rb") as file:
            return file.read(4) in _MAGIC
    except OSError:
        return False


def _find_selector(name: str, cwd: Path) -> Path | None:
    stem = name.rstrip("0123456789.")
    for folder in (cwd, *cwd.parents):
        for file, programs in _SELECTORS.items():
            if (programs == "*" or stem in programs.split()) and (folder / file).exists():
                return folder / file
    return None
