"""`kill -9` at random moments of a running conversation: it always goes on, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from reverie.models.request_log import read_log
from reverie.paths import Places
from reverie.settings import load_settings
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.sessions import list_sessions
from reverie.storage.transcript.view import View
from tests import warm
from tests.counts import SOAK, count
from tests.prefix_breaks import prefix_breaks
from tests.sessions import script

ROOT = Path(__file__).resolve().parents[1]

# Work with every kind of moment in it: streams, parallel reads, a shell command, a large result, a retry.
PLAY = """
repeat forever
  slow 0.002
  say Round {round}: reading several files at once.
  call Read {"file_path": "f{i}.txt"} x5
  ---
  call Bash {"command": "echo round {round}; sleep 0.02"}
  call Grep {"pattern": "line", "output_mode": "count"}
  ---
  slow 0.002
  say Answer {round}, as promised.
end
"""


def run_and_kill(folder: Path, model: str, days: int, number: int, seed: random.Random) -> list[str]:
    """Starts a turn, kills it somewhere, and returns the lines it had printed until then."""
    asked = (str(folder), model, str(days), f"message {number}")
    said, out = os.pipe()
    with (folder / "errors.txt").open("w+") as err, os.fdopen(said) as printed, Path(os.devnull).open() as nothing:
        streams = (nothing.fileno(), out, err.fileno())
        process = warm.Process(*asked, module="tests.crash_driver", cwd=ROOT, env=os.environ, streams=streams)
        os.close(out)
        lines = list[str]()
        for _ in range(seed.choice([1, 1, 2, 3, 4, 5])):  # so that a busy machine is killed as late as an idle one
            if not (line := printed.readline()):
                break
            lines.append(line.strip())
        time.sleep(seed.choice([0.0, 0.002, 0.01, 0.05, 0.1, 0.2]) * seed.random())
        process.kill()
        lines += [line.strip() for line in printed.read().splitlines()]
        process.wait()
        err.seek(0)
        errors = err.read()
    assert "Traceback" not in errors, errors
    assert lines, errors
    return lines


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_killed_conversation_always_goes_on(tmp_path: Path, prefix_watch: Path) -> None:
    for i in range(1, 6):
        (tmp_path / f"f{i}.txt").write_text("a line\n" * 50 * i)
    model = script(tmp_path, PLAY)
    seed = random.Random(None if SOAK else 20261115)
    project = Places.of(tmp_path, load_settings(tmp_path)).project
    kills = count(10, 1_000)
    acknowledged = set[str]()
    outcomes = dict[str, int]()
    for number in range(kills):
        days = number * 3 // kills  # the last thirds are resumed on later days
        if number and number % 100 == 0:
            acknowledged.clear()
            for info in list_sessions(project):
                info.path.unlink()  # a fresh session now and then keeps the soak from growing without bound
        for line in run_and_kill(tmp_path, model, days, number, seed):
            kind, _, name = line.partition(" ")
            outcomes[kind] = outcomes.get(kind, 0) + 1
            if kind in ("person", "result"):
                acknowledged.add(name)
            assert kind != "ended" or name.startswith("answered"), line
        check(project, acknowledged)
        if prefix_watch.exists():
            assert not list(map(str, prefix_breaks(prefix_watch)))
            if number % 20 == 0:
                prefix_watch.unlink()
    print(f"kills {kills}, seen before them: {outcomes}")
    assert outcomes.get("result", 0) > kills / 10, "the kills came too early to mean anything"


def check(project: Path, acknowledged: set[str]) -> None:
    """Everything that was acknowledged is in the file, and the file gives a conversation."""
    sessions = list_sessions(project)
    if not sessions:
        assert not acknowledged
        return
    loaded = read_records(sessions[0].path)
    assert not loaded.bad
    names = {record.uuid for record in loaded.records}
    names |= {r.tool_use_id for record in loaded.records if record.message for r in record.message.tool_results}
    assert acknowledged <= names, f"lost: {acknowledged - names}"
    view = View.of(conversation(loaded.records))
    assert len(view.entries) == sum(1 for record in loaded.records if record.message is not None)


def test_a_resume_after_a_kill_extends_what_was_last_sent(tmp_path: Path, prefix_watch: Path) -> None:
    """The same, step by step: killed right after each printed line of one turn."""
    for i in range(1, 6):
        (tmp_path / f"f{i}.txt").write_text("a line\n")
    model = script(tmp_path, PLAY)
    for stop_at in range(1, 11):
        asked = (str(tmp_path), model, "0", f"message {stop_at}")
        said, out = os.pipe()
        with os.fdopen(said) as printed, Path(os.devnull).open() as nothing:
            streams = (nothing.fileno(), out, 2)
            process = warm.Process(*asked, module="tests.crash_driver", cwd=ROOT, env=os.environ, streams=streams)
            os.close(out)
            for _ in range(stop_at):
                if not printed.readline():
                    break
            process.kill()
            process.wait()
    assert not prefix_breaks(prefix_watch)
    assert len(list(read_log(prefix_watch))) >= 10
