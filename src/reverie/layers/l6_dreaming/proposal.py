"""What a dream wants to change, file by file with a reason each, and the proposals that wait for the user.

A proposal holds the old and the new text, so that it can be merged and shown as a diff. It waits as one JSON file in a
hidden folder of the memory directory.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

from reverie.errors import ReverieError, UserError
from reverie.layers.l6_dreaming.copy import CopiedFile, MemoryCopy
from reverie.layers.l6_dreaming.loss import loss, put_back, quote_lost
from reverie.layers.l6_dreaming.state import FOLDER
from reverie.memory.taxonomy import is_index
from reverie.memory.topic_file import body_statements, decode
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.storage.atomic import make_private_dir, storage_error, write_atomic
from reverie.text.patterns import late

_LONGEST_REASON: Final = 400
_LONGEST_ANSWER: Final = 4_000
_REASON = late(
    r"^\s*(?:[-*+•]|\d+[.)])?\s*[*_`\[\"']*(?P<name>[^\s:`*\]\"'|]+\.md)[`*_\]\"']*(?:\([^)]*\))?[*_]*\s*"
    r"(?:[:：—–→|]|-+>?|\()\s*(?P<why>\S.*)$"
)


class DreamRefused(ReverieError):
    """The result of a dream may not become memory. `among` quotes it for the user, not for logs."""

    def __init__(self, message: str, among: str = "") -> None:
        super().__init__(message)
        self.among = among


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """One file of a proposal. `before` or `after` is None if there is no such file."""

    name: str
    before: str | None
    after: str | None
    reason: str

    @property
    def verb(self) -> str:
        return "add" if self.before is None else "remove" if self.after is None else "change"

    def diff(self) -> str:
        """Returns the change as `diff -u` shows it."""
        old, new = (text.splitlines(keepends=True) if text else [] for text in (self.before, self.after))
        was = f"a/{self.name}" if self.before is not None else "/dev/null"
        now = f"b/{self.name}" if self.after is not None else "/dev/null"
        lines = difflib.unified_diff(old, new, was, now)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Everything that one dream wants to change."""

    id: str
    created: float
    """Seconds since 1970."""
    changes: tuple[ProposedChange, ...]
    session: str = ""
    answer: str = ""
    statements: int = 0
    lost: tuple[str, ...] = ()
    """Statements that are nowhere afterwards, as `file: text`; those without a reason are marked."""
    kept: tuple[str, ...] = ()
    """Files that it wanted to change and that stay as they are, each with the reason."""

    @property
    def files(self) -> tuple[str, ...]:
        """The topic files it touches, without the index."""
        return tuple(change.name for change in self.changes if not is_index(change.name))


def propose(
    copy: MemoryCopy,
    answer: str,
    *,
    id: str,
    created: float,
    session: str,
    max_loss_pct: float,
    held: Mapping[str, Sequence[str]] | None = None,
) -> Proposal | None:
    """Returns the proposal of a finished dream; None if it changed nothing. `DreamRefused` if it loses too much.

    `held` are statements that it could not write, by file: then everything that is gone without a reason stays.
    """
    kept = put_back(copy, answer.splitlines()) if held else {}
    changed = copy.changes()
    if not changed:
        return None
    reasons = reasons_in(answer, [one.name for one in changed])
    before = {name: decode(data) for name, data in copy.base.items()}
    after = dict(before)
    for one in changed:
        if one.after is None:
            del after[one.name]
        else:
            after[one.name] = decode(one.after)
    found = loss(before, after, answer.splitlines())
    if found.share * 100 > max_loss_pct:
        raise DreamRefused(
            f"The dream would lose {len(found.unnamed)} of {found.statements} statements without naming them, and "
            f"{max_loss_pct:g}% is the most; nothing was changed.",
            f"Among them: {quote_lost(found.unnamed)}.",
        )
    return Proposal(
        id=id,
        created=created,
        changes=tuple(_change(one, reasons.get(one.name, "")) for one in changed),
        session=session,
        answer=answer.strip()[:_LONGEST_ANSWER],
        statements=found.statements,
        lost=tuple(f"{one.file}: {one.text}" + ("" if one.named else " (no reason given)") for one in found.lost),
        kept=tuple(kept.values()),
    )


def _change(one: CopiedFile, reason: str) -> ProposedChange:
    before = None if one.before is None else decode(one.before)
    after = None if one.after is None else decode(one.after)
    return ProposedChange(one.name, before, after, reason or _plain_reason(one.name, before, after))


def _plain_reason(name: str, before: str | None, after: str | None) -> str:
    if is_index(name):
        return "the index follows the files"
    if after is None:
        return "removed; no reason was given"
    old, new = set(body_statements(before or "")), set(body_statements(after))
    return f"{len(new - old)} statements new or reworded, {len(old - new)} gone; no reason was given"


def reasons_in(answer: str, names: Sequence[str]) -> dict[str, str]:
    """Finds the reasons in the answer, by file: lines that begin with the file's name, and indented lines below."""
    known = {name: name for name in names} | {name.rpartition("/")[2]: name for name in names if "/" in name}
    found: dict[str, str] = {}
    last = ""
    for line in answer.splitlines():
        match = _REASON.match(line)
        name = known.get(match["name"]) if match else None
        if match and name:
            last = name
            found[name] = f"{found[name]}; {match['why'].strip()}" if name in found else match["why"].strip()
        elif match or not line.strip() or not line[:1].isspace():
            last = ""
        elif last:
            found[last] = f"{found[last]} {line.strip(' -*')}"
    for name in names:
        if name not in found and (why := _said_of(answer, name)):
            found[name] = why
    return {name: " ".join(why.split())[:_LONGEST_REASON] for name, why in found.items()}


def _said_of(answer: str, name: str) -> str:
    """The first line of the answer that names a file; of a heading the line below it. Empty if none does."""
    file = name.rpartition("/")[2]
    lines = [plain for line in answer.splitlines() if (plain := line.strip(" \t#>*-+•|`_"))]
    for number, line in enumerate(lines):
        if file not in re.split(r"[^\w./-]+|(?<=\.md)[.,;]|/", line):
            continue
        rest = line.replace(name, "").replace(file, "").strip(" \t:*`_|()[]")
        return line if rest else next(iter(lines[number + 1 : number + 2]), "")
    return ""


class Proposals:
    """The proposals that wait in one memory directory, oldest first."""

    def __init__(self, memory: Path) -> None:
        self.folder = memory / FOLDER

    def add(self, proposal: Proposal) -> None:
        make_private_dir(self.folder)
        body = json.dumps(asdict(proposal), ensure_ascii=False, indent=1) + "\n"
        write_atomic(self._path(proposal.id), body.encode("utf-8", "surrogateescape"))

    def list(self) -> list[Proposal]:
        """Returns all that can be read."""
        found = [one for path in self._paths() if (one := _read(path)) is not None]
        return sorted(found, key=lambda one: (one.created, one.id))

    def count(self) -> int:
        return len(self._paths())

    def find(self, spec: str = "") -> Proposal:
        """Returns the proposal that the user means: by the beginning of its id, or the only one."""
        waiting = self.list()
        if not waiting:
            raise UserError("No dream waits for you; `reverie dream log` shows what dreams have done.")
        found = [one for one in waiting if one.id.startswith(spec.strip().lower())]
        if len(found) == 1:
            return found[0]
        ids = ", ".join(one.id for one in waiting)
        raise UserError(
            f"{len(found)} dreams wait; say which: {ids}." if found else f"No dream begins with {spec[:20]!r}: {ids}."
        )

    def remove(self, proposal: Proposal) -> None:
        self._path(proposal.id).unlink(missing_ok=True)

    def replace_everywhere(self, change: Callable[[str], str]) -> int:
        """Applies `change` to every proposal's file, for a purge. Returns how many changed."""
        changed = 0
        for path in self._paths():
            before = read_regular_text(path, errors="surrogateescape")
            after = change(before)
            if after != before:
                write_atomic(path, after.encode("utf-8", "surrogateescape"))
                changed += 1
        return changed

    def _path(self, id: str) -> Path:
        return self.folder / f"dream-{id}.json"

    def _paths(self) -> Sequence[Path]:
        try:
            return sorted(self.folder.glob("dream-*.json"))
        except OSError as error:
            raise storage_error(error, self.folder, "read") from error


def _read(path: Path) -> Proposal | None:
    try:
        raw: Any = load_json(read_regular_text(path, errors="surrogateescape"))
        given = cast("dict[str, Any]", raw)
        return Proposal(
            id=str(given["id"]),
            created=float(given["created"]),
            changes=tuple(
                ProposedChange(str(one["name"]), _text(one["before"]), _text(one["after"]), str(one["reason"]))
                for one in cast("Iterable[dict[str, Any]]", given["changes"])
            ),
            session=str(given.get("session", "")),
            answer=str(given.get("answer", "")),
            statements=int(given.get("statements", 0)),
            lost=tuple(map(str, given.get("lost", ()))),
            kept=tuple(map(str, given.get("kept", ()))),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _text(value: object) -> str | None:
    return None if value is None else str(value)
