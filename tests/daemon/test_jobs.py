"""The queue: one waiting job per session, one worker at a time; nothing is lost or left over when the service dies."""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from pathlib import Path

import pytest

from reverie.daemon.client import stop_daemon
from reverie.daemon.jobs import Job, Jobs
from reverie.runtime.background_log import BackgroundLog
from tests.counts import count
from tests.daemon.hooks import Agent
from tests.daemon.services import lives, log_of, run_hook, start_service, wait_until_it_answers
from tests.waiting import FOREVER_S, LIMIT_S, until, wait_until

WORKER = """
import json, os, subprocess, sys, time
job = json.loads(sys.stdin.read())
assert "REVERIE_INSIDE" not in os.environ, "its model may be a program"
folder, _, what = job["transcript"].partition("|")
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)  # as the program of a model
def note(state):
    with open(folder + "/runs", "a") as file:
        file.write(json.dumps([state, job["session"], os.getpid(), child.pid]) + "\\n")
note("begun")
if what == "0.02":
    os.kill(os.getpid(), 9)  # as the system does if memory is short
while what == "gate" and not os.path.exists(folder + "/go"):
    time.sleep(0.02)
time.sleep(0 if what == "gate" else float(what or 0))
if what == "0.01":
    sys.exit("it does not work")
note("done")
print(json.dumps({"memories": 2, "nested": {"no": 1}}))
"""


@pytest.fixture
def worker(tmp_path: Path) -> str:
    path = tmp_path / "worker.py"
    path.write_text(WORKER)
    return str(path)


def runs(folder: Path) -> list[list[object]]:
    path = folder / "runs"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def ask(home: Path, session: str, folder: Path, seconds: float | str = 0) -> None:
    run_hook("Stop", home, {"session_id": session, "transcript_path": f"{folder}|{seconds}"})


def test_one_job_per_session_and_its_report(home: Path, tmp_path: Path, worker: str) -> None:
    service = start_service(home, worker=worker)
    wait_until_it_answers(home)
    ask(home, "before", tmp_path, "gate")
    wait_until(lambda: runs(tmp_path))
    for _ in range(3):
        ask(home, "first", tmp_path)
    ask(home, "second", tmp_path, 0.01)
    ask(home, "killed", tmp_path, 0.02)
    (tmp_path / "go").touch()
    wait_until(lambda: len(log_of(home, "hook_job")) == 4)
    reports = log_of(home, "hook_job")[1:]
    assert reports[0]["memories"] == 2 and "error" not in reports[0]
    assert reports[1]["error"] == "it does not work"
    assert reports[2]["error"] == "The worker ended with exit code -9."
    assert [(state, session) for state, session, *_ in runs(tmp_path)] == [
        ("begun", "before"),
        ("done", "before"),
        ("begun", "first"),
        ("done", "first"),
        ("begun", "second"),
        ("begun", "killed"),
    ]
    assert not list((home / "run" / "jobs").iterdir())
    wait_until(lambda: not leftovers(tmp_path))
    stop_daemon(home)
    service.wait(LIMIT_S)


def test_a_job_that_takes_longer_than_its_limit_is_ended(home: Path, tmp_path: Path, worker: str) -> None:
    service = start_service(home, worker=worker, job_limit_s=0.5)
    wait_until_it_answers(home)
    ask(home, "long", tmp_path, FOREVER_S)
    wait_until(lambda: log_of(home, "hook_job"))
    assert "0.5 s" in log_of(home, "hook_job")[0]["error"]
    assert not list((home / "run" / "jobs").iterdir())
    wait_until(lambda: not leftovers(tmp_path))
    stop_daemon(home)
    service.wait(LIMIT_S)


def test_a_worker_that_cannot_start_leaves_its_job_to_the_next_service(
    home: Path, tmp_path: Path, worker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        with monkeypatch.context() as without:
            without.setattr(sys, "executable", "/nowhere/python")  # its environment was deleted
            jobs = Jobs(home, BackgroundLog(home / "logs" / "background.jsonl"))
            jobs.ask(Job("codex", "first", f"{tmp_path}|0", "/", False))
            running = asyncio.create_task(jobs.run())
            await until(lambda: log_of(home, "hook_job"))
        running.cancel()

    asyncio.run(work())
    assert "did not start" in log_of(home, "hook_job")[0]["error"]
    service = start_service(home, worker=worker)
    wait_until(lambda: len(log_of(home, "hook_job")) == 2)
    assert [session for _, session, *_ in runs(tmp_path)] == ["first", "first"]
    stop_daemon(home)
    service.wait(LIMIT_S)


def test_a_program_is_the_mind_of_a_worker_and_is_told_that_it_is_inside(own_home: Path, tmp_path: Path) -> None:
    agent, mind, seen = Agent(own_home / ".reverie", tmp_path / "shop"), tmp_path / "mind.sh", tmp_path / "seen"
    agent.record(("user", "No, always use pnpm instead of npm."), ("assistant", [{"type": "text", "text": "Yes."}]))
    mind.write_text(f'#!/bin/sh\ncat >/dev/null\necho "$REVERIE_INSIDE" >"{seen}"\necho "Nothing to remember."\n')
    mind.chmod(0o755)
    agent.home.mkdir(exist_ok=True)
    settings = f"[connect]\nmodel = \"command:'{mind}'\"\n[background]\nfallback = false\n"
    (agent.home / "settings.toml").write_text(settings)
    service = start_service(agent.home)
    wait_until_it_answers(agent.home)
    run_hook(
        "Stop",
        agent.home,
        {"session_id": agent.session, "transcript_path": str(agent.transcript), "cwd": str(agent.cwd)},
    )
    wait_until(lambda: log_of(agent.home, "hook_job"))
    stop_daemon(agent.home)
    service.wait(LIMIT_S)
    assert seen.read_text() == "1\n", log_of(agent.home, "hook_job")


def leftovers(folder: Path) -> list[int]:
    return [pid for _, _, *pids in runs(folder) for pid in pids if isinstance(pid, int) and lives(pid)]


@pytest.mark.soak
def test_a_killed_service_loses_nothing_and_leaves_nothing(home: Path, tmp_path: Path, worker: str) -> None:
    sessions = [f"s{number}" for number in range(count(3, 20))]
    chance = random.Random(7)
    for number in range(count(1, 12)):
        service = start_service(home, worker=worker)
        wait_until_it_answers(home)
        if number == 0:
            for session in sessions:
                ask(home, session, tmp_path, 0.3)
        time.sleep(1.2 if number == 0 else chance.random() * 2)
        service.kill()
        service.wait()
    assert not {session for state, session, *_ in runs(tmp_path) if state == "done"} >= set(sessions)
    wait_until(lambda: not leftovers(tmp_path))  # without a service
    service = start_service(home, worker=worker)
    wait_until(lambda: {session for state, session, *_ in runs(tmp_path) if state == "done"} >= set(sessions))
    for before, after in zip(runs(tmp_path), runs(tmp_path)[1:], strict=False):
        if after[0] == "done":
            assert before == ["begun", *after[1:]]  # no other worker began in between
    ask(home, "last", tmp_path, FOREVER_S)
    wait_until(lambda: runs(tmp_path)[-1][:2] == ["begun", "last"])
    stop_daemon(home)
    service.wait(LIMIT_S)
    wait_until(lambda: not leftovers(tmp_path))
    assert len(list((home / "run" / "jobs").iterdir())) == 1  # it waits for the next service
