"""Who is sure: what was confirmed, not what nobody confirmed."""

from __future__ import annotations

import pytest

from reverie.offline.consolidate.trust import TrustLevel, read_trust_level
from tests.offline.consolidate.dreamt import topic


@pytest.mark.parametrize(
    ("body", "standing"),
    [
        (
            "Inferred from the drafts: the house seems to set titles in capitals.\nNobody confirmed it.",
            TrustLevel.GUESSED,
        ),
        ("Apparently tea is at four. It has never been confirmed.", TrustLevel.GUESSED),
        ("Probably blue. This still has to be confirmed by Ida.", TrustLevel.GUESSED),
        ("Vermutlich grün. Das hat niemand bestätigt.", TrustLevel.GUESSED),
        ("Tea is at four. Confirmed by Ida.", TrustLevel.CONFIRMED),
        ("No sugar. Ida said it is not a mistake and confirmed it.", TrustLevel.CONFIRMED),
        ("Tea is at four.", TrustLevel.PLAIN),
    ],
)
def test_a_file_is_as_sure_as_it_says(body: str, standing: TrustLevel) -> None:
    assert read_trust_level(topic("Tea", f"{body}\n", description="x")) is standing
