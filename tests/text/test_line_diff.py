"""Differences between texts that nobody would write, but a model may."""

from __future__ import annotations

import random
from pathlib import Path

from reverie.cli.diff_preview import preview
from reverie.cli.output import Paint
from reverie.text.line_diff import LineMatcher
from tests.work import cpu_limit


def test_the_change_leads_from_one_text_to_the_other() -> None:
    chance = random.Random(7)
    for kinds in (2, 5, 40) * 50:
        old = [str(chance.randrange(kinds)) for _ in range(chance.randrange(30))]
        new = [chance.choice([line, str(chance.randrange(kinds))]) for line in old if chance.random() > 0.2]
        made, kept = list[str](), 0
        for tag, i1, i2, j1, j2 in LineMatcher(old, new).get_opcodes():
            assert tag != "equal" or old[i1:i2] == new[j1:j2]
            made, kept = [*made, *new[j1:j2]], kept + i2 - i1
        assert (made, kept) == (new, len(old))


def test_a_question_about_a_large_file_does_not_hang(tmp_path: Path) -> None:
    count = 20_000
    half = [f"{number}{'' if number % 2 else 'x'}" for number in range(count)]
    for old, new in (
        ([str(number % 150) for number in range(count)], [str(number * 7 % 150) for number in range(count)]),
        ([str(number) for number in range(count)], half),
    ):
        (tmp_path / "a.txt").write_text("\n".join(old))
        with cpu_limit(8):
            shown = preview("Write", {"file_path": "a.txt", "content": "\n".join(new)}, tmp_path, Paint(False), 80)
        assert len(shown) >= count / 2
    assert sum(line.startswith("     - ") for line in shown) == count / 2, "unchanged lines stay unchanged"
