"""Commands and skills: Markdown files in `commands/` and `skills/` of the homes and the project, each with a name.

Nearer folders win, and a skill wins over a command. The text of a file is a request that the user makes by its name.
What a project's file runs or allows without a question counts only if the user trusts it.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from reverie.instructions.heads import read_with_head
from reverie.origins import escape_tags
from reverie.paths import Places, claude_home
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.settings import Settings
from reverie.settings.claude_rules import split_rules
from reverie.settings.reach import Risk
from reverie.settings.trust import ActingPart, TrustBook, make_check, mark_parts

SKILL = "SKILL.md"
LISTED_CHARACTERS = 8_000
"""The limit for the list of skills that the model sees."""
_LONGEST_LINE = 300
_MOST_FILES = 500
_MOST_FOLDERS = 100
_PART = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")
RUNS = re.compile(r"(?<![\w`!])!`([^`\n]+)`")
_IN_USE = re.compile(r"\A<system-reminder>\nThe user runs the skill in (?P<path>/[^\n]+)\.\n")


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """One command or skill. `ignored`: why what it runs and allows does not count; empty if it counts."""

    name: str
    description: str
    body: str
    path: Path | None = None
    """None for a built-in command."""
    hint: str = ""
    is_skill: bool = False
    is_users: bool = False
    """Whether it is in one of the user's homes."""
    allowed_tools: tuple[str, ...] = ()
    model: str = ""
    for_model: bool = True
    for_user: bool = True
    ignored: str = ""

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.hint}".rstrip()

    @property
    def source(self) -> str:
        """Where it comes from, in the words that hooks know."""
        return "builtin" if self.path is None else "userSettings" if self.is_users else "projectSettings"


@dataclass(frozen=True, slots=True)
class Commands:
    """All commands and skills by name, and one sentence for each file that cannot be used.

    `user:NAME` and `project:NAME` also name a file, even if another one has its shorter name.
    """

    named: Mapping[str, PromptCommand]
    problems: tuple[str, ...] = ()


def built_in() -> tuple[PromptCommand, ...]:
    """Returns the commands that need no file."""
    return (PromptCommand("init", "write AGENTS.md for this project, or bring it up to date", "", for_model=False),)


def load_commands(places: Places, settings: Settings) -> Commands:
    """Returns every command and skill for this working directory; a bare session has only the built-in ones."""
    named = {one.name: one for one in built_in()}
    taken = frozenset(named)
    problems = list[str]()
    for command, parts in () if settings.session.bare else _read_all(places, settings, problems):
        ignored = next((part.ignored for part in parts if part.ignored), "")
        found = replace(command, ignored=ignored, allowed_tools=() if ignored else command.allowed_tools)
        hidden = f"{'user' if found.is_users else 'project'}:{found.name}"
        named[hidden] = replace(found, name=hidden)
        if found.name not in taken:
            named[found.name] = found
    return Commands(MappingProxyType(named), tuple(problems))


def list_shown(commands: Commands, taken: Collection[str] = ()) -> list[PromptCommand]:
    """Returns what is offered, each file once. `taken`: names with another meaning, so the longer name is shown."""
    named = commands.named
    shown = dict[Path | str, PromptCommand]()
    for name, one in named.items():
        if one.for_user and name not in taken:
            shown[one.path or name] = min(shown.get(one.path or name, one), one, key=lambda each: len(each.name))
    return sorted(shown.values(), key=lambda one: one.name)


def trusted_parts(places: Places, settings: Settings) -> list[ActingPart]:
    """Returns what the project's files run or allow: this needs the user's trust."""
    return [part for _, parts in _read_all(places, settings, []) for part in parts]


def list_skills(commands: Commands, *, known: str = "", most: int = LISTED_CHARACTERS) -> str:
    """Returns the list of skills that the model sees, in at most `most` characters; empty if there is nothing new.

    `known`: texts that the model has seen. Skills whose files they name are left out.
    """
    offered = [one for one in commands.named.values() if not one.name.startswith(("user:", "project:"))]
    skills = sorted((one for one in offered if one.is_skill and one.for_model), key=lambda one: one.name)
    each = max(40, min(_LONGEST_LINE, most // max(1, len(skills)) - 100))
    kept, left = list[str](), most
    for one in skills:
        line = _skill_line(one, each)
        left -= len(line) + 1
        if left >= 0 and f"({escape_tags(str(one.path))})" not in known:
            kept.append(line)
    return render("reverie.instructions", "skills.md", {"skills": "\n".join(kept)}) if kept else ""


def _skill_line(skill: PromptCommand, most: int) -> str:
    about = skill.description
    about = about if len(about) <= most else f"{about[: most - 1]}…"
    return f"- {skill.name}: {escape_tags(about)} ({escape_tags(str(skill.path))})"


def render_command(command: PromptCommand, text: str, cwd: Path) -> str:
    """Returns the reminder that gives the model the text of a command, which has no tags of ours."""
    assert command.path is not None, "a built-in command has a text of its own"
    values = {
        "kind": "skill" if command.is_skill else "command",
        "path": escape_tags(str(command.path)),
        "folder": escape_tags(str(command.path.parent if command.is_skill else cwd)),
        "text": text,
    }
    return render("reverie.instructions", "command.md", values)


def skill_in_use(text: str) -> Path | None:
    """Returns the file of the skill that this reminder of ours started; None for any other text."""
    found = _IN_USE.match(text)
    return Path(found["path"]) if found else None


# -- finding and reading ------------------------------------------------------------------------------------------


def command_folders(places: Places, settings: Settings) -> list[tuple[Path, bool]]:
    """Returns the folders with `commands/` and `skills/`, the most general first, and whether they are the user's."""
    claude = [claude_home(settings)] if settings.claude.commands else []
    own = [*claude, places.home]
    names = (".claude", ".reverie") if settings.claude.commands else (".reverie",)
    projects = [top / name for top in places.project_folders() for name in names]
    real = {os.path.realpath(folder) for folder in own}
    return [
        *((folder, True) for folder in own),
        *((folder, False) for folder in projects if os.path.realpath(folder) not in real),
    ]


def _read_all(
    places: Places, settings: Settings, problems: list[str]
) -> Iterator[tuple[PromptCommand, list[ActingPart]]]:
    book: TrustBook | None = None
    project = os.path.join(os.path.realpath(places.checkout), "")  # noqa: PTH118
    for folder, is_users in command_folders(places, settings):
        files = [*_list_files(folder / "commands"), *_list_skills(folder / "skills")]
        leading_out = list[Path]()
        for name, path, is_skill in files[:_MOST_FILES]:
            if not is_users and not os.path.realpath(path).startswith(project):
                leading_out.append(path)
                continue
            found = _read(name, path, is_skill=is_skill, project=None if is_users else places.checkout)
            if isinstance(found, str):
                problems.append(found)
                continue
            parts = [] if is_users else list(_acting_parts(found, path, places.checkout))
            if parts:
                book = book or TrustBook.read(places.home)
                parts = mark_parts(parts, book, places.checkout, places.root)
            yield found, parts
        if leading_out:
            more = f" (and {len(leading_out) - 1} more)" if len(leading_out) > 1 else ""
            problems.append(f"{leading_out[0]}{more}: leads out of the project and is not read.")


def _list_files(folder: Path) -> Iterator[tuple[str, Path, bool]]:
    """Yields name, path and False for each command: `frontend/test.md` is `frontend:test`. Limited in folders."""
    waiting, seen = deque([(folder, "")]), set[str]()
    while waiting and len(seen) < _MOST_FOLDERS:
        inside, prefix = waiting.popleft()
        if (real := os.path.realpath(inside)) in seen:
            continue
        seen.add(real)
        for entry in _scan(inside):
            stem = entry.name.removesuffix(".md")
            if not _PART.fullmatch(stem):
                continue
            if entry.name.endswith(".md") and entry.is_file():
                yield prefix + stem, inside / entry.name, False
            elif len(waiting) < _MOST_FOLDERS and entry.is_dir():
                waiting.append((inside / entry.name, f"{prefix}{entry.name}:"))


def _list_skills(folder: Path) -> Iterator[tuple[str, Path, bool]]:
    for entry in _scan(folder):
        path = folder / entry.name / SKILL
        if _PART.fullmatch(entry.name) and path.is_file():
            yield entry.name, path, True


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)[:_MOST_FILES]
    except OSError:
        return []


def _read(name: str, path: Path, *, is_skill: bool, project: Path | None) -> PromptCommand | str:
    head = read_with_head(path, f"/{name}", project)
    if isinstance(head, str):
        return head
    values, body = head.values, head.body.strip()
    if not body:
        return f"{path}: has no text, so /{name} is left out."
    about = " ".join((values.get("description", ""), values.get("when_to_use", ""))).strip()
    first = next((line.lstrip("# ").strip() for line in body.splitlines() if line.strip("# ")), "")
    return PromptCommand(
        name=name,
        description=" ".join((about or first).split())[:1_000],
        body=body,
        path=path,
        hint=" ".join(values.get("argument-hint", "").split())[:100],
        is_skill=is_skill,
        is_users=project is None,
        allowed_tools=tuple(split_rules(values.get("allowed-tools", ""))),
        model=values.get("model", "").strip(),
        for_model=values.get("disable-model-invocation", "").strip().lower() not in ("true", "yes"),
        for_user=values.get("user-invocable", "").strip().lower() not in ("false", "no"),
    )


def _acting_parts(command: PromptCommand, path: Path, folder: Path) -> Iterator[ActingPart]:
    file = path.relative_to(folder).as_posix()
    runs = [{"command": one} for one in RUNS.findall(command.body)]
    if runs:
        yield ActingPart(folder, file, 1, "run", runs, Risk.RUN, make_check("run", runs, folder))
    if command.allowed_tools:
        rules = list(command.allowed_tools)
        yield ActingPart(folder, file, 1, "allowed-tools", rules, Risk.RUN, make_check("allowed-tools", rules, folder))
