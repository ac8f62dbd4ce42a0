"""A long run with injected failures: `reverie health` shows each of them, and our ledger is the server's."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from reverie.context.ledger import Ledger
from reverie.context.recall_use import RecallUse
from reverie.models.catalogue import Catalogue
from reverie.session import Session
from reverie.storage.transcript.file import read_records
from reverie.types import Message, Origin, Purpose, TextBlock
from tests.cli.conftest import Command
from tests.counts import count
from tests.layers.talks import SESSION, notes_script
from tests.sessions import ended, in_session, script, turn
from tests.simulated import ANTHROPIC, OTHER_LAYERS, Served, served
from tests.waiting import LIMIT_S

TURNS = count(5, 10)
WORK = """
when /one more look/
  call Read {"file_path": "f1.txt"}
  ---
  say Read again.
end
when /a large one/
  call Bash {"command": "seq 1 20000"}
  ---
  say Counted.
end
when /a busy server/
  fail overloaded 2x
  say It answered at last.
end
repeat forever
  repeat ROUNDS
    call Read {"file_path": "f{loop}.txt"}
  end
end

[compaction]
fail bad-request the summary is refused
say Never.

[extraction]
fail bad-request nothing is learnt today
say Never.
"""
OVERRIDES = {
    "permissions.mode": "accept_all",
    "window.autocompact_window": 40_000,
    "model.retry_first_wait_s": 0.001,
    "compaction.refill_turns": 1,
    "microcompact.keep_rounds": 1,
}


def long_run(folder: Path, rounds: int, monkeypatch: pytest.MonkeyPatch) -> Served:
    """Turns of equal length with one of each failure between them; then summaries fail until the breaker opens."""
    per_turn = rounds // TURNS
    for number in range(1, per_turn + 1):
        (folder / f"f{number}.txt").write_text(f"file {number}: the lamp burns\n" * (4_000 // per_turn))
    with served(WORK.replace("ROUNDS", str(per_turn)) + notes_script(folder), monkeypatch) as server:
        for layer in OTHER_LAYERS:
            if layer != "DREAM":
                monkeypatch.delenv(f"REVERIE_FLAG_{layer}")

        async def work(session: Session) -> None:
            for number in range(TURNS):
                if number == 2:
                    server.advance(4_000)
                assert ended(await turn(session, f"question {number}")).reason == "max_rounds"
                await session.tasks.settle(Purpose.NOTES, LIMIT_S)
            await turn(session, "one more look")
            await turn(session, "a busy server")
            in_the_way(session.places.tool_results(session.id))
            await turn(session, "a large one")
            for purpose in (Purpose.EXTRACTION, Purpose.NOTES):
                await session.tasks.settle(purpose, LIMIT_S)
            server.simulator.fail_next(401)
            assert ended(await turn(session, "without a key")).reason == "failed"

        async def more(session: Session) -> str | None:
            for number in range(8):
                if ended(await turn(session, f"question {number}")).reason == "blocked":
                    break
            return session.engine.compaction.breakers.open_reason

        async def nothing(session: Session) -> str | None:
            return session.engine.compaction.breakers.open_reason

        options = {
            "cwd": folder,
            "model": ANTHROPIC,
            "overrides": {**OVERRIDES, "tools.max_rounds": per_turn},
            "interactive": True,
            "clock": server.now,
        }
        in_session(work, session_id=SESSION, **options)
        for layer in ("COMPACTION_NOTES", "MICROCOMPACT_ECONOMIC", "SESSION_NOTES"):
            monkeypatch.setenv(f"REVERIE_FLAG_{layer}", "0")
        opened = in_session(more, resume=SESSION, **options)
        assert opened is not None and "3 times in a row" in opened
        assert in_session(nothing, resume=SESSION, **options) == opened, "a resume does not close it"
    return server


def in_the_way(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")


def reasons(told: Any, layer: str, outcome: str) -> str:
    return " | ".join(told["layers"].get(layer, {}).get(outcome, {}).get("why", {}))


@pytest.mark.soak
def test_every_injected_failure_is_shown_and_the_ledger_is_the_servers(
    reverie: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = count(30, 340)
    monkeypatch.setenv("REVERIE_HOME", str(reverie.home))
    server = long_run(reverie.work, rounds, monkeypatch)
    told = json.loads(reverie("health", SESSION, "--json").stdout)
    print(reverie("health", SESSION).stdout)
    assert told["cache"]["parts"]["main"]["requests"] >= rounds

    # each failure, with its reason
    assert "could not be put on disk" in reasons(told, "tool_results", "failed")
    assert "the summary is refused" in reasons(told, "compaction", "failed")
    assert "nothing is learnt today" in reasons(told, "extraction", "failed")
    assert told["layers"]["request"]["retried"]["count"] == 2 and "verloaded" in reasons(told, "request", "retried")
    assert "ANTHROPIC_API_KEY" in reasons(told, "request", "failed") or "401" in reasons(told, "request", "failed")
    (breaker,) = told["breakers"].values()
    assert breaker["failures"] >= 3 and "3 times in a row" in breaker["open"]
    assert "auto-compaction has stopped" in reasons(told, "compaction", "declined")
    assert "below the threshold" in reasons(told, "compaction", "declined")

    # what worked
    assert "economic" in reasons(told, "clearing", "fired")
    assert told["clearing"]["cleared"] > 0 and told["clearing"]["requested_again"] >= 1
    kinds = {one["kind"] for one in told["compactions"]}
    assert any(kind.startswith("auto by ") for kind in kinds)
    assert all(one["kept"] <= one["of"] and one["tokens_after"] < one["tokens_before"] for one in told["compactions"])
    assert told["budget"]["left_tokens"] > 0

    # the same requests as on the server, one by one
    ours = Ledger.of_session(
        read_records(next(reverie.home.glob(f"projects/*/{SESSION}.jsonl"))).records, Catalogue.load()
    )
    paid = [row for row in server.rows if row.error is None]
    booked = sorted((one.purpose, *vars_of(one.usage), round(one.cost, 9)) for one in ours.entries)
    assert booked == sorted((row.purpose, *vars_of(row.usage), round(row.cost, 9)) for row in paid)

    # and nobody says that all is well
    checks = {check["name"]: check for check in json.loads(reverie("doctor", "--json").stdout)["checks"]}
    assert checks["background"]["state"] == "warning" and "failures in 7 days" in checks["background"]["found"]


def vars_of(usage: Any) -> tuple[int, ...]:
    return (
        usage.input_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
        usage.output_tokens,
    )


def test_per_session_day_and_project(reverie: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_HOME", str(reverie.home))
    assert "Nothing happened here yet" in reverie("health").stdout
    for name in ("one", "two"):
        in_session(
            lambda session: turn(session, "hello"),
            cwd=reverie.work,
            model=script(reverie.work, "say Hello."),
            session_id=name,
        )
    told = json.loads(reverie("health", "--by", "session", "--json").stdout)
    assert set(told["parts"]) == {"one", "two"} and told["sessions"] == 2
    assert all(part["layers"]["compaction"]["declined"]["count"] == 1 for part in told["parts"].values())
    assert told["layers"]["compaction"]["declined"]["count"] == 2
    (project,) = json.loads(reverie("health", "--all", "--by", "project", "--json").stdout)["parts"]
    assert project == str(reverie.work.resolve())
    (day,) = json.loads(reverie("health", "--today", "--by", "day", "--json").stdout)["parts"].values()
    assert day["sessions"] == 2
    assert reverie("health", "--by", "day").stdout.splitlines()[0].split()[-1] == "failed"


def said(role: str, text: str, origin: Origin) -> Message:
    return Message("user" if role == "user" else "assistant", (TextBlock(text, origin),))


def test_a_recalled_memory_is_used_if_the_answer_knows_something_only_from_it() -> None:
    use = RecallUse()
    reminder = (
        "<system-reminder>\nMemories.\n\n## /home/me/staging.md (saved today)\n> The staging port is 8443.\n\n"
        "## /home/me/editor.md (saved today)\n> Uses tab_width 3.\n</system-reminder>"
    )
    use.said(said("user", "Which port does staging use?", Origin.TYPED))
    use.recalled(2)
    use.said(said("user", reminder, Origin.RECALLED))
    use.said(said("assistant", "Let me look.", Origin.MODEL))
    assert (use.shown, use.used) == (2, 0)
    use.said(said("assistant", "Staging listens on 8443.", Origin.MODEL))
    assert (use.shown, use.used) == (2, 1)
    use.said(said("user", "And tab_width?", Origin.TYPED))
    use.said(said("assistant", "tab_width is 3.", Origin.MODEL))
    assert (use.shown, use.used) == (2, 1), "the next message ends it"
