"""Which old tool rounds can leave the view: whole ones, the oldest first, never what a person said. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from reverie.layers.l3_session_notes.notes_compaction import unsplit
from reverie.layers.weighing import weigh_entries
from reverie.storage.transcript.view import Entry, View

KEEP_ROUNDS = 5
"""The newest rounds stay whatever happens."""


@dataclass(frozen=True, slots=True)
class Run:
    """Complete tool rounds in a row, and what they weigh."""

    entries: tuple[Entry, ...]
    tokens: int

    @property
    def rounds(self) -> int:
        return len({entry.message.id or entry.uuid for entry in self.entries if entry.message.role == "assistant"})


def old_runs(view: View, tokens: int) -> list[Run]:
    """So many of the oldest rounds that about `tokens` are gone with them; fewer if there are not so many."""
    entries = view.entries
    answers = [i for i, entry in enumerate(entries) if entry.message.role == "assistant"]
    newest = answers[-KEEP_ROUNDS] if len(answers) > KEEP_ROUNDS else 0
    end, gone = 0, 0
    while end < newest and gone < tokens:
        if _of_round(entries[end]):
            gone += weigh_entries(view, entries[end : end + 1])
        end += 1
    while end < newest and entries[end].message.tool_results:  # the round that was reached leaves whole
        end += 1
    end = min(newest, unsplit(entries, end))
    found = [Run(run, weigh_entries(view, run)) for run in _runs(entries[:end])]
    return [run for run in found if run.tokens > 0 and run.entries[0].uuid and run.entries[-1].uuid]


def _runs(entries: list[Entry]) -> Iterator[tuple[Entry, ...]]:
    run = list[Entry]()
    for entry in entries:
        if _of_round(entry):
            run.append(entry)
        elif run:
            yield tuple(run)
            run = []
    if run:
        yield tuple(run)


def _of_round(entry: Entry) -> bool:
    """Whether it is a call or a result, and nothing that was said to a person or by one."""
    return not entry.brought and bool(entry.message.tool_uses or entry.message.tool_results)
