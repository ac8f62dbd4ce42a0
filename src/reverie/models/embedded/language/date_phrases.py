"""How five languages speak of days relative to the day of speaking: patterns, and what each means.

A table, read from top to bottom: longer phrases stand before those they contain. `date` names the group that is
replaced. A phrase is firm if it is hardly ever anything but a date; the others are dates only where no habit is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Final

from reverie.models.embedded.language.calendar import (
    Day,
    Span,
    Year,
    coming,
    counted,
    days_from,
    in_week,
    month_end,
    month_of,
    past,
    quarter_end,
    week_of,
)

Meaning = Callable[[re.Match[str], date], Span | None]


@dataclass(frozen=True, slots=True)
class Phrase:
    """One way of speaking of a day."""

    pattern: re.Pattern[str]
    meaning: Meaning
    is_firm: bool = True
    may_be_duration: bool = False
    """`built in three days` is no date."""


_NUMBERS: Final = {
    word: number
    for number, spelled in enumerate(
        (
            "one a an einem einer ein eine un una 一",
            "two zwei dos couple 两 二",
            "three drei tres 三",
            "four vier cuatro 四",
            "five fünf cinco 五",
            "six sechs seis 六",
            "seven sieben siete 七",
            "eight acht ocho 八",
            "nine neun nueve 九",
            "ten zehn diez 十",
            "eleven elf",
            "twelve zwölf doce",
        ),
        start=1,
    )
    for word in spelled.split()
}
_UNITS: Final = {
    stem: unit
    for unit, stems in {
        "day": "day tag tage tagen día dia días dias 天 日",
        "week": "week woche wochen semana semanas 周 週 星期 个星期 个礼拜 週間",
        "month": "month monat monate monaten mes meses 个月 ヶ月 か月 カ月",
        "year": "year jahr jahre jahren año años 年",
    }.items()
    for stem in stems.split()
}
_WEEKDAYS: Final = {
    word: number
    for number, spelled in enumerate(
        (
            "monday mon montag lunes 一 月",
            "tuesday tue tues dienstag martes 二 火",
            "wednesday wed mittwoch miércoles miercoles 三 水",
            "thursday thu thurs donnerstag jueves 四 木",
            "friday fri freitag viernes 五 金",
            "saturday sat samstag sonnabend sábado sabado 六 土",
            "sunday sun sonntag domingo 日 天",
        )
    )
    for word in spelled.split()
}
_N = r"(?P<n>\d{1,3}|one|a|an|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|a couple of)"
_N_DE = r"(?P<n>\d{1,3}|eine[mr]|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf)"
_N_ES = r"(?P<n>\d{1,3}|una?|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|doce)"
_N_CJK = r"(?P<n>\d{1,3}|[一两二三四五六七八九十])"
_DAY_EN = r"(?P<day>monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b(?!s)"
_DAY_DE = r"(?P<day>montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)\b"
_DAY_ES = r"(?P<day>lunes|martes|mi[eé]rcoles|jueves|viernes|s[áa]bado|domingo)\b"


def _amount(match: re.Match[str]) -> int:
    said = match["n"].lower().removesuffix(" of").removeprefix("a ") if len(match["n"]) > 1 else match["n"].lower()
    return int(said) if said.isdigit() else _NUMBERS.get(said, 1)


def _weekday(match: re.Match[str]) -> int:
    return _WEEKDAYS[match["day"].lower()]


def _count(sign: int) -> Meaning:
    def meaning(match: re.Match[str], day: date) -> Span | None:
        unit = match["unit"].lower()
        return counted(day, _amount(match), _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s"), ""), sign)

    return meaning


def _offset(days: int) -> Meaning:
    return lambda _match, day: days_from(day, days)


def _weeks(weeks: int) -> Meaning:
    return lambda _match, day: week_of(day, weeks)


def _months(months: int) -> Meaning:
    return lambda _match, day: month_of(day, months)


def _years(years: int) -> Meaning:
    return lambda _match, day: Year(day.year + years)


def _month_end(months: int) -> Meaning:
    return lambda _match, day: month_end(month_of(day, months))


def _weekday_of_week(weeks: int) -> Meaning:
    return lambda match, day: in_week(day, _weekday(match), weeks)


def _coming(match: re.Match[str], day: date) -> Span:
    return coming(day, _weekday(match))


def _past(match: re.Match[str], day: date) -> Span:
    return past(day, _weekday(match))


def _this_weekday(match: re.Match[str], day: date) -> Span:
    return in_week(day, _weekday(match), 0) if day.weekday() <= _weekday(match) else coming(day, _weekday(match))


def _phrase(pattern: str, meaning: Meaning, *, firm: bool = True, duration: bool = False) -> Phrase:
    named = pattern if "(?P<date>" in pattern else rf"(?P<date>{pattern})"
    edge = "" if max(pattern) > "\u3000" or pattern.startswith("(?:'ll") else r"(?<![\w-])"
    return Phrase(re.compile(edge + named, re.IGNORECASE), meaning, firm, duration)


_THE = r"(?:(?:at|on|in|towards?) )?(?:the )?"

ENGLISH: Final = (
    _phrase(rf"{_THE}end of next month\b", _month_end(1)),
    _phrase(rf"{_THE}end of (?:this|the current) month\b", _month_end(0)),
    _phrase(rf"{_THE}end of last month\b", _month_end(-1)),
    _phrase(rf"{_THE}(?:end of the month|month[’'-]?s? end)\b", _month_end(0), firm=False),
    _phrase(rf"{_THE}end of next week\b", lambda _match, day: in_week(day, 4, 1)),
    _phrase(rf"{_THE}end of this week\b", lambda _match, day: in_week(day, 4, 0)),
    _phrase(rf"{_THE}end of the week\b", lambda _match, day: in_week(day, 4, 0), firm=False),
    _phrase(rf"{_THE}end of next quarter\b", lambda _match, day: quarter_end(day, 1)),
    _phrase(rf"{_THE}end of this quarter\b", lambda _match, day: quarter_end(day)),
    _phrase(rf"{_THE}end of the quarter\b", lambda _match, day: quarter_end(day), firm=False),
    _phrase(rf"{_THE}end of (?:this|the) year\b", lambda _match, day: Day(date(day.year, 12, 31)), firm=False),
    _phrase(r"(?:the )?day after tomorrow\b", _offset(2)),
    _phrase(r"(?:the )?day before yesterday\b", _offset(-2)),
    _phrase(r"tomorrow\b(?!['’]s)", _offset(1)),
    _phrase(r"yesterday\b(?!['’]s)", _offset(-1)),
    _phrase(rf"{_N} (?P<unit>day|week|month|year)s? from (?:today|now)\b", _count(1)),
    _phrase(r"a fortnight from (?:today|now)\b|in a fortnight\b", _offset(14)),
    _phrase(rf"{_N} (?P<unit>day|week|month|year)s? ago\b", _count(-1)),
    _phrase(r"a fortnight ago\b", _offset(-14)),
    _phrase(
        rf"in {_N} (?P<unit>day|week|month)s?\b(?! (?:time )?before| after)(?: time\b)?",
        _count(1),
        firm=False,
        duration=True,
    ),
    _phrase(
        rf"(?:a week (?:from|on) )(?:next )?{_DAY_EN}",
        lambda match, day: days_from(coming(day, _weekday(match)).day, 7),
    ),
    _phrase(rf"{_DAY_EN} (?:of )?next week\b", _weekday_of_week(1)),
    _phrase(rf"{_DAY_EN} (?:of )?last week\b", _weekday_of_week(-1)),
    _phrase(rf"next {_DAY_EN}(?!['’]s)", _weekday_of_week(1)),
    _phrase(rf"last {_DAY_EN}(?!['’]s)", _past),
    _phrase(rf"(?:this coming|coming) {_DAY_EN}", _coming),
    _phrase(rf"this {_DAY_EN}", _this_weekday),
    _phrase(r"next week\b(?!['’]s)", _weeks(1)),
    _phrase(r"last week\b(?!['’]s)", _weeks(-1)),
    _phrase(r"this week\b(?!['’]s)", _weeks(0), firm=False),
    _phrase(r"next month\b(?!['’]s)", _months(1)),
    _phrase(r"last month\b(?!['’]s)", _months(-1)),
    _phrase(r"this month\b(?!['’]s)", _months(0), firm=False),
    _phrase(r"next year\b(?!['’]s)", _years(1)),
    _phrase(r"last year\b(?!['’]s)", _years(-1)),
    _phrase(r"this (?:morning|afternoon|evening)\b", _offset(0)),
    _phrase(r"(?:tonight|today)\b(?!['’]s)", _offset(0), firm=False),
    _phrase(rf"(?<=\bby )(?P<date>{_DAY_EN})", _coming, firm=False),
    _phrase(
        rf"(?:until|till|from|due|due on|before) (?P<date>{_DAY_EN})(?! (?:to|through|until)\b)", _coming, firm=False
    ),
    _phrase(rf"(?:'ll|\bwill|\bgoing to|\bto be)\b[^.;\n]{{0,60}} on (?P<date>{_DAY_EN})", _coming, firm=False),
)

GERMAN: Final = (
    _phrase(r"(?:am |zum )?ende (?:des )?n(?:ä|ae)chsten monats\b", _month_end(1)),
    _phrase(r"(?:am |zum )?ende (?:dieses|des laufenden) monats\b", _month_end(0)),
    _phrase(r"(?:am |zum )?(?:ende des monats|monatsende)\b", _month_end(0), firm=False),
    _phrase(r"ende (?:der|dieser) woche\b", lambda _match, day: in_week(day, 4, 0), firm=False),
    _phrase(r"ende n(?:ä|ae)chster woche\b", lambda _match, day: in_week(day, 4, 1)),
    _phrase(r"(?:ü|ue)bermorgen\b", _offset(2)),
    _phrase(r"vorgestern\b", _offset(-2)),
    _phrase(r"gestern\b", _offset(-1)),
    _phrase(rf"in {_N_DE} (?P<unit>tag|tagen|woche|wochen|monat|monaten)\b", _count(1), firm=False),
    _phrase(rf"vor {_N_DE} (?P<unit>tag|tagen|woche|wochen|monat|monaten|jahr|jahren)\b", _count(-1)),
    _phrase(rf"(?:am )?(?:n(?:ä|ae)chste[nr]?) {_DAY_DE}", _weekday_of_week(1)),
    _phrase(rf"(?:am )?(?:kommende[nr]?|diesen) {_DAY_DE}", _coming),
    _phrase(rf"(?:am )?(?:letzte[nr]?|vergangene[nr]?|vorige[nr]?) {_DAY_DE}", _past),
    _phrase(r"(?:in der )?n(?:ä|ae)chste[nr]? woche\b|kommende woche\b", _weeks(1)),
    _phrase(r"(?:in der )?(?:letzte|vergangene|vorige)[nr]? woche\b", _weeks(-1)),
    _phrase(r"(?:im )?n(?:ä|ae)chste[nr]? monat\b", _months(1)),
    _phrase(r"(?:im )?(?:letzte|vergangene|vorige)[nr]? monat\b", _months(-1)),
    _phrase(r"n(?:ä|ae)chstes jahr\b", _years(1)),
    _phrase(r"letztes jahr\b", _years(-1)),
    _phrase(r"(?<!am )(?<!jeden )(?-i:morgen)\b(?! früh)(?!s)", _offset(1), firm=False),
    _phrase(r"heute\b", _offset(0), firm=False),
    _phrase(rf"(?:bis|ab) (?:zum |diesen )?(?P<date>{_DAY_DE})(?! bis\b)", _coming, firm=False),
)

SPANISH: Final = (
    _phrase(r"(?:a )?(?:fin|final|finales) (?:de|del) (?:mes que viene|pr[óo]ximo mes)\b", _month_end(1)),
    _phrase(r"(?:a )?(?:fin|final|finales) de(?:l)? (?:este )?mes\b", _month_end(0), firm=False),
    _phrase(r"pasado ma[ñn]ana\b", _offset(2)),
    _phrase(r"anteayer\b|antes de ayer\b", _offset(-2)),
    _phrase(r"ayer\b", _offset(-1)),
    _phrase(rf"(?:en|dentro de) {_N_ES} (?P<unit>d[íi]as?|semanas?|mes|meses)\b", _count(1), firm=False),
    _phrase(rf"hace {_N_ES} (?P<unit>d[íi]as?|semanas?|mes|meses|años?)\b", _count(-1)),
    _phrase(rf"(?:el )?pr[óo]ximo {_DAY_ES}", _weekday_of_week(1)),
    _phrase(rf"(?:el )?{_DAY_ES} (?:que viene|pr[óo]ximo)\b", _coming),
    _phrase(rf"(?:el )?{_DAY_ES} pasado\b", _past),
    _phrase(rf"este {_DAY_ES}", _this_weekday),
    _phrase(r"(?:la )?semana que viene\b|(?:la )?pr[óo]xima semana\b", _weeks(1)),
    _phrase(r"(?:la )?semana pasada\b", _weeks(-1)),
    _phrase(r"(?:el )?mes que viene\b|(?:el )?pr[óo]ximo mes\b", _months(1)),
    _phrase(r"(?:el )?mes pasado\b", _months(-1)),
    _phrase(r"(?:el )?año que viene\b|(?:el )?pr[óo]ximo año\b", _years(1)),
    _phrase(r"(?<!la )(?<!por la )(?<!de la )ma[ñn]ana\b", _offset(1), firm=False),
    _phrase(r"hoy\b", _offset(0), firm=False),
    _phrase(rf"(?:hasta|para|antes del|a partir del) (?:el )?(?P<date>{_DAY_ES})", _coming, firm=False),
)

CHINESE: Final = (
    _phrase(r"下个?月底", _month_end(1)),
    _phrase(r"(?:这个|本)?月底", _month_end(0), firm=False),
    _phrase(r"下(?:个)?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])", _weekday_of_week(1)),
    _phrase(r"上(?:个)?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])", _weekday_of_week(-1)),
    _phrase(r"(?:这|本)(?:个)?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])", _weekday_of_week(0)),
    _phrase(rf"{_N_CJK}(?P<unit>天|周|个星期|个月|年)(?:之|以)?后", _count(1)),
    _phrase(rf"{_N_CJK}(?P<unit>天|周|个星期|个月|年)(?:之|以)?前", _count(-1)),
    _phrase(r"大后天", _offset(3)),
    _phrase(r"[后後]天", _offset(2)),
    _phrase(r"明天", _offset(1)),
    _phrase(r"前天", _offset(-2)),
    _phrase(r"昨天", _offset(-1)),
    _phrase(r"今天", _offset(0), firm=False),
    _phrase(r"下(?:个)?(?:周|星期|礼拜)(?!末)", _weeks(1)),
    _phrase(r"上(?:个)?(?:周|星期|礼拜)(?!末)", _weeks(-1)),
    _phrase(r"下个月", _months(1)),
    _phrase(r"上个月", _months(-1)),
    _phrase(r"明年", _years(1)),
    _phrase(r"去年", _years(-1)),
)

JAPANESE: Final = (
    _phrase(r"来月末", _month_end(1)),
    _phrase(r"(?:今)?月末", _month_end(0), firm=False),
    _phrase(r"来週の?(?P<day>[月火水木金土日])曜日?", _weekday_of_week(1)),
    _phrase(r"先週の?(?P<day>[月火水木金土日])曜日?", _weekday_of_week(-1)),
    _phrase(r"今週の?(?P<day>[月火水木金土日])曜日?", _weekday_of_week(0)),
    _phrase(r"次の(?P<day>[月火水木金土日])曜日?", _coming),
    _phrase(rf"{_N_CJK}(?P<unit>日|週間|ヶ月|か月|カ月|年)後", _count(1)),
    _phrase(rf"{_N_CJK}(?P<unit>日|週間|ヶ月|か月|カ月|年)前", _count(-1)),
    _phrase(r"明後日|あさって", _offset(2)),
    _phrase(r"一昨日|おととい", _offset(-2)),
    _phrase(r"明日|あした", _offset(1)),
    _phrase(r"昨日|きのう", _offset(-1)),
    _phrase(r"今日|本日", _offset(0), firm=False),
    _phrase(r"来週", _weeks(1)),
    _phrase(r"先週", _weeks(-1)),
    _phrase(r"来月", _months(1)),
    _phrase(r"先月", _months(-1)),
    _phrase(r"来年", _years(1)),
)

PHRASES: Final = {"en": ENGLISH, "de": GERMAN, "es": SPANISH, "zh": CHINESE, "ja": JAPANESE}

HINTS: Final = {
    "en": re.compile(
        r"\b(?:tomorrow|yesterday|today|tonight|ago|next|last|this|coming|fortnight|end|month.?s? end"
        r"|in (?:\d|one|an?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)|from (?:today|now)"
        r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
        re.IGNORECASE,
    ),
    "de": re.compile(
        r"\b(?:heute|morgen|gestern|vorgestern|(?:ü|ue)bermorgen|ende|monatsende|n(?:ä|ae)chste|kommende|letzte|vergangene"
        r"|vorige|diesen|in \w+ (?:tag|woche|monat)|vor \w+ (?:tag|woche|monat|jahr)|(?:bis|ab) )",
        re.IGNORECASE,
    ),
    "es": re.compile(
        r"\b(?:hoy|ayer|anteayer|antes de|ma[ñn]ana|pr[óo]xim[oa]|que viene|pasad[oa]|fin|final(?:es)?|hace|dentro de"
        r"|en \w+ (?:d[íi]a|semana|mes)|este|hasta|para|a partir)\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(r"[今明昨前后後]天|[下上这本][个]?(?:周|星期|礼拜|月)|月底|[后後前]|明年|去年"),
    "ja": re.compile(
        r"[来先今]週|[来先今]月|月末|[今昨明本]日|明後日|一昨日|あさって|おととい|あした|きのう|[後前]|来年|次の"
    ),
}
"""A word that a line must hold for any phrase of the language to stand in it: cheaper than to look for each."""
