"""The language of a text, by its script and its commonest words. `tongue_of` knows the five languages of the offline
mind and falls back to English; `language_of` knows more and may return nothing."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from reverie.text.folding import folded_set
from reverie.text.patterns import late
from reverie.text.word_lists import STOP_WORDS
from reverie.text.words import words

Tongue: TypeAlias = Literal["en", "de", "es", "zh", "ja"]

_KANA = late(r"[\u3040-\u30ff]")
_HAN = late(r"[\u3400-\u9fff]")
_LETTER = late(r"[^\W\d_]")
_MARKS: Final[dict[Tongue, frozenset[str]]] = {
    "en": folded_set(
        "the is are and with for not when after before because must of to you your i it that this we what dont have be "
        "if from but can please my our they always never only use was were would has had by on should"
    ),
    "de": folded_set(
        "der die das und ist nicht mit für bei auf von wenn ein eine einen den dem wird soll ich du wir bitte zu zum "
        "zur im am ab sich auch noch nur kein keine immer nie sind habe mir mich uns dass weil was wie kannst"
    ),
    "es": folded_set(
        "el los las y es con para por que del en una un se cuando lo como más pero siempre nunca yo me mi nos está "
        "son soy al su esto esta este qué ya hay sin porque"
    ),
}


def tongue_of(text: str) -> Tongue:
    """One of the five languages, by script, else by its commonest words."""
    letters = len(_LETTER.findall(text))
    kana, han = len(_KANA.findall(text)), len(_HAN.findall(text))
    if (kana + han) * 5 >= letters and kana + han:
        return "ja" if kana * 8 >= kana + han else "zh"
    said = words(text)
    counts: dict[Tongue, int] = {name: sum(word in marks for word in said) for name, marks in _MARKS.items()}
    best: Tongue = max(counts, key=lambda name: counts[name])
    return best if counts[best] > counts["en"] else "en"


def language_of(text: str) -> str:
    """The language with the most common words in the text, at least two; empty if there is none."""
    found = set(words(text))
    counts = {name: len(found & little) for name, little in STOP_WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= 2 and sorted(counts.values())[-2] < counts[best] else ""
