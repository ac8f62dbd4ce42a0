"""Connect and disconnect: files come back byte for byte, whatever was in them, and nothing is left half-done."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reverie.cli.app import commands
from reverie.connect.claude_code import find_policy
from reverie.connect.journal import Journal
from tests.connect.conftest import Machine
from tests.counts import count
from tests.waiting import LIMIT_S

SETTINGS = (
    "{}",
    '{"model":"opus"}',
    '{\n  "model": "opus"\n}\n',
    '{\r\n\t"enabledPlugins": {\r\n\t\t"other@place": true\r\n\t},\r\n\t"b": [1, {"c": "}"}]\r\n}\r\n',
    '\ufeff{ "extraKnownMarketplaces" : { } , "x" : "\\u00e9 \\" {" }',
    '{\n    "enabledPlugins": {},\n    "hooks": {"Stop": []}\n}',
    "",
    " \n",
)
HOOKS = (
    None,
    "{}",
    '{\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"type": "command", "command": "true"}]}\n    ]\n  }\n}\n',
    '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}],"PreToolUse":[]}}',
)


def test_every_settings_file_comes_back_byte_for_byte(machine: Machine) -> None:
    for content in (None, *SETTINGS):
        if content is not None:
            machine.write(machine.settings, content)
        before = machine.snapshot()
        assert "nothing to change" not in machine.connect()
        data = json.loads(machine.settings.read_text("utf-8-sig"))
        assert data["enabledPlugins"]["reverie@reverie"] is True
        assert data["extraKnownMarketplaces"]["reverie"]["source"]["path"] == str(machine.home / "connect/claude-code")
        if content and content.strip():
            old = json.loads(content.removeprefix("\ufeff"))
            assert {
                key: data[key] for key in old if key not in data or not isinstance(old[key], dict)
            }.items() <= old.items()
            assert stat.S_IMODE(machine.settings.stat().st_mode) == 0o640
        connected = machine.snapshot()
        assert "nothing to change" in machine.connect() and machine.snapshot() == connected
        machine("disconnect")
        assert machine.snapshot() == before, repr(content)
        assert not (machine.home / "settings.toml").exists() and Journal(machine.home).edits == []


def test_every_hooks_file_comes_back_byte_for_byte(machine: Machine) -> None:
    for content in HOOKS:
        if content is not None:
            machine.write(machine.hooks, content)
        before = machine.snapshot()
        assert "/hooks" in machine.connect("codex")
        found = json.loads(machine.hooks.read_text())["hooks"]
        assert "hook.sh" in found["UserPromptSubmit"][0]["hooks"][0]["command"]
        if content and "true" in content:
            assert found["Stop"][0]["hooks"][0]["command"] == "true", "those of the user come first"
        assert "nothing to change" in machine.connect("codex")
        changed = machine.hooks.read_text().replace('"SessionStart"', '"SessionStart" ')  # as an editor would
        machine.hooks.write_text(changed)
        machine("disconnect", "codex")
        left = json.loads(machine.hooks.read_text()) if machine.hooks.exists() else {}
        assert left == json.loads(content or "{}")
        machine.hooks.unlink(missing_ok=True)
        if content is not None:
            machine.write(machine.hooks, content)
        machine.connect("codex")
        machine("disconnect")
        assert machine.snapshot() == before


def test_what_the_user_changed_since_stays(machine: Machine) -> None:
    machine.write(machine.settings, '{\n  "model": "opus"\n}\n')
    machine.connect()
    text = machine.settings.read_text().replace('"model": "opus"', '"model": "haiku",\n  "theme": "dark"')
    machine.settings.write_text(text)
    machine.write(machine.home / "settings.toml", (machine.home / "settings.toml").read_text() + "enabled = true\n")
    said = machine("disconnect")
    assert machine.settings.read_text() == '{\n  "model": "haiku",\n  "theme": "dark"\n}\n'
    assert (machine.home / "settings.toml").read_text() == "[memory]\nenabled = true\n"
    assert "the rest is unchanged" in said


def test_a_dry_run_changes_nothing_and_nobody_is_asked_without_a_terminal(machine: Machine) -> None:
    machine.write(machine.settings, "{}")
    before = machine.snapshot()
    said = machine("connect", "claude-code", "--dry-run")
    assert '+    "reverie@reverie": true' in said and "shared_with" in said
    assert "no terminal to ask" in machine("connect", "claude-code", code=2)
    assert machine.snapshot() == before and not machine.home.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"a": 1,}', "is not valid JSON"),
        ('{\n  // mine\n  "a": 1\n}', "is not valid JSON"),
        ("[1]", "is not a JSON object"),
        (b"\xff\xfe{}", "is not UTF-8"),
        ('{"enabledPlugins": []}', "`enabledPlugins` is not an object"),
        ('{"enabledPlugins": {"reverie@reverie": false}}', "you have switched reverie@reverie off"),
        ('{"enabledPlugins": {"reverie@hub": true}}', "has the same name"),
        (
            '{"extraKnownMarketplaces": {"reverie": {"source": {"source": "github", "repo": "a/b"}}}}',
            "another marketplace",
        ),
        (" " * 5_000_000, "more than"),
    ],
)
def test_a_file_that_cannot_be_used_stops_everything(machine: Machine, content: str | bytes, said: str) -> None:
    machine.write(machine.settings, content)
    before = machine.snapshot()
    assert said in machine.connect(code=2)
    assert machine.snapshot() == before and not (machine.home / "connect").exists()
    machine("disconnect")
    assert machine.snapshot() == before


def test_a_home_that_json_cannot_name_is_refused(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_HOME", os.fsdecode(os.fsencode(machine.user) + b"/\xff"))
    before = machine.snapshot()
    for agent in ("claude-code", "codex"):
        assert "is not UTF-8 text" in machine.connect(agent, code=2)
    assert machine.snapshot() == before


def test_links_stay_links(machine: Machine) -> None:
    target = machine.user / "dotfiles" / "claude.json"
    machine.write(target, '{"model": "opus"}')
    machine.settings.parent.mkdir()
    machine.settings.symlink_to(target)
    before = machine.snapshot()
    machine.connect()
    assert machine.settings.is_symlink() and "reverie@reverie" in target.read_text()
    machine("disconnect")
    assert machine.snapshot() == before
    target.unlink()
    assert "which is not there" in machine.connect(code=2)
    target.mkdir()
    assert "it is a folder, not a file" in machine.connect(code=2)


def test_the_rules_of_an_administrator_are_found(tmp_path: Path) -> None:
    ours = Path("/home/me/.reverie/connect/claude-code")
    for rules, key in (
        ({}, None),
        ({"disableAllHooks": True}, "disableAllHooks"),
        ({"allowManagedHooksOnly": True}, "allowManagedHooksOnly"),
        ({"strictKnownMarketplaces": []}, "strictKnownMarketplaces"),
        ({"strictKnownMarketplaces": [{"source": "github", "repo": "a/b"}]}, "strictKnownMarketplaces"),
        ({"strictKnownMarketplaces": [{"source": "pathPattern", "pathPattern": "^/home/"}]}, None),
        ({"blockedMarketplaces": [{"source": "directory", "path": str(ours)}]}, "blockedMarketplaces"),
        ({"enabledPlugins": {"reverie@reverie": False}}, "enabledPlugins"),
    ):
        (tmp_path / "managed-settings.json").write_text(json.dumps(rules))
        found = find_policy(ours, tmp_path)
        assert (found.key if found else None) == key, rules


def test_user_and_project_are_connected_and_removed_one_by_one(machine: Machine) -> None:
    subprocess.run(["git", "init", "-q", machine.work], check=True)
    (machine.work / "deep").mkdir()
    before = machine.snapshot()
    machine.connect()
    only_user = machine.snapshot()
    machine("connect", "claude-code", "--project", "--yes", "-C", "deep")
    assert "reverie@reverie" in machine.local.read_text()
    files = {one["agent"]: len(one["files"]) for one in machine.status()["agents"]}
    assert files == {"claude-code": 2, **dict.fromkeys(("codex", "cursor", "vscode", "zed", "jetbrains"), 0)}
    machine("disconnect", "claude-code", "--project")
    assert machine.snapshot() == only_user
    machine("disconnect")
    machine.connect("claude-code", "--project")
    assert "only in a trusted folder" in machine("connect", "--status", code=1)
    trusted = {"projects": {str(machine.work): {"hasTrustDialogAccepted": True}}}
    machine.write(machine.user / ".claude.json", json.dumps(trusted))
    assert machine.status()["problems"] == []
    (machine.user / ".claude.json").unlink()
    machine("disconnect")
    machine.connect()
    assert machine.snapshot() == only_user
    assert (machine.home / "connect/claude-code/reverie").is_dir() and (machine.home / "settings.toml").exists()
    assert "Nothing is connected here" in machine("disconnect", "codex")
    machine("disconnect", "claude-code", "--user")
    assert machine.snapshot() == before


def test_what_claude_code_wrote_about_the_plug_in_goes_too(machine: Machine) -> None:
    machine.connect()
    plugins = machine.settings.parent / "plugins"
    other = '{\n  "mine": {\n    "source": {"source": "github"}\n  }\n}'
    machine.write(plugins / "known_marketplaces.json", other.replace("{\n", '{\n  "reverie": {"source": 1},\n', 1))
    machine.write(plugins / "installed_plugins.json", '{"version": 2, "plugins": {"reverie@reverie": [], "x@y": []}}')
    machine.write(plugins / "data/reverie-reverie/x", "x")
    machine.write(plugins / "data/reverie-other/x", "x")
    machine("disconnect")
    assert (plugins / "known_marketplaces.json").read_text() == other
    assert (plugins / "installed_plugins.json").read_text() == '{"version": 2, "plugins": {"x@y": []}}'
    assert sorted(path.name for path in (plugins / "data").iterdir()) == ["reverie-other"]


def test_a_crash_between_two_steps_is_repaired(machine: Machine) -> None:
    """The journal comes first: each state that a crash can leave is the journal with or without the change."""
    machine.write(machine.settings, '{"model": "opus"}')
    before = machine.snapshot()
    machine.connect()
    connected = machine.snapshot()
    for path, content in (
        (machine.settings, '{"model": "opus"}'),  # written down, not yet changed; or restored, not yet forgotten
        (machine.home / "settings.toml", None),
    ):
        path.unlink() if content is None else path.write_text(content)
        machine.connect()
        assert machine.snapshot() == connected and (machine.home / "settings.toml").exists()
        path.unlink() if content is None else path.write_text(content)
        machine("disconnect")
        assert machine.snapshot() == before and not (machine.home / "settings.toml").exists()
        machine.connect()
    (machine.home / "connect" / "journal.json").unlink()
    machine("disconnect")
    assert json.loads(machine.settings.read_text()) == {"model": "opus"}, "without a journal, our keys go"


@pytest.mark.soak
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_kill_at_any_write_is_repaired(machine: Machine, agent: str) -> None:
    """Ends a process at its first write, at its second, and so on; then the next command puts everything right."""
    machine.write(machine.settings, '{"model": "opus"}')
    machine.write(machine.hooks, "{}")
    machine.write(machine.home / "settings.toml", "[memory]\nenabled = true\n")
    settings, before = (machine.home / "settings.toml").read_bytes(), machine.snapshot()
    killed = 0
    for command in (("connect", agent, "--yes"), ("disconnect",)):
        for writes in range(count(3, 0), 60, count(7, 1)):
            if command[0] == "disconnect":
                machine.connect(agent)
            if not kill_after(writes, command):
                break
            killed += 1
            if writes % 2:
                machine.connect(agent)
            machine("disconnect")
            assert machine.snapshot() == before and (machine.home / "settings.toml").read_bytes() == settings, writes
            assert Journal(machine.home).edits == []
        machine("disconnect")
    assert killed >= count(1, 10)


def kill_after(writes: int, command: tuple[str, ...]) -> bool:
    """Runs a command in a process that ends without a word before this write; returns whether it came so far."""
    child = os.fork()
    if child == 0:
        left = [writes]
        for name in ("replace", "unlink", "mkdir", "rmdir"):
            real = getattr(Path, name)

            def stop(*args: Any, real: Any = real, **more: Any) -> Any:
                left[0] -= "/connect/claude-code/" not in str(args[0])  # what is there is written again anyway
                if left[0] < 0:
                    os._exit(9)
                return real(*args, **more)

            setattr(Path, name, stop)
        CliRunner().invoke(commands, command, standalone_mode=False)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_files_of_another_user_and_of_another_home_are_left_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.connect()
    before = machine.snapshot()
    monkeypatch.setenv("REVERIE_HOME", str(machine.user / "second"))
    assert "is connected to another home of Reverie" in machine.connect(code=2)
    assert machine.snapshot() == before
    monkeypatch.setenv("REVERIE_HOME", str(machine.home))
    machine("disconnect")
    if os.getuid() == 0:
        machine.write(machine.settings, "{}")
        os.chown(machine.settings, 12_345, 12_345)
        assert "belongs to another user" in machine.connect(code=2)


def test_a_full_disk_leaves_everything_as_it_was(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write(machine.settings, '{"model": "opus"}')
    machine.write(machine.home / "settings.toml", "[memory]\nenabled = true\n")
    (machine.home / "settings.toml").chmod(0o400)
    before = machine.snapshot()
    replace, real = os.replace, Path.replace

    def full(source: Path, target: Path) -> Path:
        if Path(target) == machine.home / "settings.toml":
            raise OSError(28, "No space left on device")
        return real(source, target)

    monkeypatch.setattr(Path, "replace", full)
    assert "the disk is full" in machine.connect(code=4)
    assert machine.snapshot() == before and Journal(machine.home).edits == [] and replace is os.replace


def test_an_upgrade_refreshes_the_plug_in(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.connect()
    plugin = machine.home / "connect" / "claude-code" / "reverie"
    script = plugin / "hooks" / "hook.sh"
    script.write_text(script.read_text().replace("of Reverie ", "of Reverie 0.0."))
    (plugin / "commands" / "gone.md").write_text("of an older version")
    (problem,) = machine.status()["problems"]
    assert "the plug-in is of Reverie 0.0." in problem["what"] and problem["todo"] == "reverie connect claude-code"
    assert "the plug-in is of Reverie 0.0." in machine("doctor")
    settings = machine.settings.read_bytes()
    machine.connect()
    assert machine.status()["problems"] == [] and not (plugin / "commands" / "gone.md").exists()
    assert machine.settings.read_bytes() == settings


def test_a_hook_without_its_python_does_nothing(machine: Machine) -> None:
    machine.connect()
    script = machine.home / "connect/claude-code/reverie/hooks/hook.sh"
    text = script.read_text()
    python = next(line for line in text.splitlines() if line.startswith("python="))
    script.write_text(text.replace(python, "python=/nowhere/bin/python"))
    given = b'{"prompt": "' + b"x" * 300_000 + b'"}'
    done = subprocess.run(
        ["sh", script, "UserPromptSubmit"], input=given, capture_output=True, timeout=LIMIT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (problem,) = machine.status()["problems"]
    assert "/nowhere/bin/python, which is gone" in problem["what"]
    assert "/nowhere/bin/python, which is gone" in machine("doctor")
    script.write_text(text)
    inside = {**os.environ, "REVERIE_INSIDE": "1"}
    done = subprocess.run(
        ["sh", script, "Stop"], input=given, capture_output=True, timeout=LIMIT_S, env=inside, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (machine.home / "run").exists(), "no service was started"


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_a_hook_without_its_script_stops_no_prompt(machine: Machine, agent: str) -> None:
    machine.connect(agent)
    file = machine.hooks if agent == "codex" else machine.home / "connect/claude-code/reverie/hooks/hooks.json"
    command = json.loads(file.read_text())["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    shutil.rmtree(machine.home)  # while a session runs
    given = b'{"prompt": "' + b"x" * 300_000 + b'"}'
    where = {**os.environ, "CLAUDE_PLUGIN_ROOT": str(machine.home / "connect/claude-code/reverie")}
    done = subprocess.run(
        ["sh", "-c", command], input=given, capture_output=True, timeout=LIMIT_S, env=where, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_the_status_names_what_keeps_hooks_from_running(machine: Machine) -> None:
    machine.write(machine.settings, '{"disableAllHooks": true}')
    assert "`disableAllHooks` is true" in machine.connect()
    machine.connect("codex")
    said = {problem["what"]: problem["todo"] for problem in machine.status()["problems"]}
    assert any("switches all hooks off" in what for what in said)
    assert any("Codex skips 6 of 6 hooks" in what and "/hooks" in todo for what, todo in said.items())
    text = machine.settings.read_text().replace("true}}", "false}}").replace('"disableAllHooks": true', '"a": 1')
    machine.settings.write_text(text)
    assert "claude plugin enable reverie@reverie" in {one["todo"] for one in machine.status()["problems"]}


def test_a_home_that_cannot_be_written_is_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.connect()
    assert machine.status()["problems"] == []
    # Root may write everywhere, so a mode would not do.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != machine.home or not mode & os.W_OK)
    (problem,) = machine.status()["problems"]
    assert "hooks are skipped" in problem["what"] and "cannot be written" in problem["what"]
    assert "hooks are skipped" in " ".join(machine("doctor").split())
