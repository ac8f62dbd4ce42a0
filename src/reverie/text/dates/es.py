"""Spanish phrases for days. “El próximo lunes” is the next to come; “los lunes” and “por la mañana” are not a day."""

from __future__ import annotations

import re

from reverie.text.dates import calendar as cal
from reverie.text.dates.calendar import Moment
from reverie.text.dates.phrases import Clause, Grammar, Reading, Wording, phrase

_DAYS = ("lun", "mar", "mié", "jue", "vie", "sáb", "dom")
_MONTHS = ("ene", "feb", "mar", "abr", "may", "jun", "jul", "ago", "sep", "oct", "nov", "dic")
_NUMBERS = cal.number_words(
    "un una, dos, tres, cuatro, cinco, seis, siete, ocho, nueve, diez, once, doce, trece, catorce, quince"
)
_DAY = r"(?P<weekday>lunes|martes|mi[ée]rcoles|jueves|viernes|s[áa]bado|domingo)"
_MONTH = r"(?P<month>enero|febrero|marzo|abril|mayo|junio|julio|agosto|sep?tiembre|octubre|noviembre|diciembre)"
_GRAINS: dict[str, cal.Grain] = {"d": "day", "s": "week", "m": "month", "a": "year"}
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_NUMBERS)})"
_UNIT = r"(?P<unit>d[íi]as?|semanas?|mes(?:es)?|años?)"
_on = Wording(
    phrase(r"(?:\b(?:el|del|al|hasta|desde|para|es|antes de|a|de|y|o)|[:=(-])\s*$"),
    on="el",
    within="en",
    week="la semana del",
)
_AHEAD = re.compile(r"\b(?:hasta|para|antes|empieza|será|tiene que|hay que|debe)\b", re.I)


def _weekday(match: re.Match[str], clause: Clause) -> Reading | None:
    if re.search(r"\b(?:los|cada|todos los)\s*$", clause.before, re.I):
        return None
    day = _DAYS.index(match["weekday"].lower()[:3].replace("mie", "mié").replace("sab", "sáb"))
    which = f"{match['which'] or ''} {match['then'] or ''}".lower()
    back = "pasado" in which or (clause.past and not which.strip() and not _AHEAD.search(clause.before))
    article = match["article"] or ""
    moment = Moment((cal.weekday_back if back else cal.weekday_ahead)(clause.today, day))
    return (moment, f"{article}{moment.iso}") if article else _on(clause, moment)


def _month_day(match: re.Match[str], clause: Clause) -> Reading | None:
    month, day = _MONTHS.index(match["month"].lower()[:3].replace("set", "sep")) + 1, int(match["day"])
    if match["year"]:
        return _on(clause, cal.exact_day(int(match["year"]), month, day))
    return _on(clause, cal.in_year(clause.today, month, day, past=clause.past and not _AHEAD.search(clause.before)))


def _period(match: re.Match[str], clause: Clause) -> Reading | None:
    said, unit = match[0].lower(), (match["unit"] or match["later"]).lower()
    ahead = 1 if re.search(r"pr[óo]xim|que viene|siguiente", said) else -1 if "pasad" in said else 0
    return _on(clause, cal.period(clause.today, _GRAINS[unit[0]], ahead, is_end=bool(match["end"])))


GRAMMAR = Grammar(
    rules=(
        (phrase(rf"\b(?P<day>\d{{1,2}}) de {_MONTH}\b(?: (?:de|del) (?P<year>20\d\d))?"), _month_day),
        _on.count(phrase(rf"\b(?:dentro de|en) {_COUNT} {_UNIT}\b"), 1, _NUMBERS, _GRAINS),
        _on.count(phrase(rf"\bhace {_COUNT} {_UNIT}\b"), -1, _NUMBERS, _GRAINS),
        (
            phrase(
                r"\b(?P<end>(?:a )?fin(?:al(?:es)?)? de )?(?:(?:el|la) )?"
                r"(?:(?P<which>pr[óo]xim[oa]|est[ea]) (?P<unit>semana|mes|año)"
                r"|(?P<later>semana|mes|año) (?:que viene|pr[óo]xim[oa]|siguiente|pasad[oa]))\b"
            ),
            _period,
        ),
        (
            phrase(
                rf"(?P<article>\b(?:el|al|del) )?\b(?:(?P<which>pr[óo]ximo|pasado|este) )?{_DAY}\b"
                r"(?P<then> (?:que viene|pasado|pr[óo]ximo))?"
            ),
            _weekday,
        ),
        _on.near(phrase(r"\b(?:pasado mañana)\b"), 2),
        _on.near(phrase(r"\b(?:anteayer|antes de ayer)\b"), -2),
        _on.near(phrase(r"\b(?:(?<!la )(?<!cada )(?<!una )mañana)\b"), 1),
        _on.near(phrase(r"\b(?:ayer)\b"), -1),
        _on.near(phrase(r"\b(?:hoy)\b"), 0),
    ),
    past=phrase(r"\b(?:fue|era|estaba|había|hizo|pasó|\w{2,}(?:ó|aron|ieron|aba|ía))\b"),
)
