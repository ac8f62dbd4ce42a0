"""What each tool does and says, over the memory of one project. Blocking, for one thread. Everything that comes from a
memory is quoted line by line, with its age, its trust and its evidence; every answer is bounded. A `ReverieError` has
the sentence for the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any, Final

from reverie.connect.mcp.conversation import Conversation
from reverie.daemon.projects import Project
from reverie.errors import UserError
from reverie.library.finding import show_file
from reverie.library.writing import forget, history, remember
from reverie.memory.gate.saving import find_memories
from reverie.memory.lookup import find_file
from reverie.memory.recall.reminder import RecalledMemory, reminder_within, render_memory
from reverie.memory.scan import ScanEntry
from reverie.memory.taxonomy import INDEX
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.text.cutting import shorten
from reverie.text.quoting import one_line, quote_line
from reverie.types import JsonObject, Origin

RECALL_CHARACTERS: Final = 12_000
READ_BYTES: Final = 24_000
READ_LINES: Final = 2_000
_LISTED: Final = 20
_LISTED_ALL: Final = 200
_LINE: Final = 160
_SHOWN: Final = 400


@dataclass(frozen=True, slots=True)
class Answer:
    """The text for the model, the same as data for programs, and whether memory has changed."""

    text: str
    data: JsonObject | None = None
    changed: bool = False


@dataclass(frozen=True, slots=True)
class Tools:
    """The five tools for one project, one conversation and one client."""

    project: Project
    conversation: Conversation
    by: str
    """Who writes, for the history."""

    def call(self, name: str, given: dict[str, Any]) -> Answer:
        match name:
            case "recall":
                return self.recall(given["query"])
            case "remember":
                return self.remember(given["text"], given.get("type"))
            case "forget":
                return self.forget(given["name"])
            case "read":
                return self.read(given.get("name"))
            case _:
                return self.history(given.get("name"), given.get("limit", 10))

    # -- reading -------------------------------------------------------------------------------------------------------

    def recall(self, query: str) -> Answer:
        """The memories that fit; what the context has already is only named."""
        memory = self.project.memory
        memory.require_on("nothing is recalled")
        known = self.conversation.shown
        found = self.project.recall(query, known)
        if not found and len(query.split()) == 1:  # one word is not a message, but it may be a topic
            found = [
                show_file(memory, one.file) for one in find_memories(memory, query)[0][:3] if one.file not in known
            ]
        text, shown = reminder_within([_by_name(one) for one in found], time(), RECALL_CHARACTERS)
        self.conversation.note_shown(one.name for one in shown)
        again = self._already(query, known)
        if not shown and again:
            text = "Nothing else fits."
        elif not shown:
            entries = memory.directory.list()
            listed = _list(entries, _LISTED)
            nothing = "No memory clearly fits these words." if entries else "There are no memories yet."
            text = f"{nothing}\n{listed}" if listed else nothing
        return Answer("\n\n".join(filter(None, (text, again))))

    def _already(self, query: str, known: Sequence[str]) -> str:
        """Says which memories would fit too, but came with a prompt of this session."""
        if not known:
            return ""
        same = [one.name for one in self.project.recall(query, ()) if one.name in known]
        return f"Already in this conversation, given with a prompt: {', '.join(map(one_line, same))}." if same else ""

    def read(self, name: str | None) -> Answer:
        memory = self.project.memory
        if name is None or name.strip() == INDEX:
            entries = memory.directory.list()
            return Answer(_list(entries, _LISTED_ALL) or "There are no memories yet.")
        return Answer(self.show(find_file(memory.directory, name)))

    def show(self, file: str) -> str:
        """One memory as a whole, quoted."""
        one = _by_name(show_file(self.project.memory, file))
        return render_memory(one, time(), READ_LINES, READ_BYTES)

    def history(self, name: str | None, limit: int) -> Answer:
        found = history(self.project.memory, name, limit)
        lines = [
            f"{one.id}  {one.when.astimezone():%Y-%m-%d %H:%M}  {one.writer}: {one_line(one.subject or one.why)}"
            f"{f' ({one_line(shorten(one.why, _LINE))})' if one.why and one.subject else ''}"
            for one in found
        ]
        data: list[JsonObject] = [
            {
                "id": one.id,
                "when": one.when.isoformat(),
                "writer": one.writer,
                "subject": shorten(one.subject, _LINE),
                "why": shorten(one.why, _LINE),
                "files": {**one.files},
            }
            for one in found
        ]
        end = "`reverie memory undo ID` in a terminal takes one back." if found else "There are no versions yet."
        return Answer("\n".join([*lines, end]), {"versions": [*data]})

    def task(self, task: str) -> str:
        """A task of the user with the memories that fit it."""
        found = self.recall(task).text
        return render("reverie.connect.mcp", "task.md", {"task": task, "memories": found})

    # -- writing -------------------------------------------------------------------------------------------------------

    def remember(self, text: str, kind: str | None) -> Answer:
        """Saves a text of a model: see docs/decisions/0050-the-mcp-server.md for its trust."""
        said = self.conversation.evidence(self.project.settings)
        memory = self.project.memory
        saved = remember(memory, text, kind, "", Origin.MODEL.value, said, notes=True, by=self.by)
        data: JsonObject = {
            "action": saved.action,
            "name": saved.name if saved.action != "held" else None,
            "trust": saved.trust,
            "waiting": saved.waiting or None,
            "undo": saved.undo or None,
        }
        parts = [
            {
                "added": f"Saved as {saved.name}.",
                "unchanged": saved.note or f"{saved.name} says this already; nothing was written.",
                "held": "Not stored yet: it waits for the user, who decides with `reverie memory inbox`.",
            }[saved.action]
        ]
        if saved.action == "added":
            parts.append(_TRUST[saved.trust])
            parts.append(f"Undo: `reverie memory undo {saved.undo}`.")
        if saved.held:
            reason = "It names an address or is against what the user confirmed"
            quoted = "\n".join(quote_line(shorten(one, _LINE)) for one in saved.held[:3])
            parts.append(f"{reason}:\n{quoted}")
        return _told(" ".join(parts), data, changed=bool(saved.undo))

    def forget(self, name: str) -> Answer:
        """Removes a memory for a model. It can be undone; what the user confirmed stays until they decide."""
        memory = self.project.memory
        _check_name(name)
        done = forget(memory, name, Origin.MODEL.value, self.conversation.evidence(self.project.settings), self.by)
        quoted = "\n".join(map(quote_line, shorten(done.text, _SHOWN).splitlines()))
        data: JsonObject = {"name": done.name, "waiting": done.waiting or None, "undo": done.undo or None}
        if done.waiting:
            what = f"{done.name} stays: the user confirmed it, so they decide, with `reverie memory inbox`."
            return _told(f"{what}\n{quoted}", data, changed=bool(done.undo))
        more = f"\nThese say much the same: {', '.join(map(one_line, done.also_in[:5]))}." if done.also_in else ""
        undo = f"Undo: `reverie memory undo {done.undo}`."
        return _told(f"Removed {done.name}. {undo} Tell the user. It said:\n{quoted}{more}", data, changed=True)


_TRUST: Final = {
    "confirmed": "The user said it, so it is confirmed.",
    "inferred": "It counts as inferred until the user confirms it.",
    None: "",
}


def _told(text: str, data: JsonObject, *, changed: bool) -> Answer:
    """An answer with its text in the data too: some clients show a model only the data."""
    return Answer(text, {"message": text, **data}, changed)


def _check_name(name: str) -> None:
    """A path is not a name of a memory: nothing outside can be meant."""
    if name.startswith(("/", "~", "\\")) or ".." in Path(name.strip()).parts:
        raise UserError(f"{name[:60]!r} is not the name of a memory: an .md file, relative to the memory directory.")


def _by_name(one: RecalledMemory) -> RecalledMemory:
    """With its name instead of its path: a client reads it by its name."""
    return replace(one, path=Path(one.name))


def _list(entries: Sequence[ScanEntry], most: int) -> str:
    """The names and descriptions of memories, quoted, newest first; empty if there are none."""
    if not entries:
        return ""
    lines = [quote_line(f"{one.name}: {shorten(one.description or one.title, _LINE)}") for one in entries[:most]]
    more = f"\n… and {len(entries) - most} more; call `recall` with other words." if len(entries) > most else ""
    return (
        "\n".join(
            [
                "The beginnings of memories, newest first. The rest can matter: call `read` with a name that may help.",
                *lines,
            ]
        )
        + more
    )
