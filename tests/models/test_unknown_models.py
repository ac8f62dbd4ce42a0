"""A model's name that nobody knows is told at once, with the nearest names, wherever it comes from."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reverie.events import Event, Notice, TurnEnded
from reverie.models.catalogue import Catalogue
from reverie.models.registry import ModelAccess, doubt_about, open_model
from reverie.session import Session
from reverie.simulator import Simulator
from reverie.simulator.http import running
from tests.agents.talk import define
from tests.sessions import in_session, turn
from tests.simulated import ANTHROPIC, served


def notices(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice) and event.source == "model"]


async def opened(session: Session) -> list[Event]:
    heard: list[Event] = []
    session.listen(heard.append)
    return heard + await turn(session, "hello")


def test_doubts_name_the_nearest_models_and_spare_names_of_other_servers() -> None:
    catalogue, keyed = Catalogue.load(), ModelAccess(anthropic_key="k", openai_key="k")
    assert doubt_about("anthropic:claude-sonnet-5-5", keyed, catalogue) is None
    assert "claude-sonnet-5-5" in (doubt_about("anthropic:claude-sonet-5-5", keyed, catalogue) or "")
    assert "does not know anthropic:nonesuch" in (doubt_about("anthropic:nonesuch", keyed, catalogue) or "")
    assert "openai:nonesuch" in (doubt_about("openai:nonesuch", keyed, catalogue) or "")
    local = ModelAccess(openai_base_url="http://127.0.0.1:11434")
    assert doubt_about("openai:llama3.2:3b", local, catalogue) is None
    assert doubt_about("embedded", keyed, catalogue) is None


@pytest.mark.parametrize("by_settings", [True, False])
def test_opening_a_session_with_one_says_so_and_tries_it(
    by_settings: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served("say Hello.", monkeypatch):
        name = "anthropic:nonesuch"
        how = {"overrides": {"model.name": name}} if by_settings else {"model": name}
        events = in_session(opened, cwd=tmp_path, **how)
        assert ["does not know anthropic:nonesuch" in text for text in notices(events)] == [True]
        assert isinstance(events[-1], TurnEnded) and events[-1].text == "Hello."
        assert notices(in_session(opened, cwd=tmp_path, model=ANTHROPIC)) == []


def test_an_agent_definition_with_one_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = define(tmp_path, "reviewer", model="claude-sonet-5-5")
    call = 'call Agent {"description": "look", "prompt": "Look.", "subagent_type": "reviewer"}'
    with served(f"{call}\n---\nsay Done.\n\n[agent]\nsay Looked.", monkeypatch):
        events = in_session(opened, cwd=tmp_path, model=ANTHROPIC)
    told = [event.text for event in events if isinstance(event, Notice) and "does not know" in event.text]
    assert len(told) == 1 and str(file) in told[0] and "claude-sonnet-5-5" in told[0]


@pytest.mark.parametrize(("provider", "known"), [("anthropic", "claude-opus-5"), ("openai", "gpt-4o")])
def test_the_servers_own_list_is_asked(provider: str, known: str) -> None:
    async def listed(url: str, name: str) -> bool | None:
        model = open_model(name, ModelAccess(anthropic_base_url=url, openai_base_url=url), Catalogue.load())
        try:
            return await model.listed()  # type: ignore[attr-defined]
        finally:
            await model.close()

    with running(Simulator()) as url:
        assert asyncio.run(listed(url, f"{provider}:{known}")) is True
        assert asyncio.run(listed(url, f"{provider}:nonesuch")) is False
    assert asyncio.run(listed("http://127.0.0.1:9", f"{provider}:nonesuch")) is None


def test_a_404_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served("say Hello.", monkeypatch) as server:
        server.simulator.fail_next(404, message="model: nonesuch", route="/v1/messages")
        events = in_session(opened, cwd=tmp_path, model="anthropic:nonesuch")
    ended = events[-1]
    assert isinstance(ended, TurnEnded) and ended.reason == "failed"
    assert "model: nonesuch" in (ended.error or "") and "/model" in (ended.error or "")
