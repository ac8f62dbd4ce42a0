"""A purge reaches what a team shares, a sync does not bring the value back, and other projects are named."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reverie.cli.app import commands
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile, encode
from reverie.memory.upkeep.purged_record import PurgedRecord
from reverie.paths import Places
from reverie.settings import load_settings

SECRET = "Wombat" + "-Quartz7" + "Tulip93"
TOPIC = TopicFile.new(name="door", description="the door", type=MemoryType.PROJECT, body=f"The word is {SECRET}.")
INFO = WriteInfo(Writer.USER, "a test")


def run(work: Path, *words: str, given: str | None = None) -> Result:
    done = CliRunner().invoke(commands, ["memory", *words, "-C", str(work)], input=given, standalone_mode=False)
    assert done.exception is None, done.exception
    return done


def memory_of(work: Path) -> MemoryDirectory:
    return MemoryDirectory.open(Places.of(work, load_settings(work)).default_memory, gate=lambda _write: None)


def share(work: Path, how: str) -> None:
    home = Places.of(work, load_settings(work)).home
    home.mkdir(parents=True, exist_ok=True)
    (home / "settings.toml").write_text(f"[team]\n{how}\n")


def test_the_shared_folder_is_purged_and_a_sync_brings_nothing_back(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    share(tmp_path, f'sharing = "folder"\nfolder = "{shared}"')
    memory = memory_of(tmp_path)
    (shared / "x.md").write_bytes(encode(TOPIC.text))
    run(tmp_path, "sync")
    assert SECRET in memory.read("team/x.md").text
    done = run(tmp_path, "purge", "--yes", given=SECRET)
    assert done.return_value == 0, done.output
    assert "shared" in done.output
    assert SECRET not in (shared / "x.md").read_text()
    run(tmp_path, "sync")
    assert SECRET not in memory.read("team/x.md").text
    (shared / "x.md").write_bytes(encode(TOPIC.text))  # somebody who has not synced since writes it again
    (shared / "y.md").write_bytes(encode(TOPIC.text))
    told = run(tmp_path, "sync").output
    assert "purged" in told and SECRET not in told
    assert SECRET not in memory.read("team/x.md").text and not memory.exists("team/y.md")


def test_the_history_of_a_git_remote_is_said_to_be_left(tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    share(tmp_path, f'sharing = "git"\nremote = "{remote}"')
    memory = memory_of(tmp_path)
    memory.create("team/x.md", TOPIC, INFO)
    assert "sent" in run(tmp_path, "sync").output
    done = run(tmp_path, "purge", "--yes", given=SECRET)
    assert done.return_value == 1
    assert "remote" in done.output and "history" in done.output
    newest = ["git", f"--git-dir={remote}", "grep", "-c", SECRET, "main"]
    assert subprocess.run(newest, capture_output=True, check=False).returncode == 1
    run(tmp_path, "sync")
    assert SECRET not in memory.read("team/x.md").text


@pytest.mark.parametrize("here", [True, False])
def test_other_projects_are_named(tmp_path: Path, here: bool) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    memory_of(other).create("x.md", TOPIC, INFO)
    if here:
        memory_of(one).create("x.md", TOPIC, INFO)
    done = run(one, "purge", "--yes", given=SECRET)
    assert done.return_value == 1
    assert "of other projects" in " ".join(done.output.split()) and "--everywhere" in done.output
    assert run(one, "purge", "--yes", "--everywhere", given=SECRET).return_value == 0
    assert SECRET not in memory_of(other).read("x.md").text


def test_the_record_holds_no_value_and_knows_it_in_other_forms(tmp_path: Path) -> None:
    path = tmp_path / "team-sync" / "purged.json"
    PurgedRecord(path).add([SECRET])
    assert SECRET.lower() not in path.read_text().lower()
    record = PurgedRecord(path)
    assert record.holds(f"a {SECRET} b") and record.holds(SECRET.encode().hex()) and record.holds(SECRET.upper())
    assert not record.holds("nothing of the kind")
