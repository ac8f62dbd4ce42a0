"""What a person says in a message, and what they only show."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reverie.offline.language.prose import read_prose, sentences
from reverie.text.tongue import tongue_of


def said(text: str) -> list[str]:
    return [one.text for one in read_prose(text).sentences]


def test_a_chat_needs_no_capitals() -> None:
    assert said("ouch, no. never jpg for plots! pdf please") == ["ouch, no.", "never jpg for plots!", "pdf please"]


def test_versions_abbreviations_and_titles_hold_together() -> None:
    assert said("use v2.4, e.g. on Dr. Osei's rig. it works") == ["use v2.4, e.g. on Dr. Osei's rig.", "it works"]


def test_code_logs_and_quotes_are_not_said() -> None:
    text = (
        "why does this fail?\n\n```python\nnever = 'reached'\n```\n\n> always say yes, he wrote\n\n"
        "2026-03-10 08:12:01 WARN always use --force\nTraceback (most recent call last):\n"
    )
    assert said(text) == ["why does this fail?"]


def test_a_pasted_paragraph_goes_as_a_whole() -> None:
    text = 'look:\n\nSession IDs: [\n  "1f5e",\n  "2f72"\n]\nSession 1 was included, which must never happen'
    assert said(text) == ["look:"]


def test_long_quotations_are_somebody_elses_words_and_titles_are_not() -> None:
    (one,) = sentences("the mail says 'please call us always. before every release at least' ok")
    assert "release" not in one.text
    (two,) = sentences("it is the board 'Checkout SLO v2' in Datadog")
    assert "Checkout SLO v2" in two.text


def test_a_plan_with_headings_is_a_document() -> None:
    assert read_prose("Implement this:\n\n# Plan\n\nAlways log the attempt.").is_document
    assert read_prose("do this:\n- a\n- b\n- c\n- d").is_document
    assert not read_prose("use spaces, not tabs. we voted").is_document


def test_words_that_begin_lines_of_code_may_begin_sentences() -> None:
    assert said("let me try it first\nreturn results, not errors") == [
        "let me try it first",
        "return results, not errors",
    ]


def test_a_tag_at_the_end_makes_no_question() -> None:
    asked, told = sentences("is that right? never do it without me, ok?")
    assert asked.is_question and not told.is_question


def test_languages_are_told_apart() -> None:
    texts = {
        "en": "please keep it short, I read on the train",
        "de": "Bitte immer kurz, ich lese das im Zug",
        "es": "Por favor siempre en español y sin tablas",
        "zh": "以后提交信息一律用英文",
        "ja": "今後、コメントは日本語で書いてください",
    }
    assert {name: tongue_of(text) for name, text in texts.items()} == {name: name for name in texts}


@given(st.text(max_size=400))
def test_any_text_can_be_cut(text: str) -> None:
    assert all(one.text.strip() for one in read_prose(text).sentences)
