"""What an agent is doing right now, in three to five words: the last call of its conversation, named by its file.

Present tense, from the records alone. Before the first call, the most telling word of the task.
"""

from __future__ import annotations

import re
from pathlib import PurePath

from reverie.layers.l4_compaction.by_code import operations, plain_command
from reverie.layers.l4_compaction.by_code.operations import Operation, paths_in_command
from reverie.models.base import Request
from reverie.offline.conversation import read_turn
from reverie.offline.step import Answer, Step
from reverie.offline.terms import read_question
from reverie.storage.transcript.view import Entry

_WORD = 40


def next_step(request: Request) -> Step:
    """One line."""
    done = operations([Entry(message.id, message) for message in request.messages])
    last = next((one for one in reversed(done) if one.kind != "tasks"), None)
    if last is not None:
        return Answer(_doing(last))
    terms = read_question(read_turn(request).question).terms
    return Answer(f"Thinking about {_word(terms[0])}" if terms else "Reading the first message")


def _doing(last: Operation) -> str:
    match last.kind:
        case "read" | "write" | "edit":
            verb = {"read": "Reading", "write": "Writing", "edit": "Editing"}[last.kind]
            path = PurePath(last.target)
            inside = last.places[0] if last.kind == "edit" and last.places else ""
            if inside:
                return f"{verb} {_word(inside)} in {_word(path.name)}"
            folder = path.parent.name
            return f"{verb} {_word(path.name)} in {_word(folder)}" if folder else f"{verb} the file {_word(path.name)}"
        case "run":
            return _running(last.target)
        case "search":
            pattern, _, where = last.target.partition(" in ")
            place = PurePath(where).name or "files"
            return f"Searching {_word(place)} for {_word(pattern)}"
        case "web":
            return f"Looking up {_word(last.target)} online"
        case "agent":
            return f"Waiting for agent: {_word(last.target)}"
        case "tasks" | "other":
            return f"Calling the tool {_word(last.tool)}"


def _running(command: str) -> str:
    plain = plain_command(command)
    words = [word for word in plain.split() if "=" not in word]
    program = PurePath(words[0]).name if words else "a command"
    files = paths_in_command(plain)
    if files:
        return f"Running {_word(program)} on {_word(PurePath(files[0]).name)}"
    named = next((word for word in words[1:] if re.fullmatch(r"[\w./:-]*\w[\w./:-]*", word) and word[0] != "-"), "")
    return f"Running the command {_word(program)}" + (f" {_word(named)}" if named else "")


def _word(text: str) -> str:
    """One word of limited length: blanks are replaced."""
    flat = "-".join(text.split())
    return flat if len(flat) <= _WORD else flat[: _WORD - 1] + "…"
