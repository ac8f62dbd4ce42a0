"""The write gate: every write to memory, by any writer, passes here, and no setting turns it off. A secret and a file
that is too large are refused. Everything else is decided by the rule of trust: stored with a mark, or kept for the user
in the inbox. It writes only the inbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from reverie.errors import ReverieError
from reverie.memory.changes import Decision, Mark, ProposedWrite, Writer
from reverie.memory.gate.lines import lead_of
from reverie.memory.gate.marks import Marks
from reverie.memory.secrets.new_secret import find_new_secret
from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import TEAM, Trust, is_team
from reverie.memory.topic_file import TopicFile, body_statements, encode, statements_of
from reverie.memory.upkeep.duplicates import MemoryTexts, find_written
from reverie.quick import dataclass
from reverie.text.folding import fold_statement
from reverie.text.sameness import contradicts
from reverie.text.words import content_terms
from reverie.types import Origin

if TYPE_CHECKING:
    from reverie.memory.gate.agent_writes import AgentWrites
    from reverie.memory.gate.forgotten import Forgotten
    from reverie.memory.gate.inbox import MemoryInbox

RefusalKind = Literal["secret", "size", "held", "question"]
Instructions = Callable[[], Mapping[str, str]]

LARGEST: Final = 200_000
"""Bytes of one file that an agent may write."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that was refused, or that waits for the user, as a log may keep it: never the text itself."""

    kind: RefusalKind
    name: str
    writer: Writer
    detail: str = ""
    item: str = ""


class Refused(ReverieError):
    """A write that the gate refuses; the sentence says what to do instead."""

    exit_code = 2

    def __init__(self, message: str, refusal: Refusal) -> None:
        super().__init__(message)
        self.refusal = refusal


class WriteGate:
    """The gate of one memory directory: `MemoryDirectory.open(place, gate=WriteGate(root))`. `instructions` returns the
    instruction files' texts; `report` receives everything that is refused or held; without an `inbox` held statements
    are not kept."""

    def __init__(
        self,
        root: Path,
        *,
        instructions: Instructions | None = None,
        inbox: MemoryInbox | None = None,
        report: Callable[[Refusal], None] | None = None,
        forgotten: Callable[[], Sequence[Forgotten]] = tuple,
    ) -> None:
        self._instructions = instructions or dict[str, str]
        self._inbox = inbox
        self._report = report
        self._forgotten = forgotten
        self._texts = MemoryTexts(root)
        self._root = root
        self.marks = Marks(root)
        self.refused: dict[RefusalKind, int] = {}
        """How often each kind of refusal happened in this process."""

    def __call__(self, write: ProposedWrite) -> Decision:
        """Decides how a write ends, or raises `Refused`."""
        if write.text is not None:
            self._check_secrets(write, write.text)
        if write.restores:
            return Decision(write.text)
        if write.writer in (Writer.USER, Writer.IMPORT, Writer.HAND):
            return self._decide_user(write)
        if write.text is not None and len(encode(write.text)) > LARGEST:
            self._refuse(
                write, "size", f"{write.name}: over {LARGEST:,} bytes; a memory is short: write what it teaches."
            )
        return self._agents.decide(write)

    @cached_property
    def _agents(self) -> AgentWrites:
        from reverie.memory.gate.agent_writes import AgentWrites

        return AgentWrites(
            self._root,
            self.marks,
            self._texts,
            self._inbox,
            self._instructions,
            self._forgotten,
            lambda write, is_question, item: self._tell(write, "question" if is_question else "held", item=item),
        )

    def warnings(self, write: ProposedWrite) -> list[str]:
        """What the user who writes should know although it is saved: that it is written down already."""
        where = find_written(body_statements(write.text or ""), self._texts, self._instructions(), without=write.names)
        return [f"{where} has this already. It was saved anyway."] if where else []

    def _check_secrets(self, write: ProposedWrite, text: str) -> None:
        found = find_new_secret(write.name, text, write.before or "")
        if found is not None:
            self._refuse(write, "secret", found.sentence, found.kind)

    def _decide_user(self, write: ProposedWrite) -> Decision:
        """What a person writes is stored as it is. The head of what the user confirmed has the trust of its lead."""
        marks = self._marks_of_user(write)
        if not write.confirms or not write.is_topic or write.text is None:
            return Decision(write.text, marks=marks)
        topic = TopicFile.parse(write.text)
        lead = lead_of(topic)
        trust = marks[lead].trust if lead in marks else self.marks.trust_of(lead, TopicFile.parse(write.before or ""))
        text = write.text if topic.trust is trust else topic.with_changes(trust=trust).text
        return Decision(text, marks=marks)

    def _marks_of_user(self, write: ProposedWrite) -> dict[str, Mark]:
        """Marks for what the user or an import writes: confirmed if the user typed it or saw it, else inferred."""
        if not write.is_topic or write.text is None:
            return {}
        typed = next((block for block in write.evidence if block.origin.is_users), None)
        if write.confirms:
            mark = Mark(Trust.CONFIRMED, "key", session=write.session)
        elif typed is not None and write.writer is Writer.USER:
            trust = Trust.CONFIRMED if typed.origin is Origin.TYPED else Trust.INFERRED
            mark = Mark(trust, typed.origin.value, typed.text.strip(), typed.at, write.session, typed.message)
        else:
            source = next((block.origin.value for block in write.evidence), "")
            if write.writer is Writer.IMPORT:
                source = "shared" if write.name.startswith(f"{TEAM}/") else "imported"
            mark = Mark(Trust.INFERRED, source=source)
        old = {fold_statement(one) for one in statements_of(write.before or "")}
        new = [one for one in statements_of(write.text) if fold_statement(one) not in old]
        is_private = write.writer is Writer.USER and not is_team(write.name)
        return {
            one: replace(mark, contradicts=self._contradicted(one)) if is_private else mark
            for one in new
            if mark.trust is Trust.CONFIRMED or self.marks.of(one) is None
        }

    def _contradicted(self, statement: str) -> str:
        """The file of the team that may say something else: both are shown, and the mark says so."""
        for name, text in self._texts.sharing(content_terms(statement), 2):
            if is_team(name) and any(contradicts(statement, one) for one in statements_of(text)):
                return name
        return ""

    def _tell(self, write: ProposedWrite, kind: RefusalKind, detail: str = "", item: str = "") -> Refusal:
        refusal = Refusal(kind, _safe(write.name), write.writer, detail, item)
        self.refused[kind] = self.refused.get(kind, 0) + 1
        if self._report is not None:
            self._report(refusal)
        return refusal

    def _refuse(self, write: ProposedWrite, kind: RefusalKind, sentence: str, detail: str = "") -> NoReturn:
        raise Refused(sentence, self._tell(write, kind, detail))


def _safe(name: str) -> str:
    """A file name for a log, without a secret."""
    return "(a name with a secret)" if find_secrets(name) else name
