"""English phrases for days. “Next Tuesday” is next week's, “Tuesday” the coming one; “Tuesdays” is not a day."""

from __future__ import annotations

import re
from datetime import date

from reverie.text.dates import calendar as cal
from reverie.text.dates.calendar import Moment
from reverie.text.dates.phrases import Clause, Grammar, Reading, Rule, phrase

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERS = cal.number_words("a an one, two couple, three, four, five, six, seven, eight, nine, ten, eleven, twelve")

_DAY = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?"
    r"|sun(?:day)?)"
)
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_COUNT = r"(?P<count>\d{1,3}|a couple of|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_GRAINS: dict[str, cal.Grain] = {"d": "day", "w": "week", "f": "week", "m": "month", "q": "quarter", "y": "year"}
_UNIT = r"(?P<unit>days?|weeks?|fortnights?|months?|years?)"
_YEAR = r"(?:,?\s+(?P<year>20\d\d))?"
_PREPOSITION = re.compile(
    r"(?:\b(?:on|by|until|till|til|from|since|for|before|after|of|than|to|through|thru|at|per|due|and"
    r"|or|the|not|now|in|starting|ending|between|as)|\b(?:date|deadline|day) is|[:=(\-–—/])\s*$",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r"\b(?:by|until|till|til|for|before|due|will|going to|gonna|must|has to|have to|needs? to)\b"
    r"|\b(?:moved|pushed|postponed|delayed|rescheduled|shifted|slipped|extended)\b.*\b(?:to|until|by)\b",
    re.I,
)
_TROUBLE = re.compile(r"^(?:'s|s')?\s+(?:outage|incident|crash|failure|deploy|downtime|disaster|mess|meltdown)", re.I)
_PAST = re.compile(
    r"\b(?:was|were|had|did|didn't|didnt|went|came|left|got|made|took|said|told|broke|lost|sent|gave|saw|found|felt"
    r"|fell|ran|met|knew|thought|brought|built|bought|happened|since|wrote|began|shut|put up|\w{3,}ed)\b",
    re.IGNORECASE,
)


def _on(clause: Clause, moment: Moment, word: str = "on") -> Reading:
    """With a preposition, unless there is one."""
    words = f"the week of {moment.iso}" if moment.grain == "week" else moment.iso
    return moment, words if _PREPOSITION.search(clause.before) else f"{word} {words}"


def _is_past(clause: Clause) -> bool:
    return clause.past and not _AHEAD.search(clause.before)


def _simple(words: str, days: int) -> Rule:
    return phrase(rf"\b(?:{words})\b"), lambda _match, clause: _on(clause, Moment(cal.add_days(clause.today, days)))


def _counted(today: date, count: int, unit: str, sign: int = 1) -> date | None:
    if count > 400:
        return None
    return cal.add_units(today, sign * count * (2 if unit[0] == "f" else 1), _GRAINS[unit[0]])


def _number(text: str) -> int:
    low = text.lower()
    return int(low) if low.isdigit() else _NUMBERS.get(low, 2 if low.startswith("a couple") else 1)


def _in_time(match: re.Match[str], clause: Clause) -> Reading | None:
    if match[0].lower().startswith("within") and not _AHEAD.search(clause.before):
        return None  # how long something takes; a day only if something must be done
    start = clause.today
    origin = (match.groupdict().get("origin") or "").lower()
    if origin == "tomorrow":
        start = cal.add_days(start, 1)
    elif origin and origin not in ("now", "today"):
        start = cal.weekday_ahead(start, _DAYS.index(origin[:3]))
    day = _counted(start, _number(match["count"]), match["unit"].lower())
    return None if day is None else _on(clause, Moment(day))


def _ago(match: re.Match[str], clause: Clause) -> Reading | None:
    unit = match["unit"].lower()
    day = _counted(clause.today, _number(match["count"]), unit, -1)
    if day is None:
        return None
    grain = "year" if unit.startswith("year") else "month" if unit.startswith("month") else "day"
    return _on(clause, Moment(day, grain), "on" if grain == "day" else "in")


def _weekday(match: re.Match[str], clause: Clause) -> Reading | None:
    day = _DAYS.index(match["weekday"].lower()[:3])
    if match["weekday"] in ("sat", "sun", "wed", "mon") and not _PREPOSITION.search(clause.before):
        return None  # “sat”, “sun” and “wed” are also other words
    which = (match["which"] or "").lower().strip()
    if re.search(r"\b(?:every|each|most|any|an?|one|some)\s*$", clause.before, re.I):
        return None
    if re.search(r"\bweeks? (?:start|begin)s? (?:on )?$", clause.before, re.I):
        return None  # the first day of a week
    if re.match(r"\s*(?:mornings|evenings|afternoons|nights)\b", clause.after, re.I):
        return None  # a habit
    if which == "next":
        return _on(clause, Moment(cal.weekday_in(clause.today, day, 1)))
    if which in ("last", "past"):
        return _on(clause, Moment(cal.weekday_back(clause.today, day)))
    back = (clause.past or bool(_TROUBLE.match(clause.after))) and not _AHEAD.search(clause.before)
    if back and not which:
        return _on(clause, Moment(cal.weekday_back(clause.today, day)))
    counts = which == "this" or bool(re.search(r"\b(?:by|until|till)\s*$", clause.before, re.I))
    return _on(clause, Moment(cal.weekday_ahead(clause.today, day, today_counts=counts)))


def _month_day(match: re.Match[str], clause: Clause) -> Reading | None:
    month, day = _MONTHS.index(match["month"].lower()[:3]) + 1, int(match["day"])
    if match["year"]:
        found = cal.exact_day(int(match["year"]), month, day)
    else:
        led_in = re.search(r"\b(?:on|by|until|till|til|since|before|due)\s*$", clause.before, re.I)
        if match["month"] == "may" and not led_in and not re.search(r"\d(?:st|nd|rd|th)|of", match[0]):
            return None  # “may 4 people come in”, “step 1 may fail”
        limit = re.search(r"\b(?:by|until|till|til|due)\s*$", clause.before, re.I)
        found = cal.in_year(clause.today, month, day, past=_is_past(clause), ahead=bool(limit))
    return None if found is None else _on(clause, found)


def _of_month(match: re.Match[str], clause: Clause) -> Reading | None:
    """A day of this, the next or the last month: “the 14th of next month”."""
    ahead = {"next": 1, "coming": 1, "last": -1}.get(match["which"].lower(), 0)
    first = cal.add_months(clause.today.replace(day=1), ahead)
    day = int(match["day"])
    if not 1 <= day <= cal.period(first, "month", 0, is_end=True).day.day:
        return None
    return _on(clause, Moment(first.replace(day=day)))


def _ordinal(match: re.Match[str], clause: Clause) -> Reading | None:
    if re.search(r"\b(?:instead of|not|than)(?: on)?\s*$", clause.before, re.I):
        return None  # the old day: its month is unknown
    found = cal.day_of_month(clause.today, int(match["day"]), past=_is_past(clause))
    return None if found is None else (found, match["lead"] + found.iso)


def _edge(match: re.Match[str], clause: Clause) -> Reading | None:
    groups = match.groupdict()
    grain = _GRAINS[(groups.get("unit") or groups["short"][-1]).lower()[0]]
    ahead = 1 if (groups.get("which") or "").lower() == "next" else 0
    is_end = (groups.get("edge") or "end").lower() == "end"
    return _on(clause, Moment(cal.period(clause.today, grain, ahead, is_end=is_end).day))


def _first_of_month(match: re.Match[str], clause: Clause) -> date:
    """The first day of a named month in the year people mean."""
    found = cal.in_year(clause.today, _MONTHS.index(match["month"].lower()[:3]) + 1, 28, past=_is_past(clause))
    assert found is not None  # every month has a 28th
    return found.day.replace(day=1)


def _edge_of_month(match: re.Match[str], clause: Clause) -> Reading | None:
    first = _first_of_month(match, clause)
    if match["edge"].lower().startswith("end"):
        return _on(clause, cal.period(first, "month", 0, is_end=True))
    moment = cal.period(first, "month", 0)
    return moment, f"{match['edge'].lower().rstrip('- ')} {moment.iso}"


def _month_only(match: re.Match[str], clause: Clause) -> Reading | None:
    moment = cal.period(_first_of_month(match, clause), "month", 0)
    return None if match["month"] == "may" else (moment, f"{match['lead']} {moment.iso}")


def _period(match: re.Match[str], clause: Clause) -> Reading | None:
    ahead = {"next": 1, "this": 0, "last": -1, "coming": 1}[match["which"].lower().split()[-1]]
    return _on(clause, cal.period(clause.today, _GRAINS[match["unit"].lower()[0]], ahead), "in")


def _quarter(match: re.Match[str], clause: Clause) -> Reading | None:
    if re.match(r"\s*'?(?:20)?\d\d\b", clause.after):
        return None  # with its year already
    moment = Moment(cal.quarter(clause.today, int(match["number"]), past=_is_past(clause)), "quarter")
    return moment, moment.iso


_AFTER_ORDINAL = (
    r"(?=\s*(?:$|[,.;:!?)\-–—]|(?:of (?:this|the) month|and|or|but|at|in|because|since|so|now|instead|for|to|with"
    r"|when|not|i|we|he|she|they|it|its|it's|this|that|until|till|already|any ?more|as|if|then|due|is|the|which|where"
    r"|latest|noon|morning|evening|afternoon)\b))"
)

GRAMMAR = Grammar(
    rules=(
        _simple("(?:the )?day after tomorrow", 2),
        _simple("(?:the )?day before yesterday", -2),
        (
            phrase(
                r"\b(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)? (?:of )?(?:the )?(?P<which>next|coming|this|last) month\b"
            ),
            _of_month,
        ),
        (phrase(rf"\b(?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}\b{_YEAR}"), _month_day),
        (phrase(rf"\b{_MONTH}\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:|\.\d|%){_YEAR}"), _month_day),
        (
            phrase(
                rf"\b{_COUNT} {_UNIT} (?:from|after)"
                rf" (?P<origin>now|today|tomorrow|{_DAY.replace('?P<weekday>', '?:')})\b"
            ),
            _in_time,
        ),
        (phrase(rf"\b(?:with)?in {_COUNT} {_UNIT}(?:'s?|s')?(?: time)?\b(?! of)"), _in_time),
        (phrase(rf"\b{_COUNT} {_UNIT} ago\b"), _ago),
        (
            phrase(
                r"\b(?:the )?(?P<edge>end|start|beginning) of (?P<which>this|next|the)"
                r" (?P<unit>week|month|quarter|year)\b"
            ),
            _edge,
        ),
        (phrase(r"\b(?P<edge>end|start|beginning) of (?P<unit>week|month|quarter|year)\b"), _edge),
        (phrase(r"\b(?P<short>eow|eom|eoq|eoy)\b"), _edge),
        (phrase(rf"\b(?:the )?(?P<edge>end of|early|mid|late)(?: |-){_MONTH}\b"), _edge_of_month),
        (
            phrase(r"\b(?:the )?(?P<which>next|this|last|coming) (?P<unit>week|month|quarter|year)\b(?!end|ly|'s)"),
            _period,
        ),
        (
            phrase(
                rf"(?<![\w#@/.-])(?:(?P<which>this coming|this|next|last|past|coming) )?(?:the )?{_DAY}\b(?![-_@/]\w)"
            ),
            _weekday,
        ),
        (phrase(rf"(?P<lead>\b)the (?P<day>\d{{1,2}})(?:st|nd|rd|th)\b{_AFTER_ORDINAL}"), _ordinal),
        (
            phrase(
                rf"(?P<lead>\b(?:by|on|until|till|from|since|before) )(?P<day>\d{{1,2}})(?:st|nd|rd|th)\b"
                rf"{_AFTER_ORDINAL}"
            ),
            _ordinal,
        ),
        (phrase(rf"\b(?P<lead>until|till|til|before|since|through|starting|as of) {_MONTH}\b(?! \d)"), _month_only),
        (phrase(r"\bQ(?P<number>[1-4])\b"), _quarter),
        _simple("tomorrow|tmrw|tmr", 1),
        _simple("yesterday", -1),
        _simple("today|tonight|this (?:morning|afternoon|evening)", 0),
    ),
    past=_PAST,
)
