"""The operation ledger: what was done, what failed and how, in as few words as it takes. Bounded by characters.

What a later step would regret most comes first and is cut last: failures, then changed files, then files read,
commands, searches and the rest. Within a part the newest stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from reverie.layers.l4_compaction.by_code.operations import Operation, one_line


@dataclass(frozen=True, slots=True)
class _Part:
    title: str
    lines: list[str]
    share: float
    """Of the whole budget, if all parts are full."""


def operation_ledger(done: Sequence[Operation], *, max_chars: int = 24_000, cwd: str = "") -> str:
    """The ledger as text, at most `max_chars` long; empty if nothing was done."""
    parts = [
        _Part("Failed", _failures(done), 0.25),
        _Part("Files changed", _changed(done, cwd), 0.2),
        _Part("Files read", _read(done, cwd), 0.2),
        _Part("Commands run, with their last result", _commands(done), 0.2),
        _Part("Searches", _searches(done, cwd), 0.08),
        _Part("Other calls", _others(done), 0.07),
    ]
    full = [part for part in parts if part.lines]
    room = _allowances([(part.share, sum(len(line) + 3 for line in part.lines)) for part in full], max_chars)
    texts = list[str]()
    for part, allowed in zip(full, room, strict=True):
        shown, used = list[str](), 0
        for line in part.lines:
            if used + len(line) + 3 > allowed:
                break
            shown.append(f"- {line}")
            used += len(line) + 3
        left_out = len(part.lines) - len(shown)
        more = f" (the newest {len(shown)} of {len(part.lines)})" if left_out else ""
        if shown:
            texts.append(f"{part.title}{more}:\n" + "\n".join(shown))
    return "\n\n".join(texts)


def _allowances(parts: list[tuple[float, int]], budget: int) -> list[int]:
    """Characters for each part: its share, and what others do not need."""
    budget -= 60 * len(parts)  # titles
    room = [min(need, int(share * budget)) for share, need in parts]
    spare = budget - sum(room)
    for i, (_, need) in enumerate(parts):
        more = max(0, min(need - room[i], spare))
        room[i] += more
        spare -= more
    return room


def _failures(done: Sequence[Operation]) -> list[str]:
    """Newest first, one line a thing that failed, and whether it worked later."""
    lines = list[str]()
    seen = set[tuple[str, str]]()
    for operation in reversed(done):
        key = (operation.tool, operation.target)
        if operation.ok or key in seen:
            continue
        seen.add(key)
        later = [other for other in done if other.order > operation.order and (other.tool, other.target) == key]
        times = sum(1 for other in done if (other.tool, other.target) == key and not other.ok)
        again = "; worked later" if any(other.ok for other in later) else ""
        often = f" ({times}×)" if times > 1 else ""
        lines.append(f"{operation.tool} `{one_line(operation.target, 240)}` → {operation.said}{often}{again}")
    return lines


def _changed(done: Sequence[Operation], cwd: str) -> list[str]:
    latest = dict[str, list[Operation]]()
    for operation in done:
        if operation.kind in ("edit", "write") and operation.ok and operation.target:
            latest.setdefault(operation.target, []).append(operation)
    newest = sorted(latest.items(), key=lambda item: -item[1][-1].order)
    return [
        f"{_path(path, cwd)}: {len(changes)}×, last {changes[-1].said}"
        if len(changes) > 1
        else f"{_path(path, cwd)}: {changes[0].said}"
        for path, changes in newest
    ]


def _read(done: Sequence[Operation], cwd: str) -> list[str]:
    """Files that were read and not changed, by folder, the folder read last first."""
    changed = {o.target for o in done if o.kind in ("edit", "write") and o.ok}
    folders = dict[str, dict[str, None]]()
    for operation in reversed(done):
        if operation.kind == "read" and operation.ok and operation.target and operation.target not in changed:
            path = PurePath(_path(operation.target, cwd))
            folders.setdefault(str(path.parent), {})[path.name] = None
    lines = list[str]()
    for folder, names in folders.items():
        shown = list(names)
        for start in range(0, len(shown), 12):
            prefix = "" if folder == "." else f"{folder}/: "
            lines.append(prefix + ", ".join(shown[start : start + 12]))
    return lines


def _commands(done: Sequence[Operation]) -> list[str]:
    latest = {o.target: o for o in done if o.kind == "run" and o.ok}
    newest = sorted(latest.values(), key=lambda operation: -operation.order)
    return [f"`{one_line(operation.target, 200)}` → {operation.said}" for operation in newest]


def _searches(done: Sequence[Operation], cwd: str) -> list[str]:
    latest = {o.target: o for o in done if o.kind == "search" and o.ok}
    newest = sorted(latest.values(), key=lambda operation: -operation.order)
    return [
        f"{operation.tool} {operation.target.replace(cwd + '/', '') if cwd else operation.target} → {operation.said}"
        for operation in newest
    ]


def _others(done: Sequence[Operation]) -> list[str]:
    latest = {(o.tool, o.target): o for o in done if o.kind in ("web", "agent", "other") and o.ok}
    newest = sorted(latest.values(), key=lambda operation: -operation.order)
    return [f"{operation.tool} {operation.target} → {operation.said}" for operation in newest]


def _path(path: str, cwd: str) -> str:
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd else path
