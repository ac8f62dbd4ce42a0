"""The task of the scripted agent: the files that it reads in 120 steps, what the user says, and the right answer.

Everything follows from fixed numbers, so two runs read the same bytes. Three files are logs of 200 KB; ten steps read a
file again; some steps need the code of a file that was read long before.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path

from reverie.quick import dataclass

STEPS = 120
TURN_STEPS = 30
"""Steps per message of the user."""
KILLED_AT = 76
"""The step at whose request the program is killed."""
LOGS = {20: "log-1.txt", 60: "log-2.txt", 100: "log-3.txt"}
"""The files of 200 KB, by step."""
READ_AGAIN = {25: 3, 38: 30, 50: 44, 57: 1, 68: 66, 74: 33, 88: 86, 95: 90, 110: 108, 117: 70}
"""Ten steps that read the file of an earlier step once more, whatever is in view."""
NEEDED = {15: 11, 32: 28, 43: 7, 54: 52, 63: 20, 72: 69, 80: 41, 92: 91, 104: 100, 115: 84}
"""Steps that need the code in the file of an earlier step; the agent reads it again if it is not in view."""
REPORTED = (2, 9, 60)
"""Steps whose codes the report has; nothing quotes them before."""

LOG_BYTES = 200_000
_SPARE = 200
_LEAST_BYTES, _MOST_BYTES = 2_000, 8_000
_SEED = 19

FACT = "we deploy on Tuesdays at 14:20"
FACT_WORD = "14:20"
CLOSING_WORD = "heron"
CUSTOMER = "Marlow and Sons"
REPORT_WORDS = "Then write the report"
QUESTION = "At what time and on which day do we deploy?"
UNKNOWN = "I do not know."

_WORDS = "harbour pilot keel anchor signal ledger berth crane tide chart beacon cargo hull rope dock mooring buoy lamp"
_MORE_WORDS = "register permit inspector weight manifest crew engine valve pressure report hour wind north east gauge"


@dataclass(frozen=True, slots=True)
class Report:
    """What the last answer has of what it must have."""

    codes: int
    customer: bool
    closing: bool

    @property
    def is_right(self) -> bool:
        return self.codes == len(REPORTED) and self.customer and self.closing

    @property
    def points(self) -> str:
        return f"{self.codes + self.customer + self.closing}/{len(REPORTED) + 2}"


def messages() -> list[str]:
    """What the user says in the first conversation, one text per turn."""
    first = "You check the archive of a harbour office. Each step reads one file with the tool read_file."
    extra = {
        1: f"{first} {STATEMENTS[FACT_WORD]} {STATEMENTS[CLOSING_WORD]}",
        2: STATEMENTS[CUSTOMER],
        STEPS // TURN_STEPS: STATEMENTS[REPORT_WORDS],
    }
    found = list[str]()
    for turn in range(1, STEPS // TURN_STEPS + 1):
        beginning = (turn - 1) * TURN_STEPS + 1
        found.append(f"Do steps {beginning} to {turn * TURN_STEPS} of {STEPS}. {extra.get(turn, '')}".strip())
    return found


def file_of(step: int) -> str:
    """The file that a step reads."""
    return LOGS.get(step) or f"doc-{READ_AGAIN.get(step, step):03}.txt"


STATEMENTS = {
    FACT_WORD: f"Remember for all later work: {FACT}, never on Fridays.",
    CLOSING_WORD: f'The report at the end must close with the word "{CLOSING_WORD}".',
    CUSTOMER: f"The customer is called {CUSTOMER}.",
    REPORT_WORDS: f"{REPORT_WORDS}: the codes of three files ({', '.join(map(file_of, REPORTED))}), the name of the "
    "customer, and at the end the word that I asked for.",
}
"""What the user says and a report or a later conversation needs, by the words that show it."""


def code_of(name: str) -> str:
    """The code in a file; no other file has it."""
    return "HX-" + blake2b(name.encode(), digest_size=4).hexdigest().upper()


@cache
def files() -> Mapping[str, str]:
    """Every file of the archive, by name."""
    chance = random.Random(_SEED)
    found = dict[str, str]()
    for step in range(1, STEPS + 1):
        name = file_of(step)
        size = LOG_BYTES if step in LOGS else int(chance.triangular(_LEAST_BYTES, _MOST_BYTES, _LEAST_BYTES))
        if name not in found:
            found[name] = _text(name, size, chance)
    return found


def write_files(folder: Path) -> None:
    """Writes the archive."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


def _text(name: str, size: int, chance: random.Random) -> str:
    """Lines of words; the code is in the middle."""
    lines, length, words = list[str](), 0, f"{_WORDS} {_MORE_WORDS}".split()
    while length < size + _SPARE:
        lines.append(f"{len(lines) + 1:>5}: {' '.join(chance.choices(words, k=11))}")
        length += len(lines[-1]) + 1
    lines[len(lines) // 2] = f"{len(lines) // 2 + 1:>5}: the code of {name} is {code_of(name)}, as the register says"
    return "\n".join(lines)[: size - 1] + "\n"


def check(answer: str) -> Report:
    """What the last answer of the first conversation has."""
    codes = sum(code_of(file_of(step)) in answer for step in REPORTED)
    return Report(codes, CUSTOMER in answer, answer.rstrip(" .\n").endswith(CLOSING_WORD))
