"""What `connect`, `disconnect` and `--status` say is what is in the files; what they leave behind disturbs nobody."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.connect.conftest import Machine
from tests.waiting import LIMIT_S

CODEX = """#!{python}
import json, sys
HOOKS = {hooks!r}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("id") == 2:
        found = json.load(open(HOOKS))["hooks"]
        listed = []
        for event, groups in found.items():
            name = "".join("_" + char.lower() if char.isupper() else char for char in event).lstrip("_")
            for index, group in enumerate(groups):
                listed.append(dict(key=f"{{HOOKS}}:{{name}}:{{index}}:0", currentHash="sha256:1", enabled=True,
                    trustStatus="untrusted", command=group["hooks"][0]["command"], sourcePath=HOOKS))
        print(json.dumps(dict(id=2, result=dict(data=[dict(hooks=listed)]))), flush=True)
"""


@pytest.fixture
def codex(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that answers as `codex app-server` does."""
    program = machine.user / "bin" / "codex"
    machine.write(program, CODEX.format(python=sys.executable, hooks=str(machine.hooks)), 0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.defpath}")
    return machine.hooks.with_name("config.toml")


def hook(machine: Machine, name: str) -> subprocess.CompletedProcess[bytes]:
    script = machine.home / "connect" / name
    return subprocess.run(
        ["sh", script, "Stop"], input=b"x" * 300_000, capture_output=True, timeout=LIMIT_S, check=False
    )


def test_the_status_reads_the_files(machine: Machine) -> None:
    old = machine.write(machine.settings, '{"model": "opus"}')
    machine.connect()
    machine.write(machine.settings, old)  # a copy of the user
    for said in (machine("connect", "--status", code=1), machine("doctor")):
        assert "connected in" not in said and "no longer names the plug-in" in " ".join(said.split())
    assert machine.status()["agents"][0]["connected"] is False
    assert "as it was before" in machine("disconnect") and machine.settings.read_bytes() == old
    machine.connect("codex")
    machine.write(machine.hooks, "{}")
    assert "no longer names the hooks" in machine("connect", "--status", code=1)
    assert "not connected" in machine("connect", "--status", code=1)
    machine("disconnect")
    machine.connect()
    machine.write(machine.local, '{"enabledPlugins": {"reverie@reverie": false}}')  # as `/plugin` does in a project
    assert "the plug-in is switched off" in machine("connect", "--status", code=1)


def test_another_project_is_not_this_folder(machine: Machine) -> None:
    other = machine.user / "other"
    other.mkdir()
    machine.connect("claude-code", "--project")
    said = machine("connect", "--status", "-C", str(other))
    assert "not connected in this folder" in said and f"in another project: {machine.local}" in said
    assert "not connected in this folder" in " ".join(machine("doctor", "-C", str(other)).split())
    machine("connect", "claude-code", "--yes")
    assert f"Still connected: {machine.settings}" in machine("disconnect", "claude-code", "--project")
    assert "Still connected" not in machine("disconnect")


def test_running_sessions_get_no_error_after_a_disconnect(machine: Machine) -> None:
    scripts = ("claude-code/reverie/hooks/hook.sh", "codex/hook.sh")
    machine.connect()
    machine.connect("codex")
    assert "Restart running sessions" in machine("disconnect")
    for name in scripts:
        done = hook(machine, name)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert b"restart Claude Code" in hook(machine, "claude-code/reverie/reverie.sh").stdout
    assert not (machine.home / "run").exists(), "no service was started"
    left = {path.name for path in (machine.home / "connect").rglob("*") if path.is_file()}
    assert left == {"hook.sh", "reverie.sh", ".lock"}
    machine("disconnect")
    assert hook(machine, scripts[0]).returncode == 0
    for path in (machine.home / "connect").rglob("*.sh"):
        os.utime(path, (1, 1))
    machine("disconnect")
    assert not [path for path in (machine.home / "connect").iterdir() if path.is_dir()]
    machine.connect()
    assert machine.status()["problems"] == []


def test_what_claude_code_made_for_the_plug_in_goes_if_it_is_empty(machine: Machine) -> None:
    machine.write(machine.settings, "{}")
    plugins = machine.settings.parent / "plugins"
    before = machine.snapshot()

    def load() -> None:
        """Leaves what Claude Code 2.1.325 leaves when it has loaded the plug-in."""
        machine.write(plugins / "known_marketplaces.json", '{\n  "reverie": {"source": 1}\n}')
        machine.write(plugins / "installed_plugins.json", '{"version": 2, "plugins": {"reverie@reverie": []}}')
        machine.write(plugins / "data/reverie-reverie/x", "x")
        (plugins / "marketplaces").mkdir(exist_ok=True)

    machine.connect()
    load()
    machine.connect("claude-code", "--project")
    machine("disconnect", "--user")
    machine("disconnect")
    assert machine.snapshot() == before
    machine.write(plugins / "known_marketplaces.json", "{}")  # it was there before
    (plugins / "data").mkdir()
    before = machine.snapshot()
    machine.connect()
    load()
    machine("disconnect")
    assert json.loads((plugins / "known_marketplaces.json").read_text()) == {}
    assert machine.snapshot().keys() == before.keys()
    machine.connect()
    load()
    machine.write(plugins / "installed_plugins.json", "broken")
    machine("disconnect")
    assert (plugins / "installed_plugins.json").read_text() == "broken"


def test_an_empty_object_of_the_user_stays_and_ours_goes(machine: Machine) -> None:
    for content in ('{\n  "enabledPlugins": {},\n  "a": 1\n}\n', '{\n  "a": 1\n}\n'):
        machine.write(machine.settings, content)
        machine.connect()
        changed = machine.settings.read_text().replace('"a": 1', '"a": 2').replace("connect/claude-code", "x")
        machine.settings.write_text(changed.replace("/x", "/gone/connect/claude-code"))  # of a home that is gone
        machine.connect()
        machine.settings.write_text(machine.settings.read_text().replace('"a": 2', '"a": 3'))
        machine("disconnect")
        assert json.loads(machine.settings.read_text()) == {**json.loads(content), "a": 3}


def test_a_disconnect_says_what_stays(machine: Machine) -> None:
    machine.connect()
    machine("remember", "Deploys happen on Tuesdays.")
    memory = machine("memory", "path").strip()
    (machine.home / "projects").mkdir(exist_ok=True)
    said = machine("disconnect")
    assert f"(1) stay in {memory}" in said and "reverie memory import '" in said and "memory.shared_with" in said
    assert str(machine.home / "projects") in said and "reverie sessions delete" in said
    assert "Tuesdays" not in machine("memory", "list")
    machine("memory", "import", memory, "--yes")
    assert "Tuesdays" in machine("memory", "list")
    assert "Nothing is connected here" in machine("disconnect")


def test_a_disconnect_without_a_connection_leaves_no_trace(machine: Machine) -> None:
    machine("disconnect")
    assert not (machine.home / "connect").exists()


def test_the_memory_can_be_changed_later(machine: Machine) -> None:
    settings = machine.home / "settings.toml"
    machine.write(settings, "[memory]\nenabled = true\n")
    machine.connect()
    assert "shared_with" in settings.read_text()
    assert "-shared_with" in machine("connect", "claude-code", "--own-memory", "--dry-run")
    said = machine.connect("claude-code", "--own-memory")
    assert "-shared_with" in said and "the plug-in to" not in said
    assert settings.read_text() == "[memory]\nenabled = true\n"
    assert "nothing to change" in machine.connect(), "what was chosen stays"
    assert "+shared_with" in machine.connect("claude-code", "--shared-memory")
    assert "shared_with" in settings.read_text()
    machine("disconnect")
    assert settings.read_text() == "[memory]\nenabled = true\n"
    machine.write(settings, 'memory = {shared_with = "claude-code"}\n')
    assert "in its own way" in machine.connect("claude-code", "--own-memory", code=2)


def test_codex_is_connected_when_its_hooks_are_trusted(machine: Machine, codex: Path) -> None:
    said = machine.connect("codex")
    assert "Codex is connected" not in said and "Codex has the hooks, but skips 6 of 6" in said and "/hooks" in said
    said = machine("connect", "codex", "--trust-hooks", "--dry-run")
    assert "nothing to change" not in said and f"trusted in {codex} (now: 0 of 6)" in said and not codex.exists()
    assert "no terminal to ask" in machine("connect", "codex", "--trust-hooks", code=2) and not codex.exists()
    said = machine.connect("codex", "--trust-hooks")
    assert "Codex is connected." in said and "/hooks" not in said.split("Codex is connected.")[1]
    assert codex.read_text().count("trusted_hash") == 6
    assert "nothing to change" in machine.connect("codex", "--trust-hooks")
    assert "Codex is connected; there is nothing to change." in machine.connect("codex")
    machine("disconnect")
    assert not codex.exists()


def test_connect_again_prints_no_empty_line(machine: Machine) -> None:
    machine.connect()
    assert "" not in machine.connect().splitlines()


def test_enter_is_no_answer_to_a_change_of_another_program(machine: Machine) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "reverie", "connect", "claude-code"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.write(ours, b"\n")
        assert process.wait(LIMIT_S) == 1
        said = os.read(ours, 65_536).decode()
    os.close(ours)
    os.close(theirs)
    assert "[y/N]" in said and "Nothing was changed." in said and " is written" not in said
    assert not machine.home.exists() and not machine.settings.exists()


@pytest.mark.parametrize("group", ["daemon", "memory"])
def test_a_group_alone_prints_its_help_on_lines(group: str) -> None:
    done = subprocess.run([sys.executable, "-m", "reverie", group], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.startswith(f"Usage: reverie {group}") and "\nCommands:\n" in done.stderr
