"""The one line that tells the user what a run of extraction learnt, how sure it is, and what waits."""

from __future__ import annotations

from reverie.layers.l5_extraction.extractor import notice


def test_what_is_inferred_and_what_waits_is_said() -> None:
    assert notice({}) is None
    assert notice({}, held=2) == "2 lines wait: /memory inbox"
    text = notice({"feedback_x.md": "added", "user_y.md": "updated"}, held=1, inferred=["feedback_x.md"])
    assert text is not None and text.startswith(
        "remembered feedback_x.md (inferred from what you said); updated user_y.md; 1 line waits: /memory inbox"
    )
