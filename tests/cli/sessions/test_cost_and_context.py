"""`reverie cost` and `reverie context` as people run them: on sessions that are over, live, foreign and damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from reverie.cli.sessions.context import context_text
from reverie.cli.sessions.cost import cost_text
from reverie.session import Session
from reverie.types import Purpose
from tests.cli.conftest import Command
from tests.sessions import in_session, turn
from tests.simulated import ANTHROPIC, files, served

PLAY = 'call Read {"file_path": "f{i}.txt"} x5\n---\nsay Done.\n---\nsay More.\n\n[notes]\nsay Noted.\n'


async def _nothing(_call: object) -> object:
    raise AssertionError("nothing is called")


async def hold(session: Session) -> None:
    await turn(session, "read them")
    await session.fork("Note.", purpose=Purpose.NOTES, permission=_nothing, max_rounds=1)  # type: ignore[arg-type]


@pytest.fixture
def spent(reverie: Command, monkeypatch: pytest.MonkeyPatch) -> float:
    """A session in the command's folder; what it cost by the server's books."""
    files(reverie.work)
    monkeypatch.setenv("REVERIE_HOME", str(reverie.home))
    with served(PLAY, monkeypatch) as server:
        in_session(hold, cwd=reverie.work, model=ANTHROPIC)
    return sum(row.cost for row in server.rows)


def test_cost_in_tokens_and_currency_by_what_caused_it(reverie: Command, spent: float) -> None:
    out = reverie("cost").stdout
    assert [line.split()[0] for line in out.splitlines()[1:4]] == ["main", "notes", "total"]
    assert f"${spent:.4f}" in out and "came from the cache" in out and "No cache breaks." in out
    told = json.loads(reverie("cost", "last", "--json").stdout)
    assert told["total"]["cost_usd"] == pytest.approx(spent, abs=1e-6)
    assert told["parts"].keys() == {"main", "notes"} and told["parts"]["main"]["requests"] == 2
    assert told["hit_rate"]["beside"] > 0.9


@pytest.mark.parametrize("by", ["layer", "day", "session", "model", "project"])
def test_cost_can_be_split_in_every_way(by: str, reverie: Command, spent: float) -> None:
    told = json.loads(reverie("cost", "--today", "--by", by, "--json").stdout)
    assert sum(part["cost_usd"] for part in told["parts"].values()) == pytest.approx(spent, abs=1e-5)
    reverie("cost", "--all", "--by", by)


def test_cost_elsewhere_and_of_nothing(reverie: Command, spent: float, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "Nothing was spent" in reverie("cost", "-C", str(empty)).stdout
    assert "Nothing was spent" in reverie("cost", "-C", str(empty), "--today").stdout
    assert f"${spent:.4f}" in reverie("cost", "-C", str(empty), "--all").stdout
    assert "no session" in reverie("cost", "nope", code=2).stderr
    for name in ("cost", "context"):
        assert "no transcript" in reverie(name, "nope.jsonl", code=2).stderr


def test_a_session_of_another_agent(reverie: Command, tmp_path: Path) -> None:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 9_000, "cache_creation_input_tokens": 0, "output_tokens": 50}
    answer = {"role": "assistant", "id": "m", "model": "claude-opus-4-5-20251101", "content": [], "usage": usage}
    answer["content"] = [{"type": "text", "text": "hi"}]
    asked = {"type": "user", "uuid": "a", "parentUuid": None, "message": {"role": "user", "content": "hello"}}
    said = {"type": "assistant", "uuid": "b", "parentUuid": "a", "message": answer}
    path = tmp_path / "theirs.jsonl"
    path.write_text(json.dumps(asked) + "\n" + json.dumps(said) + "\n{torn")
    assert json.loads(reverie("cost", str(path), "--json").stdout)["total"]["cache_read_tokens"] == 9_000
    told = json.loads(reverie("context", str(path), "--json").stdout)
    assert told["model"] == "claude-opus-4-5-20251101" and told["window"] == 200_000
    held = {source["source"]: source["tokens"] for source in told["sources"]}
    assert held.keys() == {"not_recorded", "user", "assistant"}
    assert held["not_recorded"] > 8_900 and held["user"] + held["assistant"] < 100
    assert "of the other agent (not recorded)" in reverie("context", str(path)).stdout


def test_context_as_a_bar_and_as_json(reverie: Command, spent: float) -> None:
    out = reverie("context").stdout
    assert "claude-sonnet-5-5: " in out and "tool results: Read" in out and "█" in out and "reserve" in out
    assert "kept for 5 min" in out
    told = json.loads(reverie("context", "--json").stdout)
    assert sum(source["tokens"] for source in told["sources"]) == told["used"]
    assert told["used"] + told["free"] + told["buffer"] + told["reserve"] == told["window"]


def test_the_chat_shows_the_same(reverie: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    files(reverie.work)
    monkeypatch.setenv("REVERIE_HOME", str(reverie.home))

    async def work(session: Session) -> tuple[str, str]:
        await hold(session)
        return cost_text(session), context_text(session)

    with served(PLAY, monkeypatch):
        cost, context = in_session(work, cwd=reverie.work, model=ANTHROPIC)
    assert cost == reverie("cost", "last").stdout.rstrip("\n")
    assert context == reverie("context").stdout.rstrip("\n")


LIVE = """
import asyncio, sys
from reverie.session import Session
async def main():
    async with await Session.open(cwd=sys.argv[1], overrides={"window.autocompact_window": 50_000}) as session:
        await session.ask("hello")
        print(session.id, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


def test_a_live_session_is_asked_over_its_socket(reverie: Command) -> None:
    """Only the process itself knows that its window was set to 50,000."""
    command = [sys.executable, "-c", LIVE, str(reverie.work)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=reverie.env, text=True) as process:
        try:
            assert process.stdout is not None
            session = process.stdout.readline().strip()
            live = json.loads(reverie("context", session, "--json").stdout)
        finally:
            process.kill()
    after = json.loads(reverie("context", session, "--json").stdout)
    assert (live["session"], live["used"]) == (session, after["used"])
    assert live["window"] == 50_000 < after["window"]


def test_looking_loads_no_sdk_no_flags_and_no_event_loop(reverie: Command, spent: float) -> None:
    for name in ("cost", "context"):
        code = (
            "import sys\nfrom reverie.cli.app import commands\n"
            f"commands.main(['{name}'], standalone_mode=False)\n"
            "heavy = {'asyncio', 'openfeature', 'anthropic', 'openai', 'numpy'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
        )
        done = subprocess.run([sys.executable, "-c", code], cwd=reverie.work, env=reverie.env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
