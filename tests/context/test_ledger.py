"""The ledger: every token of a transcript, once, on what caused it, at the catalogue's prices."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.context.ledger import Ledger, RunningLedger, make_entry
from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost
from reverie.session import Session
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import CacheBreak, ForkUsage
from reverie.storage.transcript.session_log import SessionLog
from reverie.types import Message, Purpose, TextBlock, Usage
from tests.sessions import in_session, turn
from tests.shared_data import sources
from tests.simulated import ANTHROPIC, OPENAI, files, served

CATALOGUE = Catalogue.load()
SONNET = "claude-sonnet-5-5"
usages = st.builds(
    Usage,
    st.integers(0, 10_000),
    st.integers(1, 10_000),
    st.integers(0, 100_000),
    st.just(0),
)


def answer(log: SessionLog, usage: Usage, name: str, **more: Any) -> None:
    fields = {"id": name, "model": SONNET, "usage": usage.wire()}
    log.append_message(Message("assistant", (TextBlock("x"),), fields=fields), **more)


def log_at(path: Path | None, moment: datetime | None = None, session: str = "s1") -> SessionLog:
    now = moment or datetime(2026, 5, 1, 12, tzinfo=UTC)
    return SessionLog(path, session, cwd=Path("/work"), version="1", clock=lambda: now)


@given(st.lists(st.tuples(st.sampled_from([p.value for p in Purpose]), usages), max_size=12))
def test_every_token_is_booked_once_and_the_parts_add_up(spent: list[tuple[str, Usage]]) -> None:
    log = log_at(None)
    for i, (purpose, usage) in enumerate(spent):
        if purpose == "main":
            answer(log, usage, f"msg_{i}")
        else:
            log.append(ForkUsage(purpose, f"anthropic:{SONNET}", usage.wire()))
    ledger = Ledger.of_session(log.records, CATALOGUE)
    facts = CATALOGUE.facts(SONNET)
    assert ledger.total.usage == sum((usage for _, usage in spent), Usage())
    assert ledger.total.cost == pytest.approx(sum(cost(usage, facts) for _, usage in spent))
    assert ledger.main.requests + ledger.beside.requests == ledger.total.requests == len(spent)
    for by in ("layer", "day", "session", "model", "project"):
        parts = ledger.by(by)  # type: ignore[arg-type]
        assert sum(part.usage.total for part in parts.values()) == ledger.total.usage.total
    assert {purpose for purpose, _ in spent} == set(ledger.by("layer"))


def test_a_response_split_over_records_or_copied_to_another_session_counts_once(tmp_path: Path) -> None:
    first, second = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for path in (first, second):
        log = log_at(path, session=path.stem)
        answer(log, Usage(10, 3), "msg_1", requestId="req_1")
        answer(log, Usage(10, 8), "msg_1", requestId="req_1")
        log.close()
    log = log_at(second, session="two")
    answer(log, Usage(20, 5), "msg_2", requestId="req_2")
    log.close()
    ledger = Ledger.of_transcripts([first, second], CATALOGUE)
    assert [(one.session, one.usage.output_tokens) for one in ledger.entries] == [("one", 8), ("two", 5)]


def test_what_the_cache_saved_is_the_price_without_it() -> None:
    usage = Usage(1_000, 100, 50_000, 2_000, 2_000)
    one = make_entry(usage, SONNET, CATALOGUE)
    facts = CATALOGUE.facts(SONNET)
    assert one.uncached == pytest.approx((53_000 * facts.input_price + 100 * facts.output_price) / 1e6)
    assert one.cost == pytest.approx(cost(usage, facts)) and one.cost < one.uncached
    assert not make_entry(usage, "llama-of-my-own", CATALOGUE).priced


def test_days_are_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        log = log_at(None, datetime(2026, 5, 1, 20, tzinfo=UTC))
        answer(log, Usage(10, 1), "msg_1")
        ledger = Ledger.of_session(log.records, CATALOGUE)
        assert list(ledger.by("day")) == ["2026-05-02"]
        assert ledger.only(day=date(2026, 5, 2)).total.requests == 1
        assert ledger.only(day=date(2026, 5, 1)).total.requests == 0
    finally:
        monkeypatch.undo()
        time.tzset()


def test_breaks_are_counted_apart_by_whether_they_were_announced() -> None:
    log = log_at(None)
    log.append(CacheBreak("tools", "a tool changed", 5_000, cost=0.01))
    log.append(CacheBreak("expired", "an hour passed", 9_000, cost=0.02))
    log.append(CacheBreak("messages", "x", 4_000, cost=0.005, announcement="results were cleared"))
    told = Ledger.of_session(log.records, CATALOGUE).to_json()["breaks"]
    assert told["unannounced"] == {
        "count": 2,
        "lost_tokens": 14_000,
        "cost_usd": 0.03,
        "causes": {"tools": 1, "expired": 1},
    }
    assert told["announced"]["count"] == 1


def test_damaged_transcripts_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    log = log_at(path)
    answer(log, Usage(10, 1), "msg_1")
    log.close()
    path.write_bytes(path.read_bytes() + b'{"usage": \n{"type":"assistant","message":{"usage":7}}\n{"usage"')
    assert Ledger.of_transcripts([path, tmp_path / "gone.jsonl"], CATALOGUE).total.requests == 1


def test_a_running_total_follows_the_session() -> None:
    log = log_at(None)
    running = RunningLedger(log.records, CATALOGUE)
    assert running.now().total.requests == 0
    answer(log, Usage(10, 1), "msg_1")
    assert running.now().total.usage.input_tokens == 10
    log.append(ForkUsage("notes", SONNET, Usage(5, 1).wire()))
    assert running.now().beside.usage.input_tokens == 5
    assert running.now().total.requests == 2


@pytest.mark.parametrize("model", [ANTHROPIC, OPENAI])
def test_a_session_is_booked_as_the_server_billed_it(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path)
    script = 'call Read {"file_path": "f{i}.txt"} x20\n---\nsay Done.\n\n[extraction]\nsay Nothing new.\n'

    async def work(session: Session) -> Ledger:
        await turn(session, "go")
        await session.fork("Learn.", purpose=Purpose.EXTRACTION, permission=_never, max_rounds=1)
        return session.accounts.ledger.now()

    async def _never(_call: object) -> Any:
        raise AssertionError("nothing is called")

    with served(script, monkeypatch) as server:
        ledger = in_session(work, cwd=tmp_path, model=model)
    assert ledger.total.cost == pytest.approx(sum(row.cost for row in server.rows)) and ledger.total.cost > 0
    assert [one.usage for one in ledger.entries] == [row.usage for row in server.rows]
    assert ledger.by("layer").keys() == {"main", "extraction"}


@pytest.mark.parametrize(("folder", "least"), sources("transcripts", own=100, shared=1_000, long=True))
def test_recorded_sessions_of_another_agent_add_up(folder: Path, least: int) -> None:
    files = sorted(folder.glob("*.jsonl"))
    files = files if least == 1_000 else files[:9]  # ours record what a compaction cost as well
    ledger = Ledger.of_transcripts(files, CATALOGUE)
    assert ledger.total.requests > least
    seen = dict[str, Any]()
    for path in files:
        for record in read_records(path).records:
            message = record.message
            if message is None or message.role != "assistant" or not message.usage or not message.usage.total:
                continue
            name = f"{message.id} {record.data.get('requestId') or path.stem}"
            if name not in seen or (
                seen[name][0] == path and message.usage.output_tokens >= seen[name][1].output_tokens
            ):
                seen[name] = (path, message.usage)
    assert ledger.total.usage == sum((usage for _, usage in seen.values()), Usage())
    assert json.loads(json.dumps(ledger.to_json("model")))["total"]["requests"] == len(seen)
