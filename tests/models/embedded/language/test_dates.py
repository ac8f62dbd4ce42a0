"""Relative dates are told from the day of writing; habits, code and what is dated already stay."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.models.embedded.language.dates import absolute, find_dates, has_relative_date

WEDNESDAY = date(2026, 1, 14)


@pytest.mark.parametrize(
    ("text", "written_out"),
    [
        ("It starts next Monday.", "It starts on 2026-01-19."),
        ("Ready by the end of this month", "Ready by 2026-01-31"),
        ("Report expected at the end of next month.", "Report expected on 2026-02-28."),
        ("The union agreed yesterday.", "The union agreed on 2026-01-13."),
        ("Removed last week.", "Removed in the week of 2026-01-05."),
        ("Training tomorrow at 14:00", "Training on 2026-01-15 at 14:00"),
        ("Papers are due by Friday.", "Papers are due by 2026-01-16."),
        ("She joins in three weeks.", "She joins on 2026-02-04."),
        ("Ordered ten days ago.", "Ordered on 2026-01-04."),
        ("Tomorrow we close.", "On 2026-01-15 we close."),
        ("We'll show it on Thursday.", "We'll show it on 2026-01-15."),
        ("Launch is a fortnight from today.", "Launch is 2026-01-28."),
        ("The lease ends next year.", "The lease ends in 2027."),
        ("Ab Montag gilt das; übermorgen Probe.", "Ab 2026-01-19 gilt das; am 2026-01-16 Probe."),
        ("Nächste Woche Urlaub", "In der Woche vom 2026-01-19 Urlaub"),
        ("El próximo lunes empieza.", "El 2026-01-19 empieza."),
        ("下周三演示", "2026-01-21演示"),
        ("来週の月曜日から", "2026-01-19から"),
    ],
)
def test_a_relative_date_is_written_out(text: str, written_out: str) -> None:
    assert absolute(text, WEDNESDAY) == written_out


@pytest.mark.parametrize(
    "text",
    [
        "Off every second Friday.",
        "Releases go out on Tuesday at 10:00.",
        "Boxes arrive a week before.",
        "It was built in three days.",
        "Run `deploy --at tomorrow` by hand.",
        "Starts next Monday (2026-01-19).",
        "Reports are due at the end of the month, every month.",
        "Today's desk is usually the one by the window.",
        "Por la mañana trabajo en casa.",
        "Keep the last model.",
        "Open from Monday to Friday.",
    ],
)
def test_what_is_no_date_stays(text: str) -> None:
    assert absolute(text, WEDNESDAY) == text


def test_a_rule_keeps_what_is_as_often_a_rule() -> None:
    rule = "Answer in two days; it broke last week."
    assert absolute(rule, WEDNESDAY, firm_only=True) == "Answer in two days; it broke in the week of 2026-01-05."


def test_it_says_where_and_what() -> None:
    (found,) = find_dates("line one\nIt ends next month.", WEDNESDAY)
    assert (found.phrase, found.iso, found.language) == ("next month", "2026-02", "en")
    assert has_relative_date("see you tomorrow") and not has_relative_date("see you on 2026-01-15")


@given(st.dates(date(1999, 1, 1), date(2100, 1, 1)), st.text(max_size=60))
def test_written_out_once_is_written_out(day: date, around: str) -> None:
    text = f"{around} it ends tomorrow, or next Friday, or in 3 weeks, at the end of next month. {around}"
    once = absolute(text, day)
    assert absolute(once, day) == once
