"""German phrases for days. “Nächsten Montag” is the next one to come; “montags” and “jeden Montag” are none."""

from __future__ import annotations

import re
from datetime import date

from reverie.text.dates import calendar as cal
from reverie.text.dates.calendar import Moment
from reverie.text.dates.finding import Clause, Grammar, Reading, Rule

_DAYS = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_MONTHS = ("jan", "feb", "mär", "apr", "mai", "jun", "jul", "aug", "sep", "okt", "nov", "dez")
_NUMBERS = cal.spelled(
    "ein eine einem einer einen",
    "zwei",
    "drei",
    "vier",
    "fünf",
    "sechs",
    "sieben",
    "acht",
    "neun",
    "zehn",
    "elf",
    "zwölf",
)
_DAY = r"(?P<weekday>montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)"
_MONTH = r"(?P<month>januar|jänner|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)"
_GRAINS: dict[str, cal.Grain] = {"t": "day", "w": "week", "m": "month", "j": "year"}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>tag(?:en?)?|wochen?|monat(?:en?)?|jahr(?:en?)?)"
_WHICH = r"(?:nächste|kommende|diese|letzte|vergangene|vorige|jede)[nrsm]?"
_PREPOSITION = re.compile(
    r"(?:\b(?:am|ab|bis|seit|vom|zum|der|den|dem|ist|für|vor|nach|von|auf|und|oder)|[:=(-])\s*$", re.I
)
_AHEAD = re.compile(r"\b(?:bis|ab|wird|werden|muss|müssen|soll|sollen|beginnt|startet|für)\b", re.I)


def _flags(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _am(clause: Clause, moment: Moment) -> Reading:
    words = f"in der Woche ab {moment.iso}" if moment.grain == "week" else moment.iso
    stands = moment.grain == "week" or bool(_PREPOSITION.search(clause.before))
    return moment, words if stands else f"{'am' if moment.grain == 'day' else 'in'} {words}"


def _simple(word: str, days: int) -> Rule:
    return re.compile(rf"\b(?:{word})\b"), lambda _match, clause: _am(clause, Moment(cal.days_on(clause.today, days)))


def _counted(today: date, match: re.Match[str], sign: int) -> date:
    said = match["count"].lower()
    count = sign * (int(said) if said.isdigit() else _NUMBERS[said])
    return cal.counted(today, count, _GRAINS[match["unit"].lower()[0]])


def _weekday(match: re.Match[str], clause: Clause) -> Reading | None:
    said = match["weekday"].lower().replace("sonnabend", "samstag")
    which = (match["which"] or "").lower()
    if which.startswith("jede"):
        return None
    day = _DAYS.index(said)
    back = which.startswith(("letzt", "vergangen", "vorig")) or (
        clause.past and not which and not _AHEAD.search(clause.before)
    )
    return _am(clause, Moment((cal.weekday_back if back else cal.weekday_ahead)(clause.today, day)))


def _month_day(match: re.Match[str], clause: Clause) -> Reading | None:
    groups = match.groupdict()
    month = int(groups["number"]) if groups.get("number") else _month(match["month"])
    if groups.get("year"):
        year = int(groups["year"]) + (2000 if len(groups["year"]) == 2 else 0)
        try:
            return _am(clause, Moment(date(year, month, int(match["day"]))))
        except ValueError:
            return None
    past = clause.past and not _AHEAD.search(clause.before)
    found = cal.in_year(clause.today, month, int(match["day"]), past=past)
    return None if found is None else _am(clause, Moment(found))


def _month(word: str) -> int:
    return _MONTHS.index(word.lower()[:3].replace("jän", "jan")) + 1


def _period(match: re.Match[str], clause: Clause) -> Reading | None:
    which, unit = match["which"].lower(), match["unit"].lower()
    ahead = 1 if which.startswith(("nächst", "kommend")) else -1 if which.startswith(("letzt", "vergangen")) else 0
    today, is_end = clause.today, bool(match["end"])
    if unit.startswith("woche"):
        if is_end:
            return _am(clause, Moment(cal.weekday_in(today, 4, ahead)))
        return _am(clause, Moment(cal.monday_of(today, ahead), "week"))
    if unit.startswith("monat"):
        first = cal.months_on(today.replace(day=1), ahead)
        return _am(clause, Moment(cal.month_end(first.year, first.month)) if is_end else Moment(first, "month"))
    day = date(today.year + ahead, 12 if is_end else 1, 31 if is_end else 1)
    return _am(clause, Moment(day, "day" if is_end else "year"))


def _month_end(_match: re.Match[str], clause: Clause) -> Reading:
    return _am(clause, Moment(cal.month_end(clause.today.year, clause.today.month)))


GRAMMAR = Grammar(
    rules=(
        (_flags(rf"\b(?P<day>\d{{1,2}})\. ?{_MONTH}\b(?: (?P<year>20\d\d))?"), _month_day),
        (_flags(r"\b(?P<day>\d{1,2})\.(?P<number>\d{1,2})\.(?P<year>20\d\d|\d\d)?(?!\d)"), _month_day),
        (
            _flags(rf"\b(?:heute )?in {_COUNT} {_UNIT}\b"),
            lambda match, clause: _am(clause, Moment(_counted(clause.today, match, 1))),
        ),
        (
            _flags(rf"\bvor {_COUNT} {_UNIT}\b"),
            lambda match, clause: _am(clause, Moment(_counted(clause.today, match, -1))),
        ),
        (
            _flags(
                rf"\b(?P<end>ende )?(?P<which>{_WHICH}|der|des)"
                r" (?P<unit>woche|monat(?:e?s)?|jahr(?:es)?)\b"
            ),
            lambda match, clause: (
                None if not match["end"] and match["which"].lower() in ("der", "des") else _period(match, clause)
            ),
        ),
        (_flags(r"\b(?:zum )?monatsende\b"), _month_end),
        (
            _flags(rf"\b(?:(?P<which>{_WHICH}) )?{_DAY}\b"),
            _weekday,
        ),
        _simple("übermorgen|Übermorgen", 2),
        _simple("vorgestern|Vorgestern", -2),
        _simple("(?<![Gg]uten )(?<!heute )morgen(?! früh)", 1),
        _simple("morgen früh", 1),
        _simple("gestern|Gestern", -1),
        _simple("heute|Heute", 0),
    ),
    past=_flags(r"\b(?:war|waren|hatte|hatten|wurde|wurden|hat|haben|seit|ging|kam|fiel|ge\w{3,}t|ge\w{3,}en)\b"),
)
