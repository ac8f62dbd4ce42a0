"""A user's afternoon with memory, and a directory somebody else made: through the command line only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.shared_data import sources


@pytest.fixture
def reverie(reverie: Command) -> Command:
    # What is written in the background has tests of its own; here only the person writes.
    reverie.extra = {"REVERIE_FLAG_EXTRACTION": "0", "REVERIE_FLAG_DREAM": "0"}
    return reverie


def asked(reverie: Command, *args: str, **more: Any) -> Any:
    return json.loads(reverie(*args, "--json", **more).stdout)


def answer(reverie: Command, question: str) -> str:
    """A new session, with the model that needs no key."""
    return reverie("run", "--model", "embedded", "--quiet", question).stdout.strip()


def test_an_afternoon(reverie: Command, tmp_path: Path) -> None:
    # Remember: a fact, a rule, something about oneself.
    reverie("remember", "The staging server listens on port 8417")
    reverie("remember", "Never mock the database in integration tests, because a mock hid a broken migration")
    reverie("remember", "I'm new to React but know Go well")
    assert {one["type"] for one in asked(reverie, "memory", "list")["memories"]} == {"project", "feedback", "user"}

    # A new session answers from it, and says from where.
    said = answer(reverie, "On which port does the staging server listen?")
    assert "8417" in said and "project_staging_server_listens_port.md" in said
    assert "integration" in answer(reverie, "May I mock the database in integration tests?")

    # Correct it: one file, not two, and the next session knows.
    reverie.extra = {**reverie.extra, "EDITOR": "sed -i s/8417/9000/g"}
    reverie("memory", "edit", "staging")
    assert len(asked(reverie, "memory", "list")["memories"]) == 3
    said = answer(reverie, "On which port does the staging server listen?")
    assert "9000" in said and "8417" not in said

    # See the log, undo the correction, take the undo back.
    correction = asked(reverie, "memory", "log", "staging")["versions"][0]
    assert (
        correction["writer"] == "user"
        and "-The staging server listens on port 8417" in reverie("memory", "diff", correction["short"]).stdout
    )
    reverie("memory", "undo", correction["short"])
    assert "8417" in answer(reverie, "On which port does the staging server listen?")
    reverie("memory", "undo")
    assert "9000" in reverie("memory", "show", "staging").stdout

    # Forget.
    reverie("forget", "staging server port", "--yes")
    assert "9000" not in answer(reverie, "On which port does the staging server listen?")

    # Import notes from another project: look first, then take them in.
    notes = tmp_path / "old-project" / "NOTES.md"
    notes.parent.mkdir()
    notes.write_text(
        "## Backups\nBackups run every night at two on the host badger.\n\n## Owners\nAnna owns billing.\n"
    )
    looked = asked(reverie, "memory", "import", str(notes), "--dry-run")
    assert [one["action"] for one in looked["pieces"]] == ["add", "add"]
    assert len(asked(reverie, "memory", "list")["memories"]) == 2
    reverie("memory", "import", str(notes))
    assert "badger" in answer(reverie, "On which host do the backups run every night?")

    # Check: nothing is wrong; then somebody tidies by hand, and check finds and mends it.
    reverie("memory", "check")
    folder = Path(reverie("memory", "path").stdout.strip())
    owners = next(folder.glob("*owners*.md"))
    owners.unlink()
    assert [one["problem"] for one in asked(reverie, "memory", "check", code=1)["findings"]] == ["dead pointer"]
    reverie("memory", "check", "--fix")
    reverie("memory", "restore", owners.name)
    assert "Anna" in owners.read_text()

    # Purge a word that should never have been kept, from files, versions and transcripts.
    reverie("memory", "purge", "--yes", stdin="badger\n")
    for where, _, names in os.walk(reverie.home):
        for name in names:
            assert b"badger" not in Path(where, name).read_bytes(), Path(where, name)
    assert "badger" not in reverie("memory", "show", "backups").stdout
    assert asked(reverie, "memory", "log")["versions"][-1]["writer"] == "user", "the history is still whole"
    assert asked(reverie, "doctor")["healthy"]


@pytest.mark.parametrize(
    ("source", "files", "question", "answer"),
    sources(
        "memory-dir/.claude/memory",
        own=(12, "on which port does the radar gauge speak?", "project_gauge_swap.md"),
        shared=(19, "how do I read whether a table is real-time or turn-based?", "project_bga_mode_detection.md"),
    ),
)
def test_a_directory_that_claude_code_made(
    reverie: Command, tmp_path: Path, source: Path, files: int, question: str, answer: str
) -> None:
    memory = tmp_path / "memory"
    shutil.copytree(source, memory)
    before = {path.name: path.read_bytes() for path in memory.iterdir() if path.is_file()}
    reverie.extra["REVERIE_MEMORY_PATH"] = str(memory)

    listed = asked(reverie, "memory", "list")["memories"]
    assert len(listed) == files and all(one["type"] and one["description"] for one in listed)
    found = asked(reverie, "recall", question)
    assert found["shown"][0]["file"] == answer
    problems = {one["problem"] for one in asked(reverie, "memory", "check", code=1)["findings"]}
    assert "over-long line" in problems and "broken frontmatter" not in problems
    assert {path.name: path.read_bytes() for path in memory.iterdir() if path.is_file()} == before, (
        "looking changes nothing"
    )

    reverie("remember", "Card images live in the bucket bga-cards, one folder a set", "--type", "reference")
    after = {path.name: path.read_bytes() for path in memory.iterdir() if path.is_file()}
    (new,) = after.keys() - before.keys()
    assert new.startswith("reference_")
    assert {name for name in before if after[name] != before[name]} == {"MEMORY.md"}
    assert after["MEMORY.md"].startswith(before["MEMORY.md"].rstrip(b"\n")[:2_000])
    kept, now = before["MEMORY.md"].decode().splitlines(), after["MEMORY.md"].decode().splitlines()
    assert [line for line in now if new not in line] == kept and len(now) == len(kept) + 1

    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    history = asked(reverie, "memory", "path")["history"]

    def read(*args: str) -> str:
        done = subprocess.run([git, "--git-dir", history, *args], capture_output=True, text=True, check=True)
        return done.stdout

    assert read("log", "--format=%an").split() == ["user", "hand"]
    assert read("fsck", "--strict") == "" and "Card images" in read("show", f"main:{new}")
    assert read("show", "main~1:MEMORY.md").encode() == before["MEMORY.md"]
    assert not (memory / ".git").exists()

    reverie("memory", "undo")
    assert {path.name: path.read_bytes() for path in memory.iterdir() if path.is_file()} == before
