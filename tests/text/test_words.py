"""The tokenizer: what a word is in which script, and which words carry a meaning."""

from __future__ import annotations

import pytest

from reverie.text.folding import fold
from reverie.text.tongue import language_of, tongue_of
from reverie.text.word_lists import EMPTY_WORDS, NEGATIONS, NUMBER_WORDS, STOP_WORDS
from reverie.text.words import content_terms, is_negated, terms, words


def test_words_are_folded_and_parted_at_humps() -> None:
    assert words("useEffect in Zürich") == ["useeffect", "use", "effect", "in", "zurich"]
    assert words("部署前") == ["部署", "署前"]


def test_forms_of_one_word_are_one_term() -> None:
    assert len(set(terms("deployed deploys deploying"))) == 1


def test_every_table_is_folded_as_words_are() -> None:
    tables = [EMPTY_WORDS, NEGATIONS, NUMBER_WORDS, *STOP_WORDS.values()]
    assert [word for table in tables for word in table if fold(word) != word] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The user wants to use three hats", {"3", "hat"}),
        ("Für die Prüfer müssen fünf Lampen brennen", {"pruf", "5", "lampen", "brennen"}),
        ("Los pedidos están en el almacén", {"pedido", "almacen"}),
        ("部署", {"部署"}),
    ],
)
def test_content_terms_are_what_is_left(text: str, expected: set[str]) -> None:
    assert content_terms(text) == expected


@pytest.mark.parametrize(
    "text", ["Never squash", "Nicht löschen", "No borrar nada", "Não apagar", "不要删除", "消さない"]
)
def test_what_denies(text: str) -> None:
    assert is_negated(text)


@pytest.mark.parametrize(
    "text", ["Do not forget the milk", "Nicht vergessen: Milch", "No later than June", "别忘了牛奶"]
)
def test_what_denies_nothing(text: str) -> None:
    assert not is_negated(text)


def test_languages_are_told_by_their_commonest_words() -> None:
    assert tongue_of("Bitte nur noch kleine Commits, der Prüfer liest das im Zug") == "de"
    assert language_of("Le rapport est dans le dossier pour les ventes") == "fr"
    assert language_of("Orvane") == ""
