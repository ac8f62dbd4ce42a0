"""`reverie connect` for editors: entries come and go, comments and all other bytes stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reverie.connect.codex import CodexHook, add_trust
from reverie.connect.editors import EDITORS, add_to_codex, strip_from_codex
from reverie.connect.files import read_user_file
from reverie.connect.json_text import remove_value, set_value, without_comments
from tests.connect.conftest import Machine

COMMENTED = """// my settings
{
  // how it looks
  "theme": "One", // nice
  "url": "http://a//b", /* not a comment: */ "x": {"y": 1,},
  /* the end */
}
"""
FILES = [COMMENTED, COMMENTED.replace("\n", "\r\n"), "{}", "{ // only this\n}\n", '{"a":1}', "\ufeff{\n}\n", None]
WRITTEN = [name for name, editor in EDITORS.items() if editor.user]


def settings_of(machine: Machine, name: str) -> Path:
    return machine.user / EDITORS[name].user


@pytest.mark.parametrize("name", WRITTEN)
def test_every_settings_file_comes_back_byte_for_byte(machine: Machine, name: str) -> None:
    path = settings_of(machine, name)
    for content in FILES:
        if content is None:
            path.unlink()
            path.parent.rmdir()
        else:
            machine.write(path, content)
        before = machine.snapshot()
        machine.connect(name)
        text = path.read_text()
        data = json.loads(without_comments(text.removeprefix("\ufeff")))
        for protocol in EDITORS[name].protocols:
            entry: Any = data
            for key in EDITORS[name].route(protocol):
                entry = entry[key]
            assert entry["args"][-1] == protocol and Path(entry["command"]).is_absolute()
        assert all(part in text for part in ("// how", "// nice", "/* not", "/* the end */")) or content != COMMENTED
        assert "nothing to change" in machine.connect(name)
        assert machine.status()["problems"] == []
        machine("disconnect", name)
        assert machine.snapshot() == before


def test_what_the_user_changed_since_stays(machine: Machine) -> None:
    path = settings_of(machine, "zed")
    machine.write(path, COMMENTED)
    machine.connect("zed")
    machine.write(path, path.read_text().replace('"theme": "One"', '"theme": "Two"').replace("// nice", "// nicer"))
    machine("disconnect", "zed")
    text = path.read_text()
    assert "// nicer" in text and "/* the end */" in text and "reverie" not in text.lower()
    assert json.loads(without_comments(text)) == {"theme": "Two", "url": "http://a//b", "x": {"y": 1}}


def test_an_entry_of_somebody_else_is_left_alone(machine: Machine) -> None:
    path = settings_of(machine, "cursor")
    before = machine.write(path, '{"mcpServers": {"reverie": {"command": "npx", "args": ["another"]}}}')
    assert "another entry with the name 'reverie'" in machine.connect("cursor", code=2)
    for broken in ("[1]", "{", '{"mcpServers": 5}'):
        machine.write(path, broken)
        assert "nothing was changed" in machine.connect("cursor", code=2)
    assert machine.write(path, before) == before and not (machine.home / "connect" / "journal.json").exists()


def test_printing_writes_nothing(machine: Machine) -> None:
    before = machine.snapshot()
    for name in ("claude-code", "codex", *EDITORS):
        assert "reverie" in machine("connect", name, "--print")
    assert json.loads(machine("connect", "zed", "--print", "--mcp", "--json"))["configuration"][0]["text"].count("mcp")
    assert "toad acp" in machine("connect", "toad")
    assert machine.snapshot() == before and not machine.home.exists()


def test_one_protocol_or_one_project_can_be_chosen(machine: Machine) -> None:
    machine.connect("zed", "--acp", "--project")
    assert list(json.loads((machine.work / ".zed" / "settings.json").read_text())) == ["agent_servers"]
    (machine.work / ".zed" / "settings.json").write_text("{}")
    [finding] = machine.status()["problems"]
    assert "no longer names Reverie" in finding["what"] and "reverie connect zed --project" in finding["todo"]
    machine("disconnect")
    assert machine.status()["problems"] == []


def test_claude_code_and_codex_get_the_server_on_request(machine: Machine) -> None:
    config = machine.user / ".codex" / "config.toml"
    machine.write(config, 'model = "x" # mine')
    before = machine.snapshot()
    machine.connect("claude-code")
    plugin = machine.home / "connect" / "claude-code" / "reverie" / ".mcp.json"
    assert not plugin.exists(), "the hooks recall already"
    machine.connect("claude-code", "--mcp")
    machine.connect("claude-code")
    assert json.loads(plugin.read_text())["mcpServers"]["reverie"]["args"][-1] == "mcp", "an upgrade keeps it"
    machine.connect("codex", "--mcp")
    assert {one["agent"]: one["serves"] for one in machine.status()["agents"] if one["serves"]} == {
        "claude-code": ["mcp"],
        "codex": ["mcp"],
    }
    machine.connect("claude-code", "--no-mcp")
    machine.connect("codex", "--no-mcp")
    assert not plugin.exists() and config.read_text() == 'model = "x" # mine'
    machine.connect("codex", "--mcp")
    machine("disconnect")
    assert machine.snapshot() == before


@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n", "a = 1\n\n", "[b]\r\nc = 2\r\n"])
def test_the_server_and_the_trust_of_codex_share_a_file(machine: Machine, text: str) -> None:
    path = machine.user / "config.toml"
    machine.write(path, text.encode())
    once = add_to_codex(read_user_file(path), machine.home, machine.user)
    machine.write(path, once.encode())
    both = add_trust(read_user_file(path), [CodexHook("k", "h", False, True)])
    machine.write(path, both.encode())
    assert add_to_codex(read_user_file(path), machine.home, machine.user).count("[mcp_servers.reverie]") == 1
    assert strip_from_codex(once, "") in (text, f"{text}\n"), "a last line may get its end"
    assert "trusted_hash" in strip_from_codex(both, "") and "mcp_servers" not in strip_from_codex(both, "")


def test_keys_between_comments_are_set_and_removed() -> None:
    for text in (COMMENTED, '{\n  "s": {\n    // a\n    "o": 1, // keep\n    // z\n  },\n}\n', "{ // only\n}"):
        there = set_value(text, ("s", "ours"), {"k": [1]})
        assert json.loads(without_comments(there))["s"]["ours"] == {"k": [1]}
        back = remove_value(there, ("s", "ours"))
        kept = json.loads(without_comments(text))
        assert json.loads(without_comments(back)) == {**kept, "s": kept.get("s", {})}
        for part in ("// nice", "/* not a comment: */", "/* the end */", "// keep", "// z", "// only"):
            assert (part in text) == (part in there) == (part in back)
