"""Spanish phrases for days. “El próximo lunes” is the next one to come; “los lunes” and “por la mañana” are none."""

from __future__ import annotations

import re
from datetime import date

from reverie.text.dates import calendar as cal
from reverie.text.dates.calendar import Moment
from reverie.text.dates.finding import Clause, Grammar, Reading, Rule

_DAYS = ("lun", "mar", "mié", "jue", "vie", "sáb", "dom")
_MONTHS = ("ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sep", "oct", "nov", "dic")
_NUMBERS = cal.spelled(
    "un una",
    "dos",
    "tres",
    "cuatro",
    "cinco",
    "seis",
    "siete",
    "ocho",
    "nueve",
    "diez",
    "once",
    "doce",
    "trece",
    "catorce",
    "quince",
)
_DAY = r"(?P<weekday>lunes|martes|mi[ée]rcoles|jueves|viernes|s[áa]bado|domingo)"
_MONTH = r"(?P<month>enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre)"
_GRAINS: dict[str, cal.Grain] = {"d": "day", "s": "week", "m": "month", "a": "year"}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>d[íi]as?|semanas?|mes(?:es)?|años?)"
_PREPOSITION = re.compile(r"(?:\b(?:el|del|al|hasta|desde|para|es|antes de|a|de|y|o)|[:=(-])\s*$", re.I)
_AHEAD = re.compile(r"\b(?:hasta|para|antes|empieza|será|tiene que|hay que|debe)\b", re.I)


def _flags(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _el(clause: Clause, moment: Moment) -> Reading:
    words = f"la semana del {moment.iso}" if moment.grain == "week" else moment.iso
    stands = moment.grain == "week" or bool(_PREPOSITION.search(clause.before))
    return moment, words if stands else f"{'el' if moment.grain == 'day' else 'en'} {words}"


def _simple(word: str, days: int) -> Rule:
    return _flags(rf"\b(?:{word})\b"), lambda _match, clause: _el(clause, Moment(cal.days_on(clause.today, days)))


def _counted(today: date, match: re.Match[str], sign: int) -> date:
    said = match["count"].lower()
    count = sign * (int(said) if said.isdigit() else _NUMBERS[said])
    return cal.counted(today, count, _GRAINS[match["unit"].lower()[0]])


def _weekday(match: re.Match[str], clause: Clause) -> Reading | None:
    if re.search(r"\b(?:los|cada|todos los)\s*$", clause.before, re.I):
        return None
    day = _DAYS.index(match["weekday"].lower()[:3].replace("mie", "mié").replace("sab", "sáb"))
    which = f"{match['which'] or ''} {match['then'] or ''}".lower()
    back = "pasado" in which or (clause.past and not which.strip() and not _AHEAD.search(clause.before))
    article = match["article"] or ""
    moment = Moment((cal.weekday_back if back else cal.weekday_ahead)(clause.today, day))
    return moment, f"{article}{moment.iso}" if article else _el(clause, moment)[1]


def _month_day(match: re.Match[str], clause: Clause) -> Reading | None:
    month, day = _MONTHS.index(match["month"].lower()[:3].replace("set", "sep")) + 1, int(match["day"])
    if match["year"]:
        try:
            return _el(clause, Moment(date(int(match["year"]), month, day)))
        except ValueError:
            return None
    found = cal.in_year(clause.today, month, day, past=clause.past and not _AHEAD.search(clause.before))
    return None if found is None else _el(clause, Moment(found))


def _period(match: re.Match[str], clause: Clause) -> Reading | None:
    said, unit = match[0].lower(), (match["unit"] or match["later"]).lower()
    ahead = 1 if re.search(r"pr[óo]xim|que viene|siguiente", said) else -1 if "pasad" in said else 0
    today, is_end = clause.today, bool(match["end"])
    if unit.startswith("semana"):
        if is_end:
            return _el(clause, Moment(cal.weekday_in(today, 4, ahead)))
        return _el(clause, Moment(cal.monday_of(today, ahead), "week"))
    if unit.startswith("mes"):
        first = cal.months_on(today.replace(day=1), ahead)
        return _el(clause, Moment(cal.month_end(first.year, first.month)) if is_end else Moment(first, "month"))
    day = date(today.year + ahead, 12 if is_end else 1, 31 if is_end else 1)
    return _el(clause, Moment(day, "day" if is_end else "year"))


GRAMMAR = Grammar(
    rules=(
        (_flags(rf"\b(?P<day>\d{{1,2}}) de {_MONTH}\b(?: (?:de|del) (?P<year>20\d\d))?"), _month_day),
        (
            _flags(rf"\b(?:dentro de|en) {_COUNT} {_UNIT}\b"),
            lambda match, clause: _el(clause, Moment(_counted(clause.today, match, 1))),
        ),
        (
            _flags(rf"\bhace {_COUNT} {_UNIT}\b"),
            lambda match, clause: _el(clause, Moment(_counted(clause.today, match, -1))),
        ),
        (
            _flags(
                r"\b(?P<end>(?:a )?fin(?:al(?:es)?)? de )?(?:(?:el|la) )?"
                r"(?:(?P<which>pr[óo]xim[oa]|est[ea]) (?P<unit>semana|mes|año)"
                r"|(?P<later>semana|mes|año) (?:que viene|pr[óo]xim[oa]|siguiente|pasad[oa]))\b"
            ),
            _period,
        ),
        (
            _flags(
                rf"(?P<article>\b(?:el|al|del) )?\b(?:(?P<which>pr[óo]ximo|pasado|este) )?{_DAY}\b"
                r"(?P<then> (?:que viene|pasado|pr[óo]ximo))?"
            ),
            _weekday,
        ),
        _simple("pasado mañana", 2),
        _simple("anteayer|antes de ayer", -2),
        _simple("(?<!la )(?<!cada )(?<!una )mañana", 1),
        _simple("ayer", -1),
        _simple("hoy", 0),
    ),
    past=_flags(r"\b(?:fue|era|estaba|había|hizo|pasó|\w{2,}(?:ó|aron|ieron|aba|ía))\b"),
)
