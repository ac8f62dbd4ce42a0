"""What the user does on the full screen: messages, pastes, questions, commands, tasks."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from reverie.runtime.tasks import TaskHandle
from reverie.types import Origin, Purpose, TextBlock

EDIT = """
call Read {"file_path": "server.py"}
---
call Edit {"file_path": "server.py", "old_string": "port = 1", "new_string": "port = 2"}
---
say It says: {result}
"""


@pytest.fixture(scope="module", autouse=True)
def screen() -> None:
    """Takes a quarter of a second: only a process that runs one of these tests imports it."""
    global events, Static, Offers, Stage, play
    from textual import events
    from textual.widgets import Static

    from reverie.cli.full_screen.composer import Offers
    from tests.cli.full_screen.stage import Stage, play


@pytest.mark.parametrize(
    ("keys", "port", "told"),
    [("y", "2", "Changed"), ("s", "2", "Changed"), ("a", "2", "Changed"), ("n", "1", "not that port")],
)
def test_a_question_shows_the_change_and_takes_an_answer(tmp_path: Path, keys: str, port: str, told: str) -> None:
    (tmp_path / "server.py").write_text("port = 1\n")

    async def act(stage: Stage) -> None:
        await stage.say("Change it")
        await stage.dialog("Permission")
        assert "port = 1" in (tmp_path / "server.py").read_text()
        await stage.pilot.press(keys)
        if keys == "n":
            await stage.type("not that port")
            await stage.pilot.press("enter")
        await stage.until(lambda: "It says" in stage.conversation)
        assert told in stage.conversation

    play(tmp_path, EDIT, act)
    assert (tmp_path / "server.py").read_text() == f"port = {port}\n"
    saved = tmp_path / ".reverie/settings.local.toml"
    assert saved.exists() == (keys == "a")
    assert keys != "a" or "Edit(./server.py)" in saved.read_text()


def test_a_call_can_be_allowed_only_after_all_of_it_was_in_sight(tmp_path: Path) -> None:
    command = "\\n".join(f"echo {number} > made.txt" for number in range(60))
    script = f'call Bash {{"command": "{command}"}}\n---\nsay Done.\n'

    async def act(stage: Stage) -> None:
        await stage.say("Run it")
        await stage.dialog("Permission")
        await stage.pilot.press("y")
        assert type(stage.app.screen).__name__ == "Permission"
        await stage.pilot.press("end", "y")  # a jump over the middle is not reading
        assert type(stage.app.screen).__name__ == "Permission"
        await stage.pilot.press("home")
        for _ in range(8):
            await stage.pilot.press("space")
        await stage.pilot.press("y")
        await stage.until(lambda: "Done." in stage.conversation)

    play(tmp_path, script, act)
    assert (tmp_path / "made.txt").read_text() == "59\n"


def test_escape_stops_and_messages_wait_for_their_turn(tmp_path: Path) -> None:
    script = 'wait 30\nsay Never.\n\nwhen /two/\nsay You said "two".\nend\n'

    async def act(stage: Stage) -> None:
        await stage.say("first-of-all")
        await stage.until(lambda: stage.app.chat.is_working)
        await stage.say("two")
        await stage.say("three")
        await stage.until(lambda: "waits: three" in stage.bottom)
        await stage.pilot.press("up")  # takes the last one back
        assert stage.app.composer.text == "three"
        await stage.until(lambda: "three" not in stage.bottom and "waits: two" in stage.bottom)
        await stage.pilot.press("escape")
        await stage.until(lambda: "Stopped." in stage.conversation)
        await stage.until(lambda: 'You said "two"' in stage.conversation)
        assert "Never" not in stage.conversation

    play(tmp_path, script, act)


def test_500_pasted_lines_are_a_mark_with_an_origin_of_their_own(tmp_path: Path) -> None:
    pasted = "".join(f"log line {number}\n" for number in range(500))

    async def act(stage: Stage) -> None:
        await stage.type("look ")
        await stage.paste(pasted)
        assert stage.app.composer.text.startswith("look [Pasted text 1: 501 lines")
        await stage.pilot.press("enter")
        await stage.until(lambda: "Seen." in stage.conversation)
        content = stage.app.chat.session.view.entries[0].message.content
        parts = [(part.origin, part.text) for part in content if isinstance(part, TextBlock) and part.origin.is_given]
        assert [origin for origin, _ in parts] == [Origin.TYPED, Origin.PASTED]
        assert "log line 499" in parts[1][1]

    play(tmp_path, "say Seen.\n", act)


def test_files_commands_and_the_palette(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("port = 1\n")

    async def act(stage: Stage) -> None:
        composer = stage.app.composer
        await stage.type("see @setti")
        await stage.until(lambda: stage.app.query_one(Offers).display)
        await stage.pilot.press("tab")
        assert "settings.toml" in composer.text
        composer.empty()
        await stage.type("/cont")
        await stage.pilot.press("enter")
        assert composer.text.startswith("/context")
        await stage.pilot.press("enter")
        await stage.until(lambda: "tokens" in stage.conversation)
        await stage.pilot.press("ctrl+p")
        await stage.dialog("Picker")
        await stage.type("cost")
        await stage.pilot.press("enter")
        await stage.until(lambda: composer.text.strip() == "/cost")
        await stage.pilot.press("ctrl+c")
        assert composer.text == ""
        await stage.pilot.press("up")
        assert composer.text == "/context"

    play(tmp_path, "say Hello.\n", act)


def test_background_tasks_are_listed_and_can_be_stopped(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        async def work(handle: TaskHandle) -> None:
            for step in range(1, 4):
                handle.progress(f"step {step} of 9")
            await asyncio.sleep(60)

        tasks = stage.app.chat.session.tasks
        task = tasks.start(Purpose.DREAM, "a long dream", work)
        await stage.until(lambda: "1 task" in stage.bottom)
        await stage.pilot.press("ctrl+t")
        await stage.dialog("Picker")
        about = str(stage.app.screen.query_one("#about", Static).content)
        assert about.splitlines()[1:] == ["step 1 of 9", "step 2 of 9", "step 3 of 9"]
        assert "dream · running" in about and "no requests yet" in about
        await stage.pilot.press("delete")
        assert tasks.running, "one key does not end a task"
        assert "Del again ends the task" in str(stage.app.screen.query_one("#how", Static).content)
        await stage.pilot.press("delete")
        await stage.until(lambda: not tasks.running)
        assert task.info.state.value == "killed"
        await stage.pilot.press("escape")

    play(tmp_path, "say Hello.\n", act)


def test_keys_typed_before_a_question_do_not_answer_it(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("port = 1\n")

    async def act(stage: Stage) -> None:
        await stage.say("Change it")
        await stage.until(lambda: type(stage.app.screen).__name__ == "Permission")
        await stage.pilot.press("y")  # at once: the user was still writing
        assert type(stage.app.screen).__name__ == "Permission"
        pressed = events.Key("y", "y")
        await asyncio.sleep(0.5)  # the machine is busy: the key arrives late
        stage.app.screen.post_message(pressed)
        await stage.pilot.pause()
        assert type(stage.app.screen).__name__ == "Permission"

    play(tmp_path, EDIT, act)
    assert (tmp_path / "server.py").read_text() == "port = 1\n"


def test_a_command_of_the_user_and_the_picker_of_sessions(tmp_path: Path) -> None:
    async def first(stage: Stage) -> None:
        await stage.say("The old question")
        await stage.until(lambda: "Hello." in stage.conversation)

    async def second(stage: Stage) -> None:
        await stage.say("!echo made-by-me")
        await stage.until(lambda: stage.conversation.count("made-by-me") == 2)
        assert not stage.app.chat.session.view.entries  # no model was asked
        await stage.pilot.press("ctrl+s")
        await stage.dialog("Picker")
        await stage.type("old")
        await stage.pilot.press("enter")
        await stage.until(lambda: "› The old question" in stage.conversation)
        assert "made-by-me" not in stage.conversation

    play(tmp_path, "say Hello.\n", first)
    play(tmp_path, "say Hello.\n", second)


def test_permission_rules_have_a_screen_on_which_they_are_removed(tmp_path: Path) -> None:
    saved = tmp_path / ".reverie/settings.local.toml"
    (tmp_path / "server.py").write_text("port = 1\n")

    async def act(stage: Stage) -> None:
        def shown(name: str) -> str:
            return str(stage.app.screen.query_one(name, Static).content)

        await stage.say("Change it")
        await stage.dialog("Permission")
        await stage.pilot.press("a")
        await stage.until(lambda: "It says" in stage.conversation)
        await stage.say("/permissions")
        await stage.dialog("Picker")
        assert "settings.local.toml:" in shown("#about")
        await stage.pilot.press("delete", "down")  # another key: not removed
        assert "Edit(./server.py)" in saved.read_text()
        await stage.pilot.press("delete", "delete")
        await stage.until(lambda: "Removed Edit(./server.py)" in shown("#how"))
        await stage.pilot.press("escape")
        assert "Edit(./server.py)" not in saved.read_text()
        assert not stage.app.chat.session.gate.session_rules

    play(tmp_path, EDIT, act)
