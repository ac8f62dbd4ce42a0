"""Runs what it is asked to run, one command after the other, and shows what each printed."""

from __future__ import annotations

import re

from reverie.offline.conversation import Done
from reverie.offline.step import Answer, Step
from reverie.offline.talk.turn import Talk

PRINTED_LINES = 20
_BEGINNING = 6
_KEPT = re.compile(
    r"<persisted-output>\n.*?\((?P<size>[^()]+)\)\. All of it is in (?P<path>.+?); .*?:\n\n"
    r"(?P<preview>.*?)\n?</persisted-output>",
    re.DOTALL,
)
"""A kept result: its size, its path, its beginning."""
_LINE = 200


def run(talk: Talk, commands: tuple[str, ...]) -> Step:
    """The next command that was not run yet; after the last, or the first that failed, what they printed."""
    if not talk.can("Bash"):
        return Answer(talk.word("failed") + " Bash is not offered here.")
    ran = list[tuple[str, Done]]()
    for command in commands:
        done = talk.result("Bash", command=command)
        if done is None:
            return talk.act("Let me run it.", "Bash", {"command": command})
        ran.append((command, done))
        if done.failed:
            break
    return Answer("\n\n".join(_shown(talk, command, done, len(commands) > 1) for command, done in ran))


def _shown(talk: Talk, command: str, done: Done, named: bool) -> str:
    kept = _KEPT.match(done.text)
    if kept:
        begins = [line[:_LINE] for line in kept["preview"].splitlines() if line.strip()][:_BEGINNING]
        return "\n".join([talk.word("kept", size=kept["size"], path=kept["path"]), "", "```", *begins, "…", "```"])
    lines = [line[:_LINE] for line in done.text.splitlines() if line.strip()]
    head = f"`{command}`: " if named else ""
    if not lines:
        return head + talk.word("printed_nothing")
    more = [talk.word("more_lines", count=str(len(lines) - PRINTED_LINES))] if len(lines) > PRINTED_LINES else []
    said = talk.word("failed" if done.failed else "printed")
    return "\n".join([head + said, "", "```", *lines[:PRINTED_LINES], *more, "```"])
