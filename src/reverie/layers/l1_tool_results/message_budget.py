"""Limits all results of one round together, before they are first sent: the largest go to disk until the rest fits.

Each message is judged once. The decision is recorded for every result, so that a resume cannot decide differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reverie.layers.base import Effect, EffectResult, Now, StageCommit, WriteFile
from reverie.layers.l1_tool_results.replacement import (
    NEVER_PERSISTED,
    LimitsNow,
    ResultLimits,
    file_name,
    holds_image,
    render_replacement,
    text_and_form,
)
from reverie.quick import dataclass
from reverie.storage.transcript.records import LayerFailure, ResultDecisions
from reverie.storage.transcript.view import View
from reverie.types import ToolResultBlock


@dataclass(frozen=True, slots=True)
class _Candidate:
    call_id: str
    text: str
    structured: bool


@dataclass(eq=False, slots=True)
class MessageBudget:
    """The pipeline's first stage."""

    flag = "tool_results.message_budget"
    folder: Path
    limits: LimitsNow

    def plan(self, view: View, now: Now) -> Sequence[Effect] | None:
        fresh = view.fresh_results()
        if not fresh:
            return None
        return [self._write(candidate) for candidate in self._chosen(view, fresh, self.limits())]

    def commit(self, view: View, now: Now, results: Sequence[EffectResult]) -> StageCommit:
        fresh = view.fresh_results()
        limits = self.limits()
        replaced = {
            chosen.call_id: render_replacement(chosen.text, self._path(chosen), limits.preview)
            for chosen, result in zip(self._chosen(view, fresh, limits), results, strict=True)
            if result.ok
        }
        kept = tuple(block.tool_use_id for block in fresh if block.tool_use_id not in replaced)
        failed = next((result.text for result in results if not result.ok), None)
        told = (LayerFailure("tool_results", f"a large result could not be put on disk: {failed}"),) if failed else ()
        return StageCommit(payloads=(ResultDecisions(replaced, kept), *told))

    def _chosen(self, view: View, fresh: Sequence[ToolResultBlock], limits: ResultLimits) -> list[_Candidate]:
        """Chooses the largest first until the sum fits; ties by position, so that a replay chooses the same."""
        candidates = list[_Candidate]()
        for block in fresh:
            if view.call_name(block.tool_use_id) in NEVER_PERSISTED or holds_image(block.content or ""):
                continue
            text, structured = text_and_form(block.content or "")
            candidates.append(_Candidate(block.tool_use_id, text, structured))
        total = sum(len(candidate.text) for candidate in candidates)
        chosen = list[_Candidate]()
        for candidate in sorted(candidates, key=lambda each: -len(each.text)):
            if total <= limits.message or len(candidate.text) <= limits.preview:
                break
            chosen.append(candidate)
            total -= len(candidate.text)
        return chosen

    def _path(self, candidate: _Candidate) -> Path:
        return self.folder / file_name(candidate.call_id, structured=candidate.structured)

    def _write(self, candidate: _Candidate) -> WriteFile:
        return WriteFile(self._path(candidate), candidate.text.encode("utf-8", "surrogatepass"))
