"""What a dream came to, as data and as a sentence. Nothing here acts."""

from __future__ import annotations

from dataclasses import dataclass

from reverie.layers.l6_dreaming.landing import Landed
from reverie.layers.l6_dreaming.proposal import Proposal
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class Dreamt:
    """What a dream came to. `outcome`: landed, unchanged, proposed or shown (a dry run)."""

    outcome: str
    way: str
    rounds: int
    cost_usd: float
    hit_rate: float
    tokens: int = 0
    denied: tuple[str, ...] = ()
    refused: int = 0
    """Files it was not allowed to write as it wanted to."""
    proposal: Proposal | None = None
    landed: Landed | None = None

    @property
    def stopped(self) -> bool:
        """Whether something it wanted to do was not done."""
        return bool(self.denied or self.refused)

    def to_json(self) -> JsonObject:
        changes = self.proposal.changes if self.proposal is not None else ()
        return {
            "outcome": self.outcome,
            "way": self.way,
            "rounds": self.rounds,
            "cost_usd": round(self.cost_usd, 6),
            "hit_rate": round(self.hit_rate, 4),
            "denied": list(self.denied),
            "refused": self.refused,
            "id": self.proposal.id if self.proposal is not None else None,
            "files": [{"file": one.name, "change": one.verb, "reason": one.reason} for one in changes],
            "lost": list(self.proposal.lost) if self.proposal is not None else [],
            "version": self.landed.version.id if self.landed is not None and self.landed.version is not None else None,
            "left": dict(self.landed.left) if self.landed is not None else {},
            "kept": list(self.proposal.kept) if self.proposal is not None else [],
        }


def told(dreamt: Dreamt) -> str:
    """What a dream came to, in a sentence that names its files."""
    match dreamt.outcome:
        case "landed":
            landed = dreamt.landed
            files = ", ".join(landed.files) if landed is not None and landed.files else "the index"
            left = f"; left as they are: {', '.join(landed.left)}" if landed is not None and landed.left else ""
            return f"a dream put memory in order: {files}{left}; `reverie dream undo` takes it back"
        case "proposed" | "shown":
            files = (", ".join(dreamt.proposal.files) if dreamt.proposal is not None else "") or "the index"
            if dreamt.outcome == "shown":
                return f"a dream would change: {files}; nothing was changed, /dream review shows how"
            return f"a dream waits for you, it would change: {files}; `reverie dream review` shows how"
        case _:
            return "a dream changed nothing" if dreamt.stopped else "a dream found everything in order"
