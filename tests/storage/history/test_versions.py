"""The history: real git reads all of it, packed or not, and every way of going back works on the bytes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.storage.history.folder import ChangedOnDisk, VersionedFolder, history_place
from reverie.storage.history.merge import merge
from reverie.storage.history.packs import HistoryDamaged
from reverie.storage.history.purge import purge_history
from reverie.storage.history.versions import History, VersionInfo
from tests.waiting import LIMIT_S

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")
BY = VersionInfo("user", "because", session="s-1", message="m-1")


def folder(tmp_path: Path) -> VersionedFolder:
    root = tmp_path / "memory"
    return VersionedFolder(root, history_place(root), lambda name: root / name, lock_timeout_s=LIMIT_S)


def save(place: VersionedFolder, **files: str | None) -> str:
    writes = {f"{name.replace('__', '/')}.md": None if text is None else text.encode() for name, text in files.items()}
    with place.lock() as held:
        version = held.commit(writes, BY)
    assert version is not None
    return version.id


def room(path: Path) -> int:
    return sum(inside.stat().st_blocks for inside in path.rglob("*") if inside.is_file())


def git(history: History, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=u", "-c", "user.email=u@example.org", "--git-dir", str(history.git_dir), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_git
def test_git_reads_every_version(tmp_path: Path) -> None:
    place = folder(tmp_path)
    save(place, a="one\n", team__b="two\n")
    save(place, a="one, changed\n", logs__2026__x="log\n")
    save(place, team__b=None)
    assert git(place.history, "fsck", "--strict", "--full") == ""
    assert git(place.history, "log", "--format=%s").splitlines() == [
        "Remove team/b.md",
        "Add 1, change 1 files",
        "Add 2 files",
    ]
    assert git(place.history, "show", "main~2:team/b.md") == "two\n"
    assert git(
        place.history, "log", "-1", "--format=%(trailers:key=Writer,valueonly)%(trailers:key=Session,valueonly)"
    ) == ("user\ns-1\n\n")
    assert git(place.history, "ls-tree", "-r", "--name-only", "main").split() == ["a.md", "logs/2026/x.md"]
    assert not (place.root / ".git").exists()


def test_the_log_says_who_why_and_what(tmp_path: Path) -> None:
    place = folder(tmp_path)
    first = save(place, a="1\n")
    with place.lock() as held:
        info = VersionInfo("dream", "two\n\nparagraphs", "s", "m", "Subject", first, {"a.md": "dates written out"})
        held.commit({"a.md": b"2\n", "b.md": b"3\n"}, info)
    newest, oldest = place.history.log()
    assert newest.info == info
    assert {(change.name, change.verb) for change in newest.files} == {("a.md", "change"), ("b.md", "add")}
    assert oldest.parent is None and newest.parent == oldest.id == first
    assert [version.id for version in place.history.log("b.md")] == [newest.id]
    assert place.history.show("a.md", oldest.id) == b"1\n"
    assert place.history.diff(newest, "a.md") == "--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n-1\n+2\n"
    assert place.history.find(newest.short) == newest == place.history.find("latest")


def test_a_version_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    place = folder(tmp_path)
    with pytest.raises(UserError, match="no versions"):
        place.history.find("latest")
    save(place, a="1\n")
    for wrong in ("zz", "ffff0", "--all"):
        with pytest.raises(UserError, match=r"version"):
            place.history.find(wrong)
    with pytest.raises(UserError, match=r"b\.md is not in"):
        place.history.show("b.md", place.history.head() or "")


@needs_git
def test_packing_loses_nothing_and_saves_room(tmp_path: Path) -> None:
    place = folder(tmp_path)
    text = "".join(f"- line {number} of a list that grows\n" for number in range(200))
    for number in range(60):
        text += f"- added {number}\n"
        save(place, index=text, **{f"t{number % 7}": f"{number}\n" * 9, "team__x": str(number)})
    before = [(version, place.history.diff(version)) for version in place.history.log()]
    size = room(place.history.git_dir)
    assert place.history.objects.pack() > 200
    anew = History(place.history.git_dir)
    assert [(version, anew.diff(version)) for version in anew.log()] == before
    assert git(place.history, "fsck", "--strict", "--full") == ""
    assert "count: 0\n" in git(place.history, "count-objects", "-v")
    assert room(place.history.git_dir) < size / 3
    save(place, index=text + "after\n")
    assert git(place.history, "fsck", "--strict", "--full") == ""


@needs_git
def test_what_git_itself_packed_is_still_read_and_written(tmp_path: Path) -> None:
    place = folder(tmp_path)
    for number in range(30):
        save(place, a="same head\n" * 50 + f"{number}\n" + "same tail\n" * 50, b=str(number))
    before = [(version.id, place.history.diff(version)) for version in place.history.log()]
    git(place.history, "gc", "--aggressive", "--prune=now", "--quiet")
    git(place.history, "pack-refs", "--all")
    anew = folder(tmp_path)
    assert [(version.id, anew.history.diff(version)) for version in anew.history.log()] == before
    newest = save(anew, a="after gc\n")
    assert git(place.history, "rev-parse", "main").strip() == newest
    assert git(place.history, "log", "--format=%H").split() == [newest, *(name for name, _ in before)]
    assert git(place.history, "fsck", "--strict", "--full") == ""


def test_many_objects_are_packed_without_being_asked(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    place = VersionedFolder(root, history_place(root), lambda name: root / name, pack_above=300)
    saves = 0
    while not place.history.objects.packs():
        saves += 1
        assert saves < 2_000
        save(place, a=str(saves), **{f"b{saves % 9}": str(-saves)})
    assert place.history.objects.many_loose(300) is False
    contents = [place.history.show("a.md", version.id) for version in place.history.log()]
    assert contents == [str(number).encode() for number in range(saves, 0, -1)]


def test_a_damaged_object_is_named_and_the_files_are_not_blamed(tmp_path: Path) -> None:
    place = folder(tmp_path)
    version = save(place, a="1\n")
    content = place.history.files(version)["a.md"]
    path = place.history.objects.path(content)
    path.chmod(0o600)
    path.write_bytes(b"nonsense")
    with pytest.raises(HistoryDamaged, match="memory files themselves are not affected"):
        place.history.read(content)
    assert (place.root / "a.md").read_text() == "1\n"


def test_a_damaged_pack_is_named_and_the_files_are_not_blamed(tmp_path: Path) -> None:
    place = folder(tmp_path)
    version = save(place, a="1\n")
    place.history.objects.pack()
    for suffix, length in ((".pack", 40), (".idx", 900), (".idx", 0)):
        path = next((place.history.git_dir / "objects" / "pack").glob(f"*{suffix}"))
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:length])
        with pytest.raises(HistoryDamaged, match="memory files themselves are not affected"):
            History(place.history.git_dir).version(version)


# Changes that somebody else makes.


def test_an_edit_by_hand_becomes_a_version_at_the_next_touch(tmp_path: Path) -> None:
    place = folder(tmp_path)
    save(place, a="1\n", b="1\n", c="1\n")
    (place.root / "a.md").write_text("2\n")
    (place.root / "b.md").unlink()
    (place.root / "new.md").write_text("n\n")
    (place.root / "picture.png").write_bytes(b"png")
    (place.root / ".hidden.md").write_text("h\n")
    save(place, c="2\n")
    mine, theirs, _ = place.history.log()
    assert theirs.info.writer == "hand"
    assert {(change.name, change.verb) for change in theirs.files} == {
        ("a.md", "change"),
        ("b.md", "remove"),
        ("new.md", "add"),
    }
    assert [change.name for change in mine.files] == ["c.md"]


def test_an_edit_of_the_same_size_in_the_same_moment_is_seen(tmp_path: Path) -> None:
    place = folder(tmp_path)
    for number in range(50):
        save(place, a=f"{number:04}\n")
        (place.root / "a.md").write_text(f"{number:04}\n".replace("0", "x", 1))
        with place.lock() as held:
            assert held.absorbed is not None, "the edit right after the save went unseen"


def test_a_folder_put_in_place_of_another_is_seen(tmp_path: Path) -> None:
    place = folder(tmp_path)
    save(place, a="old\n")
    shutil.copytree(place.root, tmp_path / "backup")
    save(place, a="new\n")
    shutil.rmtree(place.root)
    (tmp_path / "backup").rename(place.root)
    with place.lock() as held:
        assert held.read("a.md") == b"old\n"
    assert next(iter(place.history.log())).info.writer == "hand"


def test_untouched_files_are_not_read_again(tmp_path: Path) -> None:
    place = folder(tmp_path)
    save(place, a="1\n", b="1\n")
    with place.lock():
        pass
    (place.root / "a.md").chmod(0o000)  # an unreadable file counts as it was
    with folder(tmp_path).lock() as held:
        assert held.absorbed is None and held.files.keys() == {"a.md", "b.md"}


def test_what_changes_while_landing_is_never_overwritten(tmp_path: Path) -> None:
    place = folder(tmp_path)
    save(place, a="1\n", b="1\n")
    with place.lock() as held:
        (place.root / "b.md").write_text("theirs\n")  # somebody who knows no lock
        with pytest.raises(ChangedOnDisk) as caught:
            held.commit({"a.md": b"mine\n", "b.md": b"mine\n", "c.md": b"mine\n"}, BY)
    assert caught.value.names == ("b.md",)
    assert (place.root / "a.md").read_text() == "1\n"
    assert (place.root / "b.md").read_text() == "theirs\n"
    assert not (place.root / "c.md").exists() and not place.unfinished
    with place.lock() as held:
        assert held.absorbed is not None and [change.name for change in held.absorbed.files] == ["b.md"]


# Where it lives.


def test_the_history_is_beside_the_folder_or_hidden_in_it(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    assert history_place(root) == tmp_path / "memory-history.git"
    (tmp_path / "memory-history.git").mkdir()
    (tmp_path / "memory-history.git" / "mine.txt").write_text("a folder of somebody's own")
    assert history_place(root) == root / ".reverie" / "history.git"
    History(root / ".reverie" / "history.git").create()
    shutil.rmtree(tmp_path / "memory-history.git")
    assert history_place(root) == root / ".reverie" / "history.git"


@needs_git
def test_it_does_not_show_in_the_checkout_around_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    save(folder(tmp_path), a="1\n")
    status = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--short"], capture_output=True, text=True, check=True
    )
    assert status.stdout.split() == ["??", "memory/"]


def test_files_and_folders_are_the_users_alone(tmp_path: Path) -> None:
    place = folder(tmp_path)
    save(place, team__a="1\n")
    for path in (place.root, place.root / "team", place.history.git_dir, place.history.git_dir / "objects"):
        assert path.stat().st_mode & 0o777 == 0o700
    assert (place.root / "team" / "a.md").stat().st_mode & 0o777 == 0o600


# Taking a text out of all of it.


@needs_git
@pytest.mark.parametrize("packed", [False, True])
def test_a_purged_text_is_nowhere(tmp_path: Path, packed: bool) -> None:
    place = folder(tmp_path)
    save(place, a="token SECRET-123 here\n", b="fine\n")
    save(place, a="clean\n", team__c="SECRET-123 again\n")
    save(place, team__c=None)
    reversed_version = place.history.head() or ""
    with place.lock() as held:
        held.commit({"b.md": b"x"}, VersionInfo("user", "it was SECRET-123", reverses=reversed_version))
        if packed:
            place.history.objects.pack()
        git(place.history, "branch", "mine", "main~1")
        git(place.history, "tag", "-a", "-m", "SECRET-123", "old", "main")
        report = held.purge(lambda data: data.replace(b"SECRET-123", b"[gone]"))
    assert report.contents == 2 and len(report.versions) == 4
    assert git(place.history, "fsck", "--strict", "--full") == ""
    assert git(place.history, "show", "main~3:a.md") == "token [gone] here\n"
    assert "SECRET" not in git(place.history, "log", "--all", "-p")
    objects = git(place.history, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert all("SECRET" not in git(place.history, "cat-file", "-p", name) for name in objects)
    newest = next(iter(place.history.log()))
    assert newest.info.reverses == report.versions[reversed_version]
    save(place, b="afterwards\n")
    assert git(place.history, "fsck", "--strict", "--full") == ""


def test_a_purge_that_finds_nothing_changes_nothing(tmp_path: Path) -> None:
    place = folder(tmp_path)
    version = save(place, a="1\n")
    with place.lock():
        assert purge_history(place.history, lambda data: data).versions == {}
    assert place.history.head() == version


# Laying two changes over each other.


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        ("a\nb\nc\nd\n", "a\nc\n", "a\nc\nd\n"),  # one removed, one added right behind
        ("A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\nX\nc\n", "a\nY\nc\n", None),
        ("a\nc\n", "a\nB\nc\n", None),
        ("a\nb\nc\nx\n", "a\nb\nc\ny\n", None),
        ("a\nX\nc\n", "a\nX\nc\n", "a\nX\nc\n"),
    ],
)
def test_two_changes_of_one_text(ours: str, theirs: str, merged: str | None) -> None:
    assert merge("a\nb\nc\n", ours, theirs) == merged


def test_lists_take_what_both_add() -> None:
    assert merge("a\n", "a\nx\n", "a\ny\n", both_insert=True) == "a\nx\ny\n"


lines = st.lists(st.sampled_from("abcde"), max_size=8).map(lambda parts: "".join(f"{part}\n" for part in parts))


@given(lines, lines)
def test_a_merge_with_no_change_is_the_other_change(base: str, changed: str) -> None:
    assert merge(base, base, changed) == changed == merge(base, changed, base)


@given(lines, lines, lines)
def test_a_merge_is_the_same_from_both_sides(base: str, ours: str, theirs: str) -> None:
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


def test_a_branch_file_of_other_bytes_is_damage_and_no_crash(tmp_path: Path) -> None:
    place = folder(tmp_path)
    save(place, a="one")
    history = History(history_place(tmp_path / "memory"))
    history.branch_file.write_bytes(b"\x80\xff\n")
    with pytest.raises(HistoryDamaged):
        list(history.log())
