"""Two people share a team's folder, through a folder and through git: nobody's change is lost, nothing odd gets in."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import ReverieError, StorageError, UserError
from reverie.memory.changes import ProposedWrite, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import MemoryInbox
from reverie.memory.sharing.merging import three_way
from reverie.memory.sharing.rounds import SyncReport
from reverie.memory.sharing.team import sync
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile
from reverie.settings import Settings, load_settings

INFO = WriteInfo(Writer.USER, "a test")


def gate(write: ProposedWrite) -> None:
    if write.text is not None and "SECRET" in write.text:
        raise ReverieError("a secret is not stored; take it out")


@dataclass
class Person:
    memory: MemoryDirectory
    keep: Path
    settings: Settings

    def sync(self) -> SyncReport:
        return sync(self.memory, self.settings, self.keep, gate)

    def save(self, name: str, body: str) -> None:
        kind = MemoryType.PROJECT
        topic = TopicFile.new(name=name, description=f"about {name}", type=kind, body=body)
        self.memory.update(f"team/{name}.md", topic, INFO)

    def files(self) -> dict[str, str]:
        top = self.memory.root / "team"
        return {path.relative_to(top).as_posix(): path.read_text() for path in sorted(top.rglob("*.md"))}


@pytest.fixture(params=["folder", "git"])
def people(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Person, Person]:
    overrides: dict[str, object] = {"team.sharing": request.param}
    if request.param == "folder":
        (tmp_path / "shared").mkdir()
        overrides["team.folder"] = str(tmp_path / "shared")
    else:
        subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote.git")], check=True)
        overrides["team.remote"] = str(tmp_path / "remote.git")

    def person(name: str) -> Person:
        home = tmp_path / name
        home.mkdir()
        settings = load_settings(tmp_path, overrides=overrides, managed_dir=tmp_path / "none")
        memory = MemoryDirectory.open(home / "memory", gate=gate)
        return Person(memory, home / "keep", settings)

    return person("ann"), person("ben")


def test_what_one_saves_the_other_has(people: tuple[Person, Person]) -> None:
    ann, ben = people
    ann.save("freeze", "main is frozen")
    ann.memory.create("private.md", TopicFile.new(name="p", description="d", type=MemoryType.USER, body="mine"), INFO)
    report = ann.sync()
    assert set(report.sent) == {"MEMORY.md", "freeze.md"} and not report.received
    assert set(ben.sync().received) == {"MEMORY.md", "freeze.md"}
    assert ben.files() == ann.files() and "private" not in str(ben.files())
    assert not ann.sync().changed and not ben.sync().changed
    newest = next(ben.memory.log())
    assert newest.info.why == "shared by the team"


def test_changes_of_both_sides_meet(people: tuple[Person, Person]) -> None:
    ann, ben = people
    ann.save("one", "first")
    ann.sync()
    ben.sync()
    ann.save("two", "by ann")
    ben.save("three", "by ben")
    ben.save("one", "second")
    ann.sync()
    assert "MEMORY.md" in ben.sync().merged
    ann.sync()
    assert ann.files() == ben.files()
    assert set(ann.files()) == {"MEMORY.md", "one.md", "two.md", "three.md"}
    assert "second" in ann.files()["one.md"]
    index = ann.files()["MEMORY.md"]
    assert all(index.count(f"({name}.md)") == 1 for name in ("one", "two", "three"))


def test_the_same_file_changed_by_both_is_kept_twice(people: tuple[Person, Person]) -> None:
    ann, ben = people
    ann.save("one", "first")
    ann.sync()
    ben.sync()
    ann.save("one", "what ann thinks")
    ben.save("one", "what ben thinks")
    ann.sync()
    assert ben.sync().kept_both == ("one.md",)
    ann.sync()
    assert ann.files() == ben.files()
    assert "ann thinks" in ann.files()["one.md"]
    assert "ben thinks" in ann.files()["one_other_version_1.md"]
    assert "(one_other_version_1.md)" in ann.files()["MEMORY.md"]
    (question,) = MemoryInbox(ben.memory.root).list()
    assert (question.file, question.other) == ("team/one.md", "team/one_other_version_1.md")
    assert "what ben thinks" in question.statements[0] and not MemoryInbox(ann.memory.root).list()


def test_forgetting_travels_and_a_change_outlives_it(people: tuple[Person, Person]) -> None:
    ann, ben = people
    ann.save("one", "first")
    ann.save("two", "second")
    ann.sync()
    ben.sync()
    ann.memory.remove("team/one.md", INFO)
    ann.memory.remove("team/two.md", INFO)
    ben.save("two", "still true, and more")
    ann.sync()
    ben.sync()
    ann.sync()
    assert ann.files() == ben.files()
    assert "one.md" not in ann.files() and "still true" in ann.files()["two.md"]
    assert "(two.md)" in ann.files()["MEMORY.md"] and "(one.md)" not in ann.files()["MEMORY.md"]


def test_secrets_neither_leave_nor_arrive(people: tuple[Person, Person]) -> None:
    ann, ben = people
    ann.save("fine", "words")
    ann.sync()
    ben.sync()
    by_hand = ann.memory.root / "team" / "leak.md"
    by_hand.write_text("---\nname: x\n---\nSECRET\n")
    ann.save("more", "words")
    report = ann.sync()
    assert "leak.md" in report.held_back[0] and "more.md" in report.sent
    assert "leak.md" not in ben.files() and not any("leak" in name for name in ben.sync().received)
    assert "more.md" in ben.files()


def test_an_emptied_folder_of_ours_is_filled_again(people: tuple[Person, Person]) -> None:
    ann, ben = people
    ann.save("one", "first")
    ann.sync()
    for path in (ann.memory.root / "team").glob("*.md"):
        path.unlink()
    ann.sync()
    ben.sync()
    assert ann.files() == ben.files() and "one.md" in ann.files()


class TestFolder:
    @pytest.fixture
    def ann(self, tmp_path: Path) -> Person:
        (tmp_path / "shared").mkdir()
        overrides = {"team.sharing": "folder", "team.folder": str(tmp_path / "shared")}
        settings = load_settings(tmp_path, overrides=overrides, managed_dir=tmp_path / "none")
        return Person(MemoryDirectory.open(tmp_path / "memory", gate=gate), tmp_path / "keep", settings)

    def test_a_folder_that_is_gone_or_empty_empties_nothing(self, ann: Person, tmp_path: Path) -> None:
        ann.save("one", "first")
        ann.sync()
        (tmp_path / "shared").rename(tmp_path / "away")
        with pytest.raises(StorageError, match="is missing"):
            ann.sync()
        (tmp_path / "shared").mkdir()
        with pytest.raises(StorageError, match="mounted"):
            ann.sync()
        assert "one.md" in ann.files()

    def test_hostile_files_are_left_out(self, ann: Person, tmp_path: Path) -> None:
        shared = tmp_path / "shared"
        (shared / "good.md").write_text("---\nname: g\n---\nfine\n")
        (shared / "link.md").symlink_to("/etc/passwd")
        os.mkfifo(shared / "pipe.md")
        (shared / "huge.md").write_text("x" * 1_500_000)
        (shared / "..%2f.md").write_text("escape")
        (shared / ".hidden.md").write_text("hidden")
        (shared / "notes.txt").write_text("no memory")
        (shared / "secret.md").write_text("SECRET")
        report = ann.sync()
        assert set(ann.files()) == {"good.md", "MEMORY.md"}
        assert ann.files()["MEMORY.md"].count("](") == 1
        named = "\n".join(report.held_back)
        assert all(name in named for name in ("link.md", "pipe.md", "huge.md", "secret.md"))

    def test_nothing_is_shared_by_default(self, tmp_path: Path) -> None:
        settings = load_settings(tmp_path, managed_dir=tmp_path / "none")
        person = Person(MemoryDirectory.open(tmp_path / "memory", gate=gate), tmp_path / "keep", settings)
        person.save("one", "first")
        assert person.sync() == SyncReport() and not (tmp_path / "keep").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"team.sharing": "folder"}, "team.folder"),
        ({"team.sharing": "git"}, "team.remote"),
        ({"team.sharing": "git", "team.remote": "--upload-pack=x"}, "team.remote"),
        ({"team.sharing": "git", "team.remote": "/x", "team.branch": "--a"}, "team.branch"),
        ({"team.sharing": "git", "team.remote": "/nowhere/at/all.git"}, "could not be synced"),
        ({"team.sharing": "git", "team.remote": "https://user:hunter2@127.0.0.1:9/x.git"}, "could not be synced"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, given: dict[str, object], said: str) -> None:
    settings = load_settings(tmp_path, overrides=given, managed_dir=tmp_path / "none")
    memory = MemoryDirectory.open(tmp_path / "memory", gate=gate)
    with pytest.raises((UserError, StorageError)) as caught:
        sync(memory, settings, tmp_path / "keep", gate)
    assert said in str(caught.value) and "\n" not in str(caught.value) and "hunter2" not in str(caught.value)


names = st.sampled_from(["a.md", "b.md", "MEMORY.md"])
trees = st.dictionaries(names, st.lists(st.sampled_from(["x", "y", "z", "w"]), min_size=1, max_size=4, unique=True))


@given(trees, trees, trees)
def test_after_a_merge_both_sides_are_the_same_and_nothing_new_is_lost(
    base: dict[str, list[str]], ours: dict[str, list[str]], theirs: dict[str, list[str]]
) -> None:
    def files(tree: dict[str, list[str]]) -> dict[str, bytes]:
        return {name: "".join(f"{line}\n" for line in lines).encode() for name, lines in tree.items()}

    before, our, their = files(base), files(ours), files(theirs)
    merge = three_way(before, our, their)
    here = {name: data for name, data in {**our, **merge.here}.items() if data is not None}
    there = {name: data for name, data in {**their, **merge.there}.items() if data is not None}
    assert here == there
    for side in (our, their):
        for name, data in side.items():
            if name != "MEMORY.md" and data != before.get(name):
                assert data in here.values()
            if name == "MEMORY.md":
                new = set(data.splitlines()) - set(before.get(name, b"").splitlines())
                assert new <= set(here.get(name, b"").splitlines())
    assert three_way(here, here, here).here == {}
