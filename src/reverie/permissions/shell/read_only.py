"""Is a shell command provably read-only? The sole guard before a background agent's command really runs.

Default deny: the command must be readable both by a bash grammar and by a strict reader of our own, both must see the
same words, and each program's options and operands must be on a list. Never runs, expands or rewrites anything.
The runner owes it: `bash -c` with a stripped environment, stdin closed, a time limit and an output limit.
"""

from __future__ import annotations

import unicodedata

from reverie.permissions.rules import NotReadOnly
from reverie.permissions.shell.programs import check_command
from reverie.permissions.shell.tree import read_tree
from reverie.permissions.shell.words import deceptive_text, read_words

MAX_COMMAND_BYTES = 8_192


def is_read_only_shell(command: str) -> bool:
    """True only if the command provably reads, ends by itself and touches no device; see `why_not_read_only`."""
    return why_not_read_only(command) is None


def why_not_read_only(command: str) -> str | None:
    """None if the command may run, else one sentence that names the first reason why not."""
    try:
        _check(command)
    except NotReadOnly as refusal:
        return f"The command is refused because {refusal}."
    return None


def _check(command: str) -> None:
    # A surrogate is not text, and a length limit keeps parsing (and a reader's patience) bounded.
    if len(command) > MAX_COMMAND_BYTES or len(command.encode("utf-8", "surrogatepass")) > MAX_COMMAND_BYTES:
        raise NotReadOnly(f"it is longer than {MAX_COMMAND_BYTES:,} bytes")
    source = command.rstrip("\n")  # models end commands with a line break; bash ignores it
    for char in source:
        if char != "\t" and unicodedata.category(char) in ("Cc", "Cs"):
            raise NotReadOnly(f"it holds the control character U+{ord(char):04X}")
    if reason := deceptive_text(source):
        raise NotReadOnly(reason)
    reading = read_words(source)
    if read_tree(source.encode()) != reading.spans:
        raise NotReadOnly("two ways of reading it disagree about where its words are")
    for simple in reading.commands:
        check_command(simple)
