"""Commands of a session in the sandbox: what it refused is asked about once, and changes of files can be undone."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from reverie.events import Event, Notice, PermissionAsked, ToolFinished
from reverie.permissions.answers import PermissionAnswer
from reverie.permissions.rules import Profile
from reverie.permissions.sandbox.probe import find_layers
from reverie.session.session import Session
from tests.sessions import in_session, of_kind, script, turn

pytestmark = pytest.mark.skipif(not find_layers().can_work, reason="needs a sandbox with namespaces")
NO = PermissionAnswer.deny("not now")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / "kept.txt").write_text("as it was\n")
    return folder


def play(commands: list[str]) -> str:
    return "".join(f"call Bash {json.dumps({'command': command})}\n---\nsay Done.\n---\n" for command in commands)


async def answered(session: Session, answers: list[PermissionAnswer]) -> list[Event]:
    """One turn; each question gets the next answer."""
    events, waiting = list[Event](), iter(answers)
    async for event in session.send("go"):
        events.append(event)
        if isinstance(event, PermissionAsked):
            assert session.gate.settle(event.id, next(waiting))
    return events


def run(
    work: Path,
    command: str,
    answers: list[PermissionAnswer],
    *,
    mode: str = "ask",
    interactive: bool = True,
    **more: object,
) -> tuple[list[PermissionAsked], ToolFinished]:
    async def talk(session: Session) -> list[Event]:
        return await answered(session, answers)

    events = in_session(
        talk,
        cwd=work,
        model=script(work.parent, play([command])),
        interactive=interactive,
        overrides={"permissions.mode": mode, **more},
    )
    return of_kind(events, PermissionAsked), of_kind(events, ToolFinished)[0]


EVERYDAY = [
    *("for x in 1 2 3; do echo $x; done", "awk '{print $1}' kept.txt", "ls | xargs -n1 echo", "cat <<E | wc -l\na\nE"),
    *("git status --short", "git log --oneline | head -3", "python3 -c 'print(6*7)'", "sed s/as/AS/ kept.txt"),
    *("diff <(echo a) <(echo b)", "x=$(date +%Y); echo year $x", "mktemp; echo hi > $TMPDIR/x && cat $TMPDIR/x"),
]


@pytest.mark.parametrize("command", EVERYDAY)
def test_a_command_that_changes_nothing_never_asks(work: Path, command: str) -> None:
    asked, done = run(work, command, [])
    assert asked == [] and done.how == "sandbox" and "read-only sandbox" not in done.text


def test_what_was_tried_is_asked_about_once_and_the_second_run_counts(work: Path) -> None:
    asked, done = run(work, "echo hi > new.txt; cat new.txt", [PermissionAnswer.once()])
    assert len(asked) == 1 and asked[0].tried == ("write new.txt",) and asked[0].choices == ("workspace", "free")
    assert "parts of it may have run" in asked[0].reason
    assert (work / "new.txt").read_text() == "hi\n"
    assert done.text == "hi" and done.how == "asked"


@pytest.mark.parametrize(
    ("command", "tried"),
    [
        ("touch made; true", "write made"),
        ("mkdir out || true", "write out"),
        ("(rm kept.txt) 2>/dev/null | head", "write kept.txt"),
        (
            "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 443), 1)'; true",
            "connect to 192.0.2.1:443",
        ),
        ("sh -c 'echo x >> kept.txt' & wait; exit 0", "write kept.txt"),
    ],
)
def test_silence_is_never_read_as_success(work: Path, command: str, tried: str) -> None:
    asked, done = run(work, command, [NO])
    assert len(asked) == 1 and any(tried in one for one in asked[0].tried), asked
    assert "[read-only sandbox: nothing was changed; it tried to" in done.text and "not now" in done.text
    assert sorted(path.name for path in work.iterdir()) == [".git", "kept.txt"]
    assert (work / "kept.txt").read_text() == "as it was\n"


def test_each_profile_allows_what_its_name_says(work: Path, tmp_path: Path) -> None:
    commit = "git add kept.txt && git -c user.name=A -c user.email=a@b commit -qm x && echo done"
    asked, done = run(work, commit, [PermissionAnswer.once()])
    assert asked[0].choices == ("repository", "free") and done.text == "done"
    asked, done = run(work, "git config user.name B", [PermissionAnswer.once()])
    assert asked[0].choices == ("free",), "git obeys its configuration later"
    asked, done = run(work, f"echo x > {tmp_path}/outside.txt", [NO])
    assert asked[0].choices == ("free",) and not (tmp_path / "outside.txt").exists()
    asked, _ = run(work, f"echo x > {tmp_path}/outside.txt", [PermissionAnswer.once(Profile.FREE)])
    assert (tmp_path / "outside.txt").exists()


def test_an_answer_that_was_not_offered_gives_the_least(work: Path, tmp_path: Path) -> None:
    run(work, f"echo x > a; echo y > {tmp_path}/b", [PermissionAnswer.once(Profile.WORKSPACE)])
    assert (tmp_path / "b").exists(), "only outside was offered"
    run(work, "echo x > c", [PermissionAnswer.once(Profile.REPOSITORY)])
    assert (work / "c").exists()


def test_always_is_a_rule_for_outside(work: Path) -> None:
    command = "echo x >> made"

    async def talk(session: Session) -> list[Event]:
        return [*(await answered(session, [PermissionAnswer.session()])), *(await answered(session, []))]

    events = in_session(talk, cwd=work, model=script(work.parent, play([command, command])), interactive=True)
    (asked,) = of_kind(events, PermissionAsked)
    assert asked.rules == (f"Bash({command})",)
    assert (work / "made").read_text() == "x\nx\n"


def test_nobody_there_says_how_to_allow_it(work: Path) -> None:
    asked, done = run(work, "touch made", [], interactive=False)
    assert asked == [] and not (work / "made").exists()
    assert "read-only sandbox" in done.text and "--allow 'Bash(touch made)'" in done.text


def test_a_read_only_session_never_widens(work: Path) -> None:
    asked, done = run(work, "touch made; true", [], mode="read_only")
    assert asked == [] and "read-only sandbox" in done.text and not (work / "made").exists()


def test_where_the_sandbox_is_turned_off_a_command_asks_first(work: Path) -> None:
    asked, done = run(work, "touch made", [PermissionAnswer.once()], **{"permissions.sandbox": False})
    assert asked[0].tried == () and (work / "made").exists() and done.how == "asked"
    asked, done = run(work, "cat kept.txt | head -2", [], **{"permissions.sandbox": False})
    assert asked == [] and done.text == "as it was"


def test_edits_by_commands_do_not_ask_and_name_what_is_obeyed_later(work: Path) -> None:
    asked, done = run(
        work, "echo x > b.txt; echo 'be evil' > AGENTS.md; mkdir -p .github/workflows", [], mode="accept_edits"
    )
    assert asked == [] and (work / "b.txt").exists()
    assert "obeyed later by programs or agents: " in done.text and "AGENTS.md" in done.text
    asked, done = run(work, "echo x >> AGENTS.md", [NO], mode="accept_edits")
    assert len(asked) == 1 and (work / "AGENTS.md").read_text() == "be evil\n", "it is there already, so it is fixed"


def test_the_mark_of_an_agent_holds_in_the_sandbox(work: Path) -> None:
    check = "env -i python3 -c 'import resource; print(resource.getrlimit(10))'; echo $AI_AGENT"
    _, done = run(work, check, [])
    assert done.text == f"({2**30}, {2**30})\nreverie"


DESTRUCTIVE = [
    *("rm -rf a.txt deep ignored.log", "find . -name '*.txt' -delete", "echo x > a.txt; echo y > deep/b.txt"),
    *("mv deep elsewhere", "truncate -s0 a.txt && ln -sf a.txt deep/b.txt", "chmod +x a.txt; sed -i s/one/two/ a.txt"),
]


@pytest.mark.parametrize("command", DESTRUCTIVE)
def test_undo_files_restores_what_commands_changed_and_can_be_undone(work: Path, command: str) -> None:
    (work / ".gitignore").write_text("*.log\n")
    for name in ("a.txt", "deep/b.txt", "ignored.log"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("one\n")

    def state() -> dict[str, tuple[int, bytes | str]]:
        return {
            str(path.relative_to(work)): (
                path.lstat().st_mode,
                str(path.readlink()) if path.is_symlink() else path.read_bytes(),
            )
            for path in work.rglob("*")
            if ".git/" not in f"{path}" and (path.is_file() or path.is_symlink())
        }

    before = state()

    async def talk(session: Session) -> None:
        events = await turn(session, "go")
        assert of_kind(events, PermissionAsked) == [] and of_kind(events, Notice) == []
        changed = state()
        assert changed != before
        done = await session.undo_files()
        assert state() == before and (done.written or done.removed)
        await session.undo_files()
        assert state() == changed
        await session.undo_files()
        assert state() == before

    in_session(
        talk,
        cwd=work,
        model=script(work.parent, play([command])),
        interactive=True,
        overrides={"permissions.mode": "accept_edits"},
    )
