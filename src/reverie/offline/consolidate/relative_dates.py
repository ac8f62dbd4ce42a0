"""Writes out the relative dates in existing memories, counted from the day each file was last written.

More careful than with a new message: a weekday alone, or `in two days` in a rule, is often a habit and not a date, so
it stays. A relative date that already has its date beside it stays too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Final

from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile
from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.statements import body_statements
from reverie.text.dates.phrases import FoundDay, find_days
from reverie.text.tongue import Tongue, tongue_of

_RULES: Final = (MemoryType.FEEDBACK, MemoryType.USER, MemoryType.REFERENCE)
_COMMONEST: Final[Tongue] = "en"
_HINT = re.compile(
    r"\b(?:tomorrow|yesterday|today|tonight|ago|next|last|this|coming|fortnight|end of|eo[wmqy]|from now"
    r"|(?:with)?in (?:\d|one|an?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a couple)|(?:by|until|till"
    r"|before|due|on|from) (?:mon|tues|wednes|thurs|fri|satur|sun)day|heute|gestern|morgen|(?:vor|über"
    r"|ueber)(?:gestern|morgen)|nächste|naechste|letzte|kommende|vergangene|monatsende|vor \w+ (?:tag|woche|monat"
    r"|jahr)|in \w+ (?:tag|woche|monat)|bis (?:mon|diens|donners|frei|sams|sonn)tag|ende|hoy|ayer|anteayer|mañana"
    r"|pr[óo]xim[oa]|que viene|pasad[oa]|hace|dentro de|fin de)|[今明昨前后後]天|[下上][个]?(?:周|星期|礼拜|月)|月底"
    r"|[来先]週|[来先]月|月末|[昨明]日|[后後前]",
    re.IGNORECASE,
)
_FIRM = re.compile(
    r"\b(?:tomorrow|yesterday|ago|next|last|past|coming|(?:from|after) (?:now|today|\w+day)|this (?:morning|afternoon"
    r"|evening)|end of this|gestern|vorgestern|(?:ü|ue)bermorgen|n(?:ä|ae)chste\w*|kommende\w*|letzte\w*|vergangene\w*"
    r"|vorige\w*|vor \w+ (?:tag|woche|monat|jahr)\w*|ayer|anteayer|pasado mañana|pr[óo]xim[oa]|que viene|pasad[oa]"
    r"|hace)\b|[明昨前后後]天|[下上][个]?(?:周|星期|礼拜|月)|[来先]週|[来先]月|[昨明]日|[后後前]$",
    re.IGNORECASE,
)
_LOOSE = re.compile(
    r"^(?:in \w+|in a couple of) \w+$|^(?:(?:at|by) )?(?:the )?end of (?:the )?\w+$|^eo[wmqy]$|^this \w+$|^(?:today"
    r"|tonight)$|^heute$|^(?-i:morgen)$|^(?:am )?ende \w+ \w+$|monatsende$|^in \w+ (?:tag|woche|monat)\w*$|^hoy$"
    r"|^mañana$|fin de|dentro de|^en \w+ \w+$|^今天$|月底$|月末$|^[今本]日$",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(r"\w+(?:day|tag|woch)|lunes|martes|mi[eé]rcoles|jueves|viernes|s[áa]bado|domingo", re.IGNORECASE)
_DEADLINE = re.compile(
    r"(?:\b(?:by|until|till|before|due|due on|bis|bis zum|hasta el|para el)\s+|\b(?:will|'ll"
    r"|going to)\b[^.;,]{0,60}\bon\s+)$",
    re.IGNORECASE,
)
_HAPPENED = re.compile(
    r"\b(?:was|were|had|broke|left|began|met|sent|went|came|took|got|said|\w{3,}ed)\b", re.IGNORECASE
)
_STILL_SO = re.compile(r"\b(?:is|are|be|gets?|must|should|may|can|will|not)\b", re.IGNORECASE)
_HABIT = re.compile(
    r"\b(?:every|each|always|never|usually|normally|generally|often|sometimes|whenever|weekly|daily|monthly|yearly"
    r"|per (?:day|week|month|year)|(?:mon|tues|wednes|thurs|fri|satur|sun)days|jede[nrsm]?|immer|nie(?:mals)?|täglich"
    r"|wöchentlich|monatlich|meist(?:ens)?|(?:mon|diens|donners|frei|sams|sonn)tags|cada|siempre|nunca|todos los"
    r"|todas las)\b|[每毎]",
    re.IGNORECASE,
)
_DEFINED = re.compile(r"=\s*$")
_POSSESSIVE = re.compile(r"['’]s\b")
_DATED_ALREADY = re.compile(r"\s*[(（,，—–-]*\s*(?:on |am |el |the )?\d{4}-\d\d")
_CODE = re.compile(r"`[^`\n]*`|https?://\S+")
_QUOTED = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」\n]*」|『[^』\n]*』|‘[^’\n]*’(?!\w)|(?<!\w)'[^'\n]*'(?!\w)"
)
_MENTION_WORDS: Final = 5
"""A quotation with so few words besides the date is about the words, not about a day."""
_MENTIONS = re.compile(
    r"\b(?:means?|meaning|stands? for|says?|reads?|word(?:s|ing)?|phrases?|terms?|expressions?|called|label(?:l?ed|s)?"
    r"|bedeute[tn]?|heißt|meint|wort|wörter|significa|quiere decir|palabras?)\b|意思|意味|という",
    re.IGNORECASE,
)
_END = re.compile(r"[.!?;](?=\s|$)|[。！？；\n]")
_PAST_DEED = re.compile(r"\b(?:was|were|had|took|did|been|got|wurde|war|fue)\b[^.;,]*$", re.IGNORECASE)


def date_files(desk: Desk) -> None:
    """Writes out the relative dates of every topic file."""
    for name, text in list(desk.texts.items()):
        day = desk.days.get(name)
        if day is None or not desk.may_change(name) or not _HINT.search(text):
            continue
        topic = TopicFile.parse(text)
        is_rule = topic.type in _RULES
        written = desk.seen.brief.written
        description = write_out_dates(topic.description, day, written, is_rule=is_rule)
        body = write_out_dates(topic.body, day, written, is_rule=is_rule)
        if (description, body) != (topic.description, topic.body):
            head = topic.with_changes(description=description) if description != topic.description else topic
            changed = head.with_changes(body=body).text if body != topic.body else head.text
            was = "".join(f" “{one}”" for one in _reworded(text, changed))
            told = f"; it said{was}" if was else ""
            desk.write(name, changed, f"relative dates written out, counted from {day.isoformat()}{told}")


def _reworded(before: str, after: str) -> list[str]:
    """The old statements that changed."""
    kept = {one.text for one in body_statements(after)}
    return [one.text for one in body_statements(before) if one.text not in kept]


def write_out_dates(
    text: str, day: date, written: Mapping[str, date] = MappingProxyType({}), *, is_rule: bool = False
) -> str:
    """Writes out the relative dates of a text from that day; in a rule only those that are certainly dates. `written`
    are statements that have a day of their own."""
    lines = text.splitlines(keepends=True)
    if not any(map(_HINT.search, lines)):
        return text
    whole = tongue_of(text)

    def its_day(line: str) -> date:
        return next((own for said, own in written.items() if said in line), day)

    return "".join(_line(line, its_day(line), is_rule, whole) if _HINT.search(line) else line for line in lines)


def _found(line: str, day: date, whole: Tongue) -> list[FoundDay]:
    """The dates of a line. The language of a short line can be guessed wrong: then the text's language is tried."""
    for tongue in dict.fromkeys((tongue_of(line), whole, _COMMONEST)):
        found = find_days(line, day, tongue)
        if any(not one.is_absolute for one in found):
            return list(found)
    return []


def _line(line: str, day: date, is_rule: bool, whole: Tongue) -> str:
    code = [match.span() for match in _CODE.finditer(line)]
    found = _found(line, day, whole)
    meant = [
        one
        for one in found
        if not one.is_absolute
        and not any(start <= one.start < end for start, end in code)
        and not _is_mention(line, one)
        and _is_date(line, one, is_rule)
    ]
    # If one day of a sentence is counted from today, the other one is in this year or the next.
    dated = {_sentence(line, one) for one in meant}
    meant += [one for one in found if one not in meant and _is_month_day(line, one) and _sentence(line, one) in dated]
    for one in sorted(meant, key=lambda each: -each.start):
        words = one.words
        if words[:1].isdigit() and line[: one.start].endswith((" at ", " At ")):
            line = f"{line[: one.start - 3]}on {line[one.start :]}"
        if line[one.start].isupper() and not line[: one.start].rstrip(" *_-").endswith(
            tuple("abcdefghijklmnopqrstuvwxyz,")
        ):
            words = words[:1].upper() + words[1:]
        line = line[: one.start] + words + line[one.end :]
    return line


def _sentence(line: str, one: FoundDay) -> tuple[int, int]:
    """Where the sentence around a date begins and ends."""
    begin = max((match.end() for match in _END.finditer(line, 0, one.start)), default=0)
    after = _END.search(line, one.end)
    return begin, after.start() if after else len(line)


def _is_month_day(line: str, one: FoundDay) -> bool:
    """Whether a date is a day of a month without its year, outside quotes and habits."""
    begin, end = _sentence(line, one)
    phrase = line[one.start : one.end]
    is_whole = not one.is_absolute and one.moment.grain == "day" and any(char.isdigit() for char in phrase)
    is_free = not _is_mention(line, one) and not _DATED_ALREADY.match(line, one.end)
    return is_whole and is_free and not _HABIT.search(line[begin:end])


def _is_mention(line: str, one: FoundDay) -> bool:
    """Whether the words of a date are only mentioned: quoted alone, or quoted where words are explained."""
    for quoted in _QUOTED.finditer(line):
        if quoted.start() <= one.start and one.end <= quoted.end():
            more = len(quoted[0].split()) - len(line[one.start : one.end].split())
            return more <= _MENTION_WORDS or bool(_MENTIONS.search(line[: quoted.start()] + line[quoted.end() :]))
    return False


def _is_date(line: str, one: FoundDay, is_rule: bool) -> bool:
    phrase = line[one.start : one.end]
    if _DEFINED.search(line[: one.start]) or line.startswith(" of ", one.end):
        return False  # `dashed = last week`, `the last Sunday of March`
    if _POSSESSIVE.match(line, one.end) or _DATED_ALREADY.match(line, one.end):
        return False
    if phrase.lower().startswith("within"):
        return False
    if _FIRM.search(phrase):
        return True
    begin, end = _sentence(line, one)
    sentence = line[begin:end]
    if is_rule or _HABIT.search(sentence):
        return False
    if _LOOSE.search(phrase):
        return not (phrase.lower().startswith("in ") and _PAST_DEED.search(line[begin : one.start]))
    before = line[begin : one.start]
    is_past = before.endswith("on ") and _HAPPENED.search(before) and not _STILL_SO.search(before)
    return bool(_WEEKDAY.fullmatch(phrase) and (is_past or _DEADLINE.search(before)))
