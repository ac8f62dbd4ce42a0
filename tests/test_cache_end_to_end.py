"""The prompt cache, seen from the bill: whole sessions through the vendors' SDKs against the simulated API."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reverie.events import Event, Notice
from reverie.permissions.rules import Allow, Decision, ToolCall
from reverie.session import Session
from reverie.simulator.ledger import Billing
from reverie.storage.transcript.records import ForkUsage
from reverie.types import Purpose
from tests import warm
from tests.sessions import ended, in_session, of_kind, turn
from tests.simulated import ANTHROPIC, MINIMUM, OPENAI, OTHER_LAYERS, files, served

TURNS = 6
WORK = """
repeat 6
  say Looking at it.
  call Read {"file_path": "f{loop}.txt"}
  ---
  call Grep {"pattern": "file", "output_mode": "content"}
  ---
  call Read {"file_path": "f{i}.txt"} x30
  ---
  think Both again, to be sure.
  call Read {"file_path": "f{i}.txt", "limit": 1} x30
  ---
  call Glob {"pattern": "f*.txt"}
  ---
  say Turn {loop} is done.
end
"""


async def anything(_call: ToolCall) -> Decision:
    return Allow()


async def hold(session: Session) -> list[Event]:
    """A conversation of six turns with tools; two rounds of each make thirty calls at once."""
    events = list[Event]()
    for i in range(TURNS):
        events += await turn(session, f"question {i}")
        assert ended(events).reason == "answered"
    return events


def unread(rows: list[Billing], step: int = 1) -> Iterator[str]:
    """Requests that did not read their whole predecessor from the cache, to the last `step` tokens."""
    for before, after in itertools.pairwise(rows):
        wanted = before.usage.prompt // step * step
        if before.usage.prompt >= MINIMUM and after.usage.cache_read_input_tokens != wanted:
            yield f"request {after.number} read {after.usage.cache_read_input_tokens} of {wanted}"


def cache_notices(events: list[Event]) -> list[str]:
    return [notice.text for notice in of_kind(events, Notice) if notice.source == "cache"]


def test_every_request_reads_its_whole_predecessor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path)
    with served(WORK, monkeypatch) as server:
        events = in_session(hold, cwd=tmp_path, model=ANTHROPIC)
    rows = server.rows
    assert len(rows) == 36 and not any(row.error for row in rows)
    assert list(unread(rows)) == []
    assert all(row.miss is None for row in rows)
    assert all(row.usage.input_tokens == 0 for row in rows), "everything is written, nothing paid twice"
    assert cache_notices(events) == []
    assert server.simulator.ledger.totals()["hit_rate"] > 0.9


def test_every_request_reads_its_whole_predecessor_by_the_other_vendors_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path)
    with served(WORK, monkeypatch) as server:
        events = in_session(hold, cwd=tmp_path, model=OPENAI)
    rows = server.rows
    assert len(rows) == 36 and {row.endpoint for row in rows} == {"/v1/chat/completions"}
    assert list(unread(rows, step=128)) == []
    assert cache_notices(events) == []


def test_a_resumed_session_reads_what_the_first_process_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path)
    with served(WORK, monkeypatch) as server:
        in_session(lambda s: turn(s, "question 0"), cwd=tmp_path, model=ANTHROPIC)
        events = in_session(lambda s: turn(s, "question 1"), cwd=tmp_path, model=ANTHROPIC, resume="last")
    assert list(unread(server.rows)) == [] and len(server.rows) == 12
    assert cache_notices(events) == []


FORKS = (
    WORK
    + """
[notes]
call Read {"file_path": "f1.txt"}
---
say Noted.

[side_question]
say It is fine.
"""
)


def test_a_fork_reads_its_parents_cache_and_writes_none_that_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path)

    async def work(session: Session) -> list[ForkUsage]:
        await hold(session)
        await session.fork("Write notes.", purpose=Purpose.NOTES, permission=anything, max_rounds=3)
        await session.fork("Is it fine?", purpose=Purpose.SIDE_QUESTION, permission=anything, max_rounds=1)
        await turn(session, "one more")
        return session.view.fork_usage

    with served(FORKS, monkeypatch) as server:
        booked = in_session(work, cwd=tmp_path, model=ANTHROPIC)
    rows = {purpose: [row for row in server.rows if row.purpose == purpose] for purpose in ("notes", "side_question")}
    main = [row for row in server.rows if row.purpose == "main"]
    for row in (rows["notes"][0], *rows["side_question"]):
        share = row.usage.cache_read_input_tokens / row.usage.prompt
        assert share >= 0.98, f"{row.purpose} read {share:.2%}"
        assert row.usage.cache_read_input_tokens == main[-2].usage.prompt
    assert rows["notes"][1].usage.cache_read_input_tokens == rows["notes"][0].usage.prompt
    assert rows["side_question"][0].usage.cache_creation_input_tokens == 0
    assert list(unread(main)) == []
    assert [(one.purpose, one.tokens()) for one in booked] == [
        (row.purpose, row.usage) for row in (*rows["notes"], *rows["side_question"])
    ]


def test_failed_and_cut_requests_leave_the_cache_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path)
    script = """
call Read {"file_path": "f{i}.txt"} x30
---
fail overloaded 2x
fail cut 30
say This is the answer that was cut once.
---
call Read {"file_path": "f{i}.txt"} x25
---
say Done.
"""

    async def work(session: Session) -> None:
        await turn(session, "one")
        await turn(session, "two")

    quick = {"model.retry_first_wait_s": 0.01, "model.retry_longest_wait_s": 0.01}
    with served(script, monkeypatch) as server:
        in_session(work, cwd=tmp_path, model=ANTHROPIC, overrides=quick)
    billed = [row for row in server.rows if row.error is None]
    assert len(server.rows) - len(billed) == 2
    first, cut, again, *rest = billed
    assert cut.usage.cache_read_input_tokens == first.usage.prompt
    assert again.usage.cache_read_input_tokens == again.usage.prompt == cut.usage.prompt
    assert list(unread([again, *rest])) == []


def test_a_cancelled_answer_was_paid_for_and_its_prompt_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path)
    script = 'call Read {"file_path": "f{i}.txt"} x30\n---\nslow 0.02\nfill 4000\n---\nsay Fine.\n'

    async def work(session: Session) -> None:
        async for event in session.send("go"):
            if event.kind == "text":
                session.cancel()
        await turn(session, "again")

    with served(script, monkeypatch) as server:
        in_session(work, cwd=tmp_path, model=ANTHROPIC)
    assert len(server.rows) == 3 and list(unread(server.rows)) == []


@pytest.mark.parametrize("model", [ANTHROPIC, OPENAI])
def test_the_command_line_against_the_simulate_command(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`reverie simulate` in one process, `reverie run` in others: two runs of one session, 38 requests."""
    files(tmp_path)
    script, ledger = tmp_path / "work.script", tmp_path / "bill.jsonl"
    rounds = (
        'repeat 16\n  call Read {"file_path": "f{loop}.txt"}\n  ---\n'
        '  call Read {"file_path": "f{i}.txt", "limit": {loop}} x30\nend\n'
    )
    script.write_text(f"{rounds}---\nsay First.\n---\n" + 'call Glob {"pattern": "*"}\n---\n' * 4 + "say Second.\n")
    command = [sys.executable, "-m", "reverie"]
    serving = [*command, "simulate", "--script", str(script), "--ledger", str(ledger)]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as simulator:
        try:
            assert simulator.stdout is not None
            url = simulator.stdout.readline().split(" at ")[1].split()[0]
            env = {**os.environ, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "x"}
            env |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "x"}
            env |= {f"REVERIE_FLAG_{layer}": "0" for layer in OTHER_LAYERS}
            answers = list[str]()
            for more in ([], ["--continue"]):
                asked = ("run", "--model", model, *more, "go on", "--quiet")
                done = warm.run_text(*asked, cwd=tmp_path, env=env, timeout=120)
                assert done.returncode == 0, done.stderr
                answers.append(done.stdout.strip())
        finally:
            simulator.terminate()
    assert answers == ["First.", "Second."]
    rows = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert len(rows) == 38 and not any(row["error"] for row in rows)
    step = 1 if model == ANTHROPIC else 128
    for before, after in itertools.pairwise(rows):
        wanted = before["prompt_tokens"] // step * step
        assert wanted < MINIMUM or after["usage"]["cache_read_input_tokens"] == wanted, after["number"]
