"""Measures whether a value is made of words or random: from letter pairs and changes of case, without a word list.

The table has one row per letter, the first for the start of a word, and one sign per next letter. `m` means as likely
as by chance; each sign after `m` adds 1/3 to the log odds. `tools/letter_pairs.py` makes a new one.
"""

from __future__ import annotations

import math
import unicodedata
from functools import cache
from typing import Final

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_ROWS: Final = (
    "nnonnnllliimnmlogopnljmegf bmondhmemakpmqamaqoqkihgmd qjjhrfggojcqhhphbomknbhclb pajfqcaqlaonedrfamhqlcdaga "
    "phfltfkcradkffogamoglcabja ngnqlkiejcemlpelgqqnekilhd pdeiqpeasaanfhqcaokmnbbaga oagcsckopaamgmnhapojoebaed "
    "rddfscaapaajifrfanjnmbcaha kjnnnkmacbhnmsokbmopalaiah pdddsdhdmdjhddrjjdodrdiddd lgdktijaqadjgmkaehqlldgafa "
    "qhfnrieaqahpgfqhafnlmheama rmdhsabapahjmgppdfmilaabhc nfoppkqemckihlnibgpqkjfaha jjmmgijbjflnormmbqnnolmhfd "
    "rdehqfgknaepfepnbqmnmaebka leeeeeeeeeenieehekeeveeehe pgjmsgkepakillphalonljfalc ndmirddnpakjhgnmgeorndjbja "
    "pdlgsfcoqaakgcohaoomlahdkf lmmloklemaaoorinaqppfeaccb qahcuafaqaacfdnaaefacddcea refjrecpqacicoqeaongeafdca "
    "ohpjqjbfpbbjhbjrbhkrffbfkb mlkhqgbfobennnoqbkrpgflbbf oeeetieloeekeeneeeloqelejm "
)
# What follows in names after a lower-case letter, a capital, a digit and another sign.
_NAMES: Final = {
    "l": {"l": 0.84, "u": 0.05, "d": 0.03, "o": 0.08},
    "u": {"l": 0.60, "u": 0.28, "d": 0.04, "o": 0.08},
    "d": {"l": 0.25, "u": 0.14, "d": 0.20, "o": 0.41},
    "o": {"l": 0.66, "u": 0.17, "d": 0.13, "o": 0.04},
}


@cache
def _read_pairs() -> dict[str, float]:
    return {
        first + second: (ord(sign) - ord("m")) / 3
        for first, row in zip(f" {_LETTERS}", "".join(_ROWS).split(), strict=True)
        for second, sign in zip(_LETTERS, row, strict=True)
    }


@cache
def _weigh_steps(cases: int) -> dict[str, float]:
    """Returns the log odds of each step between kinds of signs: names against random values of so many cases."""
    size = 26 * cases + 12
    drawn = {"l": 26 / size, "u": 26 / size, "d": 10 / size, "o": 2 / size}
    return {old + new: math.log(share / drawn[new]) for old, row in _NAMES.items() for new, share in row.items()}


def measure_likeness(value: str) -> float:
    """Returns the log odds that a value is made of words: above 0 probably words, below 0 probably random."""
    plain = value if value.isascii() else unicodedata.normalize("NFKD", value)
    cases = 2
    if plain.isupper() or plain.islower():
        plain, cases = plain.lower(), 1
    pairs, steps = _read_pairs(), _weigh_steps(cases)
    odds, before, letter = 0.0, "o", " "
    for char in plain:
        if not char.isascii():
            continue  # an accent, or a script that keys do not use
        kind = "l" if char.islower() else "u" if char.isupper() else "d" if char.isdigit() else "o"
        odds += steps[before + kind]
        if kind in "lu":
            low = char.lower()
            if before in "od" or before + kind == "lu":
                letter = " "
            odds += pairs[letter + low] / (2 if before + kind == "uu" else 1)
            letter = low
        before = kind
    return odds
