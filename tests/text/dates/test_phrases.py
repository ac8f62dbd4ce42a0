"""Days in five languages: what each phrase means, what is none, and that a text written out stays as it is."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.text.dates.phrases import find_days, write_out_days

TUESDAY = date(2026, 3, 10)

SAID = [
    # English
    ("it starts next Tuesday", "it starts on 2026-03-17"),
    ("filed by Monday noon", "filed by 2026-03-16 noon"),
    ("we ship on June 3rd", "we ship on 2026-06-03"),
    ("the freeze is this Friday", "the freeze is on 2026-03-13"),
    ("it starts in three weeks and lasts four days", "it starts on 2026-03-31 and lasts four days"),
    ("due at the end of next month", "due at 2026-04-30"),
    ("they gave us until the 14th of next month", "they gave us until 2026-04-14"),
    ("it opens on may 29 with two plots", "it opens on 2026-05-29 with two plots"),
    ("frozen from tomorrow until the 30th because", "frozen from 2026-03-11 until 2026-03-30 because"),
    ("closed until January 15", "closed until 2027-01-15"),
    ("she takes over on the 1st, I leave", "she takes over on 2026-04-01, I leave"),
    ("a fortnight from today we launch", "on 2026-03-24 we launch"),
    ("parked till Q3", "parked till Q3 2026"),
    ("on leave until October", "on leave until 2026-10"),
    ("we talked it over on Friday", "we talked it over on 2026-03-06"),
    ("she has it since Monday", "she has it since 2026-03-09"),
    ("postponed to the 26th", "postponed to 2026-03-26"),
    ("two weeks ago it broke", "on 2026-02-24 it broke"),
    ("they promised it for May 4th", "they promised it for 2026-05-04"),
    # German
    ("Die Prüfung beginnt nächsten Montag", "Die Prüfung beginnt am 2026-03-16"),
    ("Der neue Termin ist der 15. April", "Der neue Termin ist der 2026-04-15"),
    ("Wir liefern in zwei Wochen", "Wir liefern am 2026-03-24"),
    ("heute in zwei Wochen ist Abnahme", "am 2026-03-24 ist Abnahme"),
    ("A guess gets cited within a month", "A guess gets cited within a month"),
    ("It must be fixed within two weeks", "It must be fixed on 2026-03-24"),
    ("Bis übermorgen muss das fertig sein", "Bis 2026-03-12 muss das fertig sein"),
    # Spanish
    ("La auditoría empieza el próximo lunes", "La auditoría empieza el 2026-03-16"),
    ("El juicio es el 3 de mayo", "El juicio es el 2026-05-03"),
    ("Se entrega dentro de quince días", "Se entrega el 2026-03-25"),
    # Chinese
    ("我们下周五要演示", "我们 2026-03-20 要演示"),
    ("改到八月二十日", "改到 2026-08-20"),
    ("4月30日到5月5日封网", "2026-04-30 到 2026-05-05 封网"),
    # Japanese
    ("リリースは来週の水曜日です", "リリースは 2026-03-18 です"),
    ("締め切りは4月15日です", "締め切りは 2026-04-15 です"),
]

NO_DAY = [
    "Tom checks it fridays",
    "every Monday we meet",
    "never on Friday evenings",
    "step 1 may fail",
    "the room is on the 2nd floor",
    "it takes four days",
    "guten Morgen zusammen",
    "los lunes no trabajo",
    "每周三开会",
    "毎週水曜日に会議です",
    "instead of the 15th",
]


@pytest.mark.parametrize(("said", "written"), SAID)
def test_a_phrase_becomes_the_day_it_means(said: str, written: str) -> None:
    assert write_out_days(said, TUESDAY) == written


@pytest.mark.parametrize("said", NO_DAY)
def test_what_cannot_be_counted_stays_as_it_is(said: str) -> None:
    assert write_out_days(said, TUESDAY) == said


@pytest.mark.parametrize(("said", "written"), SAID)
def test_written_out_it_stays_so(said: str, written: str) -> None:
    del said
    assert write_out_days(written, date(2030, 1, 1)) == written, "counted again from another day, it would move"


def test_the_last_day_of_a_month_is_known_in_a_leap_year() -> None:
    assert write_out_days("due at the end of the month", date(2028, 2, 3)) == "due at 2028-02-29"
    assert write_out_days("in 1 month", date(2026, 1, 31)) == "on 2026-02-28"


@given(st.text(max_size=200), st.dates(date(1990, 1, 1), date(2090, 1, 1)))
def test_any_text_can_be_read(text: str, today: date) -> None:
    found = find_days(text, today)
    assert all(one.start < one.end <= len(text) for one in found)
    assert all(one.end <= after.start for one, after in pairwise(found))


@given(
    st.lists(st.sampled_from([*(said for said, _ in SAID[:17]), *NO_DAY[:6]]), min_size=1, max_size=4).map(". ".join),
    st.dates(date(2000, 1, 1), date(2080, 1, 1)),
)
def test_writing_out_twice_changes_nothing(text: str, today: date) -> None:
    once = write_out_days(text, today)
    assert write_out_days(once, today) == once
