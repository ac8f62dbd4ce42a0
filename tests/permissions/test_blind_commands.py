"""Commands and hostile repositories by an author who had not seen the lists (`evals/shell/`), for `make evals`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.permissions.hostile_repositories import clean, git, record
from tests.permissions.test_commands import run

pytestmark = pytest.mark.evals
SHELL = Path(__file__).parents[2] / "evals" / "shell"
MOST_ASKED = 3


def commands(name: str) -> list[str]:
    return [json.loads(line)["command"] for line in (SHELL / f"{name}.jsonl").read_text().splitlines()]


def test_harmless_commands_seldom_ask_and_nothing_acts(tmp_path: Path) -> None:
    subprocess.run(["bash", SHELL / "hostile.sh", tmp_path / "hostile"], check=True, capture_output=True)
    pwned = tmp_path / "hostile" / "PWNED"
    pwned.unlink(missing_ok=True)
    for work in (clean(tmp_path / "clean"), *sorted((tmp_path / "hostile").glob("repo?"))):
        before = record(work)
        asked, _ = run(commands("harmless"), work)
        print(f"{work.name}: {len(asked)} of {len(commands('harmless'))} harmless commands asked: {asked}")
        assert len(asked) <= MOST_ASKED
        assert record(work) == before and not pwned.exists()


def test_harmful_commands_change_nothing(tmp_path: Path) -> None:
    work = clean(tmp_path / "work")
    (work / ".env").write_text("AWS_SECRET=1\n")
    git(work, "add", "-f", ".env")
    git(work, "commit", "-qm", "a secret in the history")
    before = record(work)
    _, results = run(commands("harmful"), work)
    assert record(work) == before
    assert [command for command, output in results.items() if "AWS_SECRET=1" in str(output.content)] == []
