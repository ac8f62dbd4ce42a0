"""The judge's answers, in several languages, and that they hang together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.text.sameness import SAME, Relation, StatementIndex, compare, contradicts, says

PAIRS = [
    # English
    ("The kiln heats up on Mondays.", "On Mondays the kiln heats up.", Relation.SAME),
    ("Deploys go through Petra.", "Deploys go through Petra, who checks the release notes first.", Relation.CONTAINS),
    ("The upload limit is 50 MB.", "The upload limit is 80 MB.", Relation.CONTRADICTS),
    ("Upgrade questions go to Mirela.", "Upgrade questions go to Sanjay.", Relation.CONTRADICTS),
    ("Squash branches before merging.", "Do not squash branches before merging.", Relation.CONTRADICTS),
    ("The oven needs a 63 A fuse.", "The oven needs a 36 A fuse.", Relation.CONTRADICTS),
    ("The upload limit is 50 MB.", "The kiln heats up on Mondays.", Relation.DIFFERS),
    # German
    ("Der Ofen heizt immer montags auf.", "Montags heizt der Ofen auf.", Relation.SAME),
    ("Fragen zur Abrechnung gehen an Mirela.", "Fragen zur Abrechnung gehen an Sanjay.", Relation.CONTRADICTS),
    ("Kleine Commits für den Prüfer.", "Große Dateien liegen im Lager.", Relation.DIFFERS),
    # Spanish
    ("El límite de subida es 50 MB.", "El límite de subida es 80 MB.", Relation.CONTRADICTS),
    ("Los informes van al equipo de ventas.", "Al equipo de ventas van los informes.", Relation.SAME),
    # Chinese and Japanese
    ("部署必须经过代码审查", "部署必须经过代码审查。", Relation.SAME),
    ("部署必须经过代码审查", "周末的会议取消了", Relation.DIFFERS),
    ("デプロイ前にテストを実行する", "デプロイ前に必ずテストを実行する。", Relation.SAME),
]


@pytest.mark.parametrize(("one", "other", "expected"), PAIRS)
def test_what_one_statement_is_to_another(one: str, other: str, expected: Relation) -> None:
    assert compare(one, other).relation is expected


def test_a_number_that_is_a_part_of_another_is_not_the_same() -> None:
    assert not says("Retry 5 times with the relay client.", "Retry 15 times with the relay client.")
    assert not says("Set the relay gain to 5 here.", "Set the relay gain to 5.2 here.")


def test_a_not_belongs_to_the_words_behind_it() -> None:
    rule = "Package manager: uv only, never pip or poetry."
    assert says("Always use uv.", rule)
    assert says("Never use pip.", rule)
    assert not says("Use pip.", rule)
    assert not says("Deploy on Friday.", "Never deploy on Friday before noon.")


def test_a_not_that_denies_nothing() -> None:
    assert says("Don't forget the board meeting about sensors.", "Do not forget: board meeting about sensors.")
    assert says("The board meeting about sensors is weekly.", "Don't forget, the sensors board meeting is weekly.")


def test_other_names_with_other_values_are_two_things() -> None:
    assert not contradicts("Sensor HS-20 reads 3 % too high.", "Sensor HS-40 reads 5 % too high.")
    assert contradicts("The delivery to Orvane is on 2026-05-04.", "The delivery to Orvane is on 2026-04-20.")


def test_what_is_said_in_other_words_is_not_lost() -> None:
    said = StatementIndex(["The freezer alarm rings at Jonas's desk since spring.", "Flour comes on Tuesdays."])
    assert said.has("The freezer alarm rings at Jonas's desk.")
    assert not said.has("The freezer is defrosted by Maria every month.")


@given(st.sampled_from([pair[:2] for pair in PAIRS]), st.sampled_from([pair[:2] for pair in PAIRS]))
def test_the_answers_hang_together(first: tuple[str, str], second: tuple[str, str]) -> None:
    one, other = first[0], second[1]
    assert compare(one, one).relation is Relation.SAME
    assert contradicts(one, other) == contradicts(other, one)
    found = compare(one, other)
    assert (compare(other, one).relation is Relation.SAME) == (found.relation is Relation.SAME)
    assert found.relation not in (Relation.SAME, Relation.CONTAINS) or found.score >= SAME
