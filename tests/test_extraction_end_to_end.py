"""Extraction in whole sessions and processes: what it reads from the cache, and what becomes of it when they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reverie.layers.l5_extraction.gates import WRITER
from reverie.paths import Places
from reverie.session import Session
from reverie.settings import load_settings
from reverie.simulator.ledger import Billing
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import Cursor, from_record
from reverie.storage.transcript.sessions import list_sessions
from reverie.types import Purpose
from tests.sessions import ended, in_session, script, turn
from tests.simulated import ANTHROPIC, files, served
from tests.waiting import LIMIT_S

SAID = "Please write commit messages in the imperative, the release notes are made from them"
MEMORY = (
    "---\nname: Imperative commit messages\ndescription: Write commit messages in the imperative\n"
    "type: feedback\n---\n\nWrite commit messages in the imperative.\n"
)


def memory_of(cwd: Path) -> Path:
    return Places.of(cwd, load_settings(cwd)).default_memory


def writing(cwd: Path, wait: float = 0.0) -> str:
    path = memory_of(cwd) / "feedback_commits.md"
    return f"wait {wait}\ncall Write {json.dumps({'file_path': str(path), 'content': MEMORY})}\n---\nsay done\n"


def test_the_first_request_reads_the_conversation_from_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, count=30, size=1_150)
    work = """
repeat 4
  call Read {"file_path": "f{i}.txt"} x30
  ---
  say Turn {loop} is done.
end

[extraction]
"""

    async def hold(session: Session) -> None:
        for number in range(4):
            assert ended(await turn(session, f"{SAID} ({number})")).reason == "answered"
            await session.tasks.settle(Purpose.EXTRACTION, LIMIT_S)

    with served(work + writing(tmp_path), monkeypatch) as server:
        for layer in ("EXTRACTION", "SESSION_NOTES", "RECALL"):
            monkeypatch.setenv(f"REVERIE_FLAG_{layer}", "1")
        in_session(hold, cwd=tmp_path, model=ANTHROPIC, interactive=True)
    rows, first = server.rows, list[tuple[Billing, Billing]]()
    main: Billing | None = None
    for row in rows:
        if row.purpose == "main":
            main = row
        elif row.purpose == "extraction" and main is not None:
            first.append((row, main))
            main = None  # its further requests follow its own
    assert len(first) == 4, [row.purpose for row in rows]
    for row, main in first:
        assert row.usage.cache_read_input_tokens == main.usage.prompt, "all of what the conversation had sent"
    row, main = first[-1]
    share = row.usage.cache_read_input_tokens / row.usage.prompt
    print(f"{row.usage.prompt:,} tokens, {share:.2%} read from the conversation's cache entry")
    assert row.usage.prompt >= 50_000
    assert share >= 0.98
    assert (memory_of(tmp_path) / "feedback_commits.md").exists()


def reverie(cwd: Path, *args: str) -> subprocess.Popen[str]:
    env = {**os.environ, "REVERIE_FLAG_EXTRACTION_NONINTERACTIVE": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "reverie", *args],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def cursors(cwd: Path) -> list[Cursor]:
    (info,) = list_sessions(Places.of(cwd, load_settings(cwd)).project)
    found = map(from_record, read_records(info.path).records)
    return [one for one in found if isinstance(one, Cursor) and one.writer == WRITER]


def test_at_exit_a_run_in_flight_is_waited_for(tmp_path: Path) -> None:
    model = script(tmp_path, f"say Yes.\n\n[extraction]\n{writing(tmp_path, wait=0.7)}")
    out, err = reverie(tmp_path, "run", "--model", model, SAID).communicate(timeout=LIMIT_S)
    assert "Yes." in out, err
    assert (memory_of(tmp_path) / "feedback_commits.md").exists()
    assert len(cursors(tmp_path)) == 1


WAITING = """
import asyncio, sys
from pathlib import Path
from reverie.cli.event_loop import run_async
from reverie.session import Session

async def main(signals):
    async with await Session.open(cwd=Path.cwd(), model=sys.argv[1], interactive=True) as session:
        signals.cancel = session.cancel
        async for _ in session.send(sys.argv[2]):
            pass
        print("answered", flush=True)
        await asyncio.sleep(60)
    return 0

sys.exit(run_async(main))
"""


def waiting(cwd: Path, model: str) -> subprocess.Popen[str]:
    """A process that has answered, whose extraction is under way, and that waits for its person as a chat does."""
    held = subprocess.Popen([sys.executable, "-c", WAITING, model, SAID], cwd=cwd, stdout=subprocess.PIPE, text=True)
    assert held.stdout is not None and held.stdout.readline().strip() == "answered"
    return held


def test_on_sigterm_a_run_in_flight_is_waited_for(tmp_path: Path) -> None:
    model = script(tmp_path, f"say Yes.\n\n[extraction]\n{writing(tmp_path, wait=1.0)}")
    with waiting(tmp_path, model) as held:
        held.send_signal(signal.SIGTERM)
        assert held.wait(timeout=LIMIT_S) == 143
    assert (memory_of(tmp_path) / "feedback_commits.md").exists()
    assert len(cursors(tmp_path)) == 1


def closing(cwd: Path, model: str) -> subprocess.Popen[str]:
    """A `reverie run` that has answered and waits for its extraction as its last act."""
    held = reverie(cwd, "run", "--model", model, "--json", SAID)
    assert held.stdout is not None
    while '"turn_ended"' not in (line := held.stdout.readline()):
        assert line, held.communicate()
    time.sleep(0.3)
    return held


def test_sigterm_while_it_waits_at_exit_does_not_cut_the_wait_short(tmp_path: Path) -> None:
    model = script(tmp_path, f"say Yes.\n\n[extraction]\n{writing(tmp_path, wait=2)}")
    with closing(tmp_path, model) as held:
        held.send_signal(signal.SIGTERM)
        assert held.wait(timeout=LIMIT_S) == 143
    assert (memory_of(tmp_path) / "feedback_commits.md").exists()
    assert len(cursors(tmp_path)) == 1


@pytest.mark.parametrize(
    "signals", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT), (signal.SIGINT,)]
)
def test_a_second_signal_ends_at_once_and_so_does_an_interrupt(
    tmp_path: Path, signals: tuple[signal.Signals, ...], own_home: Path
) -> None:
    (own_home / ".reverie").mkdir()
    (own_home / ".reverie" / "settings.toml").write_text("[background]\nexit_wait_s = 1000\n")
    model = script(tmp_path, f"say Yes.\n\n[extraction]\n{writing(tmp_path, wait=1_000)}")
    with closing(tmp_path, model) as held:
        for one in signals:
            held.send_signal(one)
            time.sleep(0.3)
        assert held.wait(timeout=LIMIT_S) == (143 if signal.SIGTERM in signals else 130)
    assert not (memory_of(tmp_path) / "feedback_commits.md").exists()
    assert cursors(tmp_path) == [], "what was not looked at is looked at when it is resumed"


def test_after_a_kill_the_next_start_goes_on_from_the_cursor(tmp_path: Path, prefix_watch: Path) -> None:
    slow = f"repeat forever\n  say Yes.\nend\n\n[extraction]\n{writing(tmp_path, wait=20)}"
    with waiting(tmp_path, script(tmp_path, slow)) as held:
        time.sleep(0.3)
        held.kill()
        held.wait(timeout=LIMIT_S)
    assert not (memory_of(tmp_path) / "feedback_commits.md").exists() and cursors(tmp_path) == []
    quick = script(tmp_path, slow.replace("wait 20", "wait 0"))

    async def go_on(session: Session) -> None:
        await turn(session, "thanks")

    in_session(go_on, cwd=tmp_path, model=quick, resume="last", interactive=True)
    assert "imperative" in (memory_of(tmp_path) / "feedback_commits.md").read_text()
    assert len(cursors(tmp_path)) == 1
    from reverie.models.request_log import read_log

    asked = [request.parts for request in read_log(prefix_watch) if request.purpose == "extraction"]
    assert any("The last 4 messages before this one are new" in part for part in asked[-1]), "both turns are new"
