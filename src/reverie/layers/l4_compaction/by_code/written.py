"""Notes and summaries written by code, with the parts that a model would write, from the records only.

The fallback when no model can be asked; the offline mind and the lab use it too. Deterministic and bounded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from reverie.layers.l4_compaction.by_code.ledger import failure_lines, operation_ledger
from reverie.layers.l4_compaction.by_code.limits import Limits, bounded
from reverie.layers.l4_compaction.by_code.names import names_beside
from reverie.layers.l4_compaction.by_code.operations import Operation, one_line
from reverie.layers.l4_compaction.by_code.work import WorkRecord
from reverie.models.tokens import encoded
from reverie.storage.transcript.view import Entry

PARTS = (
    "What is wanted, and why",
    "Technical ideas in play",
    "Files and code that matter",
    "Errors, and what fixed them",
    "How problems were solved",
    "What the user said",
    "What is left to do",
    "What was being done just now",
    "The next step",
)
"""The nine parts of a summary, in order."""

_NOTHING = "(none)"
_ELSEWHERE = "What failed, how, and what was changed before it worked is listed below."
_HEADING = re.compile(r"^#{1,3} \S.*$", re.MULTILINE)
_FIRST = (PARTS[8], PARTS[7], PARTS[6], PARTS[0], PARTS[1], PARTS[5])
"""What is written first if there is little room: how to go on, then what for."""

_EXCERPTS = 8
_STEPS = 60


def write_summary(entries: Sequence[Entry], limits: Limits | None = None, *, cwd: str = "", alone: bool = True) -> str:
    """Writes a summary in nine parts. The requests are next to it word for word, so their part only points there.

    `alone`: nothing else is next to it, so it includes failures, files and names.
    """
    limits = limits or Limits()
    work = WorkRecord.of(entries)
    facts: dict[str, str] = {
        PARTS[0]: _describe_goal(work, 500 if alone else 120),
        PARTS[1]: _tools_in_use(work),
        PARTS[5]: f"Messages: {len(work.requests)}, verbatim below or in the history." if work.requests else "",
        PARTS[6]: _list_open(work),
        PARTS[7]: _describe_last_steps(work, limits.excerpt, cwd),
        PARTS[8]: _describe_next_step(work),
    }
    left = limits.total - sum(len(encoded(title)) + len(_NOTHING) + 5 for title in PARTS)
    for title in _FIRST:
        facts[title] = bounded(facts[title], max(0, left))
        left -= len(encoded(facts[title]))
    if alone:
        ledger = operation_ledger(work.done, max_chars=max(0, min(limits.ledger, left // 2)), cwd=cwd)
        left -= len(encoded(ledger))
        names = names_beside(entries, min(limits.names, int(max(0, left) * 0.6 / 15)), ledger, cwd=cwd)
        left -= len(encoded(names))
        facts[PARTS[1]] = "\n".join(filter(None, [facts[PARTS[1]], names]))
        facts[PARTS[3]] = ledger
    elif any(not operation.ok for operation in work.done):
        facts[PARTS[3]] = bounded(_ELSEWHERE, max(0, left))
        left -= len(encoded(facts[PARTS[3]]))
    if alone:
        facts[PARTS[4]] = bounded(_list_solved(work), max(0, left // 3))
        left -= len(encoded(facts[PARTS[4]]))
    facts[PARTS[2]] = _show_code(work, limits.excerpt, cwd, room=max(0, left - 40))
    text = "\n\n".join(f"## {title}\n{facts.get(title) or _NOTHING}" for title in PARTS)
    return bounded(text, limits.total)


def write_notes(entries: Sequence[Entry], template: str, limits: Limits | None = None, *, cwd: str = "") -> str:
    """Fills the ten sections of a template in their order; its headings and hints stay as they are."""
    limits = limits or Limits()
    work = WorkRecord.of(entries)
    log_size = min(limits.ledger, limits.section, limits.total // 3)
    ledger = operation_ledger(work.done, max_chars=log_size, cwd=cwd, failures_too=False)
    failed = "\n".join(f"- {line}" for line in failure_lines(work.done, cwd=cwd))
    bodies = [
        one_line(work.requests[0], 80) if work.requests else "",
        "\n".join(
            filter(None, [_describe_last_steps(work, limits.excerpt, cwd), _list_open(work), _describe_next_step(work)])
        ),
        _list_requests(work),
        _show_code(work, limits.excerpt, cwd, room=min(limits.section, limits.total // 5)),
        "\n".join(f"- {line}" for line in _usual_commands(work)),
        bounded(failed, limits.total // 6),
        "\n".join(filter(None, [_tools_in_use(work), names_beside(entries, limits.names, ledger, cwd=cwd)])),
        _list_still_failing(work),
        bounded(work.result, 3 * limits.excerpt),
        "\n\n".join(filter(None, [_list_done(work), ledger])),
    ]
    sections = _sections(template)
    heads = sum(len(encoded(head)) + 2 for head in sections)
    return _fill(sections, bodies, limits.section, max(0, limits.total - heads), _importance(len(sections)))


def _fill(heads: list[str], bodies: list[str], section: int, room: int, importance: list[int]) -> str:
    given = [bodies[at].strip() if at < len(bodies) else "" for at in range(len(heads))]
    shown = [""] * len(heads)
    for at in importance:
        shown[at] = bounded(given[at], min(section, room))
        room -= len(encoded(shown[at])) + 1 if shown[at] else 0
    return "\n".join(f"{head}{body}\n" if body else head for head, body in zip(heads, shown, strict=True))


def _importance(count: int) -> list[int]:
    """The current state and the errors matter most, then the log, the requests, the names, the code."""
    order = [0, 1, 5, 9, 2, 6, 3, 4, 7, 8]
    return [at for at in order if at < count] + list(range(len(order), count))


def _sections(template: str) -> list[str]:
    starts = [match.start() for match in _HEADING.finditer(template)]
    heads = list[str]()
    for start, end in zip(starts, [*starts[1:], len(template)], strict=True):
        lines = template[start:end].strip().splitlines()
        keep = lines[:1] + [line for line in lines[1:3] if line.strip().startswith(("_", "*"))]
        heads.append("\n".join(keep) + "\n")
    return heads


def _describe_goal(work: WorkRecord, most: int) -> str:
    if not work.requests:
        return ""
    first, last = work.requests[0], work.requests[-1]
    said = [f"- At first: {one_line(first, most)}"]
    if len(work.requests) > 1:
        said.append(f"- Last: {one_line(last, most)}")
    return "\n".join(said)


def _list_requests(work: WorkRecord) -> str:
    shown = [f"- {one_line(request, 400)}" for request in work.requests[-24:]]
    left_out = len(work.requests) - len(shown)
    return "\n".join([*([f"- ({left_out} earlier messages)"] if left_out else []), *shown])


def _tools_in_use(work: WorkRecord) -> str:
    touched = dict.fromkeys(o.target for o in work.done if o.kind in ("read", "edit", "write"))
    kinds = Counter(PurePath(path).suffix for path in touched)
    programs = Counter(_program(o) for o in work.done if o.kind == "run" and o.target)
    parts = [
        _format_counts("Files touched", [(name, n) for name, n in kinds.most_common(5) if name]),
        _format_counts("Programs run", [(name, n) for name, n in programs.most_common(8) if name]),
    ]
    return ". ".join(filter(None, parts))


def _format_counts(title: str, found: list[tuple[str, int]]) -> str:
    return f"{title}: " + ", ".join(f"{name} {n}×" for name, n in found) if found else ""


def _program(operation: Operation) -> str:
    words = [word for word in operation.target.split()[:4] if "=" not in word]
    if not words or not re.fullmatch(r"[\w./-]+", words[0]):
        return ""
    program = words[0].rsplit("/", 1)[-1]
    verb = words[1] if len(words) > 1 and re.fullmatch(r"[a-z][a-z-]{1,11}", words[1]) else ""
    return f"{program} {verb}".strip()


def _show_code(work: WorkRecord, excerpt: int, cwd: str, *, room: int) -> str:
    shown, used = list[str](), 0
    for path, text in work.latest_changes()[:_EXCERPTS]:
        short = path.removeprefix(cwd.rstrip("/") + "/") if cwd else path
        piece = f"- {short}\n```\n{_beginning(text.strip(chr(10)), excerpt)}\n```"
        size = len(encoded(piece)) + 1
        if used + size > room:
            break
        shown.append(piece)
        used += size
    return "\n".join(shown)


def _beginning(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    cut = text[:limit]
    newline = cut.rfind("\n")
    return (cut[:newline] if newline > limit // 3 else cut) + "\n…"


def _list_solved(work: WorkRecord) -> str:
    lines = list[str]()
    first = dict[tuple[str, str], Operation]()
    changed = list[Operation]()
    for operation in work.done:
        key = (operation.tool, operation.target)
        if operation.kind in ("edit", "write") and operation.ok:
            changed.append(operation)
        if not operation.ok:
            first.setdefault(key, operation)
        elif key in first:
            failed = first.pop(key)
            files = dict.fromkeys(PurePath(o.target).name for o in changed if o.order > failed.order)
            what = ", ".join(list(files)[-4:]) or "nothing was changed"
            lines.append(
                f"- `{one_line(failed.target, 100)}` failed ({one_line(failed.said, 80)}), worked after: {what}"
            )
    return "\n".join(dict.fromkeys(reversed(lines)))


def _list_still_failing(work: WorkRecord) -> str:
    worked = {(o.tool, o.target): o.order for o in work.done if o.ok}
    failed = {(o.tool, o.target): o for o in work.done if not o.ok and o.kind == "run"}
    left = [one for key, one in failed.items() if worked.get(key, -1) < one.order]
    return "\n".join(f"- Fails: `{one_line(o.target, 120)}` ({one_line(o.said, 80)})" for o in left)


def _list_done(work: WorkRecord) -> str:
    items = work.closed_items[-20:]
    return "Ticked off:\n" + "\n".join(f"- {item}" for item in items) if items else ""


def _list_open(work: WorkRecord) -> str:
    shown = [f"- {item}" for item in work.open_items[:20]]
    if work.closed_items:
        shown.append(f"- (done so far: {len(work.closed_items)}, last: {work.closed_items[-1]})")
    return "\n".join(shown)


def _describe_last_steps(work: WorkRecord, excerpt: int, cwd: str) -> str:
    here = cwd.rstrip("/") + "/" if len(cwd) > 1 else ""
    last = [
        f"- {o.tool} {one_line(o.target, 160)} → {one_line(o.said, 120)}"
        for o in [o for o in work.done if o.kind != "tasks"][-5:]
    ]
    said = f"The assistant last said: {one_line(work.last_answer, excerpt)}" if work.last_answer else ""
    text = "\n".join(filter(None, [said, *last]))
    return text.replace(here, "") if here else text


def _describe_next_step(work: WorkRecord) -> str:
    if work.open_items:
        return f"First open item: {work.open_items[0]}"
    if work.unfinished and work.requests:
        return f"The last request is not answered yet: {one_line(work.requests[-1], 300)}"
    return "The last request is answered: wait for the user." if work.requests else ""


def _usual_commands(work: WorkRecord) -> list[str]:
    counts = Counter(o.target for o in work.done if o.kind == "run")
    latest = {o.target: o for o in work.done if o.kind == "run"}
    often = sorted(counts, key=lambda command: (-counts[command], -latest[command].order))[:_STEPS]
    return [
        f"`{one_line(command, 160)}`"
        + (f" ({counts[command]}×)" if counts[command] > 1 else "")
        + f" → {one_line(latest[command].said, 80)}"
        for command in often
    ]
