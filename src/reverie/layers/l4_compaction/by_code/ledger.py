"""The operation ledger: what was done, what failed and how, in few words. Bounded by bytes.

The most important part comes first and is cut last: failures, changed files, files read, commands, searches, the rest.
Without room for a line about each thing, the newest get lines and the others are named, many per line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from reverie.layers.l4_compaction.by_code.operations import Operation, one_line, only_shows, paths_in_command
from reverie.models.tokens import encoded
from reverie.quick import dataclass

_ON_A_LINE = 12
_TITLE = 60
_LOOKED_AT, _NAMED, _SEARCHES = 20, 60, 8
_SHORTEST_COMMAND = 130


@dataclass(frozen=True, slots=True)
class _LedgerPart:
    title: str
    lines: list[str]
    share: float
    named: Callable[[int], list[str]] | None = None
    """Returns compact lines for the things after the first `n`."""
    instead: list[str] | None = None
    """Shorter lines for everything, if not all lines fit."""


def failure_lines(done: Sequence[Operation], *, cwd: str = "") -> list[str]:
    """Returns a line for each thing that failed: how, how often, and what was changed before it worked."""
    return [_failure(one, cwd, brief=False) for one in _failures(done)]


def operation_ledger(
    done: Sequence[Operation], *, max_chars: int = 24_000, cwd: str = "", failures_too: bool = True
) -> str:
    """Returns the ledger, at most `max_chars` bytes long; empty if nothing was done."""
    changed = _changes(done)
    only_read = _list_only_read(done, changed)
    failures = _failures(done) if failures_too else []
    brief = max_chars < 6_000
    parts = [
        _LedgerPart("Failed", [_failure(one, cwd, brief) for one in failures], 0.3),
        _LedgerPart(
            "Files changed, the last first",
            [_change_line(path, ops, cwd, brief) for path, ops in changed],
            0.25,
            lambda shown: _by_folder([path for path, _ in changed[shown:]], cwd),
        ),
        _LedgerPart(
            "Files read and not changed",
            _by_folder(list(only_read), cwd, only_read),
            0.15,
            instead=_by_folder(list(only_read), cwd),
        ),
        _LedgerPart("Files only named in commands", _by_folder(_list_only_named(done, cwd), cwd), 0.05),
        _LedgerPart("Commands that worked, with their last result", _commands(done, cwd, brief), 0.15),
        _LedgerPart("Searches", _searches(done, cwd)[: _SEARCHES if brief else None], 0.04),
        _LedgerPart("Other calls", _others(done), 0.03),
        _LedgerPart("Looked at", _list_views(done, cwd), 0.03),
    ]
    full = [part for part in parts if part.lines]
    needs = [(part.share, sum(_size(line) for line in part.lines)) for part in full]
    texts = [_render_part(part, room) for part, room in zip(full, _allowances(needs, max_chars), strict=True)]
    return _join_within([text for text in texts if text], max_chars)


def _render_part(part: _LedgerPart, room: int) -> str:
    if part.instead is not None and sum(map(_size, part.lines)) > room:
        return f"{part.title}:\n" + "\n".join(f"- {line}" for line in part.instead)
    count, used = 0, 0
    while count < len(part.lines) and used + _size(part.lines[count]) <= room:
        used += _size(part.lines[count])
        count += 1
    named = list[str]()
    while part.named is not None and count < len(part.lines):
        named = part.named(count)
        if count == 0 or used + sum(map(_size, named)) <= room:
            break
        count -= 1  # one line less makes room for several names
        used -= _size(part.lines[count])
    shown = [*part.lines[:count], *named]
    if not shown:
        return ""
    left_out = len(part.lines) - count if not named else 0
    more = f" ({count} of {len(part.lines)})" if left_out else ""
    return f"{part.title}{more}:\n" + "\n".join(f"- {line}" for line in shown)


def _join_within(texts: list[str], limit: int) -> str:
    text = "\n\n".join(texts)
    while text and len(encoded(text)) > limit:
        cut = text.rfind("\n")
        text = text[:cut].rstrip() if cut > 0 else ""
    lines = text.split("\n")
    while lines and lines[-1].endswith(":") and not lines[-1].startswith("- "):
        lines = "\n".join(lines[:-1]).rstrip().split("\n")  # a title without lines
    return "\n".join(lines)


def _allowances(parts: list[tuple[float, int]], budget: int) -> list[int]:
    budget = max(0, budget - _TITLE * len(parts))
    room = [min(need, int(share * budget)) for share, need in parts]
    spare = budget - sum(room)
    for i, (_, need) in enumerate(parts):
        more = max(0, min(need - room[i], spare))
        room[i] += more
        spare -= more
    return room


@dataclass(frozen=True, slots=True)
class _Failure:
    last: Operation
    times: int
    runs: int
    mended: bool
    between: tuple[str, ...] = ()


def _failures(done: Sequence[Operation]) -> list[_Failure]:
    """Returns one item per thing that failed: commands first, often repeated ones before the rest, then the newest."""
    groups = dict[tuple[str, str], list[Operation]]()
    for operation in done:
        groups.setdefault((operation.tool, operation.target), []).append(operation)
    found = list[_Failure]()
    for group in groups.values():
        failed = [operation for operation in group if not operation.ok]
        if failed:
            later = next((other.order for other in group if other.ok and other.order > failed[-1].order), None)
            between = _files_changed_between(done, failed[-1].order, later) if later is not None else ()
            found.append(_Failure(failed[-1], len(failed), len(group), later is not None, between))
    commands = [one for one in found if one.last.kind == "run"]
    others = [one for one in found if one.last.kind != "run"]
    return [*sorted(commands, key=_by_use), *sorted(others, key=_by_use)]


def _files_changed_between(done: Sequence[Operation], first: int, last: int) -> tuple[str, ...]:
    changed = [o.target for o in done[first + 1 : last] if o.kind in ("edit", "write") and o.ok]
    return tuple(dict.fromkeys(PurePath(path).name for path in reversed(changed)))


def _by_use(one: _Failure) -> tuple[bool, int]:
    return one.runs < 2, -one.last.order


def _failure(one: _Failure, cwd: str, brief: bool) -> str:
    last = one.last
    target = f"`{one_line(_relative(last.target, cwd), _SHORTEST_COMMAND if brief else 240)}`"
    what = target if last.kind == "run" else f"{last.tool} {target}"
    often = f" ({one.times}×)" if one.times > 1 else ""
    after = f" after changing {', '.join(one.between[: 2 if brief else 4])}" if one.between else ""
    said = one_line(_relative(last.said, cwd), 80 if brief else 160)
    return f"{what} → {said}{often}" + (f"; worked later{after}" if one.mended else "")


def _changes(done: Sequence[Operation]) -> list[tuple[str, list[Operation]]]:
    found = dict[str, list[Operation]]()
    for operation in done:
        if operation.kind in ("edit", "write") and operation.ok and operation.target:
            found.setdefault(operation.target, []).append(operation)
    return sorted(found.items(), key=lambda item: -item[1][-1].order)


def _change_line(path: str, changes: list[Operation], cwd: str, brief: bool) -> str:
    places = list(dict.fromkeys(place for change in reversed(changes) for place in change.places))
    where = f" in {', '.join(places[: 3 if brief else 6])}" + ("…" if len(places) > 6 else "") if places else ""
    times = f"{len(changes)} changes" if len(changes) > 1 else "1 change"
    last = one_line(changes[-1].said, 60 if brief else 120)
    return f"{_relative(path, cwd)}: {times}{where}; last {last}"


def _list_only_read(done: Sequence[Operation], changed: list[tuple[str, list[Operation]]]) -> dict[str, str]:
    written = {path for path, _ in changed}
    found = dict[str, dict[str, None]]()
    for operation in reversed(done):
        if operation.kind == "read" and operation.ok and operation.target and operation.target not in written:
            found.setdefault(operation.target, {})[operation.said] = None
    return {path: "" if "whole" in parts else ",".join(list(parts)[:3]) for path, parts in found.items()}


def _by_folder(paths: Sequence[str], cwd: str, notes: dict[str, str] | None = None) -> list[str]:
    folders = dict[str, list[str]]()
    for path in paths:
        short = PurePath(_relative(path, cwd))
        note = (notes or {}).get(path, "")
        folders.setdefault(str(short.parent), []).append(short.name + (f" ({note})" if note else ""))
    return [
        ("" if folder == "." else f"{folder}/: ") + ", ".join(names[start : start + _ON_A_LINE])
        for folder, names in folders.items()
        for start in range(0, len(names), _ON_A_LINE)
    ]


def _commands(done: Sequence[Operation], cwd: str, brief: bool) -> list[str]:
    """Lists what worked, the newest first. Commands that only show something are in `_list_views`."""
    counts, latest = dict[str, int](), dict[str, Operation]()
    for operation in done:
        if operation.kind == "run" and operation.ok and not only_shows(operation.target):
            counts[operation.target] = counts.get(operation.target, 0) + 1
            latest[operation.target] = operation
    return [
        f"`{one_line(_relative(one.target, cwd), 100 if brief else 200)}`"
        + (f" ({counts[one.target]}×)" if counts[one.target] > 1 else "")
        + f" → {one_line(_relative(one.said, cwd), 60 if brief else 120)}"
        for one in _newest(latest)
    ]


def _newest(latest: Mapping[Any, Operation]) -> list[Operation]:
    return sorted(latest.values(), key=lambda operation: -operation.order)


def _list_views(done: Sequence[Operation], cwd: str) -> list[str]:
    latest = {o.target: o for o in done if o.kind == "run" and o.ok and only_shows(o.target)}
    return [f"`{one_line(_relative(one.target, cwd), 120)}`" for one in _newest(latest)[:_LOOKED_AT]]


def _list_only_named(done: Sequence[Operation], cwd: str) -> list[str]:
    opened = [o.target for o in done if o.kind in ("read", "edit", "write")]
    found = dict[str, None]()
    for operation in reversed(done):
        if operation.kind == "run":
            found |= dict.fromkeys(paths_in_command(_relative(operation.target, cwd)))
    return [path for path in found if not any(name == path or name.endswith("/" + path) for name in opened)][:_NAMED]


def _searches(done: Sequence[Operation], cwd: str) -> list[str]:
    latest = {o.target: o for o in done if o.kind == "search" and o.ok}
    return [f"{one.tool} {_relative(one.target, cwd)} → {_hits(one, cwd)}" for one in _newest(latest)]


def _hits(search: Operation, cwd: str) -> str:
    files = list(dict.fromkeys(PurePath(_relative(place, cwd)).name for place in search.places))[:4]
    return f"{search.said}: {', '.join(files)}" if files else search.said


def _others(done: Sequence[Operation]) -> list[str]:
    latest = {(o.tool, o.target): o for o in done if o.kind in ("web", "agent", "other") and o.ok}
    return [f"{operation.tool} {operation.target} → {operation.said}" for operation in _newest(latest)]


def _relative(text: str, cwd: str) -> str:
    return text.replace(cwd.rstrip("/") + "/", "") if len(cwd) > 1 else text


def _size(line: str) -> int:
    return len(encoded(line)) + 3
