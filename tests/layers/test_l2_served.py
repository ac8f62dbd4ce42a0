"""Layer 2 over real HTTP with the vendor's SDK: what the ledger shows was cleared, and what was read of the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.events import Notice
from reverie.session import Session
from reverie.storage.transcript.records import AppliedEdits, CacheEdits, ServerEdits
from tests.sessions import in_session, of_kind, turn
from tests.simulated import ANTHROPIC, files, served

READS = 22
SCRIPT = "\n---\n".join([*(f'call Read {{"file_path": "f{i}.txt"}}' for i in range(1, READS + 1)), "say All read."])


def test_cache_edits_delete_inside_the_cache_and_the_prefix_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files(tmp_path, size=4_000)
    with served(SCRIPT, monkeypatch) as server:
        monkeypatch.setenv("REVERIE_FLAG_MICROCOMPACT_CACHE_EDITS", "1")

        async def work(session: Session) -> None:
            events = await turn(session, "Read everything.")
            assert any("deleted from the server's cache" in notice.text for notice in of_kind(events, Notice))
            made = [r for r in session.log.records if r.subtype == CacheEdits.subtype]
            assert len(made) == 2, "at 13 results, and again when 8 more had come"

        in_session(
            work, cwd=tmp_path, model=ANTHROPIC, clock=server.now, overrides={"model.anthropic_cache_edits": True}
        )
        rows = server.rows
        prompts = [row.usage.prompt for row in rows]
        first = next(i for i in range(1, len(rows)) if prompts[i] < prompts[i - 1])
        assert first == 13 and prompts[12] - prompts[13] > 6_000, "eight results left the prompt"
        assert all(row.miss is None for row in rows), "nothing that was cached had to be written again"
        for row in rows[first:]:
            fresh = row.usage.prompt - row.usage.cache_read_input_tokens
            assert fresh < 3_000, "everything before what is new is read"


def test_the_server_clears_by_itself_and_says_what(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, size=4_000)
    with served(SCRIPT, monkeypatch) as server:
        monkeypatch.setenv("REVERIE_FLAG_MICROCOMPACT_SERVER", "1")
        monkeypatch.setenv("REVERIE_AUTOCOMPACT_WINDOW", "20000")
        monkeypatch.setenv("REVERIE_DISABLE_COMPACT", "1")
        monkeypatch.setenv("REVERIE_BLOCKING_LIMIT", "60000")

        async def work(session: Session) -> None:
            events = await turn(session, "Read everything.")
            asked = [r.data["reverie"]["management"] for r in session.log.records if r.subtype == ServerEdits.subtype]
            assert len(asked) == 1, "asked once, sent with every request"
            applied = [r.data["reverie"]["edits"] for r in session.log.records if r.subtype == AppliedEdits.subtype]
            assert applied and applied[-1][0]["cleared_tool_uses"] > 5
            assert any("The server left out" in notice.text for notice in of_kind(events, Notice))
            shown = [b for m in session.view.messages() for b in m.tool_results]
            assert all("This is file" in block.text for block in shown), "local messages do not change"

        in_session(work, cwd=tmp_path, model=ANTHROPIC, clock=server.now)
        rows = server.rows
        cleared = [row for row in rows if row.applied_edits]
        assert cleared and all(row.applied_edits[0]["type"] == "clear_tool_uses_20250919" for row in cleared)
        assert {row.miss.cause for row in rows if row.miss is not None} == {"context_management"}
        assert len(cleared) > 1
        for row in cleared[1:]:  # each answer moves one more result out of what is kept; what stands before it is read
            assert row.usage.cache_read_input_tokens > row.usage.prompt / 3
