"""Japanese phrases for days. 来週の水曜日 is next week's, 水曜日 the one ahead; 毎週水曜日 is none."""

from __future__ import annotations

import re
from datetime import date

from reverie.text.dates import calendar as cal
from reverie.text.dates.calendar import Moment
from reverie.text.dates.finding import Clause, Grammar, Reading, Rule
from reverie.text.dates.zh import day_of, month_day, number

_WEEKDAYS = "月火水木金土日"
_NUMBER = r"(?:\d{1,3}|[一二三四五六七八九十]{1,3})"
_GRAINS: dict[str, cal.Grain] = {"日": "day", "週間": "week", "年": "year"}
_WHEN = {
    "明後日": 2,
    "あさって": 2,
    "一昨日": -2,
    "おととい": -2,
    "本日": 0,
    "今日": 0,
    "明日": 1,
    "あした": 1,
    "昨日": -1,
}
_WEEKS = {"再来週": 2, "来週": 1, "今週": 0, "先週": -1}


def _simple(match: re.Match[str], clause: Clause) -> Reading:
    moment = Moment(cal.days_on(clause.today, _WHEN[match[0]]))
    return moment, moment.iso


def _weekday(match: re.Match[str], clause: Clause) -> Reading | None:
    if re.search(r"毎週?$", clause.before):
        return None
    day, which = _WEEKDAYS.index(match["day"]), match["which"] or ""
    if which in _WEEKS:
        found = cal.weekday_in(clause.today, day, _WEEKS[which])
    else:
        found = (cal.weekday_back if which == "前の" or clause.past else cal.weekday_ahead)(clause.today, day)
    return Moment(found), found.isoformat()


def _counted(match: re.Match[str], clause: Clause) -> Reading:
    count = number(match["count"]) * (-1 if match["way"] == "前" else 1)
    found = cal.counted(clause.today, count, _GRAINS.get(match["unit"], "month"))
    return Moment(found), found.isoformat()


def _period(match: re.Match[str], clause: Clause) -> Reading:
    said, today, is_end = match["which"], clause.today, bool(match["end"])
    if said in _WEEKS:
        if is_end:
            found = Moment(cal.weekday_in(today, 4, _WEEKS[said]))
            return found, found.iso
        found = Moment(cal.monday_of(today, _WEEKS[said]), "week")
        return found, f"{found.iso} の週"
    if said.endswith("月"):
        first = cal.months_on(today.replace(day=1), {"来月": 1, "先月": -1}.get(said, 0))
        found = Moment(cal.month_end(first.year, first.month)) if is_end else Moment(first, "month")
        return found, found.iso
    year = today.year + {"来年": 1, "去年": -1, "昨年": -1}.get(said, 0)
    return Moment(date(year, 1, 1), "year"), f"{year} 年"


def _edge(match: re.Match[str], clause: Clause) -> Reading:
    last = cal.month_end(clause.today.year, clause.today.month if match[0] == "月末" else 12)
    return Moment(last), last.isoformat()


_RULES: tuple[Rule, ...] = (
    (re.compile(rf"(?:(?P<year>20\d\d)年)?(?P<month>{_NUMBER})月(?P<day>{_NUMBER})日"), month_day),
    (re.compile(rf"(?P<count>{_NUMBER})(?P<unit>日|週間|[かヶケカ]月|年)(?P<way>後|前)"), _counted),
    (re.compile(r"(?P<which>再来週|来週|今週|先週|次|今度|前の)?の?(?P<day>[月火水木金土日])曜日?"), _weekday),
    (re.compile(r"(?P<which>再来週|来週|今週|先週|来月|今月|先月|来年|今年|去年|昨年)(?P<end>末)?"), _period),
    (re.compile(r"月末|年末"), _edge),
    (re.compile("|".join(_WHEN)), _simple),
    (re.compile(rf"(?<![\d月第])(?P<day>{_NUMBER})日(?![間後前目本])"), day_of),
)

GRAMMAR = Grammar(_RULES, past=re.compile(r"(?:した|った|いた|えた)(?:$|の|。|§|が|ので|ため)"))
