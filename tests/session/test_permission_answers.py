"""The four answers to a permission question, rules that are saved, and calls that are never asked about."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reverie.errors import UserError
from reverie.events import Event, PermissionAsked, ToolFinished
from reverie.permissions.answers import PermissionAnswer
from reverie.session.session import Session
from reverie.settings import load_settings
from reverie.storage.saved_rules import list_rules, remove_rule, save_rules
from tests.sessions import in_session, script

PROJECT = '[permissions]\n# ours\nallow = ["Bash(make:*)"] # built often\n'


def home() -> Path:
    return load_settings(Path.cwd()).places.home


def talk(work: Path, commands: list[str], answers: list[PermissionAnswer]) -> tuple[list[PermissionAsked], list[Event]]:
    """One turn per command; each question gets the next answer."""
    lines = "".join(f'call Bash {{"command": "{command}"}}\n---\nsay Done.\n---\n' for command in commands)
    given = iter(answers)

    async def run(session: Session) -> tuple[list[PermissionAsked], list[Event]]:
        asked, events = list[PermissionAsked](), list[Event]()
        for number in range(len(commands)):
            async for event in session.send(f"go {number}"):
                events.append(event)
                if isinstance(event, PermissionAsked):
                    asked.append(event)
                    assert session.gate.settle(event.id, next(given))
        return asked, events

    return in_session(run, cwd=work, model=script(work.parent, lines), interactive=True)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


def test_once_session_always_and_deny(work: Path) -> None:
    once, session = PermissionAnswer.once(), PermissionAnswer.session()
    asked, _ = talk(work, ["mkdir -p a", "mkdir -p b", "mkdir -p b"], [once, session])
    assert [event.rules for event in asked] == [("Bash(mkdir -p a)",), ("Bash(mkdir -p b)",)], "the second holds"
    assert asked[0].saves_to == str(work / ".reverie/settings.local.toml")
    assert not (work / ".reverie").exists(), "nothing is saved"

    asked, _ = talk(work, ["mkdir -p d", "mkdir -p d"], [PermissionAnswer.always()])
    assert len(asked) == 1
    status = subprocess.run(["git", "status", "--porcelain"], cwd=work, capture_output=True, check=True)
    assert status.stdout == b"", "git does not offer the local file for a commit"
    asked, _ = talk(work, ["mkdir -p d"], [])
    assert asked == [] and (work / "d").is_dir(), "the rule is saved, and the folder is trusted with it"

    asked, events = talk(work, ["touch x"], [PermissionAnswer.deny("use Write instead")])
    assert asked[0].rules == ("Bash(touch x)",) and not (work / "x").exists()
    (result,) = [event.text for event in events if isinstance(event, ToolFinished)]
    assert result.endswith("it tried to write x]\n[use Write instead]")


def test_saving_keeps_the_file_and_the_trust(work: Path) -> None:
    local = work / ".reverie/settings.local.toml"
    local.parent.mkdir()
    local.write_text(PROJECT)
    with pytest.raises(UserError, match="reverie trust"):
        save_rules(work, home(), ["Bash(npm test:*)"])
    assert local.read_text() == PROJECT, "nothing is saved in a folder that is not trusted"

    from reverie.storage.trust_file import trust

    trust(home(), load_settings(work).parts, work)
    save_rules(work, home(), ["Bash(npm test:*)"])
    assert local.read_text() == PROJECT.replace('"] #', '", "Bash(npm test:*)"] #')
    rules = [(one.rule, one.where, one.ignored) for one in list_rules(load_settings(work))]
    assert rules == [("Bash(make:*)", f"{local}:3", ""), ("Bash(npm test:*)", f"{local}:3", "")]
    remove_rule(work, home(), "Bash(npm test:*)")
    assert tuple(load_settings(work).permissions.allow) == ("Bash(make:*)",), "it is still trusted"
    with pytest.raises(UserError, match="no saved rule"):
        remove_rule(work, home(), "Bash(npm test:*)")


def test_saving_does_not_trust_what_others_changed(work: Path) -> None:
    save_rules(work, home(), ["Bash(npm test:*)"])
    (work / ".reverie/settings.toml").write_text('[permissions]\nallow = ["Bash"]\n')
    assert load_settings(work).permissions.allow == ()
    with pytest.raises(UserError, match="changed since you trusted"):
        save_rules(work, home(), ["Bash(npm ci:*)"])
    remove_rule(work, home(), "Bash(npm test:*)")
    assert load_settings(work).permissions.allow == (), "removing a rule does not trust the rest"


def test_a_link_out_of_the_project_is_not_written(work: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (work / ".reverie").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="leads out of the project"):
        save_rules(work, home(), ["Bash(npm test:*)"])


def test_in_a_folder_that_is_not_trusted_always_cannot_be_chosen(work: Path) -> None:
    (work / ".reverie").mkdir()
    (work / ".reverie/settings.toml").write_text('[permissions]\nallow = ["Bash(true:*)"]\n')
    asked, _ = talk(work, ["git status", "touch a"], [PermissionAnswer.once()])
    assert [event.input["command"] for event in asked] == ["touch a"]  # type: ignore[index, call-overload]
    assert asked[0].saves_to == "", "always cannot be saved here"
    (work / ".reverie/settings.toml").unlink()
    assert talk(work, ["git status", "pwd"], [])[0] == []


def test_no_question_for_a_call_that_must_fail(work: Path) -> None:
    (work / "a.txt").write_text("text\n")
    calls = [
        'call Edit {"file_path": "none.txt", "old_string": "a", "new_string": "b"}',
        'call Edit {"file_path": "a.txt", "old_string": "text", "new_string": "b"}',
        'call Read {"file_path": ".env"}',
        'call Read {"file_path": "a.txt"}',
        'call Edit {"file_path": "a.txt", "old_string": "other", "new_string": "b"}',
        'call Write {"file_path": ".", "content": "b"}',
        'call Edit {"file_path": "a.txt", "old_string": "text", "new_string": "b"}',
    ]
    model = script(work.parent, "\n---\n".join(calls) + "\n---\nsay Done.\n")

    async def run(session: Session) -> tuple[list[str], list[str]]:
        asked, results = list[str](), list[str]()
        async for event in session.send("go"):
            if isinstance(event, PermissionAsked):
                asked.append(event.tool)
                session.gate.settle(event.id, PermissionAnswer.deny())
            if isinstance(event, ToolFinished):
                results.append(event.text)
        return asked, results

    asked, results = in_session(run, cwd=work, model=model, interactive=True)
    assert asked == ["Edit"], "only the last one can succeed"
    assert [
        any(word in text for word in ("does not exist", "Read it first", "does not occur", "is a folder"))
        for text in results
    ] == [*(True, True, True, False, True, True, False)]
