"""What somebody meant who corrected themselves: `round down … then corrected herself: round up`."""

from __future__ import annotations

import re
from typing import Final

from reverie.text.words import WORD

_CORRECTS = re.compile(
    r"[\s.,;…–—-]*\b(?:(?:and |but )?(?:then |later )?(?:he |she |they )?corrected (?:him|her|them)sel(?:f|ves)"
    r"|no,? wait"
    r"|scratch that|correction|i mean|make that|or rather|korrigiert(?:e sich)?|besser gesagt|mejor dicho"
    r"|perdón)\b[\s:,–—-]*",
    re.IGNORECASE,
)
_PAIRS: Final = (
    "up down",
    "before after",
    "more less",
    "more fewer",
    "maximum minimum",
    "max min",
    "left right",
    "on off",
    "enable disable",
    "first last",
    "above below",
    "over under",
    "include exclude",
    "in out",
    "open close",
    "open closed",
    "allow deny",
    "upper lower",
    "start end",
    "morning evening",
    "early late",
    "always never",
    "internal external",
    "public private",
    "rauf runter",
    "auf ab",
    "vor nach",
    "mehr weniger",
    "arriba abajo",
    "antes después",
    "más menos",
)
_OPPOSITE: Final = {
    word: other for pair in _PAIRS for word, other in (tuple(pair.split()), tuple(reversed(pair.split())))
}
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PAUSE = re.compile(r"[,;]\s|[.;!]$|\.\s")


def corrected(text: str) -> str:
    """The text with a self-correction carried out; as it is if there is none.

    Where the correction holds the opposite of a word said before, that word is changed and the rest of the sentence
    stays; where it repeats the words around a number with another number, that number is changed; otherwise the
    correction stands, and what it replaced is left out.
    """
    found = _CORRECTS.search(text)
    if found is None or not text[found.end() :].strip():
        return text
    first, then = text[: found.start()].rstrip(" .,;…"), text[found.end() :].strip()
    if (renumbered := _renumbered(first, then)) is not None:
        return renumbered
    later = {word.lower(): word for word in WORD.findall(then)}
    for match in WORD.finditer(first):
        opposite = later.get(_OPPOSITE.get(match[0].lower(), ""))
        if opposite is not None and match[0].lower() not in later:
            return first[: match.start()] + opposite + first[match.end() :]
    return then


def _renumbered(first: str, then: str) -> str | None:
    """`at over 5 m, stop` and `over 6 m`: the sentence with the new number, if only one place can be meant."""
    pause = _PAUSE.search(then)
    clause = then[: pause.start()] if pause else then
    if len(_NUMBER.findall(clause)) != 1 or not WORD.search(_NUMBER.sub("", clause)):
        return None
    around = [re.escape(part) for part in _NUMBER.split(clause)]
    places = list(re.finditer(rf"(?<!\w){_NUMBER.pattern.join(around)}(?!\w)", first, re.IGNORECASE))
    if len(places) != 1:
        return None
    return first[: places[0].start()] + clause + first[places[0].end() :] + then[len(clause) :]
