"""The memory directory: every change lands whole, is one version, passes the gate, and overwrites nobody."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie.errors import ReverieError, StorageError, UserError
from reverie.memory.changes import (
    ABSENT,
    Change,
    ChangedUnderneath,
    Evidence,
    ProposedWrite,
    WriteInfo,
    Writer,
)
from reverie.memory.directory import MemoryDirectory
from reverie.memory.index import entries
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile
from reverie.memory.upkeep.undo import UndoConflict
from reverie.permissions.memory_paths import PermissionRefused
from reverie.storage.history.versions import Version
from tests.counts import count
from tests.shared_data import sources

USER = WriteInfo(Writer.USER, "asked for", session="s-1", message="m-1")
AGENT = WriteInfo(Writer.AGENT, "learnt", session="s-1")


def accept(proposed: ProposedWrite) -> None:
    del proposed


def memory(tmp_path: Path, gate: Callable[[ProposedWrite], None] = accept, **options: Any) -> MemoryDirectory:
    return MemoryDirectory.open(tmp_path / "memory", gate=gate, **options)


def topic(name: str, body: str = "Body.", description: str = "what it says") -> TopicFile:
    return TopicFile.new(name=name, description=description, type=MemoryType.FEEDBACK, body=body)


def state(directory: MemoryDirectory) -> dict[str, bytes]:
    return {
        path.relative_to(directory.root).as_posix(): path.read_bytes()
        for path in directory.root.rglob("*")
        if path.is_file()
    }


def versions(directory: MemoryDirectory) -> list[Version]:
    return list(directory.log())


# Saving.


def test_opening_and_reading_touch_nothing(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    assert directory.list() == () and directory.index() == "" and versions(directory) == []
    assert list(tmp_path.iterdir()) == []


def test_a_new_memory_is_file_and_line_in_one_version(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    version = directory.create("feedback_a.md", topic("A"), USER)
    assert directory.index() == "- [A](feedback_a.md) — what it says\n"
    assert directory.read("feedback_a.md").topic.name == "A"
    assert [entry.name for entry in directory.list()] == ["feedback_a.md"]
    assert versions(directory) == [version]
    assert {change.name for change in version.files} == {"feedback_a.md", "MEMORY.md"}
    assert (version.info.writer, version.info.why, version.info.session, version.info.message) == (
        "user",
        "asked for",
        "s-1",
        "m-1",
    )
    assert (directory.root / "feedback_a.md").stat().st_mode & 0o777 == 0o600
    assert directory.root.stat().st_mode & 0o777 == 0o700


def test_what_is_there_is_not_created_again(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    with pytest.raises(ChangedUnderneath) as caught:
        directory.create("feedback_a.md", topic("B"), USER)
    assert caught.value.names == ("feedback_a.md",)
    assert directory.read("feedback_a.md").topic.name == "A"


def test_the_line_follows_the_head_unless_a_person_worded_it(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    directory.edit("feedback_a.md", lambda now: now.with_changes(description="something else"), USER)
    assert directory.index() == "- [A](feedback_a.md) — something else\n"
    (directory.root / "MEMORY.md").write_text("# Mine\n- [Alpha](feedback_a.md) — my words\n")
    directory.edit("feedback_a.md", lambda now: now.with_changes(description="third"), USER)
    assert directory.index() == "# Mine\n- [Alpha](feedback_a.md) — my words\n"
    assert directory.read("feedback_a.md").topic.description == "third"
    assert [version.info.writer for version in versions(directory)] == ["user", "hand", "user", "user"]


def test_the_same_again_makes_no_version(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    assert directory.update("feedback_a.md", topic("A"), USER) is None
    assert len(versions(directory)) == 1


def test_forgetting_takes_file_and_line_and_nothing_else(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    directory.create("feedback_b.md", topic("B"), USER)
    version = directory.remove("feedback_a.md", USER)
    assert directory.index() == "- [B](feedback_b.md) — what it says\n"
    assert not directory.exists("feedback_a.md")
    assert {(change.name, change.verb) for change in version.files} == {
        ("feedback_a.md", "remove"),
        ("MEMORY.md", "change"),
    }
    with pytest.raises(UserError, match="no memory"):
        directory.remove("feedback_a.md", USER)


def test_team_files_are_listed_in_the_teams_index(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("team/project_x.md", topic("X"), USER)
    assert directory.index() == "" and directory.index(team=True) == "- [X](project_x.md) — what it says\n"
    directory.remove("team/project_x.md", USER)
    assert directory.index(team=True) == ""


def test_without_an_index_saving_is_one_step(tmp_path: Path) -> None:
    directory = memory(tmp_path, keep_index=False)
    version = directory.create("feedback_a.md", topic("A"), USER)
    assert [change.name for change in version.files] == ["feedback_a.md"]


def test_daily_logs_are_only_added_to(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    name = "logs/2026/11/2026-11-15.md"
    directory.append(name, "- one\n", AGENT)
    directory.append(name, "- two\n", AGENT)
    assert directory.read(name).text == "- one\n- two\n"
    for change in (Change(name, "- three\n"), Change(name, None), Change(name, "")):
        with pytest.raises(UserError, match="entries are added"):
            directory.transaction([change], AGENT)
    assert directory.list() == () and not directory.exists("MEMORY.md")


@pytest.mark.parametrize(
    "name",
    ["../a.md", "/etc/a.md", "a.txt", ".hidden.md", "a/../../b.md", "a\\b.md", "x/.git/a.md", "", "a.md/", "~a.md"],
)
def test_no_name_leads_out(tmp_path: Path, name: str) -> None:
    directory = memory(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ReverieError):
        directory.create(name, topic("A"), USER)
    with pytest.raises(ReverieError):
        directory.read(name)
    assert [path for path in sorted(tmp_path.rglob("*.md")) if path not in before] == []


def test_a_link_out_of_the_directory_is_neither_read_nor_written(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    secret = tmp_path / "outside.md"
    secret.write_text("not yours")
    (directory.root / "link.md").symlink_to(secret)
    with pytest.raises(UserError):
        directory.read("link.md")
    with pytest.raises(PermissionRefused):
        directory.update("link.md", topic("B"), USER)
    assert secret.read_text() == "not yours"
    assert directory.names() == ["feedback_a.md"]
    assert all(
        b"not yours" not in directory.history.read(blob)
        for blob in directory.history.files(directory.history.head()).values()
    )


def test_a_directory_reached_by_a_link_is_the_same_one(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "way").symlink_to(directory.root)
    same = MemoryDirectory.open(tmp_path / "other" / "way", gate=accept)
    assert same.history.git_dir == directory.history.git_dir
    same.remove("feedback_a.md", USER)
    assert len(versions(directory)) == 2


# The gate.


def test_every_writer_passes_the_gate(tmp_path: Path) -> None:
    seen: list[ProposedWrite] = []
    directory = memory(tmp_path, seen.append)
    evidence = (Evidence("person", "always run the linter", "m-9"),)
    info = WriteInfo(Writer.EXTRACTION, "said so", evidence=evidence)
    directory.create("feedback_a.md", topic("A"), info)
    assert [(one.name, one.before, one.writer, one.evidence) for one in seen] == [
        ("feedback_a.md", None, Writer.EXTRACTION, evidence),
    ]
    assert "feedback_a.md" in directory.index(), "its line is built by code"
    seen.clear()
    directory.edit("feedback_a.md", lambda now: now.with_changes(body="Other."), USER)
    directory.transaction([Change("feedback_b.md", "text\n")], AGENT)
    directory.apply_tool_write(f"{directory.root}/feedback_b.md", "more\n", AGENT)
    directory.append("logs/2026/11/x.md", "- a\n", AGENT)
    directory.undo("latest", USER)
    directory.restore("feedback_a.md", USER)
    assert [(one.name, one.restores) for one in seen] == [
        ("feedback_a.md", False),
        ("feedback_b.md", False),
        ("feedback_b.md", False),
        ("logs/2026/11/x.md", False),
        ("logs/2026/11/x.md", True),
        ("feedback_a.md", True),
    ]


def test_a_refused_write_leaves_no_trace(tmp_path: Path) -> None:
    def no_passwords(proposed: ProposedWrite) -> None:
        if "hunter2" in proposed.text:
            raise UserError("That is a password; say where it is kept instead.")

    directory = memory(tmp_path, no_passwords)
    directory.create("feedback_a.md", topic("A"), USER)
    before = state(directory)
    for write in (
        lambda: directory.create("feedback_b.md", topic("B", "the password is hunter2"), USER),
        lambda: directory.edit("feedback_a.md", lambda now: now.with_changes(description="hunter2"), USER),
        lambda: directory.transaction([Change("x.md", "fine"), Change("y.md", "hunter2")], AGENT),
        lambda: directory.apply_tool_write(f"{directory.root}/z.md", "hunter2", AGENT),
    ):
        with pytest.raises(UserError, match="password"):
            write()
    assert state(directory) == before and len(versions(directory)) == 1
    stored = subprocess.run(["grep", "-rl", "hunter2", str(tmp_path)], capture_output=True, text=True, check=False)
    assert stored.stdout == ""


# Others who write.


def test_a_file_that_changed_underneath_is_not_overwritten(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    directory.create("feedback_b.md", topic("B"), USER)
    seen = directory.read("feedback_a.md")
    (directory.root / "feedback_a.md").write_text("theirs")
    changes = [
        Change("feedback_b.md", "mine\n", directory.read("feedback_b.md").digest),
        Change("feedback_a.md", "mine\n", seen.digest),
    ]
    with pytest.raises(ChangedUnderneath) as caught:
        directory.transaction(changes, WriteInfo(Writer.DREAM, "merge"))
    assert caught.value.names == ("feedback_a.md",)
    assert directory.read("feedback_a.md").text == "theirs"
    assert directory.read("feedback_b.md").topic.name == "B"
    assert versions(directory)[0].info.writer == "hand"
    with pytest.raises(ChangedUnderneath):
        directory.update("feedback_a.md", topic("A2"), USER, base=seen.digest)
    with pytest.raises(ChangedUnderneath):
        directory.remove("feedback_a.md", USER, base=seen.digest)
    directory.edit("feedback_a.md", lambda now: now.with_changes(body=now.body + "\nand mine"), USER)
    assert "theirs\nand mine" in directory.read("feedback_a.md").text


def test_a_file_that_appeared_or_went_is_a_change_too(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    seen = directory.read("feedback_a.md")
    (directory.root / "feedback_a.md").unlink()
    (directory.root / "feedback_new.md").write_text("theirs")
    with pytest.raises(ChangedUnderneath) as caught:
        directory.transaction(
            [Change("feedback_a.md", "x", seen.digest), Change("feedback_new.md", "x", ABSENT)], AGENT
        )
    assert caught.value.names == ("feedback_a.md", "feedback_new.md")


def test_a_writer_without_our_lock_never_loses_a_word(tmp_path: Path) -> None:
    """Another program appends to the index while we save: both keep everything."""
    directory = memory(tmp_path)
    directory.create("feedback_0.md", topic("0"), USER)
    script = (
        "import os, sys, time\n"
        "path = sys.argv[1]\n"
        "for number in range(12):\n"
        "    text = open(path).read() + f'- theirs {number}\\n'\n"
        "    with open(path + '.other', 'w') as out: out.write(text)\n"
        "    if open(path).read() + f'- theirs {number}\\n' == text: os.rename(path + '.other', path)\n"
        "    time.sleep(0.05)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script, str(directory.root / "MEMORY.md")])
    saved = [0]
    while other.poll() is None or len(saved) < 4:
        try:
            directory.create(f"feedback_{len(saved)}.md", topic(str(len(saved))), USER)
        except ChangedUnderneath:
            continue
        saved.append(len(saved))
    assert other.returncode == 0
    directory.absorb()
    known = {entry.file for version in versions(directory) for entry in entries(index_at(directory, version))}
    assert known == {f"feedback_{number}.md" for number in saved}


def index_at(directory: MemoryDirectory, version: Version) -> str:
    return directory.history.show("MEMORY.md", version.id).decode()


def test_existing_files_are_the_first_version(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "old.md").write_text("old\n")
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    newest, first = versions(directory)
    assert first.info.writer == "hand" and [change.name for change in first.files] == ["old.md"]
    assert {change.name for change in newest.files} == {"feedback_a.md", "MEMORY.md"}


def test_what_is_on_disk_can_be_recorded_as_somebodys(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    assert directory.absorb() is None
    (directory.root / "a.md").write_text("1\n")
    version = directory.absorb(AGENT)
    assert version is not None and version.info.writer == "agent" and version.info.why == "learnt"
    assert directory.absorb(AGENT) is None


# Agents' own tools.


def test_a_tools_write_is_a_version_and_the_index_follows(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    path = f"{directory.root}/feedback_a.md"
    directory.apply_tool_write(path, topic("A").text, AGENT)
    assert directory.index() == "- [A](feedback_a.md) — what it says\n"
    directory.apply_tool_write(f"{directory.root}/MEMORY.md", "- [A](feedback_a.md) — mine\n", AGENT)
    assert directory.apply_tool_write(path, topic("A").text, AGENT).version is None
    seen = directory.read("feedback_a.md")
    directory.apply_tool_write(path, topic("A2").text, AGENT, base=seen.digest)
    with pytest.raises(ChangedUnderneath):
        directory.apply_tool_write(path, topic("A3").text, AGENT, base=seen.digest)
    assert [version.info.writer for version in versions(directory)] == ["agent"] * 3


@pytest.mark.parametrize("text", ["", " \n\r\n", None])
def test_an_empty_write_forgets(tmp_path: Path, text: str | None) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    version = directory.apply_tool_write(f"{directory.root}/feedback_a.md", text, AGENT).version
    assert version is not None and {change.name for change in version.files} == {"feedback_a.md", "MEMORY.md"}
    assert not (directory.root / "feedback_a.md").exists() and directory.index() == ""
    directory.restore("feedback_a.md", USER)
    assert directory.index() == "- [A](feedback_a.md) — what it says\n"


def test_a_tool_may_not_leave_the_directory(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    for path in (f"{tmp_path}/x.md", "x.md", f"{directory.root}/../x.md", f"{directory.root}/x.sh"):
        with pytest.raises(PermissionRefused):
            directory.apply_tool_write(path, "x", AGENT)


# Going back.


def test_undo_reverses_exactly_one_version(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    first = directory.create("feedback_a.md", topic("A", "line 1\nline 2\nline 3\n"), USER)
    middle = directory.edit(
        "feedback_a.md", lambda now: now.with_changes(body=now.body.replace("line 1", "LINE 1")), AGENT
    )
    directory.create("feedback_b.md", topic("B"), USER)
    directory.edit("feedback_a.md", lambda now: now.with_changes(body=now.body.replace("line 3", "LINE 3")), AGENT)
    assert middle is not None
    undone = directory.undo(middle.short, USER)
    assert undone is not None and undone.info.reverses == middle.id
    assert directory.read("feedback_a.md").topic.body == "line 1\nline 2\nLINE 3\n"
    with pytest.raises(UndoConflict, match=r"feedback_a\.md"):
        directory.undo(first.id, USER)
    before = state(directory)
    directory.undo("latest", USER)
    assert "LINE 1" in directory.read("feedback_a.md").text
    directory.undo("latest", USER)
    assert state(directory) == before


def test_undoing_a_save_leaves_the_lines_of_later_ones(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    first = directory.create("feedback_a.md", topic("A"), USER)
    directory.create("feedback_b.md", topic("B"), USER)
    directory.undo(first.id, USER)
    assert directory.names() == ["feedback_b.md"]
    assert directory.index() == "- [B](feedback_b.md) — what it says\n"


def test_every_undo_in_turn_leads_back_to_the_beginning(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    states = [state(directory)]
    for number in range(4):
        directory.create(f"feedback_{number}.md", topic(str(number)), USER)
        states.append(state(directory))
    directory.remove("feedback_2.md", USER)
    states.append(state(directory))
    for version, wanted in zip(versions(directory), reversed(states[:-1]), strict=True):
        directory.undo(version.id, USER)
        assert {name: text for name, text in state(directory).items() if text} == {
            name: text for name, text in wanted.items() if text
        }


def test_restore_brings_back_what_was(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    first = directory.create("feedback_a.md", topic("A", "one"), USER)
    (directory.root / "MEMORY.md").write_text("- [My A](feedback_a.md) — my hook\n")
    directory.edit("feedback_a.md", lambda now: now.with_changes(body="two"), USER)
    directory.remove("feedback_a.md", USER)
    directory.restore("feedback_a.md", USER)
    assert directory.read("feedback_a.md").topic.body == "two\n"
    assert directory.index() == "- [My A](feedback_a.md) — my hook\n"
    directory.restore("feedback_a.md", USER, spec=first.short)
    assert directory.read("feedback_a.md").topic.body == "one\n"
    with pytest.raises(UserError, match="No version has"):
        directory.restore("never.md", USER)


def test_a_purge_takes_a_text_out_of_files_and_versions(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A", "old SECRET"), USER)
    directory.edit("feedback_a.md", lambda now: now.with_changes(body="new SECRET"), USER)
    report = directory.purge(lambda text: text.replace("SECRET", "[removed]"), USER)
    assert report.contents == 2
    assert directory.read("feedback_a.md").topic.body == "new [removed]\n"
    assert all("SECRET" not in directory.history.diff(version) for version in versions(directory))
    directory.create("feedback_b.md", topic("B"), USER)


# Crashes and disks that say no.


def in_child(work: Callable[[], None]) -> int:
    """Runs in a forked child; returns how it ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except ReverieError:
            os._exit(3)
        except BaseException:
            os._exit(4)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(step: int) -> None:
    """From now on the process dies by SIGKILL at its `step`-th dealing with a file."""
    left = [step]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        del arguments
        if event in (
            "open",
            "os.rename",
            "os.remove",
            "os.mkdir",
            "os.scandir",
            "os.listdir",
            "os.chmod",
            "fcntl.flock",
        ):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def change_much(directory: MemoryDirectory) -> None:
    directory.transaction(
        [
            Change("feedback_a.md", "changed\n"),
            Change("feedback_b.md", None),
            Change("team/project_new.md", "new\n"),
            Change("MEMORY.md", "- [A](feedback_a.md) — after\n"),
        ],
        WriteInfo(Writer.DREAM, "all at once"),
    )


def purge_all(directory: MemoryDirectory) -> None:
    directory.purge(lambda text: text.replace("Body", "Gone"), USER)


@pytest.mark.soak
@pytest.mark.parametrize(("work", "stride"), [(change_much, count(5, 1)), (purge_all, count(12, 1))])
def test_killed_at_any_step_it_is_all_or_nothing(
    tmp_path: Path, work: Callable[[MemoryDirectory], None], stride: int
) -> None:
    start = memory(tmp_path / "start")
    start.create("feedback_a.md", topic("A"), USER)
    start.create("feedback_b.md", topic("B"), USER)
    before = state(start)
    shutil.copytree(tmp_path / "start", tmp_path / "end", symlinks=True)
    end = memory(tmp_path / "end")
    work(end)
    after = state(end)
    outcomes = {"before": 0, "after": 0}
    for step in range(1, 3_000, stride):
        shutil.rmtree(tmp_path / "try", ignore_errors=True)
        shutil.copytree(tmp_path / "start", tmp_path / "try", symlinks=True)
        directory = memory(tmp_path / "try")

        def dying(step: int = step, directory: MemoryDirectory = directory) -> None:
            killed_at(step)
            work(directory)

        code = in_child(dying)
        fresh = memory(tmp_path / "try")
        fresh.absorb()  # the next touch, whatever it is
        now = state(fresh)
        assert now in (before, after), f"killed at step {step}: {now}"
        outcomes["after" if now == after else "before"] += 1
        assert not any(version.info.writer == "hand" for version in versions(fresh)), f"step {step}"
        subprocess.run(
            ["git", "--git-dir", str(fresh.history.git_dir), "fsck", "--strict"], check=True, capture_output=True
        )
        leftovers = [
            path for path in (tmp_path / "try").rglob("*") if path.name.endswith(".tmp") or path.name.startswith("tmp_")
        ]
        assert leftovers == [], f"step {step}"
        if work is purge_all and now == after:
            log = subprocess.run(
                ["git", "--git-dir", str(fresh.history.git_dir), "log", "-p"],
                check=True,
                capture_output=True,
                text=True,
            )
            assert "+Body" not in log.stdout or code != 0
        if code == 0:
            break
        assert code == -signal.SIGKILL
    else:
        pytest.fail("it never came to its end")
    assert outcomes["before"] > 5 and outcomes["after"] > 2


def test_a_file_too_large_for_the_system_changes_nothing(tmp_path: Path) -> None:
    directory = memory(tmp_path)
    directory.create("feedback_a.md", topic("A"), USER)
    before = state(directory)

    def limited() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        directory.create("feedback_big.md", topic("Big", os.urandom(30_000).hex()), USER)

    assert in_child(limited) == 3
    assert state(directory) == before
    directory.create("feedback_b.md", topic("B"), USER)


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    where = tmp_path / "disk"
    where.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k,mode=700", "none", str(where)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield where
    subprocess.run(["umount", str(where)], check=True)


def test_a_full_disk_is_said_and_nothing_is_lost(small_disk: Path) -> None:
    directory = MemoryDirectory.open(small_disk / "m" / "memory", gate=accept)
    saved: list[str] = []
    with pytest.raises(StorageError, match="disk is full"):
        for number in range(1_000):
            body = os.urandom(1_500).hex()
            directory.create(f"feedback_{number}.md", topic(str(number), body), USER)
            saved.append(f"feedback_{number}.md")
    assert len(saved) > 3
    assert directory.names() == sorted(saved)
    assert sorted(entry.file for entry in entries(directory.index())) == sorted(saved)
    assert len(versions(directory)) == len(saved)
    subprocess.run(["git", "--git-dir", str(directory.history.git_dir), "fsck"], check=True, capture_output=True)
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    directory.create("feedback_more.md", topic("more"), USER)
    assert directory.names() == sorted([*saved, "feedback_more.md"])


def test_a_read_only_disk_is_said_and_reading_goes_on(small_disk: Path) -> None:
    directory = MemoryDirectory.open(small_disk / "m" / "memory", gate=accept)
    directory.create("feedback_a.md", topic("A"), USER)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for write in (
        lambda: directory.create("feedback_b.md", topic("B"), USER),
        lambda: directory.remove("feedback_a.md", USER),
        lambda: directory.undo("latest", USER),
    ):
        with pytest.raises(StorageError, match="read-only"):
            write()
    assert directory.names() == ["feedback_a.md"]
    assert directory.read("feedback_a.md").topic.name == "A"
    assert len(versions(directory)) == 1


# On a real tree.


@pytest.mark.parametrize(("folder", "files"), sources("memory-dir/.claude/memory", own=12, shared=19))
def test_a_real_directory_keeps_every_byte_it_is_not_asked_to_change(tmp_path: Path, folder: Path, files: int) -> None:
    shutil.copytree(folder, tmp_path / "memory")
    subprocess.run(["chmod", "-R", "u+w", str(tmp_path)], check=True)
    directory = memory(tmp_path)
    before = state(directory)
    times = {name: (directory.root / name).stat().st_mtime_ns for name in before}
    assert len(directory.list()) == files and all(entry.type for entry in directory.list())
    directory.create("feedback_new.md", topic("New"), USER)
    after = state(directory)
    assert {name: text for name, text in after.items() if name not in ("MEMORY.md", "feedback_new.md")} == {
        name: text for name, text in before.items() if name != "MEMORY.md"
    }
    assert [line for line in after["MEMORY.md"].split(b"\n") if line not in before["MEMORY.md"].split(b"\n")] == [
        "- [New](feedback_new.md) — what it says".encode()
    ]
    assert all((directory.root / name).stat().st_mtime_ns == times[name] for name in before if name != "MEMORY.md")
    directory.undo("latest", USER)
    assert state(directory) == before
    log = subprocess.run(
        ["git", "--git-dir", str(directory.history.git_dir), "log", "--format=%an %s"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert log.stdout.splitlines() == [
        "user Undo: Add feedback_new.md",
        "user Add feedback_new.md",
        f"hand Begin with {files + 1} files",
    ]
