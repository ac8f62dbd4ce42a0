"""What layers 1 and 2 keep out of the prompts is counted, shown in the window and in the cost."""

from __future__ import annotations

from pathlib import Path

from reverie.cli.sessions.context import context_text
from reverie.cli.sessions.cost import cost_text
from reverie.context.ledger import Ledger
from reverie.context.window_fill import WindowFill, fill
from reverie.layers.base import BreakCause
from reverie.models.catalogue import Catalogue
from reverie.session import Session
from reverie.storage.transcript.records import Clears
from tests.sessions import in_session, script, turn


def test_results_on_disk_and_cleared_ones_are_shown(tmp_path: Path) -> None:
    (tmp_path / "long.sh").write_text("for i in $(seq 1 9000); do echo line number $i; done\n")
    model = script(tmp_path, 'call Bash {"command": "bash long.sh"}\n---\nsay One.\n---\nsay Two.\n---\nsay Three.\n')

    async def work(session: Session) -> None:
        await turn(session, "go")
        await turn(session, "again")
        view = session.view
        (call,) = [block.tool_use_id for message in view.messages() for block in message.tool_results]
        session.log.append(Clears("time", {call: "[cleared]"}, tokens=1_000))
        session.conversation.announce(BreakCause.COMPACTED, "a test cleared it")
        await turn(session, "and again")
        found = fill(view, session.conversation.thresholds)
        assert (found.on_disk, found.cleared, found.cleared_tokens) == (1, 1, 1_000)
        assert found.on_disk_bytes > 100_000
        assert WindowFill.from_json(found.to_json()) == found
        shown = context_text(session)
        assert "1 result on disk" in shown and "1 result cleared, about 1k tokens" in shown
        ledger = Ledger.of_session(session.log.records, Catalogue.load())
        spared = ledger.spared_by()
        assert spared["cleared"] == 1_000, "one request came after it"
        assert spared["on disk"] == 3 * (found.on_disk_bytes // 4), "three requests came after it"
        assert "results on disk (layer 1)" in cost_text(session)

    in_session(work, cwd=tmp_path, model=model, overrides={"permissions.mode": "accept_all"})
