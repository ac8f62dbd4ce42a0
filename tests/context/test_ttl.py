"""How long a session keeps its cache: what the sessions before it would have paid decides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.context.ttl import SESSION_BYTES, SESSIONS, Step, choose_ttl, decide, expected_cost, newest, steps
from reverie.models.catalogue import Catalogue
from reverie.session import Session
from reverie.simulator import Meter
from tests.sessions import in_session, turn
from tests.simulated import ANTHROPIC, OPENAI, past_session, served
from tests.simulator.bodies import body, marked, text

FACTS = Catalogue.load().facts("claude-sonnet-5-5")


@pytest.mark.parametrize(("gap_s", "ttl"), [(20, "5m"), (299, "5m"), (1_200, "1h"), (3_500, "1h"), (8_000, "5m")])
def test_pauses_between_five_minutes_and_an_hour_are_worth_an_hour(gap_s: float, ttl: str, tmp_path: Path) -> None:
    project = past_session(tmp_path, gap_s=gap_s).parent
    choice = choose_ttl(project, FACTS, ("5m", "1h"))
    assert choice.ttl == ttl and "29 requests in 1 earlier session" in choice.reason


def test_without_evidence_or_choice_it_is_five_minutes(tmp_path: Path) -> None:
    assert choose_ttl(tmp_path, FACTS, ("5m", "1h")).ttl == "5m"
    assert "no earlier requests" in choose_ttl(tmp_path / "none", FACTS, ("5m", "1h")).reason
    project = past_session(tmp_path, gap_s=1_200, requests=10).parent
    assert "only 9" in choose_ttl(project, FACTS, ("5m", "1h")).reason
    past_session(tmp_path, gap_s=1_200)
    assert choose_ttl(project, FACTS, ("5m", "1h")).ttl == "1h"
    assert choose_ttl(project, FACTS, ("5m",)).ttl == "5m"
    assert choose_ttl(project, FACTS, (), skip="past").ttl == "5m"


@given(st.lists(st.tuples(st.integers(0, 8_000), st.integers(0, 900)), min_size=20, max_size=40))
def test_the_cheaper_one_is_chosen_by_what_a_server_would_bill(taken: list[tuple[int, int]]) -> None:
    """The replay in `ttl.py` against the simulator's own bill for the same pauses and prompts."""
    blocks = [text(1_100, "start")]
    cost = {"5m": 0.0, "1h": 0.0}
    meters = {"5m": Meter(), "1h": Meter()}
    now, made, before = 0.0, list[Step](), 1_100
    for ttl, meter in meters.items():
        meter.bill(body(marked(blocks[0], ttl), model="claude-sonnet-5-5"), now)
    for number, (gap, grown) in enumerate(taken):
        now += gap
        blocks = [*blocks, text(grown + 1, f"step {number}")]
        after = before + grown + 1
        made.append(Step(gap, before, after))
        before = after
        for ttl, meter in meters.items():
            ask = body(*blocks[:-2], marked(blocks[-2], ttl), marked(blocks[-1], ttl), model="claude-sonnet-5-5")
            cost[ttl] += meter.bill(ask, now).input_equivalents
    for ttl in ("5m", "1h"):
        assert expected_cost(made, FACTS, ttl) == pytest.approx(cost[ttl])  # type: ignore[arg-type]
    choice = decide(made, FACTS)
    assert cost[choice.ttl] <= min(cost.values()) / 0.98 + 1e-6


def test_only_the_ends_of_the_newest_sessions_are_read(tmp_path: Path) -> None:
    for i in range(SESSIONS + 3):
        path = past_session(tmp_path, gap_s=10, requests=3, name=f"s{i:02}")
        os.utime(path, (1_000 + i, 1_000 + i))
    (path.parent / "agent-1.jsonl").write_text("{}")
    assert [p.stem for p in newest(path.parent, skip="s10")] == [f"s{i:02}" for i in range(9, 1, -1)]
    big = past_session(tmp_path, gap_s=10, requests=3, name="big")
    filler = b'{"type":"user","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"%s"}}\n'
    big.write_bytes(big.read_bytes() + filler % (b"x" * SESSION_BYTES) + big.read_bytes())
    assert len(list(steps(big))) == 2


def test_damaged_files_are_no_evidence(tmp_path: Path) -> None:
    path = past_session(tmp_path, gap_s=10, requests=3)
    path.write_bytes(
        path.read_bytes() + b'{"type":"assistant", broken\n\xff\xfe\n{"type":"assistant","message":3}\n[1]\n'
    )
    assert len(list(steps(path))) == 2
    assert list(steps(tmp_path / "nothing")) == []


def test_the_choice_is_latched_in_the_header_and_survives_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = past_session(tmp_path, gap_s=1_200)

    async def work(session: Session) -> tuple[str, str]:
        await turn(session, "go")
        header = session.view.header
        assert header is not None
        return header.ttl, header.ttl_reason

    with served("say One.\n---\nsay Two.\n---\nsay Three.\n", monkeypatch) as server:
        ttl, reason = in_session(work, cwd=tmp_path, model=ANTHROPIC)
        past.unlink()
        assert in_session(work, cwd=tmp_path, resume="last") == (ttl, reason)
        assert in_session(work, cwd=tmp_path, model=OPENAI)[0] == "5m"
    assert ttl == "1h" and "less" in reason
    first, second, _ = server.rows
    assert first.usage.cache_creation_1h == first.usage.prompt
    assert second.usage.cache_read_input_tokens == first.usage.prompt
