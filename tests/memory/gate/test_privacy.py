"""What unwatched writers may not put into the team's folder."""

from __future__ import annotations

import pytest

from reverie.memory.gate.privacy import why_private

RUTH = (
    "---\nname: Ruth\ndescription: Ruth runs the shop\ntype: user\n---\n\nRuth wants to sell the print shop in 2027.\n"
)
PRESS = "---\nname: Press\ndescription: The press\ntype: project\n---\n\nThe press prints two colours on matte paper.\n"


@pytest.mark.parametrize(
    ("name", "text", "is_private"),
    [
        ("team/user_ruth.md", RUTH, True),
        ("team/project_shop.md", "Ruth is going to sell the print shop, perhaps in 2027.\n", True),
        ("team/MEMORY.md", "- [Shop](project_shop.md) — Ruth wants to sell the print shop in 2027\n", True),
        ("team/project_press.md", PRESS, False),
        ("team/project_shop.md", "The print shop opens at nine.\n", False),
        ("project_shop.md", "Ruth wants to sell the print shop in 2027.\n", False),
        ("teamwork.md", RUTH, False),
    ],
)
def test_what_is_about_the_user_is_not_shared(name: str, text: str, is_private: bool) -> None:
    assert (why_private(name, text, None, [RUTH, PRESS]) is not None) is is_private


def test_what_is_shared_already_may_be_said_again() -> None:
    stood = "Ruth wants to sell the print shop in 2027.\n"
    assert why_private("team/project_shop.md", stood + "It opens at nine.\n", stood, [RUTH]) is None


def test_what_is_no_note_about_the_user_may_be_shared() -> None:
    assert why_private("team/project_press.md", PRESS, None, [PRESS]) is None
