"""Chinese phrases for days. 下周三 is next week's Wednesday, 周三 the coming one; 每周三 is not a day."""

from __future__ import annotations

import re

from reverie.text.dates import calendar as cal
from reverie.text.dates.calendar import Moment
from reverie.text.dates.phrases import Clause, Grammar, Reading, Rule

_DIGITS = "零一二三四五六七八九"
_NUMBER = r"(?:\d{1,3}|[一二三四五六七八九十两]{1,3})"
_WEEKDAYS = "一二三四五六日"
_WHEN = {
    "今天": 0,
    "今晚": 0,
    "今早": 0,
    "大后天": 3,
    "后天": 2,
    "明天": 1,
    "明早": 1,
    "前天": -2,
    "昨天": -1,
    "昨晚": -1,
}

_GRAINS: dict[str, cal.Grain] = {"天": "day", "日": "day", "个月": "month", "月": "month", "年": "year"}


def number(text: str) -> int:
    """A number below a hundred in digits or characters: 二十三."""
    if text.isdigit():
        return int(text)
    text = text.replace("两", "二")
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return _DIGITS.index(text[-1])
    return (_DIGITS.index(tens) if tens else 1) * 10 + (_DIGITS.index(ones) if ones else 0)


def bare_day(moment: Moment | None) -> Reading | None:
    """A day without any word next to it."""
    return None if moment is None else (moment, moment.iso)


def _simple(match: re.Match[str], clause: Clause) -> Reading | None:
    return bare_day(Moment(cal.add_days(clause.today, _WHEN[match[0]])))


def _weekday(match: re.Match[str], clause: Clause) -> Reading | None:
    if re.search(r"每个?$", clause.before):
        return None
    day = _WEEKDAYS.index(match["day"].replace("天", "日"))
    which = match["which"] or ""
    if which:
        weeks = 2 if which.startswith("下下") else 1 if which.startswith("下") else -1 if which.startswith("上") else 0
        found = cal.weekday_in(clause.today, day, weeks)
    else:
        found = cal.weekday_back(clause.today, day) if clause.past else cal.weekday_ahead(clause.today, day)
    return Moment(found), found.isoformat()


def month_day(match: re.Match[str], clause: Clause) -> Reading | None:
    """3月5日, with or without its year; Japanese writes it the same way."""
    month, day = number(match["month"]), number(match["day"])
    if match["year"]:
        return bare_day(cal.exact_day(int(match["year"]), month, day))
    return bare_day(cal.in_year(clause.today, month, day, past=clause.past))


def day_of(match: re.Match[str], clause: Clause) -> Reading | None:
    """A day of this month: 5日, 5号."""
    return bare_day(cal.day_of_month(clause.today, number(match["day"]), past=clause.past))


def _counted(match: re.Match[str], clause: Clause) -> Reading:
    count = number(match["count"]) * (-1 if match["way"] in ("前", "以前", "之前") else 1)
    found = cal.add_units(clause.today, count, _GRAINS.get(match["unit"], "week"))
    return Moment(found), found.isoformat()


def _period(match: re.Match[str], clause: Clause) -> Reading:
    which, unit, is_end = match["which"], match["unit"], bool(match["end"])
    ahead = 1 if which.startswith(("下", "明")) else -1 if which.startswith(("上", "去")) else 0
    found = cal.period(clause.today, _GRAINS.get(unit, "week"), ahead, is_end=is_end)
    return found, found.iso + {"week": " 那一周", "year": " 年"}.get(found.grain, "")


def period_end(match: re.Match[str], clause: Clause) -> Reading | None:
    """The end of this month or year."""
    return bare_day(cal.period(clause.today, "month" if match[0].startswith("月") else "year", 0, is_end=True))


_RULES: tuple[Rule, ...] = (
    (re.compile(rf"(?:(?P<year>20\d\d)年)?(?P<month>{_NUMBER})月(?P<day>{_NUMBER})[日号號](?!线)"), month_day),
    (
        re.compile(rf"(?P<count>{_NUMBER})(?P<unit>天|日|周|个星期|星期|个礼拜|个月|年)(?P<way>之?以?后|前|之前|以前)"),
        _counted,
    ),
    (
        re.compile(r"(?P<which>下下个?|下个?|这个?|本|上个?)?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])(?![天个])"),
        _weekday,
    ),
    (
        re.compile(r"(?P<which>下个?|这个?|本|上个?)(?P<unit>周|星期|礼拜|月)(?P<end>末|底)?(?![一二三四五六日天])"),
        _period,
    ),
    (re.compile(r"(?P<which>明|今|去)(?P<unit>年)(?P<end>底)?"), _period),
    (re.compile(r"月底|年底"), period_end),
    (re.compile("|".join(_WHEN)), _simple),
    (re.compile(rf"(?<![\d月第])(?P<day>{_NUMBER})[号號](?![线楼库机位店])"), day_of),
)

GRAMMAR = Grammar(_RULES, past=re.compile(r"了(?!$)|过|上次|刚|已经"))
