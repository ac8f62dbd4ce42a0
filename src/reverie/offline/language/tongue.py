"""Which language a text is in: English, German, Spanish, Chinese or Japanese; English where it cannot be told."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

from reverie.memory.secrets.shapes import words

Tongue: TypeAlias = Literal["en", "de", "es", "zh", "ja"]

_KANA = re.compile(r"[\u3040-\u30ff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_MARKS: Final[dict[Tongue, frozenset[str]]] = {
    "en": words(
        "the is are and with for not when after before because must of to you your i it that this we what dont have be "
        "if from but can please my our they always never only use was were would has had by"
    ),
    "de": words(
        "der die das und ist nicht mit für bei auf von wenn ein eine einen den dem wird soll ich du wir bitte zu zum "
        "zur im am ab sich auch noch nur kein keine immer nie sind habe mir mich uns dass weil was wie kannst"
    ),
    "es": words(
        "el los las y es con para por que del en una un se cuando lo como más pero siempre nunca yo me mi nos está "
        "son soy al su esto esta este qué ya hay sin porque"
    ),
}


def tongue_of(text: str) -> Tongue:
    """By its script, else by its commonest words."""
    letters = len(_LETTER.findall(text))
    kana, han = len(_KANA.findall(text)), len(_HAN.findall(text))
    if (kana + han) * 5 >= letters and kana + han:
        return "ja" if kana * 8 >= kana + han else "zh"
    said = [word.lower() for word in _WORD.findall(text)]
    counts: dict[Tongue, int] = {name: sum(word in marks for word in said) for name, marks in _MARKS.items()}
    best: Tongue = max(counts, key=lambda name: counts[name])
    return best if counts[best] > counts["en"] else "en"
