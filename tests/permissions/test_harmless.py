"""The second list: what runs without a question in a trusted folder, how it runs, and what a repository cannot do."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from reverie.permissions.policy import PolicyMode, make_policy
from reverie.permissions.rules import Allow, Ask, Decision, ToolCall
from reverie.permissions.shell.read_only import is_read_only_shell
from reverie.tools.base import Caller, ReadCache, ToolContext, ToolOutput
from reverie.tools.registry import make_builtin_tools
from reverie.tools.run import run_calls
from reverie.types import ToolUseBlock
from tests.counts import count
from tests.permissions.harmless_corpus import HARMFUL, HARMLESS
from tests.permissions.hostile_repositories import HOSTILE, clean, git, hostile, record

TOOLS = {tool.name: tool for tool in make_builtin_tools()}
POLICY = make_policy(PolicyMode.ASK, trusted=True)
ACTING = ("git status", "git diff", "git log -p -2 -- src/app.py", "git blame src/app.py")
SLOW = ("npm", "cargo", "java", "go ", "gcc")


def decide(command: str, cwd: Path, *, agent: str | None = None, trusted: bool = True) -> Decision:
    policy = POLICY if trusted else make_policy(PolicyMode.ASK)
    return policy(ToolCall("c", "Bash", {"command": command}, is_read_only_shell(command), cwd, agent_id=agent))


def run(commands: list[str], cwd: Path) -> tuple[list[str], dict[str, ToolOutput]]:
    """Runs commands as the main agent does; returns those that asked, and the results of the others."""
    asked: list[str] = []

    async def permission(call: ToolCall) -> Decision:
        decision = await asyncio.to_thread(POLICY, call)
        if isinstance(decision, Ask):
            asked.append(str(call.input["command"]))
        return decision

    async def one(number: int, command: str) -> ToolOutput:
        context = ToolContext(cwd, Caller(), permission, ReadCache(), cwd.parent / "keep")
        calls = [ToolUseBlock(f"c{number}", "Bash", {"command": command})]
        outputs = [output async for _, output in run_calls(calls, TOOLS, context)]
        return outputs[0]

    async def everything() -> dict[str, ToolOutput]:
        gate = asyncio.Semaphore(8)

        async def limited(number: int, command: str) -> ToolOutput:
            async with gate:
                return await one(number, command)

        outputs = await asyncio.gather(*(limited(number, command) for number, command in enumerate(commands)))
        return dict(zip(commands, outputs, strict=True))

    outputs = asyncio.run(everything())
    return asked, {command: output for command, output in outputs.items() if output.ran}


def test_harmless_commands_do_not_ask_and_change_nothing(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    before = record(work)
    told = {
        "git status -sb": "## main",
        "git log --oneline -10": " two",
        "git diff --stat": "src/util.py | 1 +",
        "git diff --name-only | sort | uniq": "src/util.py",
        "git show HEAD:src/app.py": "# more",
        "git branch -a": "feature/a",
        "git blame src/app.py": "def run():",
        "git stash list": "The command finished without output.",
        "git remote -v": "https://example.com/x.git",
        "git config user.name": "Ann",
        "cd src && git log --oneline -2": " one",
        "sed -n '/def /p' src/app.py": "def run():",
        "env | cut -d= -f1": "PATH",
        'ls src; echo "exit: $?"': "exit: 0",
        "jq -r .name data.json": "x",
    }
    others = HARMLESS[:: count(9, 1)]
    chosen = [command for command in {**told, **dict.fromkeys(others)} if not any(name in command for name in SLOW)]
    asked, results = run(chosen, work)
    assert record(work) == before
    assert len(HARMLESS) >= 60 and asked == []
    for command, words in told.items():
        assert words in str(results[command].content), (command, results[command])
    assert "README.md" not in str(results["git diff --stat"].content), "only its times are new"


def with_bait(folder: Path) -> Path:
    """A clean checkout with what harmful commands of the list are after."""
    work = clean(folder)
    (work / "link").symlink_to("/etc/hostname")
    (work / "vault").mkdir()
    (work / "vault/.env").write_text("KEY=1\n")
    return work


def test_harmful_commands_ask(tmp_path: Path) -> None:
    work = with_bait(tmp_path / "work")
    assert len(HARMFUL) >= 60
    assert [command for command in HARMFUL if not isinstance(decide(command, work), Ask)] == []


@pytest.mark.soak
@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_a_hostile_repository_acts(tmp_path: Path, name: str) -> None:
    marks = tmp_path / "marks"
    work = hostile(tmp_path / "work", marks, HOSTILE[name])
    commands = [command for command in HARMLESS if "git" in command or command.startswith(("ls", "sed", "jq", "which"))]
    commands = [*dict.fromkeys((*ACTING, *commands[:: count(100, 1)]))]
    before, os.environ["PATH"] = os.environ["PATH"], f".:{work}:{os.environ['PATH']}"
    state = record(work)
    try:
        asked, results = run([one for one in commands if not any(slow in one for slow in SLOW)], work)
    finally:
        os.environ["PATH"] = before
    assert sorted(path.name for path in marks.iterdir()) == [], "nothing acted"
    assert record(work) == state
    assert len([command for command in asked if "--version" not in command]) <= 3
    assert "# more" in str(results["git log -p -2 -- src/app.py"].content)
    assert "Ann" in str(results["git blame src/app.py"].content)


def test_the_traps_of_the_hostile_repositories_work(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    work = hostile(tmp_path / "work", marks, HOSTILE["in_config"])
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for command in ("git status", "git diff", "git log -p -1", "git blame README.md", "git st"):
        subprocess.run(["bash", "-c", command], cwd=work, env=env, capture_output=True, check=False)
    acted = {path.name for path in marks.iterdir()}
    assert {"fsmonitor", "clean", "driver", "textconv", "alias-st", "hook-post-index-change"} <= acted, acted


def test_what_may_never_end_asks(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    os.mkfifo(work / "pipe")
    (work / "endless").symlink_to("/dev/zero")
    (work / "nothing").symlink_to("/dev/null")
    (work / "deep").mkdir()
    (work / "deep/link").symlink_to("../endless")
    for command in ("cat endless", "head -c 9 deep/l*", "wc -l pipe", "sort endless", "cat src/app.py | grep x - pipe"):
        decision = decide(command, work)
        assert isinstance(decision, Ask), command
    assert "leads to a device" in str(decide("cat endless", work))
    assert isinstance(decide("cat nothing src/app.py", work), Allow)


def test_only_the_main_agent_in_a_trusted_folder(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    assert decide("git status", work) == Allow(guarded=True)
    assert isinstance(decide("git status", work, agent="a1"), Ask)
    assert isinstance(decide("git status", work, trusted=False), Ask)
    read_only = make_policy(PolicyMode.READ_ONLY, trusted=True)
    assert read_only(ToolCall("c", "Bash", {"command": "git status"}, False, work)) == Allow(guarded=True)


def test_git_does_not_show_files_with_secrets(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    (work / ".env").write_text("KEY=1\n")
    git(work, "add", "-f", ".env")
    git(work, "commit", "-qm", "secret")
    (work / ".env").write_text("KEY=2\n")
    blob = git(work, "rev-parse", "HEAD:.env").strip()
    git(work, "tag", "-a", "-m", "x", "odd", blob)
    for command in (
        *(
            "git diff",
            "git show",
            "git show HEAD",
            "git log -p",
            "git diff HEAD~1",
            "git blame .env",
        ),
        *(
            "git grep KEY",
            f"git show {blob}",
            f"git show {blob[:8]}",
            "git show odd",
            "git log -S KEY",
            "git show :.env",
        ),
        f"git diff {blob} HEAD:README.md",
    ):
        decision = decide(command, work)
        assert isinstance(decision, Ask), command
    assert "may hold secrets" in str(decide("git show HEAD", work))
    for command in (
        "git log --stat",
        "git show --stat",
        "git show HEAD~1",
        "git status",
        "git diff -- src",
        "git grep x src",
    ):
        assert decide(command, work) == Allow(guarded=True), command


def test_a_change_of_folder_is_followed_as_bash_does_it(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    (work / "src/deep").mkdir()
    (work / "there").symlink_to("src/deep")
    (work / "notes").symlink_to(".env")
    (work / ".env").write_text("KEY=1\n")
    (work / "src/notes").write_text("plain\n")
    for command in ("cd there/.. && nl notes", "cd there && cd .. && nl notes", "test -f nonesuch && cd src; nl notes"):
        assert isinstance(decide(command, work), Ask), command
    assert decide("cd src && nl notes", work) == Allow(guarded=True)
    assert decide("cd there && cd .. && git status", work) == Allow(guarded=True)


def test_addresses_with_passwords_ask(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    git(work, "remote", "set-url", "origin", "https://ann:hunter2@example.com/x.git")
    assert isinstance(decide("git remote -v", work), Ask)
    assert isinstance(decide("git config remote.origin.url", work), Ask)


def test_worktrees_and_nested_repositories(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    git(work, "stash")
    git(work, "worktree", "add", "-q", str(tmp_path / "tree"), "feature/a")
    (tmp_path / "tree/README.md").write_text("new\n")
    git(work, "init", "-q", "--bare", "inner.git")
    before = record(work), record(tmp_path / "tree")
    _, results = run(["git status -sb", "git diff --name-only", "git stash list", "git reflog"], tmp_path / "tree")
    assert "## feature/a" in str(results["git status -sb"].content)
    assert results["git diff --name-only"].content == "README.md"
    assert "stash@{0}" in str(results["git stash list"].content)
    assert isinstance(decide("cd inner.git && git log", work), Ask), "git would find another repository there"
    assert (record(work), record(tmp_path / "tree")) == before


def test_a_folder_without_a_repository(tmp_path: Path) -> None:
    _, results = run(["git status", "git --version", "pwd"], tmp_path)
    assert "not a git repository" in str(results["git status"].content)
    assert "git version" in str(results["git --version"].content)


def test_a_version_query_never_runs_a_program_of_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = clean(tmp_path / "work")
    (work / "node").write_text("#!/bin/sh\ntouch acted\n")
    (work / "node").chmod(0o755)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python").write_text("#!/bin/sh\npwd\n")
    (tools / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{work}:{tools}:/usr/bin:/bin")
    assert isinstance(decide("node --version", work), Ask)
    _, results = run(["python --version", "cargo --version"], work)
    assert results["python --version"].content == "/", "it does not run in the project"
    assert "not found" in str(results["cargo --version"].content), "nothing is asked about a program that is not there"
    (work / ".python-version").write_text("3.9\n")
    assert isinstance(decide("python --version", work), Ask), "the file selects another version"
    monkeypatch.setenv("PATH", f".:{tools}:/usr/bin:/bin")
    assert isinstance(decide("node --version", work), Ask)


def test_filters_of_the_user_ask_where_the_project_uses_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = clean(tmp_path / "work")
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text('[filter "lfs"]\n\tclean = git-lfs clean\n[core]\n\tautocrlf = input\n')
    monkeypatch.setenv("HOME", str(home))
    assert decide("git status", work) == Allow(guarded=True)
    (work / ".gitattributes").write_text("*.bin filter=lfs diff=lfs\n")
    assert isinstance(decide("git status", work), Ask)
    assert decide("git log", work) == Allow(guarded=True)


@pytest.mark.evals
def test_how_many_questions_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = with_bait(tmp_path / "work")
    before = sum(isinstance(decide(command, work, trusted=False), Ask) for command in HARMLESS)
    after = sum(isinstance(decide(command, work), Ask) for command in HARMLESS)
    unasked = sum(not isinstance(decide(command, work), Ask) for command in HARMFUL)
    with capsys.disabled():
        print(f"\nharmless asked: {before} before, {after} now, of {len(HARMLESS)}; harmful unasked: {unasked}")
    assert before > 60 and after <= 3 and unasked == 0
