"""Japanese phrases for days. 来週の水曜日 is next week's, 水曜日 the coming one; 毎週水曜日 is not a day."""

from __future__ import annotations

import re

from reverie.text.dates import calendar as cal
from reverie.text.dates.calendar import Moment
from reverie.text.dates.phrases import Clause, Grammar, Reading, Rule
from reverie.text.dates.zh import bare_day, day_of, month_day, number, period_end

_WEEKDAYS = "月火水木金土日"
_NUMBER = r"(?:\d{1,3}|[一二三四五六七八九十]{1,3})"
_GRAINS: dict[str, cal.Grain] = {"日": "day", "週間": "week", "週": "week", "月": "month", "年": "year"}
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
_AHEAD = _WEEKS | {"来月": 1, "先月": -1, "来年": 1, "去年": -1, "昨年": -1}


def _simple(match: re.Match[str], clause: Clause) -> Reading | None:
    return bare_day(Moment(cal.add_days(clause.today, _WHEN[match[0]])))


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
    found = cal.add_units(clause.today, count, _GRAINS.get(match["unit"], "month"))
    return Moment(found), found.isoformat()


def _period(match: re.Match[str], clause: Clause) -> Reading:
    said = match["which"]
    found = cal.period(clause.today, _GRAINS[said[-1]], _AHEAD.get(said, 0), is_end=bool(match["end"]))
    return found, found.iso + {"week": " の週", "year": " 年"}.get(found.grain, "")


_RULES: tuple[Rule, ...] = (
    (re.compile(rf"(?:(?P<year>20\d\d)年)?(?P<month>{_NUMBER})月(?P<day>{_NUMBER})日"), month_day),
    (re.compile(rf"(?P<count>{_NUMBER})(?P<unit>日|週間|[かヶケカ]月|年)(?P<way>後|前)"), _counted),
    (re.compile(r"(?P<which>再来週|来週|今週|先週|次|今度|前の)?の?(?P<day>[月火水木金土日])曜日?"), _weekday),
    (re.compile(r"(?P<which>再来週|来週|今週|先週|来月|今月|先月|来年|今年|去年|昨年)(?P<end>末)?"), _period),
    (re.compile(r"月末|年末"), period_end),
    (re.compile("|".join(_WHEN)), _simple),
    (re.compile(rf"(?<![\d月第])(?P<day>{_NUMBER})日(?![間後前目本])"), day_of),
)

GRAMMAR = Grammar(_RULES, past=re.compile(r"(?:した|った|いた|えた)(?:$|の|。|§|が|ので|ため)"))
