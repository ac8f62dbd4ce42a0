"""How writes of agents to memory end: topic files, the index and the daily log, by the rule of trust. Loaded at the
first write of an agent: what a person writes is stored without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Final

from reverie.memory.changes import Decision, Evidence, ProposedWrite, Writer
from reverie.memory.gate.forgotten import Forgotten, find_brought_back
from reverie.memory.gate.head import rebuild_head, rebuild_name
from reverie.memory.gate.inbox import InboxFull, MemoryInbox
from reverie.memory.gate.lines import body_parts, lead_of, new_statements, put_back, quote_lines, take_out
from reverie.memory.gate.marks import Marks, trust_by
from reverie.memory.gate.other_files import decide_index, split_log
from reverie.memory.gate.privacy import why_private
from reverie.memory.gate.removal import find_lost, may_remove, wait_too
from reverie.memory.gate.rule import (
    Case,
    End,
    Standing,
    Verdict,
    ask_if_against,
    hold,
    hold_rest,
    judge,
    judge_one,
)
from reverie.memory.gate.speech import Speech, UserMessage
from reverie.memory.gate.waiting import explain, make_item
from reverie.memory.taxonomy import LOGS, TEAM, MemoryType, Trust, is_team
from reverie.memory.topic_file import TopicFile, decode, statements_of
from reverie.memory.upkeep.duplicates import MemoryTexts, find_written
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.text.folding import fold_statement, visible
from reverie.text.words import content_terms

_RELATED: Final = 40
_BACKGROUND: Final = (Writer.EXTRACTION, Writer.DREAM)


@dataclass
class AgentWrites:
    """Decides the writes of agents to one memory directory. `tell` hears what waits: the write, whether it is a
    question, and its id in the inbox."""

    root: Path
    marks: Marks
    texts: MemoryTexts
    inbox: MemoryInbox | None
    instructions: Callable[[], Mapping[str, str]]
    forgotten: Callable[[], Sequence[Forgotten]]
    tell: Callable[[ProposedWrite, bool, str], object]
    _forgot: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """The file that was removed for a request to forget, by its message."""
    _heard: tuple[tuple[Evidence, ...], Speech] | None = field(default=None, init=False)

    def decide(self, write: ProposedWrite) -> Decision:
        """Decides how a write ends."""
        if write.is_topic:
            return self._decide_topic(write)
        if write.is_index and write.text is not None:
            return decide_index(write, write.text, lambda name: _text_of(self.root / name))
        if write.is_log and write.text is not None:
            return self._decide_log(write, write.text)
        return Decision(write.text)

    def _decide_topic(self, write: ProposedWrite) -> Decision:
        text = "" if write.text is None else visible(write.text)
        if is_team(write.name) and write.writer in _BACKGROUND:
            private = why_private(write.name, text, write.before, self._private_texts()) if text else None
            if private is None and write.writer is Writer.EXTRACTION and write.before is not None:
                private = f"{TEAM}/ is shared, and the user did not ask to change it"
            if private is not None:
                return self._hold_all(write, private)
        case = self._case(write, text)
        topic, before = TopicFile.parse(text), TopicFile.parse(write.before or "")
        old = {fold_statement(bare) for _, bare in body_parts(before.body)}
        parts = [bare for _, bare in body_parts(topic.body)]
        new = list(dict.fromkeys(bare for bare in parts if fold_statement(bare) not in old))
        if not new and text and not parts and topic.description:
            new = [topic.description]
        if write.before is None and (known := self._known_elsewhere(write, new)):
            return Decision(None, note=known)
        judged = _judge_notes(case, new) if write.notes else judge(case, new)
        verdicts = hold_rest(topic.body, self._without_forgotten(write, judged))
        stored = [one for one in verdicts if one.end is not End.HELD]
        lost = [] if write.is_draft else self._kept_back(case, write, parts, verdicts)
        if lost:  # what would replace a statement that stays waits with the question
            verdicts = [wait_too(one, lost) for one in verdicts]
            stored = [one for one in verdicts if one.end is not End.HELD]
        held = [one for one in verdicts if one.end is End.HELD]
        if write.before is None and held and not stored:
            return self._hold_all(write, held[0].why, held)
        final = self._compose(write, topic, before, case, verdicts, lost)
        item = self._keep(write, held, lost) if held or lost else ""
        name = "" if final is None or write.before is not None else rebuild_name(write.name, final, case)
        marks = {one.text: one.mark for one in stored if one.mark is not None}
        note = explain(write, held, lost, item, stored_any=final is not None)
        return Decision(final, name, marks, tuple(one.text for one in held), item, note)

    def _case(self, write: ProposedWrite, text: str) -> Case:
        terms = content_terms(text) | content_terms(write.before or "")
        near = dict(self.texts.sharing(terms, 2)) if terms else {}
        near.pop(write.name, None)
        if write.writer is Writer.DREAM:
            logs = sorted((self.root / LOGS).glob("*/*/*.md"))[-_RELATED:]
            near |= {path.name: _text_of(path) for path in logs}
            near |= {name: _text_of(self.root / name) for name in ("MEMORY.md", f"{TEAM}/MEMORY.md")}
        others = [one for name, held in near.items() for one in self._standing(name, held)]
        gone = {name for name, after in write.together.items() if after is None}

        def confirmed(wanted: frozenset[str]) -> Iterable[Standing]:
            for one in others:
                is_other = one.trust is Trust.CONFIRMED or is_team(one.file)
                if is_other and one.file not in gone and len(wanted & content_terms(one.text)) >= 2:
                    yield one

        return Case(
            writer=write.writer,
            speech=self._speech(write.evidence),
            own=self._standing(write.name, write.before or ""),
            others=others,
            confirmed=confirmed,
            session=write.session,
            stays=frozenset(fold_statement(bare) for _, bare in body_parts(TopicFile.parse(text).body)),
            means_another=lambda message: self._means_another(write.name, message),
        )

    def _means_another(self, name: str, message: UserMessage) -> bool:
        """Whether a request to forget has more words of another memory, or was carried out on another one already."""
        found = {other: message.count(_about(other, text)) for other, text in self.texts.texts().items()}
        own = found.pop(name, 0)
        if any(count > own for count in found.values()):
            return True
        said = message.block.message
        return not own and bool(said) and self._forgot.setdefault(said, name) != name

    def _speech(self, evidence: tuple[Evidence, ...]) -> Speech:
        """What was said; a run that writes several files has the same evidence for all of them."""
        if self._heard is None or self._heard[0] != evidence:
            self._heard = evidence, Speech(evidence)
        return self._heard[1]

    def _standing(self, name: str, text: str) -> list[Standing]:
        topic = TopicFile.parse(text)
        texts = dict.fromkeys(bare for _, bare in body_parts(topic.body))
        marks = self.marks.of_each(texts)
        return [Standing(one, name, trust_by(mark, topic), mark) for one, mark in zip(texts, marks, strict=True)]

    def _without_forgotten(self, write: ProposedWrite, verdicts: list[Verdict]) -> list[Verdict]:
        """A dream does not bring back what the user removed: it waits."""
        if write.writer is not Writer.DREAM or not verdicts or not (gone := self.forgotten()):
            return verdicts
        standing = list(self.texts.texts().values())
        found = [find_brought_back(one.text, standing, gone) for one in verdicts]
        return [
            one if back is None else hold(one, f"you removed it on {back.when:%Y-%m-%d}")
            for one, back in zip(verdicts, found, strict=True)
        ]

    def _kept_back(
        self, case: Case, write: ProposedWrite, parts: Sequence[str], verdicts: Sequence[Verdict]
    ) -> list[Standing]:
        """Statements that disappear and may not: they stay, and the removal becomes a question."""
        held = {one.text for one in verdicts if one.end is End.HELD}
        body = {fold_statement(bare) for _, bare in body_parts(TopicFile.parse(write.before or "").body)}
        left = body.difference(map(fold_statement, parts))
        gone = [one for one in case.own if fold_statement(one.text) in left]
        old = {fold_statement(one.text): one for one in case.own}
        new = {one.text: Standing(one.text, write.name, one.mark.trust if one.mark else None) for one in verdicts}
        kept = [old.get(fold_statement(bare)) or new.get(bare) or Standing(bare, write.name, None) for bare in parts]
        kept = [one for one in kept if one.text not in held]
        # What goes to another file of the same change is judged there.
        moved = [(name, one) for name, text in write.together.items() if text for one in statements_of(text)]
        elsewhere = [Standing(one, name, Trust.CONFIRMED) for name, one in moved]
        if write.writer is not Writer.AGENT or elsewhere:
            elsewhere += [one for one in case.others if one.file not in write.together]
        about = f"{TopicFile.parse(write.before or '').name} {write.name.removesuffix('.md').replace('_', ' ')}"
        stored = [one for one in verdicts if one.end is not End.HELD]
        lost = find_lost(gone, [*kept, *elsewhere])
        if write.notes:  # what nobody confirmed may go: it can be undone
            lost = [one for one in lost if one.trust is Trust.CONFIRMED]
        return [one for one in lost if not may_remove(case, one, about, stored)]

    def _compose(
        self,
        write: ProposedWrite,
        topic: TopicFile,
        before: TopicFile,
        case: Case,
        verdicts: Sequence[Verdict],
        lost: Sequence[Standing],
    ) -> str | None:
        """The text that is stored."""
        held = {one.text for one in verdicts if one.end is End.HELD}
        if write.text is None or not topic.text.strip():
            if not lost:
                return None
            stays = {fold_statement(one.text) for one in lost}
            gone = [bare for _, bare in body_parts(before.body) if fold_statement(bare) not in stays]
            return rebuild_head(before.with_changes(body=take_out(before.body, gone)), before, case, before.trust)
        body = take_out(topic.body, held) if held else topic.body
        if lost:
            body = put_back(before.body, body, [one.text for one in lost])
            if [bare for _, bare in body_parts(body)] == [bare for _, bare in body_parts(before.body)]:
                return write.before  # nothing is new, and nothing is gone
        adopted = {one.text for one in verdicts if one.mark is not None and one.mark.how == "adopted"}
        foreign = {one.text for one in verdicts if one.text in adopted and one.mark and one.mark.source != "pasted"}
        if foreign:
            body = quote_lines(body, foreign)
            if topic.type not in (MemoryType.REFERENCE, MemoryType.PROJECT):
                topic = topic.with_changes(type=MemoryType.REFERENCE)
        named = MemoryType.read(write.name.rpartition("/")[2].partition("_")[0])
        if write.before is None and topic.type is None and named is not None:
            topic = topic.with_changes(type=named)
        if body != topic.body:
            topic = topic.with_changes(body=body)
        trust = self._trust_of(lead_of(topic), verdicts, before)
        if write.notes and trust is Trust.CONFIRMED:  # a head is confirmed only if it is not the agent's
            if before.trust is Trust.CONFIRMED:
                topic = topic.with_changes(name=before.name, description=before.description)
            else:
                trust = Trust.INFERRED
        return rebuild_head(topic, before, case, trust)

    def _trust_of(self, lead: str, verdicts: Sequence[Verdict], before: TopicFile) -> Trust | None:
        for one in verdicts:
            if one.text == lead:
                return one.mark.trust if one.mark else None
        return self.marks.trust_of(lead, before)

    def _known_elsewhere(self, write: ProposedWrite, new: Sequence[str]) -> str:
        """Says where all of a new memory is written down already; empty if it is new."""
        if write.writer is Writer.DREAM:
            return ""
        where = find_written(new, self.texts, self.instructions(), without=write.names)
        return f"{write.name}: not written again, because {where} says this already." if where else ""

    def _decide_log(self, write: ProposedWrite, text: str) -> Decision:
        kept, marks, held = split_log(write, text)
        item = self._keep(write, held, ()) if held else ""
        note = explain(write, held, (), item, stored_any=kept.strip() != (write.before or "").strip())
        return Decision(kept, marks=marks, held=tuple(one.text for one in held), item=item, note=note)

    # What waits.

    def _hold_all(self, write: ProposedWrite, why: str, held: Sequence[Verdict] = ()) -> Decision:
        texts = held or [Verdict(one, End.HELD, why=why) for one in new_statements(write)]
        left = {fold_statement(one) for one in statements_of(write.text or "")}
        before = self._standing(write.name, write.before or "")
        lost = [one for one in before if fold_statement(one.text) not in left] if not held else []
        item = self._keep(write, texts, lost)
        note = explain(write, texts, lost, item, stored_any=False)
        return Decision(write.before, held=tuple(one.text for one in texts), item=item, note=note)

    def _keep(self, write: ProposedWrite, held: Sequence[Verdict], lost: Sequence[Standing]) -> str:
        """Puts what waits into the inbox; returns the id, empty if there is no room."""
        if self.inbox is None or write.is_index:
            return ""
        item = make_item(write, held, lost)
        try:
            kept = self.inbox.add(item)
        except InboxFull:
            kept = ""
        self.tell(write, bool(item.question), kept)
        return kept

    def _private_texts(self) -> list[str]:
        return [text for name, text in self.texts.texts().items() if not is_team(name)]


def _judge_notes(case: Case, statements: Sequence[str]) -> list[Verdict]:
    """Judges notes of an agent whose conversation cannot be seen: each on its own, without words of the user."""
    found = (judge_one(case, one) for one in statements)
    return [
        one if one.end is End.HELD or one.is_old else ask_if_against(case, one, case.speech.features(one.text))
        for one in found
    ]


def _text_of(path: Path) -> str:
    try:
        return decode(read_regular(path))
    except OSError:
        return ""


def _about(name: str, text: str) -> frozenset[str]:
    """The words of a memory and of its name."""
    return content_terms(f"{name.rpartition('/')[2].removesuffix('.md').replace('_', ' ')} {text}")
