"""Background work of a foreign conversation. Its prefix has the caller's tools, so a fork with our tools starts apart.

Extraction sees only the new part, with long results cut: nothing of it is in the cache. Summaries need no tools and
are asked on the caller's own prefix (`context/fork_question.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from reverie.agents.fork import AFRESH, ForkPoint
from reverie.layers.l5_extraction.gates import WRITER
from reverie.layers.l5_extraction.recordings import part_log
from reverie.layers.l5_extraction.span import new_since
from reverie.library.given import without_injected
from reverie.quick import dataclass
from reverie.runtime.parts import Parts
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.view import Entry
from reverie.types import Purpose


@dataclass(frozen=True, slots=True)
class ApartFork(ForkPoint):
    """A fork of a foreign conversation: the same messages below a header of ours."""

    parts: Parts
    header: Callable[[], SessionHeader]

    @property
    def learnable(self) -> Sequence[Entry]:
        """All messages: a turn of a foreign loop is long, and a compaction in it hides what the user said first."""
        return without_injected(self.view.history)

    def starting(self, purpose: Purpose) -> ForkPoint:
        talk, view = self.conversation, self.view
        if purpose is Purpose.EXTRACTION:
            said = self.learnable
            first = len(said) - len(new_since(said, [view.cursors.get(WRITER)]).entries)
            log, _ = part_log(said, first, len(said), self.header(), self.parts)
        else:
            log = talk.log.fork("apart")
            log.append(self.header())
        account = talk.account.afresh() if talk.account is not None else None
        apart = replace(talk, log=log, announced=(AFRESH,), account=account, sent=None, sent_messages=(), own_from=None)
        return replace(self, conversation=apart)

    def afresh(self, system: str, tools: Sequence[str], *, model: str = "") -> ForkPoint:
        plain = ForkPoint(self.conversation, self.tools, self.context, self.output_cap, self.output_cap_raised)
        return plain.afresh(system, tools, model=model)
