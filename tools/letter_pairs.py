"""Prints the table in `memory/secrets/likeness.py`: how much likelier a letter follows another in words than by chance.

It counts the words of this repository (code, docs, tests; all their languages), so a later table differs a little.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def main() -> None:
    words = Counter[str]()
    for folder in ("src", "docs", "tests", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md", ".toml") and "data" not in path.parts:
                plain = unicodedata.normalize("NFKD", path.read_text("utf-8")).encode("ascii", "ignore").decode()
                words.update(word.lower() for word in re.findall(r"[A-Z]?[a-z]{2,}", plain))
    words = Counter({word: count for word, count in words.items() if count > 1})
    pairs = Counter[str]()
    for word, count in words.items():
        for first, second in zip(f" {word}", word, strict=False):
            pairs[first + second] += math.log(1 + count)
    for first in f" {LETTERS}":
        total = sum(pairs[first + second] for second in LETTERS) + 13
        shares = [(pairs[first + second] + 0.5) / total for second in LETTERS]
        print(repr("".join(chr(ord("m") + max(-12, min(13, round(3 * math.log(26 * share))))) for share in shares)))


if __name__ == "__main__":
    main()
