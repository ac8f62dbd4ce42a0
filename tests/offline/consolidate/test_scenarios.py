"""The embedded model dreams about whole directories: nothing is lost, and a second dream changes no byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.offline.consolidate.dreamt import laid_out, place, topic, with_files
from tests.shared_data import EVALS, ROOT
from tests.work import cpu_limit

SCENARIOS = sorted(path.parent for path in (*EVALS.glob("dream-*/**/check.json"), *ROOT.glob("dream-dev/*/check.json")))
QUICK = ("dream-third/01-", "dream-third/02-", "dream-third/04-")
"""Copies, contradictions and the index: in every run. The others are measured."""
NOT_LEARNT = ("must_survive:", "must_be_gone:", "dates:")
"""What a dream leaves to a model that thinks, where a log or a transcript does not say it outright."""


@pytest.mark.parametrize(
    "scenario",
    [
        one if any(quick in one.as_posix() for quick in QUICK) else pytest.param(one, marks=pytest.mark.evals)
        for one in SCENARIOS
    ],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_dream_loses_nothing_and_a_second_one_changes_nothing(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = laid_out(scenario, tmp_path, monkeypatch)
    before = made.files
    made.dream()
    failed = [check.what for check in made.scored(before) if not check.passed]
    assert [what for what in failed if not what.startswith(NOT_LEARNT)] == []
    after = made.files
    assert made.dream().outcome == "unchanged"
    assert made.files == after


@pytest.mark.evals
def test_nine_checks_in_ten_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[bool] = []
    for number, scenario in enumerate(SCENARIOS):
        made = laid_out(scenario, tmp_path / str(number), monkeypatch)
        before = made.files
        made.dream()
        checks += [check.passed for check in made.scored(before)]
    assert sum(checks) >= 0.9 * len(checks)


def test_the_same_directory_always_becomes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        made = laid_out(EVALS / "dream-own" / "tune" / "law-office-conflicts", tmp_path / name, monkeypatch)
        made.dream()
        results.append(made.files)
    assert results[0] == results[1]


def test_a_dream_over_150_files_takes_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = place(tmp_path, monkeypatch)
    things = ["pump", "valve", "tank", "belt", "fan", "lamp", "gate", "door", "panel", "meter"]
    files: dict[str, str] = {}
    for number in range(150):
        thing = f"{things[number % 10]} {number}"
        body = "".join(f"The {thing} has part {part} from supplier {part * number % 97}.\n" for part in range(12))
        files[f"project_{thing.replace(' ', '_')}.md"] = topic(
            thing.title(), body, description=f"All about the {thing}"
        )
    files["MEMORY.md"] = "".join(f"- [{name}]({name}) — about it\n" for name in sorted(files))
    files["project_copy.md"] = files["project_pump_0.md"].replace("part 11", "part 99")
    with_files(made, files)
    with cpu_limit(12):
        result = made.dream()
    assert result.outcome == "landed" and "project_copy.md" not in made.files
