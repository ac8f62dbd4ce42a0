"""The hashes in Codex' `config.toml`: added at the end, removed without a trace, lines of others in between stay."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from reverie.connect import codex
from reverie.connect.codex import CodexHook, add_trust, strip_trust
from reverie.connect.files import UserFile
from reverie.errors import ReverieError, UserError
from tests.connect.conftest import Machine

HOOKS = [
    CodexHook(f"/home/me/.codex/hooks.json:{event}:0:0", f"sha256:{event}", False, True) for event in ("stop", "x")
]


def config(text: str) -> UserFile:
    return UserFile(Path("config.toml"), Path("config.toml"), text.encode())


@pytest.mark.parametrize("text", ["", 'model = "x" # mine\n', "[a]\nb = 1", "[a]\n\n\n"])
def test_trust_is_added_once_and_removed_without_a_trace(text: str) -> None:
    there = add_trust(config(text), HOOKS)
    state = tomllib.loads(there)["hooks"]["state"]
    assert {key: one["trusted_hash"] for key, one in state.items()} == {hook.key: hook.hash for hook in HOOKS}
    assert add_trust(config(there), HOOKS) == there
    assert strip_trust(there, text).rstrip("\n") == text.rstrip("\n")
    more = there.replace("[hooks.state", '[projects."/x"]\ntrust_level = "trusted"\n[hooks.state', 2)
    more = more.replace('[projects."/x"]', '[projects."/y"]', 1)
    left = tomllib.loads(strip_trust(more, text))
    assert set(left.pop("projects")) == {"/x", "/y"} and left == tomllib.loads(text)


def test_a_codex_that_answers_otherwise_or_hangs_is_one_sentence(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codex, "_ASK_S", 0.3)
    program = tmp_path / "codex"
    for said in (
        """echo '{"id": 2, "result": {}}'""",
        """echo '{"id": 2, "result": {"data": [{"hooks": [{"command": "/connect/codex/hook.sh"}]}]}}'""",
        "echo '[[, 2'",
        "exit 3",
        "sleep 1000 & wait",
    ):
        program.write_text(f"#!/bin/sh\n{said}\n")
        program.chmod(0o755)
        with pytest.raises(ReverieError, match="run /hooks in Codex"):
            codex.ask_hooks(str(program), machine.user, machine.work, machine.hooks)


def test_what_the_user_trusted_already_stays() -> None:
    own = f'[hooks.state."{HOOKS[0].key}"]\ntrusted_hash = "{HOOKS[0].hash}"\n'
    there = add_trust(config(own), HOOKS)
    assert there.startswith(own) and there.count(HOOKS[0].key) == 1 and strip_trust(there, own) == own
    with pytest.raises(UserError, match="older entry"):
        add_trust(config(own.replace(HOOKS[0].hash, "sha256:old")), HOOKS)
    with pytest.raises(UserError, match="not valid TOML"):
        add_trust(config("a ="), HOOKS)
