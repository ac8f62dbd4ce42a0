"""A session of our own with forks and sub-agents: the simulator bills no miss until the cache expires."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.session import Session
from tests.sessions import in_session, turn
from tests.simulated import ANTHROPIC, files, served

SCRIPT = """
when /again/
  call Read {"file_path": "f2.txt"}
  ---
  say Read again.
end
call Read {"file_path": "f1.txt"}
---
say I split the work.
call Agent {"description": "fork one", "prompt": "Take the first part."}
call Agent {"description": "fork two", "prompt": "Take the second part."}
call Agent {"description": "scout", "prompt": "Look at the third file.", "subagent_type": "general"}
---
repeat forever
  say I wait.
end

[agent]
call Read {"file_path": "f3.txt"}
---
say Nothing special.
"""


def test_forks_and_sub_agents_miss_nothing_and_a_pause_is_told_as_expired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, 4, 8_000)

    async def work(session: Session) -> None:
        await turn(session, "Read, then split the work.")
        await turn(session, "Read again.")
        assert len({row.usage.prompt for row in server.rows if row.purpose == "agent"}) >= 3
        assert server.simulator.ledger.totals()["misses"] == 0
        server.advance(301)
        await turn(session, "And again.")

    with served(SCRIPT, monkeypatch) as server:
        in_session(work, cwd=tmp_path, model=ANTHROPIC, clock=server.now)
    assert len([row for row in server.rows if row.purpose == "agent"]) >= 5
    assert [row.miss.cause for row in server.rows if row.miss is not None] == ["expired"]
