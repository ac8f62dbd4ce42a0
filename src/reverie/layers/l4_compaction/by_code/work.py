"""A conversation as work: what was asked and answered, done and changed, and what is open. Reads only the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from reverie.layers.l4_compaction.by_code.definitions import says_something, telling_line
from reverie.layers.l4_compaction.by_code.operations import (
    Operation,
    call_input,
    changes_of,
    one_line,
    operations,
    path_of,
)
from reverie.quick import dataclass
from reverie.storage.transcript.view import Entry
from reverie.types import Json, JsonObject, Origin, TextBlock, ToolUseBlock

_ITEM = 200


@dataclass(frozen=True, slots=True)
class WorkRecord:
    """What notes and summaries are written from. `changes` are (path, old, new) in order; `result` is the last answer
    that ended a turn; `unfinished`: the last request has none."""

    requests: list[str]
    answers: list[str]
    result: str
    done: list[Operation]
    changes: list[tuple[str, str, str]]
    open_items: list[str]
    closed_items: list[str]
    unfinished: bool

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> WorkRecord:
        requests, answers = list[str](), list[str]()
        changes = list[tuple[str, str, str]]()
        items = _Items()
        result, unfinished, cut_off = "", False, False
        working = {m.id for entry in entries if (m := entry.message).tool_uses and m.id is not None}
        done = operations(entries)
        calls = iter(done)
        for entry in entries:
            for block in entry.message.content:
                if isinstance(block, TextBlock) and block.origin.is_users:
                    requests.append(block.text)
                    unfinished = True
                elif isinstance(block, TextBlock) and block.origin is Origin.MODEL and block.text.strip():
                    answers.append(block.text)
                elif isinstance(block, ToolUseBlock):
                    if next(calls).ok:
                        changes += [(path_of(block), old, new) for old, new in changes_of(block)]
                    items.take(block.name, call_input(block))
            message = entry.message
            calls_something = bool(message.tool_uses) or message.id in working
            if message.role == "assistant" and not calls_something and message.text.strip():
                result, unfinished = (result if cut_off else "") + message.text, False
                cut_off = message.fields.get("stop_reason") == "max_tokens"
        return cls(requests, answers, result, done, changes, items.open, items.closed, unfinished)

    @property
    def last_answer(self) -> str:
        return self.answers[-1] if self.answers else ""

    def latest_changes(self) -> list[tuple[str, str]]:
        """Returns each changed file with its newest text that says something, the last changed file first."""
        found = dict[str, str]()
        for path, old, new in self.changes:
            text = new if says_something(telling_line(old, new)) or not found.get(path) else found[path]
            found.pop(path, None)
            found[path] = text
        return [(path, text) for path, text in reversed(found.items()) if text.strip()]


class _Items:
    def __init__(self) -> None:
        self._items: dict[str, tuple[str, bool]] = {}

    @property
    def open(self) -> list[str]:
        return [text for text, is_open in self._items.values() if is_open and text]

    @property
    def closed(self) -> list[str]:
        return [text for text, is_open in self._items.values() if not is_open and text]

    def take(self, tool: str, given: JsonObject) -> None:
        if tool == "TodoWrite" and isinstance(given.get("todos"), list):
            todos = [cast(JsonObject, todo) for todo in cast(list[Json], given["todos"]) if isinstance(todo, dict)]
            self._items = {
                str(at): (_item_text(todo), todo.get("status") != "completed") for at, todo in enumerate(todos)
            }
        elif tool == "TaskCreate":
            text = one_line(str(given.get("subject") or given.get("description") or ""), _ITEM)
            self._items[str(len(self._items) + 1)] = (text, True)
        elif tool == "TaskUpdate" and str(given.get("taskId", "")) in self._items:
            number, status = str(given["taskId"]), given.get("status")
            text, is_open = self._items[number]
            now = {"completed": False, "deleted": False, "in_progress": True, "pending": True}
            self._items[number] = (text, now.get(str(status), is_open))


def _item_text(todo: JsonObject) -> str:
    doing = " (being done)" if todo.get("status") == "in_progress" else ""
    return one_line(str(todo.get("content", "")), _ITEM) + doing
