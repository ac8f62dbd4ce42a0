"""The working set after a compaction: plan, skills and the last files, read from disk again, within budgets. Pure.

A skill is a `SKILL.md` in its own folder under `skills/` of a `.reverie` or `.claude` folder, or of our home. It is in
use once the agent reads it, or the user starts it. A plan is a Markdown file directly under `plans/` there; the last
touched one is the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from reverie.instructions.commands import SKILL, skill_in_use
from reverie.layers.base import EffectResult, ReadFile
from reverie.layers.l4_compaction.by_code.operations import operations
from reverie.layers.l4_compaction.setup import CompactionNumbers
from reverie.layers.l4_compaction.summary import PACKAGE
from reverie.models.tokens import JSON_BYTES, PROSE_BYTES, estimate_text, is_json_file
from reverie.origins import escape_tags
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.types import Block, Origin, TextBlock

_TOUCHED = ("read", "edit", "write")
_OWN_FOLDERS = (".reverie", ".claude")


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """What to read again, each kind newest first."""

    plans: tuple[ReadFile, ...] = ()
    skills: tuple[ReadFile, ...] = ()
    files: tuple[ReadFile, ...] = ()

    @property
    def reads(self) -> tuple[ReadFile, ...]:
        """All of them, in the order of `restore_blocks`'s results."""
        return (*self.plans, *self.skills, *self.files)


def working_set(
    said: Sequence[Entry],
    visible: Sequence[Entry],
    cwd: Path,
    home: Path,
    numbers: CompactionNumbers,
    leave_out: Callable[[Path], bool],
) -> WorkingSet:
    """Returns what was read or written last, except for what is in view and what `leave_out` names."""
    in_view = {cwd / o.target for o in operations(visible) if o.kind == "read" and o.ok} | {*skills_in_use(visible)}
    started = dict.fromkeys(skills_in_use(said))
    touched, read = dict(started), set(started)
    for operation in reversed(operations(said)):
        path = cwd / operation.target
        if operation.kind in _TOUCHED and operation.ok and operation.target:
            touched.setdefault(path)
            read |= {path} if operation.kind == "read" else set()
    found = [path for path in touched if path not in in_view and not leave_out(path)]
    plans = [path for path in touched if is_plan(path, home)][:1]
    skills = [path for path in found if path in read and (path in started or is_skill(path, home))]
    files = [path for path in found if path not in skills and not is_plan(path, home)][: numbers.restore_files]
    most = numbers.restore_file_tokens * PROSE_BYTES + 1
    return WorkingSet(
        plans=tuple(ReadFile(path, most) for path in plans if path in found),
        skills=tuple(ReadFile(path, numbers.restore_skill_tokens * PROSE_BYTES + 1) for path in skills),
        files=tuple(ReadFile(path, most) for path in files),
    )


def skills_in_use(said: Sequence[Entry]) -> Iterator[Path]:
    """Yields the files of the skills that the user started, the last one first."""
    for entry in reversed(said):
        for block in entry.message.content:
            path = skill_in_use(block.text) if isinstance(block, TextBlock) and block.origin is Origin.CODE else None
            if path is not None:
                yield path


def is_skill(path: Path, home: Path) -> bool:
    """Returns whether this file is a skill."""
    return path.name == SKILL and len(path.parts) > 3 and _is_own(path.parents[1], "skills", home)


def is_plan(path: Path, home: Path) -> bool:
    """Returns whether this file is a plan."""
    return path.suffix == ".md" and len(path.parts) > 2 and _is_own(path.parent, "plans", home)


def _is_own(folder: Path, name: str, home: Path) -> bool:
    return folder.name == name and (folder.parent == home or folder.parent.name in _OWN_FOLDERS)


def restore_blocks(
    wanted: WorkingSet, results: Sequence[EffectResult], numbers: CompactionNumbers
) -> tuple[Block, ...]:
    """Returns blocks for what could be read, each kind until its budget is used up."""
    read = dict(zip(wanted.reads, results, strict=True))
    each, skill = numbers.restore_file_tokens, numbers.restore_skill_tokens
    found = list[Block]()
    for template, origin, reads, most, together in (
        ("restored_plan.md", Origin.PLAN, wanted.plans, each, each),
        ("restored_skill.md", Origin.TOOL, wanted.skills, skill, numbers.restore_skills_tokens),
        ("restored.md", Origin.TOOL, wanted.files, each, numbers.restore_tokens),
    ):
        for path, text, cut in _within_budget(reads, read, most, together):
            values = {"path": escape_tags(str(path)), "cut": cut, "text": escape_tags(text)}
            if reads is wanted.skills:
                values["name"] = escape_tags(path.parent.name)
            found.append(TextBlock(render(PACKAGE, template, values), origin))
    return tuple(found)


def _within_budget(
    wanted: Sequence[ReadFile], read: dict[ReadFile, EffectResult], each: int, together: int
) -> Iterator[tuple[Path, str, str]]:
    """Yields path, text and a note if only the beginning is shown, while there is room. Numbers are tokens."""
    left = together
    for effect in wanted:
        result = read[effect]
        if not result.ok or not result.text.strip():
            continue
        is_json = is_json_file(str(effect.path))
        text, cut = _beginning(result.text, min(left, each) * (JSON_BYTES if is_json else PROSE_BYTES))
        if not text:
            return
        left -= estimate_text(text, is_json=is_json)
        yield effect.path, text, " (its beginning only: Read the rest when you need it)" if cut else ""


def _beginning(text: str, most: int) -> tuple[str, bool]:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most:
        return text, False
    cut = raw[:most].decode("utf-8", "ignore")
    newline = cut.rfind("\n")
    return (cut[:newline] if newline > len(cut) // 2 else cut), True
