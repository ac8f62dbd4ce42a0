"""The write gate: every write to memory, by any writer, passes here, and no setting turns it off. In this order:
secrets are refused; statements that the user did not say go to the inbox; statements that exist already are refused
with their place. A refusal is one sentence that says what to do instead and never repeats a secret. It writes only the
inbox."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn

from reverie.errors import ReverieError
from reverie.memory.changes import Evidence, ProposedWrite, Writer
from reverie.memory.gate.evidence import Assessment, Verdict, assess
from reverie.memory.gate.inbox import InboxFull, Item, ItemSource, MemoryInbox
from reverie.memory.index import entries
from reverie.memory.secrets.scan import find_secrets
from reverie.memory.taxonomy import INDEX, LOGS, TEAM, Trust
from reverie.memory.topic_file import TopicFile, decode, encode, statements_of
from reverie.memory.upkeep.duplicates import MemoryTexts, find_duplicate
from reverie.regular_files import read_regular
from reverie.storage.history.objects import blob_id
from reverie.text.cutting import shorten
from reverie.text.folding import fold_text
from reverie.text.sameness import contradicts
from reverie.text.words import content_terms

RefusalKind = Literal["secret", "evidence", "duplicate", "contradiction", "trust"]
Instructions = Callable[[], Mapping[str, str]]
"""The present texts of the instruction files by name."""

_PERSON: Final = frozenset({Writer.USER, Writer.HAND, Writer.IMPORT})
_HEAD: Final = frozenset({"name", "description", "type", "trust"})
_COMMENT: Final = re.compile(r"(?:^|\s)#\s*(.+)")
_SHOWN: Final = 3  # statements a refusal quotes
_LONGEST: Final = 120
_RELATED: Final = 40  # memories a consolidation may rest on, and logs
_SOURCES: Final = 6


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal for counting and logging, without the text."""

    kind: RefusalKind
    name: str
    writer: Writer
    detail: str = ""
    """The kind of secret, or the file that has it already; never the value."""
    item: str = ""
    """The inbox item that keeps it, if there is one."""


class Refused(ReverieError):
    """The gate refused a write. `str(error)` says what to do instead; `refusal` can be logged."""

    exit_code = 2

    def __init__(self, message: str, refusal: Refusal) -> None:
        super().__init__(message)
        self.refusal = refusal


class WriteGate:
    """The gate of one memory directory: `MemoryDirectory.open(place, gate=WriteGate(root))`. `instructions` returns the
    instruction files' texts; `report` receives every refusal; without an `inbox` an unsupported write is refused and
    not kept."""

    def __init__(
        self,
        root: Path,
        *,
        instructions: Instructions | None = None,
        inbox: MemoryInbox | None = None,
        report: Callable[[Refusal], None] | None = None,
    ) -> None:
        self._instructions = instructions or dict[str, str]
        self._inbox = inbox
        self._report = report
        self._standing = MemoryTexts(root)
        self._root = root
        self.refused: dict[RefusalKind, int] = {}
        """How often each kind of refusal happened in this process."""

    def __call__(self, write: ProposedWrite) -> None:
        """Lets the write pass, or raises `Refused`."""
        self._check_secrets(write)
        if write.restores or write.writer in _PERSON:
            return
        self._check_name(write)
        new = [*_new_statements(write), *_new_in_head(write)]
        if not new:
            return
        assessment = assess(new, write.evidence, self._known(write, new))
        self._check_contradiction(write, assessment)
        self._check_evidence(write, assessment)
        self._check_trust(write, assessment)
        if write.is_topic:
            self._check_duplicate(write, new)

    def trust(self, write: ProposedWrite) -> Trust:
        """The `trust` of a memory: confirmed if the user said or confirmed all that is new in it."""
        if write.writer in (Writer.USER, Writer.HAND):
            return Trust.CONFIRMED
        if write.writer is Writer.IMPORT:
            return Trust.INFERRED
        new = _new_statements(write)
        return assess(new, write.evidence, self._known(write, new)).trust

    def warnings(self, write: ProposedWrite) -> list[str]:
        """What the user who writes should know although it is saved: that it is written down already."""
        duplicate = find_duplicate(
            _new_statements(write), self._standing, self._instructions(), without=_own_names(write)
        )
        return [f"{duplicate.where} has this already: “{shorten(duplicate.existing, _LONGEST)}”"] if duplicate else []

    # One check each.

    def _check_secrets(self, write: ProposedWrite) -> None:
        named = find_secrets(write.name.rpartition("/")[2].removesuffix(".md").replace("_", " "))
        if named:
            self._refuse(write, "secret", f"The file name holds {named[0].kind}; choose one without it.", named[0].kind)
        before = write.before or ""
        for found in find_secrets(write.text):
            if write.text[found.start : found.end] in before:
                continue  # it was there before: `memory check` reports it, and this write does not add it
            line = write.text.count("\n", 0, found.start) + 1
            self._refuse(
                write,
                "secret",
                f"{write.name}: line {line} holds {found.kind}, and secrets are never stored; write where it is kept "
                "instead (the entry in the password manager, the name of the environment variable).",
                found.kind,
            )

    def _check_evidence(self, write: ProposedWrite, assessment: Assessment) -> None:
        if assessment.is_from_user:
            return
        refused = assessment.refused or assessment.judged
        texts = [one.statement for one in refused]
        item = self._keep(write, "evidence", tuple(texts))
        listed = "; ".join(f"“{shorten(text, _LONGEST)}”" for text in texts[:_SHOWN])
        more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
        rest = "Write the rest without it" if len(texts) < len(assessment.judged) else "Ask the user"
        waits = f", and it waits in the inbox ({item})" if item else ""
        self._refuse(
            write,
            "evidence",
            f"{write.name}: not stored, because the user did not say {listed}{more}{waits}. {rest}, in words the user "
            "typed or confirmed.",
            item=item,
        )

    def _check_name(self, write: ProposedWrite) -> None:
        """A title is the writer's own, but must not be somebody else's sentence, nor name what the memory does not."""
        name = TopicFile.parse(write.text).name if write.is_topic else ""
        if not name or name == TopicFile.parse(write.before or "").name:
            return
        assessment = assess([name], write.evidence, [*self._known(write, [name]), *statements_of(write.text)])
        # In scripts without spaces a number includes its neighbours: that is not an address.
        if any(one.verdict is Verdict.UNSUPPORTED or any(map(str.isascii, one.facts)) for one in assessment.refused):
            self._check_evidence(write, assessment)

    def _check_contradiction(self, write: ProposedWrite, assessment: Assessment) -> None:
        found = _find_contradiction(assessment, self._confirmed(write, assessment))
        if found is None:
            return
        question = _question(found)
        item = self._keep(write, "contradiction", (found.statement,), question)
        waits = f"; the question waits in the inbox ({item})" if item else ""
        self._refuse(
            write,
            "contradiction",
            f"{write.name}: “{shorten(found.statement, _LONGEST)}” contradicts what the user confirmed in "
            f"{found.where}{waits}. Leave it as it is, or ask the user.",
            found.where,
            item,
        )

    def _check_trust(self, write: ProposedWrite, assessment: Assessment) -> None:
        if not write.is_topic or assessment.trust is Trust.CONFIRMED:
            return
        claimed = TopicFile.parse(write.text).trust
        had = TopicFile.parse(write.before).trust if write.before is not None else None
        if claimed is Trust.CONFIRMED and had is not Trust.CONFIRMED:
            self._refuse(
                write,
                "trust",
                f"{write.name}: says `trust: confirmed`, but a part of it is a conclusion; write `trust: inferred`.",
            )

    def _check_duplicate(self, write: ProposedWrite, new: list[str]) -> None:
        duplicate = find_duplicate(new, self._standing, self._instructions(), without=_own_names(write))
        if duplicate is None:
            return
        instead = (
            f"update {duplicate.where} if there is something new"
            if duplicate.is_memory
            else "there is no need to remember it"
        )
        self._refuse(
            write, "duplicate", f"{write.name}: {duplicate.where} says this already; {instead}.", duplicate.where
        )

    # What they need.

    def _known(self, write: ProposedWrite, new: list[str]) -> list[str]:
        """Texts in memory that may be repeated: the file itself; for an index the files it points to; for a
        consolidation every related memory and log and the indexes, because it only reorders them."""
        known = [write.before] if write.before else []
        if write.is_index:
            folder = write.name.rpartition("/")[0]
            for entry in entries(write.text):
                name = f"{folder}/{entry.file}" if folder else entry.file
                text = write.together.get(name) or _text_of(self._root / name)
                known.append(text)
        if write.writer is Writer.DREAM:
            terms = frozenset[str]().union(*map(content_terms, new))
            near = self._standing.sharing(terms, max(2, len(terms) // 4))
            known += [text for _, text in zip(range(_RELATED), (text for _, text in near), strict=False)]
            known += [_text_of(path) for path in sorted((self._root / LOGS).glob("*/*/*.md"))[-_RELATED:]]
            known += [_text_of(self._root / name) for name in (INDEX, f"{TEAM}/{INDEX}")]
        return known

    def _confirmed(self, write: ProposedWrite, assessment: Assessment) -> dict[str, str]:
        """Confirmed memories that are related to the unsupported statements of this write."""
        unsure = [one.statement for one in assessment.judged if one.verdict != "supported"]
        terms = frozenset[str]().union(*map(content_terms, unsure))
        if not terms or not write.is_topic:
            return {}
        near = dict(self._standing.sharing(terms, 2))
        if write.before is not None:
            near[write.name] = write.before
        gone = {name for name, text in write.together.items() if text is None}
        return {
            name: text
            for name, text in near.items()
            if name not in gone and TopicFile.parse(text).trust is Trust.CONFIRMED
        }

    def _keep(self, write: ProposedWrite, why: str, texts: tuple[str, ...], question: str = "") -> str:
        """The id of the inbox item that keeps the refused write; empty if there is none."""
        if self._inbox is None or write.is_index:
            return ""
        item = Item(
            why=why,
            file=write.name,
            text=write.text,
            statements=texts,
            question=question,
            before=blob_id(encode(write.before)) if write.before is not None else "",
            sources=tuple(map(_source, _relevant(write.evidence))),
            writer=write.writer.value,
        )
        try:
            return self._inbox.add(item)
        except InboxFull:
            return ""

    def _refuse(
        self, write: ProposedWrite, kind: RefusalKind, sentence: str, detail: str = "", item: str = ""
    ) -> NoReturn:
        refusal = Refusal(kind, _safe(write.name), write.writer, detail, item)
        self.refused[kind] = self.refused.get(kind, 0) + 1
        if self._report is not None:
            self._report(refusal)
        raise Refused(sentence, refusal)


def _new_statements(write: ProposedWrite) -> list[str]:
    """The statements of the text that were not in the file before, word for word."""
    before = {fold_text(one) for one in statements_of(write.before or "")}
    return [one for one in statements_of(write.text) if fold_text(one) not in before]


def _new_in_head(write: ProposedWrite) -> list[str]:
    """New text in the head: other fields, and comments that nobody sees."""
    if not write.is_topic:
        return []
    topic, before = TopicFile.parse(write.text), TopicFile.parse(write.before or "")
    fields = [
        value
        for key, value in topic.fields.items()
        if key.rpartition(".")[2] not in _HEAD and before.fields.get(key) != value
    ]
    stood = set(before.front.lines)
    comments = [found[1] for line in topic.front.lines if line not in stood and (found := _COMMENT.search(line))]
    return [text.strip() for text in (*fields, *comments) if any(char.isalnum() for char in text)]


def _own_names(write: ProposedWrite) -> set[str]:
    return {write.name, *(name for name in write.together)}


@dataclass(frozen=True, slots=True)
class _Contradiction:
    """Two statements that cannot both be true."""

    where: str
    statement: str
    standing: str


def _find_contradiction(assessment: Assessment, confirmed: Mapping[str, str]) -> _Contradiction | None:
    """The first statement that is not the user's own and contradicts a confirmed memory."""
    for one in assessment.judged:
        if one.verdict is Verdict.SUPPORTED:
            continue
        for where, text in confirmed.items():
            for standing in statements_of(text):
                if contradicts(one.statement, standing):
                    return _Contradiction(where, one.statement, standing)
    return None


def _question(found: _Contradiction) -> str:
    was, now = shorten(found.standing, _LONGEST), shorten(found.statement, _LONGEST)
    return f"{found.where} says, confirmed by you: “{was}” Is this true now: “{now}”?"


def _relevant(evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The last blocks, the user's first: enough to see where something came from."""
    typed = [block for block in evidence if block.origin.is_users][-_SOURCES // 2 :]
    other = [block for block in evidence if not block.origin.is_users][-_SOURCES // 2 :]
    return (*typed, *other)


def _source(block: Evidence) -> ItemSource:
    return ItemSource(str(block.origin), block.text, block.message)


def _text_of(path: Path) -> str:
    try:
        return decode(read_regular(path))
    except OSError:
        return ""


def _safe(name: str) -> str:
    """A file name for a log, without a secret."""
    return "(a name with a secret)" if find_secrets(name) else name
