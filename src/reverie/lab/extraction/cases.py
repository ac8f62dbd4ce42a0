"""Labelled conversations for measuring extraction: what a case holds, read from a file of one JSON object a line."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from reverie.errors import UserError
from reverie.parsing import load_json
from reverie.regular_files import LARGEST, read_regular_text
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class Expected:
    """One memory that should be there. `|` inside a string separates alternatives."""

    type: str
    all_of: tuple[str, ...]
    any_of: tuple[str, ...]
    updates: str | None
    dates: tuple[str, ...]
    scope: str


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled conversation. `note` starts with kind/category/language and is shown to nobody."""

    id: str
    today: date
    note: str
    instructions: str
    existing: dict[str, str]
    messages: tuple[JsonObject, ...]
    expected: tuple[Expected, ...]
    forbidden: tuple[str, ...]
    max_files: int
    removed: tuple[str, ...]
    split: str = ""
    """Which part of its file it belongs to, such as `tune` or `held`."""

    @property
    def labels(self) -> tuple[str, str, str]:
        """Kind, category and language."""
        kind, category, language, *_ = [*self.note.partition(":")[0].split("/"), "", "", ""]
        return kind.strip(), category.strip(), language.strip()

    @property
    def is_negative(self) -> bool:
        return not self.expected and not self.removed


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case: files created or changed with their text, files that are gone, and why writes were not."""

    case: Case
    written: dict[str, str] = field(default_factory=dict[str, str])
    gone: tuple[str, ...] = ()
    index: str = ""
    refused: tuple[str, ...] = ()
    failed: str = ""
    seconds: float = 0.0
    """What the run took, from the directive to the last write, with the disk."""
    cpu_seconds: float = 0.0
    """What of it was work of this process."""


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, one JSON object a line; `UserError` names the line that is none."""
    try:
        lines = read_regular_text(path, LARGEST).splitlines()
    except OSError as error:
        raise UserError(f"The cases {path} cannot be read: {error.strerror}.") from error
    found: list[Case] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                found.append(_case(load_json(line)))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise UserError(f"{path}:{number}: is not a labelled conversation ({error}).") from error
    if not found:
        raise UserError(f"There are no cases in {path}.")
    return found


def _case(raw: JsonObject) -> Case:
    return Case(
        id=str(raw["id"]),
        today=date.fromisoformat(raw["today"]),
        note=str(raw.get("note", "")),
        instructions=str(raw.get("instructions") or ""),
        existing={str(one["file"]): str(one["text"]) for one in raw.get("existing", [])},
        messages=tuple(raw["messages"]),
        expected=tuple(
            Expected(
                type=str(one["type"]),
                all_of=tuple(one.get("all_of", ())),
                any_of=tuple(one.get("any_of", ())),
                updates=one.get("updates"),
                dates=tuple(one.get("dates", ())),
                scope=str(one.get("scope", "")),
            )
            for one in raw.get("expected", [])
        ),
        forbidden=tuple(raw.get("forbidden", ())),
        max_files=int(raw.get("max_files", 0)),
        removed=tuple(raw.get("removed") or ()),
        split=str(raw.get("split") or ""),
    )
