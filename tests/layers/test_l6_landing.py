"""What a dream loses, what it may land, and what happens to what others changed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.layers.l6_dreaming.copy import MemoryCopy, sweep
from reverie.layers.l6_dreaming.landing import LandingResult, accept, dream_info, dreams, land, reject, undo
from reverie.layers.l6_dreaming.loss import body_statements, loss
from reverie.layers.l6_dreaming.proposal import DreamRefused, Proposal, Proposals, propose, reasons_in
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.write_gate import WriteGate
from tests.layers.dreams import BAKERY, GOOD_ANSWER, JOINED, house

WANTED = {"project_oven.md": JOINED, "project_oven_copy.md": ""}


def directory(root: Path) -> MemoryDirectory:
    return MemoryDirectory.open(root, gate=WriteGate(root))


def proposed(
    tmp_path: Path, changes: Mapping[str, str], answer: str = GOOD_ANSWER, *, most: float = 25
) -> tuple[MemoryDirectory, Proposal]:
    place = house(tmp_path)
    copy = MemoryCopy.make(place.memory, tmp_path / "copies")
    for name, text in changes.items():
        copy.write(name, text.encode())
    found = propose(copy, answer, id="00c0ffee", created=1.0, session="s", max_loss_pct=most)
    copy.remove()
    assert found is not None
    return directory(place.memory), found


def landed(memory: MemoryDirectory, proposal: Proposal) -> LandingResult:
    return land(memory, proposal, dream_info(proposal))


# -- loss -----------------------------------------------------------------------------------------------------------


def test_a_statement_survives_in_other_words_in_any_file() -> None:
    before = {"a.md": "The press office moves to Basel in May.\nLunch is at noon.\n", "MEMORY.md": "- all of it\n"}
    found = loss(before, {"b.md": "- In May the press office moves over to Basel, on the 4th.\n"})
    assert [one.text for one in found.lost] == ["Lunch is at noon."]
    assert found.statements == 2 and found.share == 0.5


def test_what_a_reason_names_does_not_count() -> None:
    before = {"a.md": "Lunch is at noon in the canteen.\nThe cat is called Momo.\n"}
    found = loss(before, {}, ["a.md: gone, since lunch at noon in the canteen is over"])
    assert [(one.text, one.named) for one in found.lost] == [
        ("Lunch is at noon in the canteen.", True),
        ("The cat is called Momo.", False),
    ]
    assert found.share == 0.5


def test_statements_are_sentences_and_bullets_of_the_body() -> None:
    head = "---\nname: X\ndescription: not a statement of it\n---\n\n"
    assert body_statements(f"{head}# Head\n- one thing\n- another thing\n\nA third. A fourth!\n") == [
        "Head",
        "one thing",
        "another thing",
        "A third.",
        "A fourth!",
    ]


words = st.lists(
    st.sampled_from(
        ["harbour", "lamp", "violin", "bridge", "granite", "otter", "copper", "thistle", "anchor", "comet"]
    ),
    min_size=4,
    max_size=8,
    unique=True,
)


@given(st.lists(words, min_size=1, max_size=8), st.data())
def test_loss_is_none_for_the_same_and_all_for_nothing(lines: list[list[str]], data: st.DataObject) -> None:
    text = "".join(f"- {' '.join(line)}\n" for line in lines)
    assert not loss({"a.md": text}, {"b.md": text}).lost
    whole = loss({"a.md": text}, {})
    assert len(whole.lost) == whole.statements
    kept = data.draw(st.lists(st.sampled_from(lines), unique_by=tuple, max_size=len(lines)))
    part = loss({"a.md": text}, {"a.md": "".join(f"- {' '.join(line)}\n" for line in kept)})
    assert len(part.lost) <= whole.statements
    assert all(" ".join(line) not in {one.text for one in part.lost} for line in kept)


def test_reasons_are_found_by_their_file() -> None:
    answer = """Done:
- `project_oven.md`: joined with its copy
  and the fuse added
- **team/shifts.md** — moved to May
* other.md: never touched
1. MEMORY.md → two lines less
"""
    free = "Merged `a.md` into b.md, because both name the oven.\n\n### team/c.md\nIt was wrong."
    assert reasons_in(free, ["a.md", "b.md", "team/c.md"]) == {
        "a.md": "Merged `a.md` into b.md, because both name the oven.",
        "b.md": "Merged `a.md` into b.md, because both name the oven.",
        "team/c.md": "It was wrong.",
    }
    assert reasons_in("I tidied data.md.", ["a.md"]) == {}
    assert reasons_in(answer, ["project_oven.md", "team/shifts.md", "MEMORY.md"]) == {
        "project_oven.md": "joined with its copy and the fuse added",
        "team/shifts.md": "moved to May",
        "MEMORY.md": "two lines less",
    }


# -- proposing ------------------------------------------------------------------------------------------------------


def test_too_much_loss_is_refused_and_named_loss_is_not(tmp_path: Path) -> None:
    gone = {name: "" for name in BAKERY if name.startswith(("reference", "user"))}
    with pytest.raises(DreamRefused, match=r"5 of 9 statements") as refused:
        proposed(tmp_path, gone, "- reference_flour.md: old")
    assert "reference_flour.md: “Flour is ordered" in refused.value.among, "for people"
    assert "Flour" not in str(refused.value), "and for no log"
    named = "\n".join(f"- {name}: gone: {' '.join(body_statements(BAKERY[name]))}" for name in gone)
    _, proposal = proposed(tmp_path, gone, named)
    assert {change.name for change in proposal.changes} == set(gone)


def test_a_file_without_a_reason_gets_a_plain_one(tmp_path: Path) -> None:
    _, proposal = proposed(tmp_path, WANTED, "ok")
    reasons = {change.name: change.reason for change in proposal.changes}
    assert reasons["project_oven_copy.md"] == "removed; no reason was given"
    assert reasons["project_oven.md"] == "1 statements new or reworded, 0 gone; no reason was given"


# -- landing --------------------------------------------------------------------------------------------------------


def test_it_lands_as_one_version_with_a_reason_a_file(tmp_path: Path) -> None:
    memory, proposal = proposed(tmp_path, WANTED)
    done = landed(memory, proposal)
    assert done.version is not None and not done.left
    assert done.version.info.writer == "dream"
    assert done.version.info.reasons == {
        "project_oven.md": "joined with its copy",
        "project_oven_copy.md": "joined into project_oven.md",
        "MEMORY.md": "the index follows the files",
    }
    assert memory.read("project_oven.md").text == JOINED
    assert not memory.exists("project_oven_copy.md") and "copy" not in memory.index()
    assert [version.id for version in dreams(memory)] == [done.version.id]


def test_what_was_removed_comes_back_by_undo_and_by_restore(tmp_path: Path) -> None:
    memory, proposal = proposed(tmp_path, WANTED)
    landed(memory, proposal)
    memory.restore("project_oven_copy.md", dream_info(proposal))
    assert memory.read("project_oven_copy.md").text == BAKERY["project_oven_copy.md"]
    memory.undo("latest", dream_info(proposal))
    undo(memory)
    for name, text in BAKERY.items():
        assert memory.read(name).text == text
    with pytest.raises(Exception, match="taken back already"):
        undo(memory)


def test_other_lines_of_somebody_else_are_merged(tmp_path: Path) -> None:
    memory, proposal = proposed(tmp_path, WANTED)
    path = memory.root / "project_oven.md"
    path.write_text(BAKERY["project_oven.md"].replace("in March", "in spring"))
    done = landed(memory, proposal)
    assert done.merged == ("project_oven.md",) and not done.left
    text = path.read_text()
    assert "in spring" in text and "63 A fuse" in text


def test_the_same_lines_of_somebody_else_stay_theirs_and_so_does_what_was_to_move_there(tmp_path: Path) -> None:
    memory, proposal = proposed(tmp_path, WANTED)
    theirs = BAKERY["project_oven.md"] + "The fuse box is in the cellar.\n"
    (memory.root / "project_oven.md").write_text(theirs)
    with pytest.raises(DreamRefused) as refused:
        landed(memory, proposal)
    assert "somebody else changed it" in refused.value.among
    assert (memory.root / "project_oven.md").read_text() == theirs
    assert (memory.root / "project_oven_copy.md").read_text() == BAKERY["project_oven_copy.md"]


def test_beside_a_conflict_the_rest_lands(tmp_path: Path) -> None:
    flour = BAKERY["reference_flour.md"].replace("by fax", "by fax only")
    memory, proposal = proposed(tmp_path, {**WANTED, "reference_flour.md": flour})
    theirs = BAKERY["project_oven.md"] + "The fuse box is in the cellar.\n"
    (memory.root / "project_oven.md").write_text(theirs)
    done = landed(memory, proposal)
    assert done.version is not None and done.files == ("reference_flour.md",)
    assert set(done.left) == {"project_oven.md", "project_oven_copy.md"}
    assert memory.exists("project_oven_copy.md"), "its content had nowhere to go"
    assert memory.read("reference_flour.md").text == flour


def test_the_user_accepts_some_files_and_the_rest_is_dropped_or_waits(tmp_path: Path) -> None:
    flour = BAKERY["reference_flour.md"].replace("by fax", "by fax only")
    memory, proposal = proposed(tmp_path, {**WANTED, "reference_flour.md": flour})
    waiting = Proposals(memory.root)
    waiting.add(proposal)
    _, done = accept(memory, waiting, only=["reference_flour"], keep_rest=True)
    assert done.files == ("reference_flour.md",) and memory.read("reference_flour.md").text == flour
    assert [change.name for change in waiting.find().changes] == ["project_oven.md", "project_oven_copy.md"]
    with pytest.raises(DreamRefused, match="its content was to go to a file that stays as it is"):
        accept(memory, waiting, only=["project_oven_copy.md"])
    assert memory.exists("project_oven_copy.md") and waiting.count() == 1, "nothing is lost, and it waits on"
    with pytest.raises(UserError, match="does not change 'user_mara"):
        accept(memory, waiting, only=["user_mara.md"])
    accept(memory, waiting, only=["project_oven.md"])
    assert memory.read("project_oven.md").text == JOINED and memory.exists("project_oven_copy.md")
    assert memory.index() == BAKERY["MEMORY.md"] and waiting.count() == 0


def test_a_file_that_somebody_changed_is_not_removed(tmp_path: Path) -> None:
    memory, proposal = proposed(tmp_path, WANTED)
    (memory.root / "project_oven_copy.md").write_text(BAKERY["project_oven_copy.md"] + "And a chimney.\n")
    done = landed(memory, proposal)
    assert "And a chimney." in (memory.root / "project_oven_copy.md").read_text()
    assert done.version is not None and list(done.left) == ["project_oven_copy.md"]
    assert "63 A fuse" in (memory.root / "project_oven.md").read_text()


def test_a_new_file_that_somebody_made_meanwhile_stays_theirs(tmp_path: Path) -> None:
    memory, proposal = proposed(tmp_path, {"project_fuse.md": "It needs a 63 A fuse.\n"}, "- project_fuse.md: its own")
    (memory.root / "project_fuse.md").write_text("Something else.\n")
    with pytest.raises(DreamRefused):
        landed(memory, proposal)
    assert (memory.root / "project_fuse.md").read_text() == "Something else.\n"


def test_a_new_file_gets_its_index_line_and_a_forgotten_line_comes_back(tmp_path: Path) -> None:
    new = "---\nname: Fuse\ndescription: The oven needs a 63 A fuse\ntype: project\n---\n\nIt needs a 63 A fuse.\n"
    index = BAKERY["MEMORY.md"].replace("- [Flour](reference_flour.md) — where it is ordered\n", "")
    flour = BAKERY["reference_flour.md"].replace("by fax", "by fax only")
    copy = BAKERY["project_oven_copy.md"].replace("It needs a 63 A fuse.\n", "")
    wanted = {"project_fuse.md": new, "MEMORY.md": index, "reference_flour.md": flour, "project_oven_copy.md": copy}
    memory, proposal = proposed(tmp_path, wanted)
    landed(memory, proposal)
    assert "- [Fuse](project_fuse.md) — The oven needs a 63 A fuse\n" in memory.index()
    assert "- [Flour](reference_flour.md) — where it is ordered\n" in memory.index()


def test_what_the_gate_refuses_is_left_and_the_rest_lands(tmp_path: Path) -> None:
    stolen = "---\nname: Stolen\ndescription: A secret\ntype: reference\n---\n\nAWS key AKIAQ4ZT7WLR2XN6VPDK here.\n"
    index = BAKERY["MEMORY.md"] + "- [Stolen](reference_stolen.md) — a key\n"
    memory, proposal = proposed(tmp_path, {**WANTED, "reference_stolen.md": stolen, "MEMORY.md": index})
    done = landed(memory, proposal)
    assert list(done.left) == ["reference_stolen.md"] and "AKIA" not in done.left["reference_stolen.md"]
    assert not memory.exists("reference_stolen.md") and "stolen" not in memory.index()
    assert memory.read("project_oven.md").text == JOINED


# -- waiting for a person -------------------------------------------------------------------------------------------


def test_a_proposal_waits_is_accepted_or_rejected(tmp_path: Path) -> None:
    memory, proposal = proposed(tmp_path, WANTED)
    waiting = Proposals(memory.root)
    waiting.add(proposal)
    assert waiting.list() == [proposal] and waiting.count() == 1
    assert memory.names() == sorted(name for name in BAKERY if name != "MEMORY.md"), "what waits is no memory"
    reject(waiting, "00c0")
    assert waiting.list() == []
    waiting.add(proposal)
    _, done = accept(memory, waiting)
    assert done.version is not None and waiting.list() == []
    assert [version.id for version in dreams(memory)] == [done.version.id]
    undo(memory)
    assert memory.read("project_oven.md").text == BAKERY["project_oven.md"]


def test_a_proposal_can_be_purged(tmp_path: Path) -> None:
    memory, proposal = proposed(tmp_path, WANTED)
    waiting = Proposals(memory.root)
    waiting.add(proposal)
    assert waiting.replace_everywhere(lambda text: text.replace("Petra", "[gone]")) == 1
    assert "Petra" not in repr(waiting.list()) and "[gone]" in repr(waiting.list())


# -- the copy -------------------------------------------------------------------------------------------------------


def test_the_copy_keeps_times_and_leaves_out_what_is_hidden_or_linked(tmp_path: Path) -> None:
    place = house(tmp_path, {**BAKERY, "logs/2026/11/2026-11-01.md": "- 09:00 x\n", ".dreams/state.json": "{}"})
    (place.memory / "linked.md").symlink_to(tmp_path / "elsewhere.md")
    copy = MemoryCopy.make(place.memory, tmp_path / "copies")
    names = set(copy.files())
    assert names == {*BAKERY, "logs/2026/11/2026-11-01.md"}
    for name in names:
        assert (copy.folder / name).stat().st_mtime_ns == (place.memory / name).stat().st_mtime_ns
    assert copy.map_path(place.memory / "x" / ".." / "user_mara.md") == copy.folder / "user_mara.md"
    assert copy.map_path(tmp_path / "work") == tmp_path / "work"
    assert copy.changes() == ()
    copy.remove()
    assert not copy.folder.exists()


def test_copies_of_dead_processes_are_swept(tmp_path: Path) -> None:
    (tmp_path / "999999999-dead" / "memory").mkdir(parents=True)
    place = house(tmp_path)
    mine = MemoryCopy.make(place.memory, tmp_path / "copies")
    (tmp_path / "copies" / "999999999-dead").mkdir()
    assert sweep(tmp_path / "copies") == 1
    assert mine.folder.exists()


# -- what is held ----------------------------------------------------------------------------------------------------


def test_what_was_to_be_moved_and_is_held_is_put_back_unless_it_is_named(tmp_path: Path) -> None:
    for answer, kept in (("done", True), ("- b.md: gone: Delta epsilon zeta eta.", False)):
        root = tmp_path / answer[:4]
        root.mkdir()
        (root / "a.md").write_text("Alpha beta gamma.\n")
        (root / "b.md").write_text("Delta epsilon zeta eta.\n")
        (root / "c.md").write_text("Theta iota kappa.\n" * 3 + "Lambda my ny.\nXi omikron pi.\nRho sigma tau.\n")
        (root / "MEMORY.md").write_text(
            "- [A](a.md) — a\n- [B](b.md) — b\nYpsilon phi chi psi omega.\n- [C](c.md) — c\n"
        )
        copy = MemoryCopy.make(root, tmp_path / "copies")
        copy.write("b.md", None)
        copy.write("MEMORY.md", b"- [A](a.md) \xe2\x80\x94 a\n- [C](c.md) \xe2\x80\x94 c\n")
        held = {"a.md": ["Delta epsilon zeta eta."]}
        found = propose(copy, answer, id="1", created=0, session="", max_loss_pct=25, held=held)
        if kept:
            assert found is None and not copy.changes(), "everything is back, also what only the index said"
            continue
        assert found is not None and {one.name for one in found.changes} == {"b.md", "MEMORY.md"}
        index = next(one.after for one in found.changes if one.name == "MEMORY.md") or ""
        assert "b.md" not in index and "Ypsilon phi chi psi omega." in index, "what only the index said stays"
        assert [one.partition(":")[0] for one in found.kept] == ["MEMORY.md"]
        landed = land(MemoryDirectory.open(root, gate=lambda _write: None), found, dream_info(found))
        assert landed.version is not None and not (root / "b.md").exists()
        index = (root / "MEMORY.md").read_text()
        assert "(b.md)" not in index and "Ypsilon" in index, "a line follows its file, and prose stays"


def test_what_only_an_index_said_is_not_lost_over_a_held_line(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    (root / "a.md").write_text("Alpha beta gamma.\n")
    before = "- [A](a.md) — a; the drain key hangs behind the green door of the boat house\n"
    (root / "MEMORY.md").write_text(before)
    copy = MemoryCopy.make(root, tmp_path / "copies")
    copy.write("MEMORY.md", "- [A](a.md) — a\n".encode())
    held = {"a.md": ["The drain key hangs behind the green door of the boat house."]}
    assert propose(copy, "done", id="1", created=0, session="", max_loss_pct=25, held=held) is None
    assert propose(copy, "done", id="1", created=0, session="", max_loss_pct=25) is None, "put back for good"
