"""What waits for the user: the item for the inbox with the texts that it comes from, and the sentence that tells the
writer. Plain data in, plain data out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from reverie.memory.changes import Evidence, ProposedWrite
from reverie.memory.gate.inbox import Item, ItemSource
from reverie.memory.gate.rule import Standing, Verdict
from reverie.memory.topic_file import encode
from reverie.storage.history.objects import blob_id
from reverie.text.cutting import shorten
from reverie.text.words import content_terms

_SHOWN: Final = 3
_LONGEST: Final = 120
_SOURCES: Final = 6


def make_item(write: ProposedWrite, held: Sequence[Verdict], lost: Sequence[Standing]) -> Item:
    """The item for statements that wait, and for statements that stay until the user decides."""
    against = next((one for one in held if one.contradicts is not None), None)
    why, question = "evidence", ""
    if lost:
        why = "removal"
        was = "; ".join(f"“{shorten(one.text, _LONGEST)}”" for one in lost[:_SHOWN])
        now = "; ".join(f"“{shorten(one.text, _LONGEST)}”" for one in held[:_SHOWN])
        question = f"{write.name} says: {was} " + (f"Is this true now: {now}?" if now else "Should it be removed?")
    elif against is not None and against.contradicts is not None:
        why = "contradiction"
        was, now = shorten(against.contradicts.text, _LONGEST), shorten(against.text, _LONGEST)
        question = f"{against.contradicts.file} says, confirmed by you: “{was}” Is this true now: “{now}”?"
    return Item(
        why=why,
        file=write.name,
        text=write.text or "",
        statements=tuple(one.text for one in held),
        removes=tuple(one.text for one in lost),
        question=question,
        reason=held[0].why if held else "nothing you said asks for it",
        before=blob_id(encode(write.before)) if write.before is not None else "",
        sources=tuple(map(_source, _relevant(write.evidence, [one.text for one in held]))),
        writer=write.writer.value,
        session=write.session,
    )


def explain(
    write: ProposedWrite, held: Sequence[Verdict], lost: Sequence[Standing], item: str, *, stored_any: bool
) -> str:
    """The sentence for the writer; empty if nothing waits."""
    if not held and not lost:
        return ""
    quoted = "; ".join(f"“{shorten(one.text, _LONGEST)}” ({one.why})" for one in held[:_SHOWN])
    more = f" and {len(held) - _SHOWN} more" if len(held) > _SHOWN else ""
    where = f" (inbox {item})" if item else ""
    first = "stored without a part. " if stored_any and held else ""
    parts = [f"{first}Kept for the user to confirm{where}: {quoted}{more}."] if held else []
    if lost:
        stays = "; ".join(f"“{shorten(one.text, _LONGEST)}”" for one in lost[:_SHOWN])
        parts.append(f"These statements stay until the user decides{where}: {stays}.")
    return f"{write.name}: {' '.join(parts)} This is not an error; go on."


def _relevant(evidence: tuple[Evidence, ...], held: Sequence[str]) -> list[Evidence]:
    """The texts that the held statements come from, then the user's last words: enough to see where it came from."""
    terms = frozenset[str]().union(*map(content_terms, held))
    scored = sorted(evidence, key=lambda block: len(terms & content_terms(block.text)), reverse=True)
    users = [block for block in evidence if block.origin.is_users][-_SOURCES // 2 :]
    return list(dict.fromkeys([*scored[: _SOURCES // 2], *users]))


def _source(block: Evidence) -> ItemSource:
    return ItemSource(str(block.origin), block.text, block.message)
