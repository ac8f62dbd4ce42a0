"""Notes and summaries written by code: the same parts a model is asked for, filled from the record alone.

The fallback when no model can be asked, and what the embedded mind and the lab use. Always the same text for the same
conversation, always within its limits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from reverie.layers.l4_compaction.by_code.ledger import operation_ledger
from reverie.layers.l4_compaction.by_code.names import names_in_use
from reverie.layers.l4_compaction.by_code.operations import Operation, given_to, one_line, operations
from reverie.storage.view import Entry
from reverie.types import Json, JsonObject, Origin, TextBlock, ToolUseBlock

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

_NOTHING = "(nothing on record)"
_HEADING = re.compile(r"^#{1,3} .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Limits:
    """In characters. `names` counts identifiers."""

    total: int = 40_000
    ledger: int = 20_000
    excerpt: int = 600
    names: int = 300


def write_summary(entries: Sequence[Entry], limits: Limits | None = None, *, cwd: str = "") -> str:
    """A summary in nine parts. The requests stand beside it verbatim, so their part only points there."""
    limits = limits or Limits()
    work = _Work.of(entries)
    filled = {
        PARTS[0]: _wanted(work),
        PARTS[1]: ", ".join(names_in_use(entries, limits.names)),
        PARTS[2]: _code(work, limits.excerpt, cwd),
        PARTS[3]: operation_ledger(work.failed_and_repaired(), max_chars=limits.ledger // 3, cwd=cwd),
        PARTS[4]: _solved(work),
        PARTS[5]: f"{len(work.requests)} messages, each verbatim below or in the history.",
        PARTS[6]: "\n".join(f"- {item}" for item in work.open_items),
        PARTS[7]: _just_now(work, limits.excerpt),
        PARTS[8]: _next(work),
    }
    return _bounded("\n\n".join(f"## {title}\n{text or _NOTHING}" for title, text in filled.items()), limits.total)


def write_notes(entries: Sequence[Entry], template: str, limits: Limits | None = None, *, cwd: str = "") -> str:
    """A template's ten sections, filled in their order; its headings and the hints under them stay as they are."""
    limits = limits or Limits()
    work = _Work.of(entries)
    ledger = operation_ledger(work.done, max_chars=limits.ledger, cwd=cwd)
    bodies = [
        one_line(work.requests[0], 80) if work.requests else "",
        _just_now(work, limits.excerpt),
        "\n".join(f"- {one_line(request, 400)}" for request in work.requests[-12:]),
        _code(work, limits.excerpt, cwd),
        "\n".join(f"- {line}" for line in _usual_commands(work)),
        operation_ledger(work.failed_and_repaired(), max_chars=limits.ledger // 3, cwd=cwd),
        ", ".join(names_in_use(entries, limits.names)),
        _solved(work),
        work.last_answer[: limits.excerpt],
        ledger,
    ]
    share = limits.total // max(1, len(bodies))
    sections = _sections(template)
    filled = [
        head + (_bounded(body, 3 * share) if body.strip() else "") + "\n"
        for head, body in zip(sections, [*bodies, *([""] * len(sections))], strict=False)
    ]
    return _bounded("\n".join(filled), limits.total)


def _sections(template: str) -> list[str]:
    """Each heading with the italic hint under it."""
    starts = [match.start() for match in _HEADING.finditer(template)]
    heads = list[str]()
    for start, end in zip(starts, [*starts[1:], len(template)], strict=True):
        lines = template[start:end].strip().splitlines()
        keep = lines[:1] + [line for line in lines[1:3] if line.strip().startswith(("_", "*"))]
        heads.append("\n".join(keep) + "\n")
    return heads


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    cut = text[: max(0, limit - 40)]
    return cut[: cut.rfind("\n") if "\n" in cut[len(cut) // 2 :] else None] + "\n[… cut to fit]"


@dataclass(frozen=True, slots=True)
class _Work:
    """A conversation seen as work."""

    requests: list[str]
    answers: list[str]
    done: list[Operation]
    edits: list[tuple[str, str]]
    open_items: list[str]
    unfinished: bool

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> _Work:
        requests, answers, edits = list[str](), list[str](), list[tuple[str, str]]()
        items: dict[str, bool] = {}
        unfinished = False
        for entry in entries:
            for block in entry.message.content:
                if isinstance(block, TextBlock) and block.origin is Origin.PERSON:
                    requests.append(block.text)
                    unfinished = True
                elif isinstance(block, TextBlock) and block.origin is Origin.MODEL:
                    answers.append(block.text)
                elif isinstance(block, ToolUseBlock):
                    given = given_to(block)
                    if block.name in ("Edit", "Write"):
                        edits.append(
                            (
                                str(given.get("file_path", "")),
                                str(given.get("new_string") or given.get("content") or ""),
                            )
                        )
                    _note_items(block.name, given, items)
            if entry.message.role == "assistant" and not entry.message.tool_uses:
                unfinished = False
        left = [item for item, is_open in items.items() if is_open]
        return cls(requests, answers, operations(entries), edits, left, unfinished)

    @property
    def last_answer(self) -> str:
        return self.answers[-1] if self.answers else ""

    def failed_and_repaired(self) -> list[Operation]:
        """What failed, and the later calls of the same thing."""
        failed = {(o.tool, o.target) for o in self.done if not o.ok}
        return [o for o in self.done if (o.tool, o.target) in failed]


def _note_items(tool: str, given: JsonObject, items: dict[str, bool]) -> None:
    """Keeps the agent's own task list: what it wrote down and has not ticked off."""
    if tool == "TodoWrite" and isinstance(given.get("todos"), list):
        items.clear()
        for todo in cast(list[Json], given["todos"]):
            if isinstance(todo, dict):
                entry = cast(JsonObject, todo)
                items[one_line(str(entry.get("content", "")), 200)] = entry.get("status") != "completed"
    elif tool == "TaskCreate":
        items[one_line(str(given.get("subject") or given.get("description") or ""), 200)] = True
    elif tool == "TaskUpdate" and given.get("status") in ("completed", "deleted"):
        number = str(given.get("taskId", ""))
        if number.isdigit() and 0 < int(number) <= len(items):
            items[list(items)[int(number) - 1]] = False


def _wanted(work: _Work) -> str:
    if not work.requests:
        return ""
    first, last = work.requests[0], work.requests[-1]
    said = [f"- At first: {one_line(first, 500)}"]
    if last is not first:
        said.append(f"- Last: {one_line(last, 700)}")
    return "\n".join(said)


def _code(work: _Work, excerpt: int, cwd: str) -> str:
    """The newest text of each file that was changed last, as an excerpt."""
    latest = dict[str, str]()
    for path, text in work.edits:
        latest.pop(path, None)
        latest[path] = text
    shown = list(latest.items())[-8:]
    short = [
        (path.removeprefix(cwd + "/") if cwd else path, text.strip("\n")[:excerpt]) for path, text in reversed(shown)
    ]
    return "\n".join(f"- {path}\n```\n{text}\n```" for path, text in short)


def _solved(work: _Work) -> str:
    """For each thing that failed and worked later: what was changed in between."""
    lines = list[str]()
    for failed in work.done:
        if failed.ok:
            continue
        later = next(
            (o for o in work.done[failed.order + 1 :] if o.ok and (o.tool, o.target) == (failed.tool, failed.target)),
            None,
        )
        if later is None:
            continue
        between = [o for o in work.done[failed.order + 1 : later.order] if o.kind in ("edit", "write") and o.ok]
        files = ", ".join(dict.fromkeys(o.target.rsplit("/", 1)[-1] for o in between)) or "nothing changed"
        lines.append(f"- `{one_line(failed.target, 120)}` failed ({one_line(failed.said, 80)}), worked after: {files}")
    return "\n".join(dict.fromkeys(reversed(lines)))[:4_000]


def _just_now(work: _Work, excerpt: int) -> str:
    last = [f"- {o.tool} {one_line(o.target, 160)} → {one_line(o.said, 120)}" for o in work.done[-6:]]
    said = f"The assistant last said: {one_line(work.last_answer, excerpt)}" if work.last_answer else ""
    return "\n".join(filter(None, [said, *last]))


def _next(work: _Work) -> str:
    if work.unfinished and work.requests:
        return f"The last request is not answered yet: {one_line(work.requests[-1], 500)}"
    return f"First open item: {work.open_items[0]}" if work.open_items else "Wait for the user."


def _usual_commands(work: _Work) -> list[str]:
    counts = dict[str, int]()
    for operation in work.done:
        if operation.kind == "run" and operation.ok:
            counts[operation.target] = counts.get(operation.target, 0) + 1
    often = sorted(counts.items(), key=lambda item: -item[1])[:12]
    return [f"`{one_line(command, 160)}`" + (f" ({times}×)" if times > 1 else "") for command, times in often]
