"""One compaction in progress: the files to write, and its records once everything is known. Pure."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from reverie.layers.base import Append, Break, BreakCause, Now, StageCommit, WriteFile
from reverie.layers.l4_compaction.compose import (
    CompactionScope,
    Ids,
    SummaryParts,
    SummaryText,
    after,
    records,
    summary_blocks,
)
from reverie.layers.l4_compaction.requests import all_requests_file, files_for, requests_in
from reverie.layers.l4_compaction.setup import CompactionNumbers, CompactionRequest, CompactionSetup
from reverie.layers.l4_compaction.survival import Inventory, describe_survival, inventory, survival, texts_of
from reverie.models.tokens import estimate_text
from reverie.origins import fence
from reverie.quick import dataclass
from reverie.storage.transcript.records import SessionHeader
from reverie.storage.transcript.view import View
from reverie.types import Block, Origin

_SMALLEST_SHARE = 10
_WORTH = 0.8
_ROOMY = 0.45
"""Share of the threshold: files come back whole only if the new context stays below it."""


@dataclass(slots=True)
class Draft:
    """A compaction of this view: what leaves, what stays, and the summary of what leaves."""

    ground: CompactionSetup
    view: View
    now: Now
    wanted: CompactionRequest
    scope: CompactionScope
    prose: SummaryText
    ids: Ids = field(init=False)
    all_requests: Path = field(init=False)
    header: SessionHeader = field(init=False)
    smallest: int = 0
    _mentioned: Inventory = field(default_factory=Inventory, init=False)
    _summary: tuple[object, tuple[Block, ...]] = field(default=(None, ()), init=False)

    def __post_init__(self) -> None:
        names = [self.ground.new_id() for _ in range(5)]
        self.ids = Ids(*names)
        self.all_requests = self.ground.requests / f"all-{names[0]}.txt"
        header = self.view.header
        assert header is not None, "a conversation has a header before it is compacted"
        # If the first part stays, so does the header: the prefix survives.
        self.header = header if self.scope.kept_first else self.ground.render_header(header)

    def writes(self) -> list[WriteFile]:
        """Returns files for the long messages of the user, and for all of them if they may not fit."""
        numbers, said = self.ground.numbers(), requests_in(self.scope.gone)
        files = files_for(said, self.ground.requests, numbers.request_bytes)
        if sum(estimate_text(one.text) for one in said) > numbers.requests_tokens // _SMALLEST_SHARE:
            files.append(all_requests_file(said, self.all_requests))
        return files

    def made(
        self,
        attachments: tuple[Block, ...],
        heard: str,
        unsaved: frozenset[Path],
        numbers: CompactionNumbers,
        *,
        roomy: bool = False,
    ) -> StageCommit | None:
        """Returns the commit within these budgets; None if the new context is not smaller, or still over the threshold.

        With `roomy` it must also leave room to work in.
        """
        view, scope, now = self.view, self.scope, self.now
        appends = records(
            scope,
            self.prose,
            self.ids,
            trigger=self.wanted.trigger,
            tokens_before=now.used,
            last=next((entry.uuid for entry in reversed(view.entries) if entry.uuid is not None), None),
            header=self.header,
            summary=self._summary_of(unsaved, numbers),
            attachments=attachments,
            hooks=(fence(Origin.HOOK, heard),) if heard else (),
            discovered=tuple(self.ground.discovered()),
        )
        then = after(view, appends)
        tokens = then.meter.tokens
        self.smallest = min(tokens, self.smallest or tokens)
        if tokens >= now.used or tokens >= (self.now.autocompact_at * _ROOMY if roomy else self._limit()):
            return None
        self._mentioned = self._mentioned or inventory(texts_of(view.messages()), requests_in(scope.gone))
        report = survival(
            self._mentioned,
            texts_of(then.messages()),
            boundary=self.ids.boundary,
            writer=self.prose.writer,
            tokens_before=now.used,
            tokens_after=tokens,
            limit=numbers.request_bytes,
        )
        return StageCommit(
            appends=(*appends, Append(report, {"compactOf": self.ids.boundary})),
            breaks=Break(BreakCause.COMPACTED, "the conversation was compacted"),
            notice=f"{_how(self.prose)}: {now.used:,} → {tokens:,} tokens; {describe_survival(report)}",
        )

    def _limit(self) -> int:
        """Returns the limit of the new context. Notes that leave it nearly full again are not worth a break."""
        worth = _WORTH if self.prose.writer == "notes" and self.wanted.trigger == "auto" else 1.0
        return int(self.now.autocompact_at * worth)

    def _summary_of(self, unsaved: frozenset[Path], numbers: CompactionNumbers) -> tuple[Block, ...]:
        """The summary message; made again only if something about it changed."""
        if self._summary[0] != (unsaved, numbers):
            made = summary_blocks(self.scope, self.prose, self._beside(unsaved), numbers)
            self._summary = (unsaved, numbers), made
        return self._summary[1]

    def _beside(self, unsaved: frozenset[Path]) -> SummaryParts:
        scope = self.scope
        visible = texts_of(entry.message for entry in scope.kept) if scope.kept_first else ""
        return SummaryParts(
            requests=requests_in(scope.gone),
            requests_folder=self.ground.requests,
            all_requests=self.all_requests,
            unsaved=unsaved,
            pins={name: text for name, text in self.view.pins.items() if text not in visible},
            transcript=self.ground.transcript,
            cwd=str(self.ground.cwd),
        )


def _how(prose: SummaryText) -> str:
    by = {
        "notes": "Compacted from the notes, without a model call",
        "fork": "Compacted",
        "plain": "Compacted by a plain request",
        "code": "Compacted with a summary made by code",
    }[prose.writer]
    return by + (f" ({'; '.join(prose.failures)})" if prose.failures else "")
