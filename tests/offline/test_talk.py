"""Talking to the embedded model in real sessions: what it keeps, forgets, finds and runs, and what it cannot do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from reverie.events import Event, ToolStarted, TurnEnded
from reverie.memory.topic_file import TopicFile
from reverie.offline.talk.wants import (
    Delegate,
    Forget,
    Greeting,
    LastTime,
    Lookup,
    Overview,
    Remember,
    Run,
    Thanks,
    Told,
    WhatIsKnown,
    Work,
    read_want,
)
from reverie.session import Session
from reverie.types import Origin, TextBlock
from tests.counts import count
from tests.sessions import in_session, turn
from tests.waiting import LIMIT_S


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Remember that the tide turns at six", Remember("the tide turns at six")),
        ("please remember: we ship on Fridays", Remember("we ship on Fridays")),
        ("Don't forget that Marta owns the crane", Remember("Marta owns the crane")),
        ("Merk dir, dass wir freitags ausliefern", Remember("wir freitags ausliefern")),
        ("Recuerda que usamos pnpm", Remember("usamos pnpm")),
        ("记住我们用 pnpm", Remember("我们用 pnpm")),
        ("金曜日にリリースすると覚えておいて", Remember("金曜日にリリースする")),
        ("Do you remember when we ship?", Lookup("Do you remember when we ship?")),
        ("forget about the crane", Forget("the crane")),
        ("Vergiss das mit dem Kran", Forget("dem Kran")),
        ("Olvida lo de la grúa", Forget("la grúa")),
        ("忘掉起重机", Forget("起重机")),
        ("クレーンのことを忘れて", Forget("クレーン")),
        ("Run `make test` please", Run(("make test",))),
        ("first run `make lint`, then `make test`", Run(("make lint", "make test"))),
        ("$ ls -la", Run(("ls -la",))),
        ("run ls -la src", Run(("ls -la src",))),
        ("run the tests", Lookup("run the tests")),
        ("What does `make run` do?", Lookup("What does `make run` do?")),
        ("What do you know about the crane?", WhatIsKnown("the crane")),
        ("what's in your memory?", WhatIsKnown("")),
        ("Was weißt du über den Kran?", WhatIsKnown("den Kran")),
        ("What did we talk about last time?", LastTime()),
        ("where did we leave off?", LastTime()),
        ("上次我们聊了什么？", LastTime()),
        ("Let two agents look: where is the crane?; who owns it?", Delegate(("where is the crane?", "who owns it?"))),
        ("What is this project?", Overview()),
        ("What does this repo do?", Overview()),
        ("hello there", Greeting()),
        ("What can you do?", Greeting()),
        ("你好", Greeting()),
        ("thanks a lot!", Thanks()),
        ("Danke schön", Thanks()),
        ("Fix the crash in crane.py", Work("Fix the crash in crane.py")),
        ("Schreibe einen Test für den Kran", Work("Schreibe einen Test für den Kran")),
        ("テストを書いてください", Work("テストを書いてください")),
        ("I'm a nurse and I work nights.", Told("I'm a nurse and I work nights.")),
        ("No, use tabs here.", Told("No, use tabs here.")),
        ("Where is the crane?", Lookup("Where is the crane?")),
        ("default port", Lookup("default port")),
    ],
)
def test_what_a_person_wants(text: str, want: object) -> None:
    assert read_want(text) == want


@given(st.text(max_size=120))
@hypothesis_settings(max_examples=count(30, 2_000), deadline=None)
def test_whatever_is_typed_wants_something(text: str) -> None:
    assert read_want(text) is not None


class Talk:
    """Conversations in one folder, each a session of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[str] = []

    def __call__(self, *said: str, **overrides: Any) -> str:
        """What it answers to the last of these messages."""

        async def work(session: Session) -> str:
            events: list[Event] = []
            for text in said:
                events = list(await turn(session, text))
            self.calls = [event.name for event in events if isinstance(event, ToolStarted)]
            assert isinstance(events[-1], TurnEnded) and events[-1].reason == "answered"
            blocks = session.view.entries[-1].message.content
            return "\n".join(b.text for b in blocks if isinstance(b, TextBlock) and b.origin is Origin.MODEL)

        return in_session(work, cwd=self.folder, model="embedded", overrides=overrides)

    @property
    def root(self) -> Path:
        home = Path.home() / ".reverie" / "projects"
        return next(home.glob("*/memory"))


@pytest.fixture
def talk(tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    folder = tmp_path / "harbour"
    folder.mkdir()
    (folder / "crane.py").write_text("import os\n\nMAX_LOAD = 42\n\n\ndef lift(load):\n    return load < MAX_LOAD\n")
    (folder / "README.md").write_text("# Harbour\n\nLoads ships with one crane.\n")
    (folder / "AGENTS.md").write_text("# Rules\n\n- Releases go through the quay master.\n")
    # Only the talk itself is looked at here: what is written in the background has tests of its own.
    monkeypatch.setenv("REVERIE_FLAG_EXTRACTION", "0")
    monkeypatch.setenv("REVERIE_FLAG_DREAM", "0")
    return Talk(folder)


def topics(talk: Talk) -> dict[str, TopicFile]:
    return {path.name: TopicFile.parse(path.read_text()) for path in talk.root.glob("[!M]*.md")}


def test_it_keeps_what_it_is_told_and_the_next_session_knows(talk: Talk) -> None:
    said = talk("Remember that the crane is serviced on Mondays, because the fitter only comes then.")
    (name,) = topics(talk)
    kept = topics(talk)[name]
    assert name in said and str(kept.type) == "project" and kept.body.startswith("The crane is serviced on Mondays.")
    assert "**Why:**" in kept.body and f"]({name})" in (talk.root / "MEMORY.md").read_text()
    assert name in talk("When is the crane serviced?") and "Mondays" in talk("When is the crane serviced?")


def test_a_statement_that_differs_is_kept_beside_the_other_and_an_equal_one_is_known(talk: Talk) -> None:
    talk("Remember that the crane is serviced on Mondays.")
    said = talk("Remember that the crane is serviced on Thursdays.")
    assert "Mondays" in said and "Thursdays" in said and "Both are kept" in said
    assert sorted(one.body.strip() for one in topics(talk).values()) == [
        "The crane is serviced on Mondays.",
        "The crane is serviced on Thursdays.",
    ]
    assert len((talk.root / "MEMORY.md").read_text().splitlines()) == 2
    assert "already" in talk("Remember that the crane is serviced on Thursdays.")
    assert "Write" not in talk.calls


@pytest.mark.parametrize(
    "said",
    [
        "Please remember what is important here",
        "Remember what matters.",
        "remember whatever you need",
        "Remember who does what here",
        "Remember everything important.",
        "Please remember what you learned today",
        "Remember how this works, please",
    ],
)
def test_a_request_that_does_not_say_what_makes_no_memory(talk: Talk, said: str) -> None:
    talk(said)
    assert topics(talk) == {}


def test_several_memories_are_several_files_with_a_line_each(talk: Talk) -> None:
    talk("Remember that the crane is serviced on Mondays.", "Remember that I am a welder.", "记住我们用 pnpm 发布")
    assert {str(topic.type) for topic in topics(talk).values()} == {"project", "user"} and len(topics(talk)) == 3
    assert len((talk.root / "MEMORY.md").read_text().splitlines()) == 3
    listed = talk("What do you know?")
    assert all(name in listed for name in topics(talk))
    about_me = talk("What do you know about me?")
    assert "welder" in about_me and "crane" not in about_me


def test_relative_days_are_written_out(talk: Talk) -> None:
    talk("Remember that the inspection is tomorrow.")
    (one,) = topics(talk).values()
    assert re.search(r"tomorrow \(20\d\d-\d\d-\d\d\)", one.body)


def test_it_forgets_the_one_that_is_meant_and_asks_where_several_fit(talk: Talk) -> None:
    talk("Remember that the crane is serviced on Mondays.", "Remember that the ferry leaves from pier seven.")
    said = talk("Forget about the ferry.")
    assert "pier seven" in said and "undo" in said and len(topics(talk)) == 1
    assert "ferry" not in (talk.root / "MEMORY.md").read_text()
    talk("Remember that the crane operator is called Marta.")
    said = talk("Forget the crane.")
    assert len(topics(talk)) == 2 and all(name in said for name in topics(talk))
    name = next(name for name, topic in topics(talk).items() if "Marta" in topic.body)
    assert "Marta" in talk(f"forget {name}") and name not in topics(talk)
    assert "nothing to forget" in talk("forget the zeppelin")


def test_secrets_and_what_is_not_worth_keeping_are_refused_with_a_reason(talk: Talk) -> None:
    said = talk("Remember that the token is ghp_16C7e42F292c6912E7710c838347Ae178B4a")
    assert "secret" in said and "ghp_" not in said and not topics(talk)
    said = talk("Remember: I fixed the crash in crane.py")
    assert "reverie remember" in said and not topics(talk)
    said = talk("Remember that Releases go through the quay master.")
    assert "not saved" in said and not topics(talk), "the write gate knows that AGENTS.md says so"


def test_with_memory_off_it_says_so(talk: Talk) -> None:
    assert "switched off" in talk("Remember that the crane is blue.", **{"memory.enabled": False})


def test_answers_come_with_where_they_stand(talk: Talk) -> None:
    assert "AGENTS.md: Releases go through the quay master." in talk("How do releases go?")
    said = talk("What is the max load?")
    assert "crane.py:3: MAX_LOAD = 42" in said and "import os" not in said
    assert "Loads ships with one crane." in talk("What is this project?")


def test_it_tells_what_a_file_defines_wherever_it_lies(talk: Talk) -> None:
    (talk.folder / "quay").mkdir()
    (talk.folder / "quay" / "ropes.py").write_text("X = 1\n\n\nclass Rope:\n    def pull(self): ...\n")
    said = talk("Which functions and classes are in ropes.py?")
    assert "quay/ropes.py:4: class Rope:" in said and "X = 1" not in said
    assert "found nothing" in talk("Which functions are in zeppelin.py?")


def test_it_forgets_what_was_just_kept(talk: Talk) -> None:
    said = talk("Remember that the crane is serviced on Mondays.", "Forget it.")
    assert "Mondays" in said and not topics(talk)


def test_what_was_said_in_an_earlier_session_is_found_there(talk: Talk) -> None:
    talk("Our ferries are painted green and white.")
    said = talk("Which colours are the ferries painted?")
    assert "earlier session" in said and "green and white" in said
    said = talk("What did we talk about last time?")
    assert "Which colours are the ferries painted?" in said


def test_an_unrelated_memory_is_never_shown_as_an_answer(talk: Talk) -> None:
    talk("Remember that the crane is serviced on Mondays.")
    said = talk("Who is the prime minister of Portugal?")
    assert "crane" not in said and "found nothing" in said and "ANTHROPIC_API_KEY" in said


def test_it_says_plainly_that_it_cannot_change_code_and_shows_the_place(talk: Talk) -> None:
    said = talk("Fix the lift function in crane.py")
    assert "not one" in said and "crane.py:6: def lift(load):" in said and "ANTHROPIC_API_KEY" in said
    assert set(talk.calls) <= {"Read", "Grep", "Glob"}


def test_it_runs_commands_in_order_and_stops_at_the_first_that_fails(talk: Talk) -> None:
    said = talk("Run `ls`, `cat nowhere.txt` and `wc -l crane.py`")
    assert "README.md" in said and "nowhere.txt" in said and "7 crane.py" not in said
    said = talk("run wc -l crane.py")
    assert "7 crane.py" in said


def test_it_has_forks_look_things_up_at_once_and_tells_what_they_report(talk: Talk) -> None:
    async def work(session: Session) -> str:
        started = list(await turn(session, "Let two agents look: what is the max load?; how do releases go?"))
        assert [event.name for event in started if isinstance(event, ToolStarted)] == ["Agent", "Agent"]
        await session.tasks.drain(LIMIT_S)
        ended = started[-1] if not session.messages.waiting else list(await turn(session, ""))[-1]
        assert isinstance(ended, TurnEnded)
        return ended.text

    said = in_session(work, cwd=talk.folder, model="embedded")
    assert "crane.py:3: MAX_LOAD = 42" in said and "Releases go through the quay master." in said


def test_in_a_log_of_the_day_it_appends(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_FLAG_DAILY_LOG", "1")
    assert "daily log" in talk("Remember that the crane is blue.", "Remember that the ferry is green.")
    (log,) = talk.root.glob("logs/*/*/*.md")
    lines = log.read_text().splitlines()
    assert [line[2:] for line in lines[-2:]] == ["The crane is blue.", "The ferry is green."]


@pytest.mark.parametrize(
    "asked", ["Wo ist das Luftschiff?", "¿Dónde está el dirigible?", "飞艇在哪里？", "飛行船はどこですか？"]
)
def test_it_understands_other_languages_and_answers_in_english(talk: Talk, asked: str) -> None:
    assert "I found nothing about" in talk(asked)
