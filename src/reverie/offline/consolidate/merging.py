"""Joins files about the same subject: copies, rewordings, and rivals of which one is newer or more certain.

Every statement that only one of them has goes into the file that stays. A statement that another contradicts is removed
and quoted in the reason. Trust decides first (confirmed by the user before concluded), and then the date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

from reverie.memory.topic_file import TopicFile
from reverie.offline.consolidate.desk import Desk, is_one_tier
from reverie.offline.consolidate.losses import find_identifiers, find_missing_facts
from reverie.offline.consolidate.statements import body_statements, label_of_line, with_labelled, with_lines
from reverie.offline.consolidate.trust import TrustLevel, is_guess, read_trust_level, without_doubt
from reverie.quick import dataclass
from reverie.text.folding import fold_text, word_set
from reverie.text.sameness import COPIED, MOST, REWORDED, SAME, Relation, compare, contradicts, overlap, says
from reverie.text.sentences import Statement
from reverie.text.values import is_news, values_of
from reverie.text.words import content_terms

_COPY_NAME = re.compile(
    r"(?:^|[_\-. (])(copy|kopie|copia|double|dup|new|neu|old|alt|guess|update[ds]?|tmp|temp|draft"
    r"|v?\d{1,2})(?=[_\-. )]|$)|(副本|复制|拷贝|コピー|[新旧])(?=$|[_\-. )])",
    re.IGNORECASE,
)
_ABOUT_NOTHING: Final = word_set(
    "style rule new old copi kopi updat time schedul plan note list detail info set guid day hour"
)
_ABOUT_TRUST = re.compile(
    r"^\W*(?:not (?:yet )?confirmed|(?:nobody|no ?one) (?:has |have )?(?:yet |ever )?(?:confirmed|verified|checked)"
    r"|unconfirmed|confirmed by|nicht bestätigt|sin confirmar)\b",
    re.IGNORECASE,
)
_WHERE = re.compile(
    r"\s(?P<where>(?:in|at|near|behind|under|inside|outside|opposite) (?:the|our|an?) (?:[^\W\d_]+[ -]?){1,4})\.?$"
)
_LOOSE = re.compile(r"\s+(?:on|at|in|from|by|every|each|the)$")
_CLAIMED: Final = 3
"""The content words that a guess must have, so that its subject is clear."""
_CLAUSE = re.compile(r"[,;]\s+(?!not\b|nicht\b|no\b)(?:and |und |y )?")


@dataclass(frozen=True, slots=True)
class _File:
    """A file with what is needed to compare it with others."""

    name: str
    topic: TopicFile
    about: frozenset[str]
    """What its name says it is about."""
    heads: tuple[str, ...]
    """Its description and the first statement of its body."""
    statements: tuple[Statement, ...]
    plain: frozenset[str]
    standing: TrustLevel
    numbers: frozenset[str]
    """The numbers in its title: `Pump 1` and `Pump 2` are two things, however alike."""


def join_files(desk: Desk) -> None:
    """Joins files that belong together, two at a time, until none do."""
    names = sorted(name for name in desk.texts if desk.may_change(name) and name not in desk.apart)
    files = {name: _read(name, desk.texts[name]) for name in names}
    for name, other in _pairs(files):
        if name in desk.texts and other in desk.texts:
            one, two = files[name], files[other]
            if _are_copies(one, two) or _are_rivals(one, two):
                stays = _join(desk, one, two)
                files[stays] = _read(stays, desk.texts[stays])


def _pairs(files: dict[str, _File]) -> Iterable[tuple[str, str]]:
    """Pairs of files that share words in their heads: all others are about different things."""
    holding: dict[str, list[str]] = {}
    for name, one in files.items():
        for term in {term for head in (*one.heads, one.topic.name) for term in content_terms(head)}:
            holding.setdefault(term, []).append(name)
    shared: dict[tuple[str, str], int] = {}
    for names in holding.values():
        for at, name in enumerate(names):
            for other in names[at + 1 :]:
                shared[name, other] = shared.get((name, other), 0) + 1
    return sorted(shared)


def _read(name: str, text: str) -> _File:
    topic = TopicFile.parse(text)
    own = body_statements(text)
    heads = tuple(dict.fromkeys(head for head in (topic.description, own[0].text if own else "") if head))
    title = _COPY_NAME.sub(" ", topic.name or name.rpartition("/")[2].removesuffix(".md").replace("_", " "))
    about = frozenset(term for term in content_terms(title) if not term.isdigit())
    about = about or frozenset(
        re.findall(r"[^\W\d_]+", title.lower())
    )  # a noun that is a function word in another language
    worded = frozenset(fold_text(one.text) for one in own)
    numbers = frozenset(re.findall(r"\d+", topic.name))
    return _File(name, topic, about - _ABOUT_NOTHING or about, heads, own, worded, read_trust_level(text), numbers)


def _are_one_kind(one: _File, other: _File) -> bool:
    kinds = {one.topic.type, other.topic.type} - {None}
    is_numbered = bool(one.numbers and other.numbers and one.numbers != other.numbers)
    return is_one_tier(one.name, other.name) and len(kinds) <= 1 and not is_numbered and not _are_two_things(one, other)


def _are_two_things(one: _File, other: _File) -> bool:
    """Whether each mentions what its title names and the other never does, however alike the rest is."""
    return _speaks_alone(one, other) and _speaks_alone(other, one)


def _speaks_alone(one: _File, other: _File) -> bool:
    own = [term for term in one.about - other.about if any(term in text for text in one.plain)]
    return any(not any(term in text for text in (*other.plain, *map(fold_text, other.heads))) for term in own)


def _are_copies(one: _File, other: _File) -> bool:
    """Whether one says most of what the other says, in the same or other words."""
    if not _are_one_kind(one, other) or not one.plain or not other.plain:
        return False
    if not _is_one_name(one, other) and _contradict(one, other):
        return False  # the same form filled in for two things
    same = one.plain & other.plain
    if len(same) >= MOST * min(len(one.plain), len(other.plain)) and _total(same) >= 4:
        return True
    for head in one.heads:
        for its in other.heads:
            terms, others = content_terms(head), content_terms(its)
            shared = len(terms & others)
            alike = overlap(terms, others) >= COPIED and shared / max(len(terms), len(others)) >= 0.4
            told_apart = (terms - others) & (one.about - other.about) and (others - terms) & (other.about - one.about)
            if shared >= 3 and alike and not told_apart and not _differ(head, its) and _rest_agrees(one, other):
                return True
    return False


def _total(texts: Iterable[str]) -> int:
    return len(frozenset(term for text in texts for term in content_terms(text)))


def _differ(one: str, other: str) -> bool:
    """Whether two heads name different things: other numbers, other names."""
    values, others = values_of(one), values_of(other)
    return any(
        values.of(kind) - others.of(kind) and others.of(kind) - values.of(kind) for kind in values.kinds & others.kinds
    )


def _rest_agrees(one: _File, other: _File) -> bool:
    """Whether the files also share a name, or a second statement."""
    if one.about & other.about:
        return True
    return any(says(mine.text, theirs.text, REWORDED) for mine in one.statements for theirs in other.statements)


def _are_rivals(one: _File, other: _File) -> bool:
    """Whether two files are about the same thing and say different things about it."""
    if not _are_one_kind(one, other):
        return False
    is_one_name = _is_one_name(one, other)
    standings = {one.standing, other.standing}
    if TrustLevel.GUESSED in standings and len(standings) > 1:
        shared = _head_terms(one) & _head_terms(other)
        is_close = len(shared) >= 2 and overlap(_head_terms(one), _head_terms(other)) >= 0.4
        return is_one_name or (TrustLevel.CONFIRMED in standings and (is_close or _is_settled(one, other)))
    heads = [(mine, theirs) for mine in one.heads for theirs in other.heads]
    if not is_one_name:
        return False
    bodies = [(mine.text, theirs.text) for mine in one.statements for theirs in other.statements]
    return any(contradicts(mine, theirs, about_the_same=True) for mine, theirs in [*heads, *bodies])


def _is_settled(one: _File, other: _File) -> bool:
    """Whether a confirmed statement covers all that a guess claims."""
    guess, sure = (one, other) if one.standing is TrustLevel.GUESSED else (other, one)
    for claim in guess.heads:
        terms = content_terms(without_doubt(claim))
        if len(terms) >= _CLAIMED and any(terms <= content_terms(said.text) for said in sure.statements):
            return True
    return False


def _is_one_name(one: _File, other: _File) -> bool:
    return bool(one.about and other.about) and (one.about <= other.about or other.about <= one.about)


def _contradict(one: _File, other: _File) -> bool:
    return any(
        contradicts(mine.text, theirs.text, about_the_same=True)
        for mine in one.statements
        for theirs in other.statements
    )


def _head_terms(one: _File) -> frozenset[str]:
    return one.about.union(*(content_terms(head) for head in one.heads))


def _join(desk: Desk, one: _File, other: _File) -> str:
    """Joins two files into one and reports which stays."""
    winner, loser = _ordered(desk, one, other)
    text = winner.topic.text
    dropped: list[str] = []
    is_doubtful = loser.standing is TrustLevel.GUESSED and winner.standing > TrustLevel.GUESSED
    extra: list[str] = []
    for said in loser.statements:
        standing = body_statements(text)
        is_head = said == loser.statements[0] or bool(said.label)
        is_doubt = _ABOUT_TRUST.match(said.text) or (is_doubtful and is_guess(said.text))
        is_kept = not find_missing_facts(said.text, text)
        if not is_doubt and is_kept and any(_is_said(said.text, its.text, SAME) for its in standing):
            continue
        if is_doubt or _is_denied(said.text, standing):
            dropped.append(said.text)
            extra += _not_denied(said.text, standing, text) if not is_doubt else []
        elif is_head and is_kept and any(_is_said(said.text, its.text, REWORDED) for its in standing):
            continue
        elif said.label:
            text = with_labelled(text, label_of_line(loser.topic.text, said), said.label, said.text)
        else:
            extra.append(said.text)
    text = with_lines(text, extra)
    desk.gave_way += dropped
    stays, goes = _names(winner, loser)
    quoted = "".join(f" “{said}”" for said in dropped)
    taken_out = f"; removed, because {winner.name} is {_why(desk, winner, loser)}:{quoted}" if dropped else ""
    desk.write(stays, text, f"joined with {goes}{taken_out}")
    desk.days[stays] = max(day for day in (desk.days.get(one.name), desk.days.get(other.name), None) if day is not None)
    is_told = stays in desk.changed()
    desk.remove(goes, stays, f"joined into {stays}{'' if is_told else taken_out}")
    return stays


def _is_said(said: str, standing: str, share: float) -> bool:
    return compare(said, standing, share).relation in (Relation.SAME, Relation.CONTAINS)


def _is_denied(said: str, standing: Sequence[Statement]) -> bool:
    """Whether a statement contradicts these. If many are like it, it is one more line of a list."""
    rivals = sum(contradicts(said, its.text, about_the_same=True) for its in standing)
    return 1 <= rivals <= 2


def _not_denied(said: str, standing: Sequence[Statement], text: str) -> list[str]:
    """What a statement says besides what is denied: clauses with facts of their own, or all of it if it has a key."""
    rivals = [its.text for its in standing if contradicts(said, its.text, about_the_same=True)]
    if find_identifiers(said) & find_missing_facts(said, text) and not any(find_identifiers(its) for its in rivals):
        return [said]
    denied = frozenset(kind for its in rivals for kind in values_of(its).kinds) - {"number", "name"}
    clauses = [clause.strip(" .") for clause in _CLAUSE.split(said)]
    return _still_where(said, rivals, text) + [
        f"{clause[:1].upper()}{clause[1:]}."
        for clause in clauses[1:]
        if len(content_terms(clause)) >= 2 and find_missing_facts(clause, text) and not values_of(clause).kinds & denied
    ]


def _still_where(said: str, rivals: Sequence[str], text: str) -> list[str]:
    """Where something is, quoted, if only its day or time is denied and no other statement says where."""
    where = _WHERE.search(said)
    whens = [value for kind in ("weekday", "date", "time") for value in values_of(said).of(kind)]
    places = [said.lower().find(value) for value in whens]
    if where is None or not places or min(places) < 0 or content_terms(where["where"]) & content_terms(text):
        return []
    lead = _LOOSE.sub("", said[: min(places)].rstrip())
    is_denied_there = any(_WHERE.search(f"{its.rstrip('.')}.") or not _differ(said, its) for its in rivals)
    if is_denied_there or max(places) > where.start() or len(content_terms(lead)) < 2:
        return []
    return [f"Noted before: “{lead} … {where['where']}”."]


def _ordered(desk: Desk, one: _File, other: _File) -> tuple[_File, _File]:
    """Which file is right if they differ: the more certain, then the newer; of copies, the one with the better name."""
    if one.standing != other.standing and TrustLevel.GUESSED in (one.standing, other.standing):
        return (one, other) if one.standing > other.standing else (other, one)
    differ = _contradict(one, other)
    days = desk.days.get(one.name), desk.days.get(other.name)
    newer = one if (days[0] or date.min) > (days[1] or date.min) else other
    tells_of_change = any(is_news(said.text) for said in newer.statements[:2])
    if differ and one.standing != other.standing and not tells_of_change:
        return (one, other) if one.standing > other.standing else (other, one)
    if differ and days[0] is not None and days[1] is not None and days[0] != days[1]:
        return (one, other) if days[0] > days[1] else (other, one)
    news = [any(is_news(said.text) for said in file.statements[:2]) for file in (one, other)]
    if differ and news[0] != news[1]:
        return (one, other) if news[0] else (other, one)
    return (one, other) if _rank(one) <= _rank(other) else (other, one)


def _names(winner: _File, loser: _File) -> tuple[str, str]:
    """The name that stays and the name that goes: a copy's name stays only if the other's is not better."""
    if _copy_rank(winner) > _copy_rank(loser):
        return loser.name, winner.name
    return winner.name, loser.name


def _rank(one: _File) -> tuple[int, int, int, int, str]:
    return (*_copy_rank(one), -len(one.statements), len(one.name), one.name)


def _copy_rank(one: _File) -> tuple[int, int]:
    base = one.name.rpartition("/")[2]
    typed = one.topic.type is not None and base.startswith(f"{one.topic.type.value}_")
    copied = [mark[0] for mark in _COPY_NAME.finditer(base.removesuffix(".md"))]
    copied = [mark for mark in copied if re.sub(r"\D", "", mark) not in one.numbers]
    titled = [mark[0] for mark in _COPY_NAME.finditer(one.topic.name) if not any(char.isdigit() for char in mark[0])]
    return int(bool(copied or titled)), int(not typed)


def _why(desk: Desk, winner: _File, loser: _File) -> str:
    return "surer" if winner.standing > loser.standing else "newer"
