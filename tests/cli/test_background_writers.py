"""How background writers are told of: by `reverie doctor`, by `reverie cost`, and once when one keeps failing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

SAID = "Please write commit messages in the imperative, the release notes are made from them"
MEMORY = (
    "---\nname: Imperative commit messages\ndescription: Write commit messages in the imperative\n"
    "type: feedback\n---\n\nWrite commit messages in the imperative.\n"
)


@pytest.fixture(autouse=True)
def with_memory(reverie: Command) -> None:
    reverie.extra |= {"REVERIE_DISABLE_MEMORY": "0", "REVERIE_FLAG_EXTRACTION_NONINTERACTIVE": "1"}


def settings(reverie: Command, text: str) -> None:
    reverie.home.mkdir(parents=True, exist_ok=True)
    (reverie.home / "settings.toml").write_text(text)


def check(reverie: Command, name: str) -> dict[str, str]:
    checks = json.loads(reverie("doctor", "--json", code=None).stdout)["checks"]
    return next(one for one in checks if one["name"] == name)


def test_doctor_says_when_extraction_ran_what_it_cost_and_which_gate_stopped_it(reverie: Command) -> None:
    assert check(reverie, "extraction")["found"] == "never ran"
    root = Path(reverie("memory", "path").stdout.split()[0])
    write = json.dumps({"file_path": str(root / "feedback_commits.md"), "content": MEMORY})
    reverie("run", "--model", reverie.script(f"say Yes.\n\n[extraction]\ncall Write {write}\n---\nsay done\n"), SAID)
    found = check(reverie, "extraction")
    assert found["state"] == "ok" and "(1 memory, " in found["found"] and "tokens cached)" in found["found"]
    assert "in 7 days 1 request worth " in found["found"]
    del reverie.extra["REVERIE_FLAG_EXTRACTION_NONINTERACTIVE"]
    reverie("run", "--model", reverie.script("say Yes.\n"), SAID)
    assert "ago: nobody is at the keyboard" in check(reverie, "extraction")["found"]
    runs = json.loads(reverie("cost", "--by", "run", "--json").stdout)["parts"]
    (extraction,) = [sums for name, sums in runs.items() if name.endswith(" extraction-1")]
    assert extraction["requests"] == 1 and 0 < extraction["hit_rate"] < 1
    shown = reverie("cost", "--by", "run").stdout
    assert "cached" in shown and f"{extraction['hit_rate']:.0%}" in shown


def test_a_writer_that_failed_three_times_in_a_row_says_so_once(reverie: Command) -> None:
    settings(reverie, "[model]\nretries = 0\n[background]\nfallback = false\n")
    model = reverie.script("say Yes.\n\n[extraction]\nrepeat forever\n  fail authentication\n  say x\nend\n")
    told = ["three times in a row" in reverie("run", "--model", model, SAID).stderr for _ in range(5)]
    assert told == [False, False, True, False, False]
    found = check(reverie, "extraction")
    assert found["state"] == "warning" and "failed 5 times in a row, last: " in found["found"]
    reverie("run", "--model", reverie.script("say Yes.\n\n[extraction]\nsay nothing\n", "well.script"), SAID)
    assert check(reverie, "extraction")["state"] == "ok"
    told = ["three times in a row" in reverie("run", "--model", model, SAID).stderr for _ in range(3)]
    assert told == [False, False, True], "and again after it has worked"


def test_the_notes_are_a_writer_too(reverie: Command) -> None:
    notes = '[notes]\nfirst_tokens = 10\ncadence = "reference"\n'
    settings(reverie, f"[model]\nretries = 0\n[background]\nfallback = false\n{notes}")
    assert check(reverie, "notes")["found"] == "never ran"
    failing = reverie.script("say Yes.\n\n[notes]\nrepeat forever\n  fail authentication\n  say x\nend\n")
    told = ["taking notes has failed three times" in reverie("run", "--model", failing, SAID).stderr for _ in range(4)]
    assert told == [False, False, True, False]
    assert check(reverie, "notes")["state"] == "warning"
    reverie.extra["REVERIE_FLAG_SESSION_NOTES"] = "0"
    reverie("run", "--model", failing, SAID)
    assert "ago: the flag `session_notes` is off" in check(reverie, "notes")["found"]


def test_the_budget_of_the_day_is_shown_and_warned_of_when_it_is_spent(reverie: Command) -> None:
    model = reverie.script("say Yes.\n\n[extraction]\nsay nothing\n")
    reverie("run", "--model", model, SAID)
    found = check(reverie, "budget")
    assert (
        found["state"] == "ok" and " of 20,000,000 input tokens" in found["found"] and "used 0 " not in found["found"]
    )
    settings(reverie, "[budget]\nbackground_tokens_per_day = 10\n[background]\nfallback = false\n")
    found = check(reverie, "budget")
    assert found["state"] == "warning" and "of the 10 tokens it may use a day" in found["found"]
    done = reverie("run", "--model", model, SAID)
    assert "extraction was left out: background work has used" in done.stderr
    assert "the day's budget for background work is spent" in check(reverie, "extraction")["found"]


def test_the_log_of_dreams_is_that_of_one_memory(reverie: Command, tmp_path: Path) -> None:
    model = reverie.script("[dream]\nsay Nothing had to be changed.\n")
    reverie.extra["REVERIE_MEMORY_PATH"] = str(tmp_path / "one")
    reverie("dream", "--now", "--model", model)
    assert "memory was tidy" in reverie("dream", "log").stdout
    reverie.extra["REVERIE_MEMORY_PATH"] = str(tmp_path / "other")
    assert reverie("dream", "log").stdout == "No dream yet.\n"
