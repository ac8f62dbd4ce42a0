"""Ages: whole days, three words, and a note from the second day on."""

from __future__ import annotations

import pytest

from reverie.memory.age import DAY_S, age_days, age_note, age_words

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("seconds", "words", "noted"),
    [
        (-5 * DAY_S, "today", False),
        (0, "today", False),
        (DAY_S - 1, "today", False),
        (DAY_S, "yesterday", False),
        (2 * DAY_S - 1, "yesterday", False),
        (2 * DAY_S, "2 days ago", True),
        (400 * DAY_S + 7, "400 days ago", True),
    ],
)
def test_age(seconds: float, words: str, noted: bool) -> None:
    assert age_words(NOW - seconds, NOW) == words
    note = age_note(NOW - seconds, NOW)
    assert bool(note) is noted
    if noted:
        assert f"{age_days(NOW - seconds, NOW)} days ago" in note
