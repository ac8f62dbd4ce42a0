"""What shell commands may do in each mode: they run in the sandbox, and nothing in a repository can act."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from reverie.permissions.policy import PolicyMode, Rules, make_policy
from reverie.permissions.rules import Allow, Ask, Decision, Deny, Profile, ToolCall
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.permissions.strict_shell import is_read_only_shell
from reverie.tools.base import Caller, ReadCache, ToolContext, ToolOutput
from reverie.tools.registry import make_builtin_tools
from reverie.tools.run import run_calls
from reverie.types import ToolUseBlock
from tests.counts import count
from tests.permissions.harmless_corpus import HARMFUL, HARMLESS
from tests.permissions.hostile_repositories import HOSTILE, clean, git, hostile, record

TOOLS = {tool.name: tool for tool in make_builtin_tools()}
POLICY = make_policy(PolicyMode.ASK)
WITHOUT = Sandboxes(wanted=False)
ACTING = ("git status", "git diff", "git log -p -2 -- src/app.py", "git blame src/app.py")
SLOW = ("npm", "cargo", "java", "go ", "gcc")


def decide(command: str, cwd: Path, mode: PolicyMode = PolicyMode.ASK, sandboxes: Sandboxes | None = None) -> Decision:
    policy = make_policy(mode, sandboxes=sandboxes)
    return policy(ToolCall("c", "Bash", {"command": command}, is_read_only_shell(command), cwd))


def run(commands: list[str], cwd: Path) -> tuple[list[str], dict[str, ToolOutput]]:
    """Runs commands as the main agent does, and widens nothing; returns those that asked first, and the results."""
    asked: list[str] = []

    async def permission(call: ToolCall) -> Decision:
        if call.widening is not None:
            return Deny("not now")
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


def test_harmful_commands_change_nothing(tmp_path: Path) -> None:
    work = with_bait(tmp_path / "work")
    before = record(work)
    assert len(HARMFUL) >= 60
    chosen = [command for command in HARMFUL if not any(name in command for name in (*SLOW, "sleep"))]
    _, results = run(chosen[:: count(9, 1)], work)
    assert record(work) == before
    assert not any("KEY=1" in str(output.content) for output in results.values())


def settled(state: dict[str, tuple[object, ...]]) -> dict[str, tuple[object, ...]]:
    """Without the times of a shared index, which git renews whenever it reads one."""
    return {name: entry for name, entry in state.items() if "sharedindex" not in name}


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
    assert settled(record(work)) == settled(state)
    if name == "as_a_partial_clone":  # what its history holds is not known
        assert all("git" in command for command in asked)
        return
    assert asked == []
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


def test_the_mode_chooses_the_profile(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    may_widen = Allow(profile=Profile.READ_ONLY, may_widen=True)
    assert decide("make", work) == may_widen
    assert decide("make", work, PolicyMode.READ_ONLY) == Allow(profile=Profile.READ_ONLY)
    assert decide("make", work, PolicyMode.ACCEPT_EDITS) == Allow(profile=Profile.WORKSPACE, may_widen=True)
    assert decide("make", work, PolicyMode.ACCEPT_ALL) == Allow()


def test_never_the_whole_home_as_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    decision = decide("make", tmp_path, PolicyMode.ACCEPT_EDITS)
    assert decision == Allow(profile=Profile.READ_ONLY, may_widen=True)


def test_rules_come_first(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    rules = Rules.parse(allow=["Bash(make:*)"], ask=["Bash(curl:*)"], deny=["Bash(rm:*)"])

    def by_rule(command: str) -> Decision:
        return make_policy(PolicyMode.ASK, rules)(ToolCall("c", "Bash", {"command": command}, False, work))

    assert by_rule("make all | head -3") == Allow(), "with all rights"
    assert isinstance(by_rule("curl http://127.0.0.1"), Ask)
    assert isinstance(by_rule("true; rm -rf x"), Deny)
    assert by_rule("make all; touch x") == Allow(profile=Profile.READ_ONLY, may_widen=True)
    assert by_rule("make all; grep -r x .") == Allow(profile=Profile.READ_ONLY, may_widen=True), "it may show secrets"


def test_without_a_sandbox_only_the_strict_list_runs_unasked(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    for command in ("ls -la", "cat README.md | head -3", "grep -rn x ."):
        assert decide(command, work, sandboxes=WITHOUT) == Allow(profile=Profile.READ_ONLY), command
    (work / "vault").mkdir()
    (work / "vault/.env").write_text("KEY=1\n")
    for command in ("grep -rn x .", "git status", "make", "cat .env", "awk 1 README.md"):
        assert isinstance(decide(command, work, sandboxes=WITHOUT), Ask), command
    for command in ("git status", "make"):
        assert isinstance(decide(command, work, PolicyMode.READ_ONLY, WITHOUT), Deny)


def test_git_asks_where_the_history_has_secrets(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    (work / ".env").write_text("KEY=history\n")
    git(work, "add", "-f", ".env")
    git(work, "commit", "-qm", "secret")
    blob = git(work, "rev-parse", "HEAD:.env").strip()
    for command in ("git show HEAD", "cd src && git log -p", f"git show {blob}", "echo $(git grep KEY HEAD)"):
        assert isinstance(decide(command, work), Ask), command
        assert decide(command, work, PolicyMode.READ_ONLY) == Allow(profile=Profile.READ_ONLY), "it shows nothing"
    hidden = ["g=git; $g show HEAD:.env", "find .git -name '*' -type f -exec cat {} +", "cat .env", "cat vault/../.e*"]
    asked, results = run(hidden, work)
    assert asked == []
    assert not any("KEY=history" in str(output.content) for output in results.values())


SHOW_A_SECRET = [
    *("git show --stat REV:.env", "git log -p --full-diff -- README.md", "git grep KEY old --", "git show -s REV:.env"),
    *("git log --graph -p", "git log --no-renames --diff-filter=D -p", "printf '%ln' src; sort README.md"),
]


def test_no_way_of_git_shows_a_secret_unasked(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    (work / ".env").write_text("KEY=history\n")
    git(work, "add", "-f", ".env")
    git(work, "commit", "-qm", "secret")
    git(work, "tag", "old")
    git(work, "rm", "-q", ".env")
    git(work, "commit", "-qm", "without")
    asked, results = run([command.replace("REV", "old") for command in SHOW_A_SECRET], work)
    assert len(asked) == 6
    assert not any("KEY=history" in str(output.content) for output in results.values())


def test_worktrees_and_nested_repositories(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    git(work, "stash")
    git(work, "worktree", "add", "-q", str(tmp_path / "tree"), "feature/a")
    (tmp_path / "tree/README.md").write_text("new\n")
    before = record(work), record(tmp_path / "tree")
    _, results = run(["git status -sb", "git diff --name-only", "git stash list", "git reflog"], tmp_path / "tree")
    assert "## feature/a" in str(results["git status -sb"].content)
    assert results["git diff --name-only"].content == "README.md"
    assert "stash@{0}" in str(results["git stash list"].content)
    assert (record(work), record(tmp_path / "tree")) == before
