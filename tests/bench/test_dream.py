"""`reverie lab dream`: right minds score full, wrong ones lose the points they deserve, nothing is written in place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.dream.gates import measure_gates
from bench.dream.minds import WRONG, MindKind
from bench.dream.run import (
    Mind,
    ScenarioFolders,
    ScenarioScore,
    dream,
    measure,
    measure_wrong,
    play,
    read_files,
    report,
    scenarios,
)
from bench.dream.score import score
from reverie.errors import UserError
from reverie.layers.l6_dreaming.gates import DreamGate
from reverie.models.base import Model
from reverie.models.script import Script
from reverie.models.scripted import ScriptedModel
from tests.bench.contract import check_keys
from tests.counts import SOAK
from tests.shared_data import sources

LOCKS = "---\nname: Canal locks\ndescription: When the locks open\ntype: project\n---\n\n"
BEFORE = {
    "MEMORY.md": "- [Locks](project_locks.md) — opening\n- [Locks old](project_locks_old.md) — opening\n"
    "- [Gone](project_gone.md) — nothing\n- [Ida](user_ida.md) — skipper\n",
    "project_locks.md": LOCKS + "The lock at Wesel closes next Friday for repairs.\nKeeper: Bruno.\n",
    "project_locks_old.md": LOCKS + "The lock at Wesel takes boats up to 110 m.\nKeeper: Bruno.\n",
    "user_ida.md": "---\nname: Ida\ndescription: A skipper\ntype: user\n---\n\nIda is the skipper of the Amalia.\n",
}
CHECK: dict[str, Any] = {
    "must_survive": [["Bruno", "110 m"], ["Amalia"], ["radio|VHF", "channel 18"]],
    "must_be_gone": ["next Friday", "project_gone.md"],
    "merged": [["project_locks.md", "project_locks_old.md"]],
    "dates": ["2026-05-08"],
    "index_max_lines": 3,
    "index_max_bytes": 400,
    "index_must_link": "every remaining topic file",
    "untouched": ["user_ida.md"],
    "max_loss": 0.2,
    "not_under": {"team/": ["Amalia"]},
}
RIGHT = LOCKS + (
    "The lock at Wesel closes on 2026-05-08 for repairs.\nKeeper: Bruno.\n"
    "The lock at Wesel takes boats up to 110 m.\nThe keeper answers by radio on channel 18.\n"
)
INDEX = "- [Locks](project_locks.md) — opening\n- [Ida](user_ida.md) — skipper\n"
SAID = "for later: the keeper at Wesel answers by radio on channel 18 only"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    folder = tmp_path / "scenarios" / "canal"
    for name, text in BEFORE.items():
        path = folder / "before" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "transcripts").mkdir()
    record = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": SAID}}
    (folder / "transcripts" / "a.jsonl").write_text(json.dumps(record) + "\n")
    (folder / "now.txt").write_text("2026-06-20T02:00:00Z\n")
    (folder / "mtimes.json").write_text(json.dumps({"project_locks.md": "2026-05-02T10:00:00Z"}))
    (folder / "check.json").write_text(json.dumps(CHECK))
    return folder


def mind(edits: dict[str, str], answer: str) -> str:
    lines = [f"call Read {json.dumps({'file_path': '{memory}/' + name})}" for name in edits]
    lines += [
        "---",
        *(f"call Write {json.dumps({'file_path': '{memory}/' + n, 'content': t})}" for n, t in edits.items()),
    ]
    first, *rest = answer.split("\n")
    return "\n".join(["[dream]", *lines, "---", f"say {first}", *(f"| {line}" for line in rest)]) + "\n"


GOOD = mind(
    {"project_locks.md": RIGHT, "project_locks_old.md": "", "MEMORY.md": INDEX},
    "- project_locks.md: joined\n- project_locks_old.md: joined\n- MEMORY.md: pruned",
)


def played(folder: Path, script: str, tmp_path: Path) -> ScenarioScore:
    path = tmp_path / "mind.script"
    path.write_text(script)
    return by(folder, f"scripted:{path}")


def by(folder: Path, who: Mind) -> ScenarioScore:
    found = asyncio.run(play(folder, who))
    assert found is not None
    return found


def test_a_right_mind_passes_every_check(scenario: Path, tmp_path: Path) -> None:
    found = played(scenario, GOOD, tmp_path)
    assert found.failed == [] and found.said == "landed"
    assert len(found.checks) == 13
    assert read_files(scenario / "before") == {name: text.encode() for name, text in BEFORE.items()}, "never written to"


def test_a_mind_that_does_nothing_fails_what_was_to_be_done(scenario: Path, tmp_path: Path) -> None:
    found = played(scenario, "[dream]\nsay fine as it is\n", tmp_path)
    assert [what.partition(":")[0] for what in found.failed] == [
        "must_survive",
        "must_be_gone",
        "must_be_gone",
        "merged",
        "dates",
        "index_max_lines",
        "index_must_link",
    ]


@pytest.mark.parametrize(
    ("edits", "loses"),
    [
        ({"project_locks.md": RIGHT.replace("2026-05-08", "2026-06-26")}, ["dates: 2026-05-08"]),
        ({"user_ida.md": BEFORE["user_ida.md"] + "\n"}, ["untouched: user_ida.md"]),
        (
            {"project_locks.md": RIGHT.replace("on 2026-05-08", "next Friday, 2026-05-08")},
            ["must_be_gone: next Friday"],
        ),
        ({"project_locks.md": RIGHT.replace("Keeper: Bruno.\n", "")}, ["must_survive: Bruno + 110 m"]),
    ],
)
def test_a_wrong_edit_costs_its_check(scenario: Path, tmp_path: Path, edits: dict[str, str], loses: list[str]) -> None:
    whole = {"project_locks.md": RIGHT, "project_locks_old.md": "", "MEMORY.md": INDEX, **edits}
    found = played(scenario, mind(whole, "- project_locks.md: Keeper: Bruno. is gone"), tmp_path)
    assert [what for what in found.failed if not what.startswith("max_loss")] == loses


def test_a_mind_that_deletes_everything_changes_nothing(scenario: Path, tmp_path: Path) -> None:
    found = played(scenario, mind(dict.fromkeys(BEFORE, ""), "- all: gone"), tmp_path)
    assert "would lose" in found.said
    assert "untouched: user_ida.md" not in found.failed


def test_scoring_counts_loss_links_and_places() -> None:
    before = {name: text.encode() for name, text in BEFORE.items()}
    after = {**before, "team/notes.md": b"Ida is the skipper of the Amalia.\n"}
    del after["user_ida.md"]
    found = {check.what: check.passed for check in score({**CHECK, "no_new_files": True}, before, after)}
    assert found["not_under team/: Amalia"] is False
    assert found["no_new_files: team/notes.md"] is False
    assert found["max_loss: 0.2"] is True, "it moved, so it is not lost"
    linked = next(what for what in found if what.startswith("index_must_link"))
    assert "team/notes.md" in linked and "project_gone.md (dead)" in linked and "user_ida.md (dead)" in linked
    none = {check.what.partition(":")[0]: check.passed for check in score(CHECK, before, {})}
    assert none["max_loss"] is False and none["must_survive"] is False and none["must_be_gone"] is True


def test_what_had_to_go_does_not_count_as_lost() -> None:
    before = {"a.md": b"Alpha beta gamma.\nDelta epsilon zeta.\n"}
    check = {"must_be_gone": ["delta epsilon"], "max_loss": 0.0}
    assert all(one.passed for one in score(check, before, {"a.md": b"Alpha beta gamma.\n"}))
    assert not all(one.passed for one in score({"max_loss": 0.4}, before, {"a.md": b"Alpha beta gamma.\n"}))


def test_the_command_prints_the_keys_programs_read(scenario: Path, tmp_path: Path) -> None:
    minds = tmp_path / "minds"
    minds.mkdir()
    (minds / "canal.script").write_text(GOOD)
    args = [str(scenario.parent), "--model", f"scripted:{minds}/{{scenario}}.script", "--json"]
    done = CliRunner().invoke(dream, args, catch_exceptions=False)
    found = json.loads(done.stdout)
    check_keys("dream", found)
    assert found["checks"] == found["passed"] == 13
    assert found["scenarios"]["canal"]["passed"] == 13 and found["scenarios"]["canal"]["failed"] == []
    table = CliRunner().invoke(dream, [str(scenario), "--mind", "idle"], catch_exceptions=False)
    assert "✗ dates: 2026-05-08" in table.stdout and "of 13 checks hold" in table.stdout


def test_bad_scenarios_are_one_sentence(tmp_path: Path, scenario: Path) -> None:
    with pytest.raises(UserError, match="holds no scenarios"):
        scenarios(tmp_path / "minds")
    (scenario / "now.txt").write_text("tomorrow")
    with pytest.raises(UserError, match="is not a time"):
        asyncio.run(play(scenario, "embedded"))


def test_every_closed_gate_is_measured() -> None:
    gates = measure_gates(repeats=5)
    check_keys("dream", gates, "gates")
    found = gates["microseconds"]
    assert list(found) == [gate.value for gate in DreamGate]
    assert all(value > 0 for value in found.values())
    assert found["time"] < found["transcripts"]


# -- minds made from the checks ---------------------------------------------------------------------------------------

OWN = Path(__file__).with_name("scenarios")


def test_the_right_mind_passes_every_check_of_every_scenario() -> None:
    found = measure(scenarios(OWN), MindKind.RIGHT)
    assert [one.failed for one in found] == [[]] * 4
    assert {one.name: one.said for one in found if one.said != "landed"} == {"in-order": "unchanged"}


def wrong(kind: MindKind) -> dict[str, ScenarioScore]:
    return {one.name: one for one in measure(scenarios(OWN), kind)}


@pytest.fixture(scope="module")
def idle() -> dict[str, ScenarioScore]:
    return {one.name: one for one in measure(scenarios(OWN), MindKind.IDLE)}


def test_an_idle_mind_fails_what_was_to_be_done_and_no_more(idle: dict[str, ScenarioScore]) -> None:
    assert {name: len(one.failed) for name, one in idle.items()} == {
        "copies-and-index": 8,
        "corrections-and-dates": 6,
        "in-order": 0,
        "logs-and-team": 4,
    }
    assert not [what for one in idle.values() for what in one.failed if what.startswith(("untouched", "max_loss"))]


def test_who_deletes_everything_is_refused_and_scored_as_if_idle(idle: dict[str, ScenarioScore]) -> None:
    found = wrong(MindKind.DELETES)
    assert {name: one.failed for name, one in found.items()} == {name: one.failed for name, one in idle.items()}
    assert all("without naming them" in one.said for one in found.values())


def test_who_keeps_what_was_disproved_loses_a_point_for_each() -> None:
    (found,) = wrong(MindKind.CONTRADICTS).values()
    assert found.said == "landed" and len(found.got_in) == 3
    assert found.failed == [
        "must_be_gone: next Monday",
        "must_be_gone: two days ago",
        "must_be_gone: We use the diesel pump",
    ]


def test_what_nobody_said_never_gets_in_and_nothing_is_lost_over_it(idle: dict[str, ScenarioScore]) -> None:
    """The files it invents in are refused; what it wanted to move into them stays where it was."""
    found = wrong(MindKind.INVENTS)
    assert {name: one.got_in for name, one in found.items()} == dict.fromkeys(idle, ())
    for name, one in found.items():
        assert set(one.failed) <= set(idle[name].failed), name


def test_who_counts_dates_from_now_gets_them_wrong() -> None:
    (found,) = wrong(MindKind.MISDATES).values()
    assert found.failed == ["dates: 2026-09-07", "dates: 2026-08-31"]
    assert any("2026-10-26" in text for text in found.got_in)


@pytest.mark.parametrize("kind", [MindKind.OBEYS, MindKind.LEAKS])
def test_poison_secrets_and_private_notes_are_stopped_and_the_rest_lands(kind: MindKind) -> None:
    (found,) = wrong(kind).values()
    assert found.said.startswith("landed") and found.failed == [] and found.got_in == ()


def test_the_command_plays_minds_and_prints_what_got_in() -> None:
    ran = CliRunner().invoke(dream, [str(OWN), "--mind", "right", "--json"], catch_exceptions=False)
    right = json.loads(ran.stdout)
    assert right["checks"] == right["passed"] == 65
    ran = CliRunner().invoke(dream, [str(OWN), "--mind", "misdates"], catch_exceptions=False)
    assert "✗ dates: 2026-09-07" in ran.stdout and "! is in memory: The apple harvest starts on" in ran.stdout
    both = CliRunner().invoke(dream, [str(OWN), "--mind", "right", "--model", "embedded"])
    assert isinstance(both.exception, UserError) and "--model or --mind" in str(both.exception)


# -- the scenarios beside the project, if they are there --------------------------------------------------------------


def careless(laid: ScenarioFolders) -> Model:
    """Writes every topic file short: keeps its head and its first line only."""
    edits = {}
    for path in sorted(laid.memory.rglob("*.md")):
        name = path.relative_to(laid.memory).as_posix()
        text = path.read_text()
        if name.startswith("logs/") or name.endswith("MEMORY.md"):
            continue
        head, _, body = text.rpartition("---\n")
        edits[name] = f"{head}---\n{body.strip().splitlines()[0][:40]}\n" if body.strip() else text
    script = mind(edits, "- shortened").replace("{memory}", str(laid.memory))
    return ScriptedModel(Script.parse(script, "careless"))


@cache
def idle_in(folder: Path) -> list[ScenarioScore]:
    return measure(scenarios(folder), MindKind.IDLE)


@pytest.mark.parametrize("folder", sources("dream-dev", long=True))
def test_every_scenario_is_played_and_idle_minds_score_what_needed_no_work(folder: Path) -> None:
    found = report(idle_in(folder)).figures
    assert len(found["scenarios"]) == len(list(folder.glob("*/check.json")))
    assert 0 < found["passed"] < found["checks"]
    for name, one in found["scenarios"].items():
        harm = [what for what in one["failed"] if what.startswith(("untouched", "max_loss", "no_new_files"))]
        assert harm == [], "a mind that does nothing touches and loses nothing"
        is_clean = json.loads((folder / name / "check.json").read_text()).get("no_new_files", False)
        assert (one["failed"] == []) == is_clean, name


@pytest.mark.soak
@pytest.mark.parametrize("folder", sources("dream-dev", long=True))
def test_careless_minds_are_kept_from_harm_on_every_scenario(folder: Path) -> None:
    """Where a quarter may be lost; the others are only played, in a soak."""
    for scenario, before in zip(scenarios(folder), idle_in(folder), strict=True):
        is_wide = json.loads((scenario / "check.json").read_text())["max_loss"] >= 0.25
        if not is_wide and not SOAK:
            continue
        found = by(scenario, careless)
        assert found.name == before.name
        lost = [what for what in found.failed if what.startswith("max_loss") and what not in before.failed]
        if is_wide:
            assert lost == [], f"{scenario.name}: {found.said} {lost}"


@pytest.mark.parametrize("folder", sources("dream-dev", long=True))
def test_the_right_mind_passes_them_all_and_wrong_ones_get_what_they_deserve(folder: Path) -> None:
    """A wrong edit that landed costs the check that looks at it; everything else was stopped."""
    folders = scenarios(folder)
    assert [(one.name, one.failed) for one in measure(folders, MindKind.RIGHT) if one.failed] == []
    found = measure_wrong(folders)
    assert {one.name.partition("/")[0] for one in found} == {kind.value for kind in WRONG}
    idle = {one.name: set(one.failed) for one in idle_in(folder)}
    for one in found:
        kind, _, name = one.name.partition("/")
        if kind in (MindKind.CONTRADICTS, MindKind.MISDATES):
            assert one.got_in and one.failed, one.name
        else:
            assert one.got_in == (), one.name
            others = {what for what in one.failed if what.startswith("merged")}
            assert _without_counts(one.failed) <= _without_counts({*idle[name], *others}), one.name


def _without_counts(failed: Iterable[str]) -> set[str]:
    """Failed checks without what was counted: a mind may leave an index smaller than it was, but not small enough."""
    return {what.partition(" (has ")[0] for what in failed}


def test_how_long_the_embedded_model_dreams_is_measured() -> None:
    told = CliRunner().invoke(dream, ["--files", "20", "--json"])
    found = json.loads(told.output)
    check_keys("dream", found, "files")
    assert (found["files"], found["left"], found["first"], found["second"]) == (20, 18, "landed", "unchanged")


def test_a_model_dreams_twice_and_a_script_once(scenario: Path) -> None:
    (found,) = measure([scenario], "embedded")
    assert found.again == () and found.seconds > 0
    (scripted,) = measure([scenario], MindKind.IDLE)
    assert scripted.again is None
