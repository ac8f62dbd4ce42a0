"""Every place in Reverie's home where text of a user can be kept: the one list that purge, doctor and the docs use.

A file that no line here names is treated as text too, so a new place is never missed by a purge; it only has no name.
Pure: nothing is read or written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import PurePosixPath


class Treatment(Enum):
    """What a purge does with a file that holds the secret."""

    REWRITTEN = "rewritten"
    DELETED = "deleted"
    """It can be made again."""
    YOURS = "left to you"
    """Written by the user alone: a purge finds it, names it and does not change it."""


@dataclass(frozen=True, slots=True)
class KeptText:
    """One place, as a pattern below the home, in the order in which they are tried."""

    pattern: str
    kind: str
    what: str
    treatment: Treatment = Treatment.REWRITTEN


KEPT: tuple[KeptText, ...] = (
    KeptText("projects/*/memory/.inbox/*", "inbox", "memories that wait for you"),
    KeptText("projects/*/memory/.dreams/*", "dream", "dreams that wait for you, and what dreams did"),
    KeptText("projects/*/memory/*", "memory", "memory files"),
    KeptText("projects/*/memory-history.git/*", "history", "every version of the memory files"),
    KeptText("projects/*/*/tool-results/*", "session", "large results of tools"),
    KeptText("projects/*/*/session-memory/*", "session", "the notes of a session"),
    KeptText("projects/*/*/subagents/*", "session", "transcripts of agents"),
    KeptText("projects/*/*/letters.json", "session", "messages that a session was sent"),
    KeptText("projects/*/*.jsonl", "transcript", "transcripts"),
    KeptText("projects/*/*.jsonl.torn", "transcript", "half records that a crash left"),
    KeptText("projects/*", "session", "what else a session leaves"),
    KeptText("agent-memory/*", "memory", "memories of agents"),
    KeptText("logs/*", "log", "the background log"),
    KeptText("ledger/*", "ledger", "what background work cost"),
    KeptText("heartbeats/*", "log", "how background writers are doing"),
    KeptText("extracted/*", "log", "how far `reverie extract` has come"),
    KeptText("history/*", "typed", "what you typed into the chat"),
    KeptText("teams/*", "mailbox", "teams and their mailboxes"),
    KeptText("team-sync/*", "team", "what you had in common with your team at the last sync"),
    KeptText("dreams/*", "dream", "the copy that a running dream works on"),
    KeptText("indexes/*", "index", "search indexes with the vectors of an encoder", Treatment.DELETED),
    KeptText("run/*", "socket", "sockets of live sessions"),
    KeptText("models/*", "weights", "weights of encoders: no text of yours", Treatment.YOURS),
    KeptText("worktrees/*", "worktree", "checkouts that agents work in", Treatment.YOURS),
    KeptText("session-memory/config/*", "yours", "your template for notes", Treatment.YOURS),
    KeptText("agents/*", "yours", "agents that you defined", Treatment.YOURS),
    KeptText("rules/*", "yours", "your rules", Treatment.YOURS),
    KeptText("*.toml", "yours", "your settings and flags", Treatment.YOURS),
    KeptText("*.md", "yours", "your instructions", Treatment.YOURS),
    KeptText("*", "other", "anything else, such as a request log"),
)


def kept_at(relative: str) -> KeptText:
    """The line for a file, by its path below the home. `*.toml` and `*.md` name files of the home itself."""
    is_top = len(PurePosixPath(relative).parts) == 1
    return next(
        one for one in KEPT if fnmatchcase(relative, one.pattern) and (is_top or not one.pattern.startswith("*."))
    )
