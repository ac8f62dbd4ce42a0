"""Statements are taken out of a memory, put back and quoted, line by line; the rest of the text stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.memory.gate.lines import body_parts, first_words, put_back, quote_lines, take_out
from reverie.text.folding import fold_text


def said(body: str) -> list[str]:
    return [bare for _, bare in body_parts(body)]


@pytest.mark.parametrize(
    ("body", "gone", "left"),
    [
        ("One stays.\n\nTwo goes.\n", ["Two goes."], "One stays.\n"),
        ("- One stays.\n- Two goes.\n- Three stays.\n", ["Two goes."], "- One stays.\n- Three stays.\n"),
        ("One stays. Two goes. Three stays.\n", ["Two goes."], "One stays.  Three stays.\n"),
        ("One stays. Two goes.\nThree stays.\n", ["Two goes."], "One stays.\nThree stays.\n"),
        ("1. **Two goes.**\n2. One stays.\n", ["Two goes."], "2. One stays.\n"),
        ("**Why:** Two goes.\n\nOne stays.\n", ["Two goes."], "\nOne stays.\n"),
        ("> Two goes.\n", ["Two goes."], ""),
        ("One stays.\n", [], "One stays.\n"),
        ("", ["Two goes."], ""),
    ],
)
def test_taking_out(body: str, gone: list[str], left: str) -> None:
    assert take_out(body, gone).lstrip("\n") == left.lstrip("\n")


lines = st.lists(
    st.sampled_from(
        ["The kiln is hot.", "- Ivo loads it.", "", "## Oven", "**Why:** Noor said so. It is true.", "日本語の文。"]
    ),
    max_size=8,
).map("\n".join)


@given(lines, st.integers(0, 5))
def test_what_is_taken_out_is_gone_and_nothing_else(body: str, number: int) -> None:
    parts = said(body)
    gone = set(parts[number : number + 1])
    assert said(take_out(body, gone)) == [one for one in parts if one not in gone]


@given(lines, st.integers(0, 5))
def test_what_was_taken_out_can_be_put_back(body: str, number: int) -> None:
    gone = set(said(body)[number : number + 1])
    back = put_back(body, take_out(body, gone), gone)
    assert {fold_text(one) for one in said(back)} == {fold_text(one) for one in said(body)}


def test_statements_go_back_after_the_line_that_they_followed() -> None:
    before = "# Kiln\n\n- Ivo loads it.\n- Noor fires it.\n- Ada cleans it.\n"
    after = "# Kiln\n\n- Ivo loads it.\n- Ada cleans it.\n"
    assert put_back(before, after, ["Noor fires it."]) == before
    assert "Noor fires it." in put_back(before, "", ["Noor fires it."])


def test_quoting_leaves_code_quotations_and_other_lines_alone() -> None:
    body = "fatal: no email\nMine.\n> fatal: no email\n```\nfatal: no email\n```\n"
    assert (
        quote_lines(body, {"fatal: no email"})
        == "> fatal: no email\nMine.\n> fatal: no email\n```\nfatal: no email\n```\n"
    )


@pytest.mark.parametrize(
    ("text", "title"), [("One two three four.", "One two"), ("", ""), ("日本語の長い文です", "日本語の長い文です")]
)
def test_a_title_is_the_beginning(text: str, title: str) -> None:
    assert first_words(text, 2) == title
