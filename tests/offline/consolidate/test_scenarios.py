"""The embedded model dreams about whole directories: every check holds, and a second dream changes no byte."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.offline.consolidate.dreamt import laid_out, place, topic, with_files
from tests.shared_data import ROOT

DATA = Path(__file__).parents[2] / "data"
OWN = DATA / "dream-own"
SECOND = DATA / "dream-second"
"""Written by somebody who had not seen the rules, after they were done."""
THIRD = DATA / "dream-third"
"""By another author again, when the second set held."""
SCENARIOS = sorted(
    path.parent for path in (*OWN.glob("*/*/check.json"), *SECOND.glob("*/check.json"), *THIRD.glob("*/check.json"))
)
assert len(SCENARIOS) >= 40
BESIDE = sorted(path.parent for path in (ROOT / "dream-dev").glob("*/check.json"))


@pytest.mark.parametrize(
    "scenario",
    [*SCENARIOS, *(pytest.param(one, marks=pytest.mark.evals) for one in BESIDE)],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_every_check_of_a_scenario_holds(scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = laid_out(scenario, tmp_path, monkeypatch)
    before = made.files
    made.dream()
    assert [check.what for check in made.scored(before) if not check.passed] == []
    after = made.files
    assert made.dream().outcome == "unchanged"
    assert made.files == after


def test_the_same_directory_always_becomes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        made = laid_out(OWN / "tune" / "law-office-conflicts", tmp_path / name, monkeypatch)
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
    began = time.process_time()
    result = made.dream()
    assert time.process_time() - began < 5.0
    assert result.outcome == "landed" and "project_copy.md" not in made.files
