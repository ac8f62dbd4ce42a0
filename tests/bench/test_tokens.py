"""`reverie lab tokens`: on transcripts written here, where the truth is known, and on recorded ones."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.tokens import SessionErrors, measure_folder, measure_session, report
from reverie.cli.lab import command
from reverie.errors import UserError
from reverie.models.catalogue import Catalogue
from tests.shared_data import data, sample

TOKENS_A_WORD = 1.7
WORDS = ("the", "file", "opens", "with", "note", "on", "what", "changed", "since", "then", "had", "to", "be", "done")


class Recording:
    """Writes a session as Claude Code would, billed by a tokenizer of our own: so much a word, nothing else."""

    def __init__(self, path: Path, seed: int, model: str = "claude-opus-4-5-20251101") -> None:
        self.path = path
        self.model = model
        self.rng = random.Random(seed)
        self.size = 20_000.0
        self.lines: list[dict[str, Any]] = []
        self.ids = 0

    def words(self, count: int) -> str:
        self.size += count * TOKENS_A_WORD
        return " ".join(self.rng.choice(WORDS) for _ in range(count))

    def record(self, kind: str, **more: Any) -> None:
        self.ids += 1
        self.lines.append({"type": kind, "uuid": f"u{self.ids}", "isSidechain": False, **more})

    def say(self, count: int = 30) -> None:
        self.record("user", message={"role": "user", "content": self.words(count)})

    def round(self, result_words: int = 1_500, output_tokens: int = 1) -> None:
        prompt = round(self.size)
        usage = {"input_tokens": 3, "cache_read_input_tokens": prompt - 3, "output_tokens": output_tokens}
        call = f"toolu_{self.ids}"
        blocks = [
            {"type": "text", "text": self.words(60)},
            {"type": "tool_use", "id": call, "name": "Run", "input": {"command": self.words(40)}},
        ]
        answer = f"msg_{self.ids}"
        for block in blocks:  # one response, split over records that share its id
            message = {"role": "assistant", "id": answer, "model": self.model, "usage": usage, "content": [block]}
            self.record("assistant", message=message)
        result = {"type": "tool_result", "tool_use_id": call, "content": self.words(result_words)}
        self.record("user", message={"role": "user", "content": [result]})

    def compact(self, size: int = 25_000) -> None:
        self.record("system", subtype="compact_boundary")
        self.size = size

    def write(self) -> Path:
        self.path.write_text("".join(json.dumps(line) + "\n" for line in self.lines), encoding="utf-8")
        return self.path


def work(path: Path, rounds: int, seed: int = 1) -> Recording:
    recording = Recording(path, seed)
    recording.say()
    for _ in range(rounds):
        recording.round(recording.rng.randrange(200, 3_000))
    return recording


def measured(path: Path) -> SessionErrors:
    return measure_session(path, Catalogue.load())


def test_calibration_finds_the_tokenizer_of_the_session(tmp_path: Path) -> None:
    session = measured(work(tmp_path / "a.jsonl", 60).write())
    assert session.responses == 60
    assert len(session.stretches) >= 8
    assert all(stretch.real >= 10_000 for stretch in session.stretches)
    figures = report([session]).figures
    assert figures["fixed"]["mean_abs_error"] > 0.2
    later = [abs(stretch.error("calibrated")) for stretch in session.stretches[2:]]
    assert max(later) < 0.05


def test_nothing_after_the_start_of_a_stretch_is_known_to_its_estimate(tmp_path: Path) -> None:
    whole = work(tmp_path / "whole.jsonl", 60)
    stretches = measured(whole.write()).stretches
    # The same session, ending earlier: the stretches that were complete by then come out the same.
    for keep in (60, 100, 150):
        (tmp_path / "cut.jsonl").write_text("".join(json.dumps(line) + "\n" for line in whole.lines[:keep]))
        cut = measured(tmp_path / "cut.jsonl").stretches
        assert cut
        assert cut == stretches[: len(cut)]
    # The usage that ends the first stretch says something else: what was estimated for it stays.
    answers = [line["message"]["usage"] for line in whole.lines if line["type"] == "assistant"][::2]
    end = answers[0]["cache_read_input_tokens"] + stretches[0].real
    for usage in answers:
        if usage["cache_read_input_tokens"] >= end:
            usage["cache_read_input_tokens"] += 5_000
    moved = measured(whole.write()).stretches
    assert moved[0].real == stretches[0].real + 5_000
    assert moved[0].calibrated == stretches[0].calibrated


def test_no_stretch_crosses_a_compaction_or_a_shrinking_context(tmp_path: Path) -> None:
    recording = work(tmp_path / "a.jsonl", 12)
    before = len(measured(recording.write()).stretches)
    recording.compact()
    recording.say(4_000)
    recording.round(1_000)
    recording.round(1_000)
    recording.size -= 3_000  # the harness cleared something by itself
    recording.round(1_000)
    recording.round(1_000)
    assert len(measured(recording.write()).stretches) == before
    # A compaction may leave more than there was, when it restores files: still not a growth to be estimated.
    recording.compact(60_000)
    recording.round(1_000)
    assert len(measured(recording.write()).stretches) == before


def test_another_model_is_calibrated_by_itself(tmp_path: Path) -> None:
    recording = work(tmp_path / "a.jsonl", 30)
    recording.model = "claude-sonnet-4-5"
    for _ in range(30):
        recording.round(2_000)
    session = measured(recording.write())
    assert session.models == ("claude-opus-4-5-20251101", "claude-sonnet-4-5")
    assert len(session.stretches) > 8


def test_sidechains_doubled_records_and_two_objects_on_a_line(tmp_path: Path) -> None:
    recording = work(tmp_path / "a.jsonl", 30)
    plain = measured(recording.write()).stretches
    lines = [json.dumps(line) for line in recording.lines]
    side = {**recording.lines[-1], "isSidechain": True, "uuid": "side"}
    lines[20] = lines[20] + lines[21]
    lines[21] = json.dumps(side)
    lines.insert(30, lines[29])
    lines.append('{"type": "user", "torn')
    (tmp_path / "b.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    odd = measured(tmp_path / "b.jsonl")
    assert odd.stretches == plain


def test_recorded_output_is_reported_beside_it(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "a.jsonl", 5)
    recording.say()
    for _ in range(20):
        recording.round(1_500, output_tokens=170)
    figures = report([measured(recording.write())]).figures
    assert figures["recorded_output"]["mean_abs_error"] < figures["fixed"]["mean_abs_error"] + 0.05
    assert set(figures) >= {"fixed", "calibrated", "stretches"}


def test_command_prints_figures_and_a_table(tmp_path: Path) -> None:
    work(tmp_path / "a.jsonl", 30, seed=2).write()
    work(tmp_path / "b.jsonl", 30, seed=3).write()
    (tmp_path / "stats.json").write_text("[]")
    done = CliRunner().invoke(command, ["tokens", str(tmp_path), "--json"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.output)
    assert figures["sessions"] == 2
    assert figures["calibrated"]["mean_abs_error"] < figures["fixed"]["mean_abs_error"]
    shown = CliRunner().invoke(command, ["tokens", str(tmp_path)]).output
    for expected in ("session", "calibrated", "\na ", "\nb ", "\nall "):
        assert expected in shown


def test_nothing_to_measure_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not exist; name a folder"):
        measure_folder([tmp_path / "gone"])
    with pytest.raises(UserError, match=r"No \*\.jsonl under"):
        measure_folder([tmp_path])
    work(tmp_path / "short.jsonl", 2).write()
    with pytest.raises(UserError, match=r"No session has a stretch"):
        report(measure_folder([tmp_path]))


def test_sessions_of_the_simulator_follow_the_fixed_rule() -> None:
    """Its tokens are counted by that rule, so what is measured is known."""
    figures = report(measure_folder([sample("transcripts")])).figures
    assert figures["stretches"] > 10 and figures["sessions"] == 12
    assert figures["recorded_output"]["mean_abs_error"] < 0.001 and figures["fixed"]["mean_abs_error"] < 0.03


@pytest.mark.evals
def test_recorded_sessions() -> None:
    figures = report(measure_folder([data("transcripts")])).figures
    assert figures["stretches"] > 200
    assert figures["calibrated"]["mean_abs_error"] <= 0.06
    assert figures["calibrated"]["mean_abs_error"] <= figures["fixed"]["mean_abs_error"] / 3
