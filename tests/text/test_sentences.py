"""Where sentences end, and the statements of Markdown, with their places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.text.sentences import sentences, statements, statements_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains. We stay.", ["It rains.", "We stay."]),
        ("See Dr. Osei, e.g. on Monday. Bring v2.4.", ["See Dr. Osei, e.g. on Monday.", "Bring v2.4."]),
        ("The answer is no. Use the other one.", ["The answer is no.", "Use the other one."]),
        ("It is room no. 5 here.", ["It is room no. 5 here."]),
        ("Der Termin ist am 5. Mai.", ["Der Termin ist am 5. Mai."]),
        ("We meet at 5. Bring the forms.", ["We meet at 5.", "Bring the forms."]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("今天部署。明天休息。", ["今天部署。", "明天休息。"]),
        ("First this; then that.", ["First this;", "then that."]),
    ],
)
def test_where_sentences_end(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_a_chat_may_begin_in_lower_case() -> None:
    assert sentences("ouch, no. never jpg! pdf please", is_chat=True) == ["ouch, no.", "never jpg!", "pdf please"]
    assert sentences("see app.py. it works") == ["see app.py. it works"]


def test_statements_are_bare_of_markdown() -> None:
    text = (
        "# Head\n- **one thing**\n1. another [thing](thing.md)\n\n"
        "**Why:** it `broke`.\n```\ncode line\n```\n- **one thing**"
    )
    assert statements(text) == ["Head", "one thing", "another thing", "it `broke`.", "code line"]


def test_statements_know_their_place_and_label() -> None:
    text = "- First. Second!\n```\ncode\n```\n**Why:** because.\n"
    found = statements_in(text)
    assert [(text[one.start : one.end], one.label) for one in found] == [
        ("First.", ""),
        ("Second!", ""),
        ("because.", "why"),
    ]


@given(st.text(alphabet='ab .!?;。\n-*#`"()A1', max_size=200))
def test_nothing_is_invented(text: str) -> None:
    for one in statements_in(text, with_code=True):
        assert text[one.start : one.end] == one.text
    assert all(part in text for part in sentences(text, is_chat=True))
