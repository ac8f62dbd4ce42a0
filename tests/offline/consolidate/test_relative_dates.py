"""Dates are written out where they are meant, and stay where somebody only speaks of the words."""

from __future__ import annotations

from datetime import date

import pytest

from reverie.offline.consolidate.relative_dates import write_out_dates

DAY = date(2026, 3, 4)


@pytest.mark.parametrize(
    "line",
    [
        'A letter that says "tomorrow" means the next working day.',
        "Wenn im Vertrag „übermorgen“ steht, gilt der zweite Werktag.",
        "The button is labelled 'last week'.",
        "En el aviso, «ayer» significa el día hábil anterior.",
        "The phrase “we deliver the goods to your door by the day after tomorrow” means two days.",
    ],
)
def test_words_that_are_quoted_stay(line: str) -> None:
    assert write_out_dates(line, DAY) == line


def test_a_date_beside_a_quotation_is_written_out() -> None:
    assert write_out_dates('The film "Ran" starts tomorrow.', DAY) == 'The film "Ran" starts on 2026-03-05.'
    assert "2026-03-05" in write_out_dates("Ilse's boat and Jan's boat sail tomorrow.", DAY)


def test_the_other_day_of_a_sentence_gets_its_year_too() -> None:
    said = "The hall closes a week from today, and it opens again on September 12. Easter is on April 5."
    assert write_out_dates(said, DAY) == (
        "The hall closes on 2026-03-11, and it opens again on 2026-09-12. Easter is on April 5."
    )
    assert write_out_dates("The fair opens on September 12.", DAY) == "The fair opens on September 12."


def test_a_line_taken_for_another_language_is_dated_all_the_same() -> None:
    assert write_out_dates("Tarek was hired three days ago as an intern.", DAY).startswith(
        "Tarek was hired on 2026-03-01"
    )
