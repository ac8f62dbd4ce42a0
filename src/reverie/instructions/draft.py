"""Finds out about a project by code: how to build and test it, and its layout. It is the start of an AGENTS.md.

It reads a few known files at the top of the project, within limits, and runs nothing.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from reverie.origins import escape_tags
from reverie.parsing import load_json, load_toml
from reverie.prompts import render
from reverie.regular_files import read_head

NAMES = ("AGENTS.md", "CLAUDE.md")
_MOST_BYTES = 200_000
_MOST_LINES = 15
_MOST_ENTRIES = 5_000
_LONGEST = 100
_NOT_SHOWN = frozenset({"node_modules", "__pycache__", "venv", "dist", "build", "target", "vendor", "coverage"})
_TARGET = re.compile(r"^([A-Za-z][\w.-]*)\s*:(?![=:])[^#\n]*(?:#+\s*(.*))?$", re.MULTILINE)
_KNOWN = {
    "Cargo.toml": ("cargo build", "cargo test", "cargo clippy"),
    "go.mod": ("go build ./...", "go test ./...", "go vet ./..."),
    "pom.xml": ("mvn package", "mvn test"),
    "build.gradle": ("./gradlew build", "./gradlew test"),
    "build.gradle.kts": ("./gradlew build", "./gradlew test"),
    "mix.exs": ("mix compile", "mix test"),
    "Package.swift": ("swift build", "swift test"),
    "CMakeLists.txt": ("cmake -B build", "cmake --build build", "ctest --test-dir build"),
    "Gemfile": ("bundle install", "bundle exec rake"),
    "tox.ini": ("tox",),
    "noxfile.py": ("nox",),
}
_TOOLS = {
    "pytest": "pytest",
    "ruff": "ruff check .",
    "mypy": "mypy .",
    "pyright": "pyright",
    "black": "black --check .",
}
_OTHERS = (".cursorrules", ".cursor/rules", ".github/copilot-instructions.md", "GEMINI.md", "CONTRIBUTING.md")


def find_target(folder: Path) -> Path:
    """Returns the file to write: the instruction file that is there, else AGENTS.md."""
    return next((folder / name for name in NAMES if os.path.lexists(folder / name)), folder / NAMES[0])


def draft(folder: Path) -> str:
    """Returns a whole file for a project without one."""
    title = f"# {folder.name}\n\n{_about(folder)}".rstrip()
    return "\n\n".join((title, *(f"## {name}\n\n{text}" for name, text in find_facts(folder).items()))) + "\n"


def extend(folder: Path, now: str) -> str:
    """Returns the text of the file with what is missing added at its end; the same text if nothing is."""
    added = list[str]()
    for name, text in find_facts(folder).items():
        lines = [line for line in text.splitlines() if _is_new(line, now)]
        if any(line.startswith("- ") for line in lines):
            added.append(f"## {name} (found by /init)\n\n" + "\n".join(lines))
    return "\n\n".join((now.rstrip(), *added)) + "\n" if added else now


def _is_new(line: str, now: str) -> bool:
    code = re.search(r"`([^`]+)`", line)
    return (code[1] if code else line) not in now


def render_request(folder: Path, args: str) -> str:
    """Returns the request that makes a model write the file. `args`: what the user wants besides."""
    target = find_target(folder)
    facts = "\n\n".join(f"{name}:\n{text}" for name, text in find_facts(folder).items())
    values = {
        "task": "improve" if target.exists() else "write",
        "target": escape_tags(str(target)),
        "more": f"\n\nThe user adds: {escape_tags(args)}" if args else "",
        "facts": escape_tags(facts) or "(nothing)",
    }
    return render("reverie.instructions", "init.md", values)


def find_facts(folder: Path) -> dict[str, str]:
    """Returns what there is to say by title, as Markdown."""
    commands = list(dict.fromkeys(_commands(folder)))[: 2 * _MOST_LINES]
    parts = {
        "Commands": "\n".join(f"- `{code}`{f': {about}' if about else ''}" for code, about in commands),
        "Layout": "\n".join(_layout(folder)),
        "Other instructions": "\n".join(f"- `{name}`" for name in _OTHERS if (folder / name).exists()),
    }
    return {name: text for name, text in parts.items() if text}


def _about(folder: Path) -> str:
    """The first paragraph of the README that is a sentence."""
    for name in ("README.md", "README.rst", "README.txt", "README"):
        for part in re.split(r"\n\s*\n", _text(folder / name)[:10_000]):
            said = " ".join(part.split())
            if re.match(r"[A-Z*_`]", said) and said.endswith((".", ":")) and len(said) > 30:
                return said[:500]
    return ""


def _commands(folder: Path) -> Iterator[tuple[str, str]]:
    for name in ("Makefile", "makefile", "GNUmakefile"):
        for target, about in _TARGET.findall(_text(folder / name))[:_MOST_LINES]:
            yield f"make {target}", _line(about)
    for name in ("justfile", "Justfile"):
        for target, about in _TARGET.findall(_text(folder / name))[:_MOST_LINES]:
            yield f"just {target}", _line(about)
    yield from _node(folder)
    yield from _python(folder)
    for name, lines in _KNOWN.items():
        if (folder / name).is_file():
            yield from ((line, "") for line in lines)


def _node(folder: Path) -> Iterator[tuple[str, str]]:
    data = _table(_json(folder / "package.json"), "scripts")
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lockb": "bun", "bun.lock": "bun"}
    runner = next((tool for lock, tool in locks.items() if (folder / lock).exists()), "npm")
    for script, line in list(data.items())[:_MOST_LINES]:
        yield f"{runner} run {_line(script)}", f"`{_line(line)}`" if "`" not in str(line) else ""


def _python(folder: Path) -> Iterator[tuple[str, str]]:
    data: dict[str, Any] = {}
    with suppress(ValueError):
        data = load_toml(_text(folder / "pyproject.toml"))
    text = json.dumps(data, default=str)
    runner = "uv run " if (folder / "uv.lock").exists() else "poetry run " if (folder / "poetry.lock").exists() else ""
    for tool, line in _TOOLS.items():
        if (
            tool in _table(data, "tool")
            or f'"{tool}' in text
            or (tool == "pytest" and (folder / "pytest.ini").exists())
        ):
            yield runner + line, ""
    for script in list(_table(_table(data, "project"), "scripts"))[:_MOST_LINES]:
        yield runner + _line(script), "installed with the project"


def _layout(folder: Path) -> Iterator[str]:
    """One line per folder at the top, with what it mostly holds."""
    with suppress(OSError):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name)[:200]:
            if entry.name.startswith(".") or entry.name in _NOT_SHOWN or not entry.is_dir(follow_symlinks=False):
                continue
            endings = Counter(_endings(Path(entry.path)))
            if endings:
                shown = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(2))
                yield f"- `{_line(entry.name)}/`: {shown}"


def _endings(folder: Path) -> Iterator[str]:
    left = _MOST_ENTRIES
    for _, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_SHOWN)
        for name in files:
            ending = os.path.splitext(name)[1]  # noqa: PTH122
            if ending and len(ending) < 8:
                yield ending
        left -= len(files) + len(folders)
        if left < 0:
            return


def _text(path: Path) -> str:
    try:
        return read_head(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _json(path: Path) -> object:
    try:
        return load_json(_text(path) or "{}")
    except ValueError:
        return {}


def _table(data: object, key: str) -> dict[str, Any]:
    found = cast("dict[str, Any]", data).get(key) if isinstance(data, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _line(text: object) -> str:
    """One line of printable characters."""
    return "".join(char for char in " ".join(str(text).split()) if char.isprintable())[:_LONGEST]
