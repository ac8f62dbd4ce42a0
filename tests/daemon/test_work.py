"""The job process: our copy, the notes, the digest and what is learnt; an answer that comes late is not lost."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from reverie.connect.status import find_model
from reverie.daemon import work as work_module
from reverie.daemon.digest import Digests
from reverie.daemon.jobs import Job
from reverie.daemon.work import work
from reverie.paths import Places
from reverie.runtime.background_log import BackgroundLog
from reverie.runtime.heartbeat import Heartbeat
from reverie.settings import load_settings
from tests.daemon.hooks import Agent
from tests.waiting import LIMIT_S

CORRECTION = "No, always use pnpm instead of npm in this repository."
ANSWER = ("assistant", [{"type": "text", "text": "Understood: pnpm it is."}])


@pytest.fixture
def agent(own_home: Path, tmp_path: Path) -> Agent:
    return Agent(own_home / ".reverie", tmp_path / "shop")


def places(agent: Agent) -> Places:
    return Places.of(agent.cwd, load_settings(agent.cwd, home=agent.home))


def job(agent: Agent, *, ended: bool = False) -> Job:
    return Job(agent.agent, agent.session, str(agent.transcript), str(agent.cwd), ended)


def do(agent: Agent, *, ended: bool = False) -> dict[str, Any]:
    return asyncio.run(work(job(agent, ended=ended)))


def memories(agent: Agent) -> str:
    folder = places(agent).default_memory
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.md")) if path.name != "MEMORY.md")


def test_a_correction_of_one_day_is_recalled_the_next(agent: Agent) -> None:
    agent.record(("user", "Install the packages"), ANSWER, ("user", CORRECTION), ANSWER)
    report = do(agent)
    assert report["copy"] == "new" and report["turns"] == 2 and report["memories"] == 1, report
    assert "pnpm" in memories(agent)
    at = places(agent)
    assert at.transcript(agent.session).is_file(), "our copy is a session like any other"
    assert "pnpm" in at.session_notes(agent.session).read_text()
    assert Digests(agent.home).stored(agent.session).requests[-1] == CORRECTION
    assert Heartbeat(at.heartbeat("extraction")).read().run["turns"] == 2
    assert Heartbeat(at.heartbeat("notes")).read().succeeded, "`reverie doctor` shows that the notes were written"
    assert BackgroundLog(at.background_log).read(kind="extraction_done")
    again = do(agent)
    assert again["turns"] == 0 and again["copy"] == "unchanged", "no turn is learnt twice"
    tomorrow = Agent(agent.home, agent.cwd, session="tomorrow")
    assert "pnpm" in tomorrow.prompt("please install the packages with npm or pnpm")


def test_a_late_answer_is_waited_for_and_an_open_turn_left(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_module, "_FLUSH_S", 0.3)
    agent.record(("user", "Install the packages"), ANSWER, ("user", CORRECTION))
    assert do(agent)["turns"] == 1 and "pnpm" not in memories(agent)
    agent.record(ANSWER)
    assert do(agent)["turns"] == 1 and "pnpm" in memories(agent)


def test_the_end_takes_the_last_turn_too(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_module, "_FLUSH_S", 0.1)
    agent.record(("user", "Install the packages"), ANSWER, ("user", CORRECTION))
    assert do(agent)["turns"] == 1
    report = do(agent, ended=True)
    assert report["turns"] == 1 and "pnpm" in memories(agent)
    assert report["dream"] == "too few sessions since the last"


def test_at_the_end_of_a_session_it_dreams_if_the_gates_are_open(agent: Agent) -> None:
    agent.home.mkdir(parents=True)
    (agent.home / "settings.toml").write_text("[dream]\ntranscripts = 2\n")
    for number in range(3):
        other = Agent(agent.home, agent.cwd, session=f"session-{number}")
        other.record(("user", f"The staging port of region {number} is 808{number}."), ANSWER)
        do(other)
    report = do(other, ended=True)
    assert report["dream"] == "dreamt", report
    assert BackgroundLog(places(agent).background_log).read(kind="dream"), "`reverie log` shows it"
    assert do(other, ended=True)["dream"] == "not yet"


def test_old_copies_go_if_the_settings_say_so(agent: Agent) -> None:
    agent.record(("user", CORRECTION), ANSWER)
    do(agent, ended=True)
    copy, digest = places(agent).transcript(agent.session), agent.home / "hooks" / "digests" / f"{agent.session}.json"
    os.utime(copy, (1, 1))
    other = Agent(agent.home, agent.cwd, session="another")
    other.record(("user", "Hello"), ANSWER)
    do(other, ended=True)
    assert copy.is_file() and digest.is_file(), "by default, they stay"
    (agent.home / "settings.toml").write_text("[transcript]\nexpire_days = 30\n")
    do(other, ended=True)
    assert not copy.exists() and not copy.with_suffix("").exists() and not digest.exists()


def test_half_a_line_is_left_for_the_next_time(agent: Agent) -> None:
    agent.record(("user", "Install the packages"), ANSWER)
    whole = agent.transcript.read_bytes()
    agent.record(("user", CORRECTION), ANSWER)
    later = agent.transcript.read_bytes()
    agent.transcript.write_bytes(later[: len(whole) + 200])
    assert do(agent)["turns"] == 1
    agent.transcript.write_bytes(later)
    assert do(agent)["turns"] == 1 and "pnpm" in memories(agent)


def test_switched_off_nothing_is_learnt(agent: Agent) -> None:
    agent.home.mkdir(parents=True)
    (agent.home / "settings.toml").write_text("[connect]\nlearn = false\n")
    agent.record(("user", CORRECTION), ANSWER)
    report = do(agent, ended=True)
    assert report["copy"] == "new" and "turns" not in report and memories(agent) == "" and report["dream"] == "off"


@pytest.mark.parametrize("fallback", [True, False])
def test_a_model_that_cannot_answer_is_replaced(agent: Agent, monkeypatch: pytest.MonkeyPatch, fallback: bool) -> None:
    monkeypatch.setenv("REVERIE_BACKGROUND_FALLBACK", str(int(fallback)))
    agent.home.mkdir(parents=True)
    (agent.home / "settings.toml").write_text('[connect]\nmodel = "anthropic:claude-haiku-4-5"\n')
    agent.record(("user", CORRECTION), ANSWER)
    report = do(agent)
    assert ("pnpm" in memories(agent)) is fallback, report
    assert "instead" in report if fallback else "stopped" in report


def test_a_model_that_could_not_be_used_is_shown_until_it_works(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_BACKGROUND_FALLBACK", "1")

    def configure(model: str, program: str = "/does/not/exist") -> None:
        named = f'[connect]\nmodel = "{model}"\n[model]\nclaude_code_program = "{program}"\n'
        (agent.home / "settings.toml").write_text(named)

    def shown() -> str:
        return "\n".join(one.what for one in find_model(load_settings(agent.cwd, home=agent.home), places(agent)))

    agent.home.mkdir(parents=True)
    configure("claude-code:haiku")
    assert shown() == "", "it has not run yet"
    agent.record(("user", CORRECTION), ANSWER)
    do(agent)
    assert shown().startswith("claude-code:haiku could not be used: Claude Code: the program /does/not/exist")
    assert "the offline mind learns instead (20" in shown() and "pnpm" in memories(agent)
    configure("embedded")
    assert shown() == ""
    answer = json.dumps({"type": "result", "is_error": False, "structured_output": {"text": "ok", "calls": []}})
    program = tmp_path / "claude"
    program.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\n")
    program.chmod(0o700)
    configure("claude-code:haiku", str(program))
    assert shown() != ""
    agent.record(("user", "Never use yarn here."), ANSWER)
    report = do(agent)
    assert report["turns"] == 1 and "instead" not in report, report
    assert shown() == ""


def test_notes_that_somebody_wrote_stay(agent: Agent) -> None:
    agent.record(("user", "Install the packages"), ANSWER)
    do(agent)
    notes = places(agent).session_notes(agent.session)
    agent.record(("user", CORRECTION), ANSWER)
    do(agent)
    assert "pnpm" in notes.read_text(), "code may change what code has written"
    own = notes.read_text().replace("pnpm", "MY OWN WORDS")
    notes.write_text(own)
    agent.record(("user", "And now the tests"), ANSWER)
    do(agent)
    assert notes.read_text() == own


def test_a_pin_in_our_copy_survives_the_next_job_and_the_compaction(agent: Agent) -> None:
    from tests import warm
    from tests.daemon.test_compaction import compact

    agent.record(("user", "Install the packages"), ANSWER)
    do(agent)
    for text in ("Never touch the generated files", "Ask before a release"):
        pinned = warm.run_text("pin", "-s", agent.session, text, cwd=agent.cwd, env=os.environ)
        assert pinned.returncode == 0, pinned.stderr
    agent.record(("user", CORRECTION), ANSWER)
    report = do(agent)
    assert report["copy"] == "grew" and report["turns"] == 1, report
    before, start = compact(agent, "short")
    for text in ("generated files", "before a release"):
        assert text in before and text in start


def run(given: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "reverie.daemon.work"]
    return subprocess.run(command, input=given, capture_output=True, timeout=LIMIT_S, env=os.environ, check=False)


def test_as_a_process_it_reports_in_json_or_fails_with_one_sentence(agent: Agent, tmp_path: Path) -> None:
    agent.record(("user", CORRECTION), ANSWER)
    done = run(json.dumps(asdict(job(agent))).encode())
    assert done.returncode == 0 and json.loads(done.stdout)["turns"] == 1, done.stderr
    bad = run(b'{"agent": 1}')
    assert bad.returncode and len(bad.stderr.splitlines()) == 1 and b"Traceback" not in bad.stderr
    os.mkfifo(fifo := tmp_path / "fifo.jsonl")
    for transcript in ("", "/does/not/exist.jsonl", str(fifo), str(tmp_path)):
        report = asyncio.run(work(Job("codex", "x", transcript, str(agent.cwd), False)))
        assert "turns" not in report
