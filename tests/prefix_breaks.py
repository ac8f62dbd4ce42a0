"""Finds requests whose prefix breaks unannounced in a log of requests: what every test's sessions are checked by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reverie.models.request_log import LoggedRequest, read_log
from reverie.models.wire import count_shared

MAIN = "main"
_ANSWER = '{"assistant"'


@dataclass(frozen=True, slots=True)
class PrefixBreak:
    """Two requests in a row of one thread that do not share what came first, and the part where they part."""

    before: LoggedRequest
    after: LoggedRequest
    index: int

    def __str__(self) -> str:
        was = self.before.parts[self.index]
        now = self.after.parts[self.index] if self.index < len(self.after.parts) else "(nothing)"
        where = f"{self.after.conversation or 'a conversation'}, thread {self.after.thread}, part {self.index}"
        return f"The prefix broke unannounced ({where}): it was {_short(was)}, it is {_short(now)}."


def prefix_breaks(path: Path) -> list[PrefixBreak]:
    """Every request of a log that does not continue the one before it in its thread and did not say why.

    A fork's first request continues the last one of the conversation it was forked from; or an earlier one and its
    answer, if the conversation went on before the fork was run; or the last one of another fork, whose own it is.
    """
    before: dict[tuple[str, str, int], LoggedRequest] = {}
    mains: dict[str, list[LoggedRequest]] = {}
    found: list[PrefixBreak] = []
    for request in read_log(path):
        pid = 0 if request.thread == MAIN else request.pid  # a fork ends with its process: its name may come again
        key = (request.conversation, request.thread, pid)
        own = before.get(key)
        last = own or before.get((request.conversation, MAIN, 0))
        if last and request.announced_break is None:
            index = count_shared(last.parts, request.parts)
            earlier = mains.get(request.conversation, ()) if own is None else ()
            forks = [one for one in before.values() if one.conversation == request.conversation] if own is None else []
            if (
                index < len(last.parts)
                and not any(_goes_on_from(one, request, index) for one in earlier)
                and not any(count_shared(one.parts, request.parts) == len(one.parts) for one in forks)
            ):
                found.append(PrefixBreak(last, request, index))
        before[key] = request
        if request.thread == MAIN:
            mains.setdefault(request.conversation, []).append(request)
    return found


def _goes_on_from(main: LoggedRequest, fork: LoggedRequest, index: int) -> bool:
    """Whether a fork holds this request and its answer and then, from `index` on, what is its own."""
    end = len(main.parts)
    if end > index or index >= len(fork.parts) or count_shared(main.parts, fork.parts) < end:
        return False
    answer = fork.parts[end:index]
    return all(part.startswith(_ANSWER) for part in answer) and not fork.parts[index].startswith(_ANSWER)


def _short(part: str) -> str:
    return part if len(part) <= 160 else f"{part[:120]}…{part[-39:]}"
