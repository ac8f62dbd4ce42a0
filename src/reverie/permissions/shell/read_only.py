"""Checks whether a shell command is provably read-only: the only guard before a background agent's command runs.

It denies by default: a bash grammar and our own strict parser must find the same words, and each program, its options
and operands must be on a list. Nothing is run or expanded. The caller must run the command with `bash -c`, a bare
environment, no input, a time limit and an output limit.
"""

from __future__ import annotations

import unicodedata

from reverie.permissions.rules import NotReadOnly
from reverie.permissions.shell.programs import check_command
from reverie.permissions.shell.tree import read_tree
from reverie.permissions.shell.words import Reading, find_deception, read_words

MAX_COMMAND_BYTES = 8_192


def is_read_only_shell(command: str) -> bool:
    """Whether the command provably only reads, ends by itself and uses no device; see `why_not_read_only`."""
    return why_not_read_only(command) is None


def why_not_read_only(command: str) -> str | None:
    """Returns None if the command may run, else one sentence with the first reason against it."""
    try:
        for simple in read_commands(command).commands:
            check_command(simple)
    except NotReadOnly as refusal:
        return f"The command is refused because {refusal}."
    return None


def read_commands(command: str, *, wide: bool = False) -> Reading:
    """Returns the words on which both parsers agree; raises `NotReadOnly` for everything that may mean more."""
    if len(command) > MAX_COMMAND_BYTES or len(command.encode("utf-8", "surrogatepass")) > MAX_COMMAND_BYTES:
        raise NotReadOnly(f"it is longer than {MAX_COMMAND_BYTES:,} bytes")
    source = command.rstrip("\n")  # models often end a command with a line break; bash ignores it
    for char in source:
        if char != "\t" and unicodedata.category(char) in ("Cc", "Cs"):
            raise NotReadOnly(f"it holds the control character U+{ord(char):04X}")
    if reason := find_deception(source):
        raise NotReadOnly(reason)
    reading = read_words(source, wide=wide)
    if read_tree(source.encode(), wide=wide) != reading.spans:
        raise NotReadOnly("two parsers find different words in it")
    return reading
