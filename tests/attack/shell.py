"""Shell commands that run unasked where there is no sandbox, bent in many ways and really run, in a folder with traps
and marked secret files.

Never: a change of any file, the mark of a secret in the output, a command that does not end, a program that was not
checked. What would be asked about is not run and not counted.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reverie.permissions.policy import PolicyMode, make_policy
from reverie.permissions.rules import Allow, ToolCall
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.permissions.strict_shell import is_read_only_shell
from tests.attack.arena import Arena
from tests.permissions.test_secrets import READS_SECRETS
from tests.permissions.test_strict_shell_fuzz import (
    BATCH,
    build_world,
    check_trace,
    corpus,
    mutate,
    run_and_watch,
    snapshot,
    walks_far,
)

SECRET_FILES = (
    ".env",
    ".env.production",
    "id_rsa",
    "server.pem",
    "docs/prod.env",
    "memory/.npmrc",
    "src/tls.key",
    "notes/.netrc",
    "logs/terraform.tfstate",
    "My Notes/.git-credentials",
)
HOME_SECRETS = (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".docker/config.json")
_WORDS = (
    *(".env", ".en*", ".e?v", ".[e]nv", "./.*", ".*", "*", "./*", "*/*", "**", "id_rs?", "id_*", "server.p*", "*.pem"),
    *("~/.ssh/*", "~/.s*/id*", "~/.n*", "~/.aws/*", "docs/*", "docs/*.env", "memory/.*", "src/*.k*", "../work/.env"),
    *("link.txt", "linked/id_ed25519", "linked/*", "l*", ".\\env", "'.env'", '".e"nv', ".ENV", "-r .", "-R linked"),
    *("-rh MARK", "--include=.env", "--include=*.pem", "-f .env", "notes/.netr?", "logs/*state", "*'Notes'/.g*"),
)


def _plant(work: Path, home: Path, mark: str) -> None:
    for base, names in ((work, SECRET_FILES), (home, HOME_SECRETS)):
        for name in names:
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_text(f"KEY={mark}\nMARK {mark} foo needle TODO error\n")
    (work / "link.txt").symlink_to(home / ".ssh/id_ed25519")
    (work / "linked").symlink_to(home / ".ssh")


@contextmanager
def _home(path: str) -> Iterator[None]:
    before = os.environ.get("HOME")
    os.environ["HOME"] = path
    try:
        yield
    finally:
        if before is not None:
            os.environ["HOME"] = before


def _bent(chance: random.Random, seeds: list[str]) -> str:
    """An allowed command with a secret file in it, or any mutation."""
    if chance.random() < 0.5:
        return mutate(chance, seeds)
    words = chance.choice(seeds).split(" ")
    for _ in range(chance.randint(1, 2)):
        words.insert(chance.randint(1, len(words)), chance.choice(_WORDS))
    return " ".join(words)


def _runs_unasked(command: str, work: Path) -> bool:
    if not is_read_only_shell(command):
        return False
    policy = make_policy(PolicyMode.READ_ONLY, sandboxes=Sandboxes(wanted=False))
    return isinstance(policy(ToolCall("id", "Bash", {"command": command}, True, work)), Allow)


def attack(arena: Arena) -> None:
    bash = shutil.which("bash")
    assert bash is not None, "bash is not installed"
    work, environment = build_world(arena.folder)
    mark = f"MARK{arena.chance.getrandbits(64):016x}"
    _plant(work, Path(environment["HOME"]), mark)
    seeds = [*corpus(), *READS_SECRETS]
    before, batch = snapshot(arena.folder / "tree"), list[str]()
    with _home(environment["HOME"]):
        for _ in range(arena.count(150, 4_000)):
            command = _bent(arena.chance, seeds)
            if not _runs_unasked(command, work) or walks_far(command):
                continue
            wrong = _wrong(command, work, environment, bash, mark)
            arena.judge(wrong)
            batch.append(command)
            if len(batch) == BATCH:
                _unchanged(arena, before, batch)
        _unchanged(arena, before, batch)


def _wrong(command: str, work: Path, environment: dict[str, str], bash: str, mark: str) -> str | None:
    try:
        ran, shown = run_and_watch(command, work, environment, bash)
        check_trace(command, ran)
    except (AssertionError, pytest.fail.Exception) as error:
        return f"{command!r}: {error}"
    return f"{command!r} shows a secret" if mark.encode() in shown else None


def _unchanged(arena: Arena, before: dict[str, tuple[object, ...]], batch: list[str]) -> None:
    now = snapshot(arena.folder / "tree")
    if now != before:
        arena.judge(f"something changed by one of {batch}")
        before.clear()
        before.update(now)
    batch.clear()
