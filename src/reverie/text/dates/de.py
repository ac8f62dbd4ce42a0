"""German phrases for days. “Nächsten Montag” is the next one to come; “montags” and “jeden Montag” are not a day."""

from __future__ import annotations

import re

from reverie.text.dates import calendar as cal
from reverie.text.dates.calendar import Moment
from reverie.text.dates.phrases import Clause, Grammar, Reading, Wording, phrase

_DAYS = ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")
_MONTHS = ("jan", "feb", "mär", "apr", "mai", "jun", "jul", "aug", "sep", "okt", "nov", "dez")
_NUMBERS = cal.number_words(
    "ein eine einem einer einen, zwei, drei, vier, fünf, sechs, sieben, acht, neun, zehn, elf, zwölf"
)
_DAY = r"(?P<weekday>montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)"
_MONTH = r"(?P<month>januar|jänner|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember)"
_GRAINS: dict[str, cal.Grain] = {"t": "day", "w": "week", "m": "month", "j": "year"}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>tag(?:en?)?|wochen?|monat(?:en?)?|jahr(?:en?)?)"
_WHICH = r"(?:nächste|kommende|diese|letzte|vergangene|vorige|jede)[nrsm]?"
_on = Wording(
    phrase(r"(?:\b(?:am|ab|bis|seit|vom|zum|der|den|dem|ist|für|vor|nach|von|auf|und|oder)|[:=(-])\s*$"),
    on="am",
    within="in",
    week="in der Woche ab",
)
_AHEAD = re.compile(r"\b(?:bis|ab|wird|werden|muss|müssen|soll|sollen|beginnt|startet|für)\b", re.I)


def _weekday(match: re.Match[str], clause: Clause) -> Reading | None:
    said = match["weekday"].lower().replace("sonnabend", "samstag")
    which = (match["which"] or "").lower()
    if which.startswith("jede"):
        return None
    day = _DAYS.index(said)
    back = which.startswith(("letzt", "vergangen", "vorig")) or (
        clause.past and not which and not _AHEAD.search(clause.before)
    )
    return _on(clause, Moment((cal.weekday_back if back else cal.weekday_ahead)(clause.today, day)))


def _month_day(match: re.Match[str], clause: Clause) -> Reading | None:
    groups, day = match.groupdict(), int(match["day"])
    name = (groups.get("month") or "").lower()[:3].replace("jän", "jan")
    month = _MONTHS.index(name) + 1 if name else int(match["number"])
    if groups.get("year"):
        return _on(clause, cal.exact_day(int(groups["year"]) % 2000 + 2000, month, day))
    past = clause.past and not _AHEAD.search(clause.before)
    return _on(clause, cal.in_year(clause.today, month, day, past=past))


def _period(match: re.Match[str], clause: Clause) -> Reading | None:
    which, grain = match["which"].lower(), _GRAINS[match["unit"].lower()[0]]
    if not match["end"] and which in ("der", "des"):
        return None
    ahead = 1 if which.startswith(("nächst", "kommend")) else -1 if which.startswith(("letzt", "vergangen")) else 0
    return _on(clause, cal.period(clause.today, grain, ahead, is_end=bool(match["end"])))


GRAMMAR = Grammar(
    rules=(
        (phrase(rf"\b(?P<day>\d{{1,2}})\. ?{_MONTH}\b(?: (?P<year>20\d\d))?"), _month_day),
        (phrase(r"\b(?P<day>\d{1,2})\.(?P<number>\d{1,2})\.(?P<year>20\d\d|\d\d)?(?!\d)"), _month_day),
        _on.count(phrase(rf"\b(?:heute )?in {_COUNT} {_UNIT}\b"), 1, _NUMBERS, _GRAINS),
        _on.count(phrase(rf"\bvor {_COUNT} {_UNIT}\b"), -1, _NUMBERS, _GRAINS),
        (
            phrase(rf"\b(?P<end>ende )?(?P<which>{_WHICH}|der|des) (?P<unit>woche|monat(?:e?s)?|jahr(?:es)?)\b"),
            _period,
        ),
        (
            phrase(r"\b(?:zum )?monatsende\b"),
            lambda _match, clause: _on(clause, cal.period(clause.today, "month", 0, is_end=True)),
        ),
        (phrase(rf"\b(?:(?P<which>{_WHICH}) )?{_DAY}\b"), _weekday),
        _on.near(re.compile(r"\b(?:übermorgen|Übermorgen)\b"), 2),
        _on.near(re.compile(r"\b(?:vorgestern|Vorgestern)\b"), -2),
        _on.near(re.compile(r"\b(?:(?<![Gg]uten )(?<!heute )morgen(?! früh))\b"), 1),
        _on.near(re.compile(r"\b(?:morgen früh)\b"), 1),
        _on.near(re.compile(r"\b(?:gestern|Gestern)\b"), -1),
        _on.near(re.compile(r"\b(?:heute|Heute)\b"), 0),
    ),
    past=phrase(r"\b(?:war|waren|hatte|hatten|wurde|wurden|hat|haben|seit|ging|kam|fiel|ge\w{3,}t|ge\w{3,}en)\b"),
)
