"""The embedded model stands in for background work: where the model is down, its budget spent, or it is not wanted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie.events import Event, Notice
from reverie.layers.l6_dreaming.reporter import DreamOutcome
from reverie.paths import Places
from reverie.session import Session
from reverie.settings import load_settings
from reverie.types import JsonObject, Purpose
from tests.layers.dreams import BAKERY, house
from tests.sessions import ended, in_session, script, turn
from tests.simulated import ANTHROPIC, served
from tests.waiting import LIMIT_S

RULE = "Please write commit messages in the imperative from now on, because the release notes are made of them."
DOWN = "fail overloaded 99x\nsay never"


@pytest.fixture(autouse=True)
def stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_BACKGROUND_FALLBACK", "1")
    for layer in ("SESSION_NOTES", "DREAM", "RECALL"):
        monkeypatch.setenv(f"REVERIE_FLAG_{layer}", "0")


def log_of(cwd: Path) -> list[dict[str, Any]]:
    path = Places.of(cwd, load_settings(cwd)).background_log
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def stood_in(cwd: Path) -> list[str]:
    return [line["purpose"] for line in log_of(cwd) if line.get("kind", line.get("event")) == "stand_in"]


def memories(cwd: Path) -> dict[str, str]:
    folder = Places.of(cwd, load_settings(cwd)).default_memory
    return {path.name: path.read_text() for path in sorted(folder.glob("*.md"))} if folder.exists() else {}


def notices(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice) and event.source == "background"]


def taught(cwd: Path, model: str, said: tuple[str, ...] = (RULE,), overrides: JsonObject | None = None) -> list[Event]:
    """A session in which something is said that is worth keeping; all it told."""

    async def work(session: Session) -> list[Event]:
        heard: list[Event] = []
        session.listen(heard.append)
        for text in said:
            assert ended(await turn(session, text)).reason == "answered"
            await session.tasks.settle(Purpose.EXTRACTION, LIMIT_S)
        return heard

    return in_session(work, cwd=cwd, model=model, interactive=True, overrides={"model.retries": 0, **(overrides or {})})


def test_what_a_turn_taught_is_kept_although_the_model_is_down(tmp_path: Path) -> None:
    model = script(tmp_path, f"say Gladly.\nsay Gladly.\n\n[extraction]\n{DOWN}\n")
    events = taught(tmp_path, model, (RULE, "Never amend commits that are pushed, others build on them."))
    kept = memories(tmp_path)
    assert any("imperative" in text for name, text in kept.items() if name != "MEMORY.md"), kept
    assert stood_in(tmp_path) == ["extraction", "extraction"]
    (told,) = notices(events)
    assert told.startswith("learning from the conversation is done by the embedded model for now: ")


def test_nothing_stands_in_where_that_is_switched_off(tmp_path: Path) -> None:
    model = script(tmp_path, f"say Gladly.\n\n[extraction]\n{DOWN}\n")
    events = taught(tmp_path, model, overrides={"background.fallback": False})
    assert memories(tmp_path) == {} and notices(events) == [] and stood_in(tmp_path) == []


def test_a_model_that_answers_is_not_stood_in_for(tmp_path: Path) -> None:
    model = script(tmp_path, "say Gladly.\n\n[extraction]\nsay nothing to keep\n")
    events = taught(tmp_path, model)
    assert memories(tmp_path).keys() <= {"MEMORY.md"} and notices(events) == []


def test_beyond_the_budget_the_embedded_model_goes_on(tmp_path: Path) -> None:
    model = script(tmp_path, "say Gladly.\nsay Gladly.\n\n[extraction]\nsay nothing\n---\nsay never asked again\n")
    said = ("hello there, how are you?", RULE)
    events = taught(tmp_path, model, said, {"budget.background_tokens_per_day": 1})
    assert any("imperative" in text for text in memories(tmp_path).values())
    (told,) = notices(events)
    assert "budget.background_tokens_per_day" in told
    assert not [event for event in events if isinstance(event, Notice) and "was left out" in event.text]


def test_background_work_can_be_kept_from_the_model(tmp_path: Path) -> None:
    model = script(tmp_path, "say Gladly.\n\n[extraction]\nfail bad-request\nsay must not be asked\n")
    events = taught(tmp_path, model, overrides={"background.mind": "embedded", "background.fallback": False})
    assert any("imperative" in text for text in memories(tmp_path).values())
    (told,) = notices(events)
    assert "background.mind" in told


def test_notes_are_taken_by_the_embedded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_FLAG_SESSION_NOTES", "1")
    monkeypatch.setenv("REVERIE_FLAG_EXTRACTION", "0")
    model = script(tmp_path, f"say The build is fixed in ci.yml.\n\n[notes]\n{DOWN}\n")

    async def work(session: Session) -> tuple[str, list[Event]]:
        heard: list[Event] = []
        session.listen(heard.append)
        await turn(session, "fix the build in ci.yml")
        info = await session.update_notes().wait(LIMIT_S)
        assert info.error is None
        return session.notes_path.read_text(), heard

    text, events = in_session(work, cwd=tmp_path, model=model, overrides={"model.retries": 0})
    assert "ci.yml" in text
    assert [told.partition(" done by")[0] for told in notices(events)] == ["session notes are"]


def dreamt(place: Path, model: str) -> tuple[DreamOutcome, list[Event]]:
    async def work(session: Session) -> tuple[DreamOutcome, list[Event]]:
        heard: list[Event] = []
        session.listen(heard.append)
        assert session.dreaming is not None
        task = session.dreaming.start()
        info = await task.wait(LIMIT_S)
        assert task.result is not None, info.error
        return task.result, heard

    return in_session(work, cwd=place, model=model, overrides={"model.retries": 0})


def test_a_dream_that_loses_its_model_is_dreamt_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_MEMORY_PATH", str(tmp_path / "memory"))
    monkeypatch.setenv("REVERIE_FLAG_DREAM", "1")
    place = house(tmp_path, {**BAKERY, "user_mara_copy.md": BAKERY["user_mara.md"]})
    ruin = json.dumps({"file_path": str(place.memory / "user_mara.md")})
    wrote = json.dumps({"file_path": str(place.memory / "user_mara.md"), "content": BAKERY["user_mara.md"] + "x\n"})
    model = script(tmp_path, f"say Hi.\n\n[dream]\ncall Read {ruin}\n---\ncall Write {wrote}\n---\n{DOWN}\n")
    result, events = dreamt(place.work, model)
    assert (result.outcome, result.way, result.cost_usd) == ("landed", "embedded", 0.0)
    assert "user_mara_copy.md" not in place.files and place.files["user_mara.md"] == BAKERY["user_mara.md"]
    assert [told.partition(" done by")[0] for told in notices(events)] == ["dreams are"]


def test_memories_are_chosen_by_the_ranker_where_work_is_kept_from_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cheapest model of the family is never asked: a session whose server is not there would wait for it."""
    monkeypatch.setenv("REVERIE_MEMORY_PATH", str(tmp_path / "memory"))
    place = house(tmp_path)

    async def work(session: Session) -> list[Event]:
        return await turn(session, "which flour do we order, and where from?")

    with served("say From Lindt.\n", monkeypatch) as server:
        monkeypatch.setenv("REVERIE_FLAG_RECALL", "1")
        events = in_session(work, cwd=place.work, model=ANTHROPIC, overrides={"background.mind": "embedded"})
        asked = [row.purpose for row in server.rows]
    assert asked == ["main"]
    assert [told.partition(" done by")[0] for told in notices(events)] == ["choosing memories is"]
    assert any(isinstance(event, Notice) and "recalled reference_flour.md" in event.text for event in events)


@pytest.mark.parametrize("mind", ["model", "embedded"])
def test_a_compaction_is_written_by_code(tmp_path: Path, mind: str) -> None:
    fault = "fail bad-request\nsay must not be asked" if mind == "embedded" else DOWN
    model = script(tmp_path, f"say One.\nsay Two.\nsay Three.\n\n[compaction]\n{fault}\n")

    async def work(session: Session) -> tuple[str, list[Event]]:
        heard: list[Event] = []
        session.listen(heard.append)
        for number in range(3):
            await turn(session, f"do step {number} of the migration " + "with all its parts " * 300)
        return (await session.compact()).writer, heard

    writer, events = in_session(
        work, cwd=tmp_path, model=model, overrides={"background.mind": mind, "model.retries": 0}
    )
    assert writer == "code"
    assert [told.partition(" done by")[0] for told in notices(events)] == ["compaction is"]
