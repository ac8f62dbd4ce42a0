"""Who is sure: what was confirmed, not what nobody confirmed."""

from __future__ import annotations

import pytest

from reverie.offline.consolidate.trust import Standing, standing_of
from tests.offline.consolidate.dreamt import topic


@pytest.mark.parametrize(
    ("body", "standing"),
    [
        (
            "Inferred from the drafts: the house seems to set titles in capitals.\nNobody confirmed it.",
            Standing.GUESSED,
        ),
        ("Apparently tea is at four. It has never been confirmed.", Standing.GUESSED),
        ("Probably blue. This still has to be confirmed by Ida.", Standing.GUESSED),
        ("Vermutlich grün. Das hat niemand bestätigt.", Standing.GUESSED),
        ("Tea is at four. Confirmed by Ida.", Standing.CONFIRMED),
        ("No sugar. Ida said it is not a mistake and confirmed it.", Standing.CONFIRMED),
        ("Tea is at four.", Standing.PLAIN),
    ],
)
def test_a_file_is_as_sure_as_it_says(body: str, standing: Standing) -> None:
    assert standing_of(topic("Tea", f"{body}\n", description="x")) is standing
