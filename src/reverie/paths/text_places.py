"""Every place in Reverie's home that can hold text of a user: the one list for purge, doctor and the docs.

A file that is not in the list counts as text too, so a purge never misses a new place. Pure.
"""

from __future__ import annotations

from enum import Enum
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from reverie.quick import dataclass


class Treatment(Enum):
    """What a purge does with a file that holds the secret."""

    REWRITTEN = "rewritten"
    DELETED = "deleted"  # it can be made again
    YOURS = "left to you"  # the user wrote it: a purge reports it and does not change it


@dataclass(frozen=True, slots=True)
class TextPlace:
    """One place, as a pattern below the home. They are tried in order."""

    pattern: str
    kind: str
    what: str
    treatment: Treatment = Treatment.REWRITTEN


TEXT_PLACES: tuple[TextPlace, ...] = (
    TextPlace("projects/*/memory/.inbox/*", "inbox", "memories that wait for you"),
    TextPlace("projects/*/memory/.dreams/*", "dream", "dreams that wait for you, and what dreams did"),
    TextPlace("projects/*/memory/.trust/*", "marks", "the words of yours that memories rest on"),
    TextPlace("projects/*/memory/*", "memory", "memory files"),
    TextPlace("projects/*/memory-history.git/*", "history", "every version of the memory files"),
    TextPlace("projects/*/*/tool-results/*", "session", "large results of tools"),
    TextPlace("projects/*/*/session-memory/*", "session", "the notes of a session"),
    TextPlace("projects/*/*/subagents/*", "session", "transcripts of agents"),
    TextPlace("projects/*/*/letters.json", "session", "messages that a session was sent"),
    TextPlace("projects/*/*.jsonl", "transcript", "transcripts"),
    TextPlace("projects/*/*.jsonl.torn", "transcript", "half records that a crash left"),
    TextPlace("projects/*", "session", "what else a session leaves"),
    TextPlace("agent-memory/*", "memory", "memories of agents"),
    TextPlace("logs/*", "log", "the background log"),
    TextPlace("ledger/*", "ledger", "what background work cost"),
    TextPlace("heartbeats/*", "log", "how background writers are doing"),
    TextPlace("extracted/*", "log", "how far `reverie extract` has come"),
    TextPlace("followed/*", "log", "which recorded sessions are followed, and how far they are copied"),
    TextPlace("hooks/digests/*", "session", "what compactions of other agents must not lose", Treatment.DELETED),
    TextPlace("hooks/*", "session", "what sessions of other agents were told"),
    TextPlace("history/*", "typed", "what you typed into the chat"),
    TextPlace("teams/*", "mailbox", "teams and their inboxes"),
    TextPlace("team-sync/*", "team", "what you had in common with your team at the last sync"),
    TextPlace("dreams/*", "dream", "the copy that a running dream works on"),
    TextPlace("indexes/*", "index", "search indexes with the vectors of an encoder", Treatment.DELETED),
    TextPlace("run/*", "socket", "sockets of live sessions, and jobs of the hooks that wait"),
    TextPlace(
        "connect/*",
        "connect",
        "the plug-in, settings of other agents as they were, and the token of the MCP server",
        Treatment.YOURS,
    ),
    TextPlace("store-tokens/*", "connect", "your tokens for memory servers", Treatment.YOURS),
    TextPlace("models/*", "weights", "weights of encoders: no text of yours", Treatment.YOURS),
    TextPlace("worktrees/*", "worktree", "checkouts that agents work in", Treatment.YOURS),
    TextPlace("session-memory/config/*", "yours", "your template for notes", Treatment.YOURS),
    TextPlace("agents/*", "yours", "agents that you defined", Treatment.YOURS),
    TextPlace("rules/*", "yours", "your rules", Treatment.YOURS),
    TextPlace("*.toml", "yours", "your settings and flags", Treatment.YOURS),
    TextPlace("*.md", "yours", "your instructions", Treatment.YOURS),
    TextPlace("*", "other", "anything else, such as a request log"),
)


def find_text_place(relative: str) -> TextPlace:
    """Returns the place of a file, by its path below the home. `*.toml` and `*.md` name files of the home itself."""
    is_top = len(PurePosixPath(relative).parts) == 1
    return next(
        one
        for one in TEXT_PLACES
        if fnmatchcase(relative, one.pattern) and (is_top or not one.pattern.startswith("*."))
    )
