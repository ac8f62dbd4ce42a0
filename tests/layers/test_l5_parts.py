"""The pure parts of extraction: what is new, on which days, what a write would lose, and what is told of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import ReverieError
from reverie.layers.l5_extraction.extractor import notice
from reverie.layers.l5_extraction.learning import directive
from reverie.layers.l5_extraction.span import MessageSpan, OwnWrites, new_since
from reverie.layers.l5_extraction.writes import MemoryWrites, RunSource
from reverie.memory.changes import Evidence
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import MemoryInbox
from reverie.memory.gate.removal import find_lost
from reverie.memory.gate.rule import Standing
from reverie.memory.gate.write_gate import WriteGate
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile, body_statements
from reverie.storage.transcript.view import Entry
from reverie.types import Message, Origin, TextBlock, ToolUseBlock

HEAD = "---\nname: {name}\ndescription: {about}\ntype: feedback\n---\n\n"
PNPM = HEAD.format(name="pnpm only", about="never npm or yarn") + "Use pnpm, never npm.\n\n**Why:** one lock file.\n"


def said(uuid: str, text: str, origin: Origin = Origin.TYPED, at: str = "2026-03-02T12:00:00Z") -> Entry:
    role = "assistant" if origin is Origin.MODEL else "user"
    return Entry(uuid, Message(role, (TextBlock(text, origin),)), at, origin is Origin.SUMMARY)


TALK = [
    said("a", "hello"),
    said("b", "Hi.", Origin.MODEL),
    said("c", "do it so"),
    said("r", "<memory>", Origin.RECALLED),
    said("d", "Done.", Origin.MODEL, "2026-03-03T12:00:00Z"),
    said("e", "and tomorrow?", at="2026-03-04T12:00:00Z"),
]


@pytest.mark.parametrize(
    ("cursors", "first"),
    [(["b"], "c"), (["gone", "b"], "c"), (["gone"], "a"), ([None], "a"), ([], "a"), (["d", "b"], "e")],
)
def test_new_is_what_comes_after_the_newest_cursor_that_is_there(cursors: list[str | None], first: str) -> None:
    assert new_since(TALK, cursors).entries[0].uuid == first


def test_what_a_compaction_brought_is_not_new_and_messages_are_counted_as_a_model_sees_them() -> None:
    span = new_since([said("s", "summary", Origin.SUMMARY), *TALK], [])
    assert [entry.uuid for entry in span.entries] == ["a", "b", "c", "r", "d", "e"]
    assert span.messages == 5, "the recalled memory stands in the same message as what was typed"
    assert span.end == "e"


def test_an_answer_before_the_new_messages_is_evidence_of_the_model() -> None:
    evidence = new_since(TALK, ["b"]).evidence()
    assert [(one.origin, one.text) for one in evidence[:3]] == [
        (Origin.MODEL, "Hi."),
        (Origin.TYPED, "do it so"),
        (Origin.RECALLED, "<memory>"),
    ]


def test_the_directive_says_what_is_new_and_when_it_was_written() -> None:
    one = directive(new_since(TALK, ["b", "d"]), [], Path("/m"), rounds=5, today=date(2026, 1, 1))
    assert "The last 3 messages before this one are new" in one
    assert (
        "- from “do it so” on: Monday, 2026-03-02" in one and "- from “and tomorrow?” on: Wednesday, 2026-03-04" in one
    )
    last = directive(new_since(TALK, ["d"]), [], Path("/m"), rounds=5, today=date(2026, 1, 1))
    assert "The last message before this one is new" in last and "on Wednesday, 2026-03-04." in last
    undated = MessageSpan((Entry("x", Message("user", (TextBlock("hm", Origin.TYPED),))),))
    assert "on Thursday, 2026-01-01." in directive(undated, [], Path("/m"), rounds=5, today=date(2026, 1, 1))


def lost_statements(before: str, after: str) -> list[str]:
    old, new = ([Standing(one, "x.md", None) for one in body_statements(text)] for text in (before, after))
    return [one.text for one in find_lost(old, new)]


def test_a_statement_in_other_words_is_not_lost() -> None:
    assert lost_statements(PNPM, PNPM.replace("Use pnpm, never npm.", "Never use npm here: pnpm.")) == []
    assert lost_statements(PNPM, PNPM.replace("**Why:** one lock file.\n", "")) == ["one lock file."]
    assert lost_statements(PNPM, "") == ["Use pnpm, never npm.", "one lock file."]


@given(st.text(max_size=300))
def test_what_stays_is_never_lost_and_emptying_loses_all(text: str) -> None:
    assert lost_statements(text, text) == []
    assert len(lost_statements(text, "")) <= len(text)


@pytest.mark.parametrize(
    ("typed", "is_meant"),
    [
        ("forget the pnpm rule", True),
        ("we may use npm and yarn again", True),
        ("forget the rule about the kiln", False),
        ("please fix the login page", False),
    ],
)
def test_whether_somebody_spoke_of_a_memory(tmp_path: Path, typed: str, is_meant: bool) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    (root / "feedback_pnpm.md").write_text(PNPM.replace("\n\n**Why:** one lock file.", ""))
    (root / "project_kiln.md").write_text("---\nname: Kiln\ndescription: who loads it\n---\n\nIvo loads the kiln.\n")
    made = writes(root, typed)
    keep(made, root / "feedback_pnpm.md", "")
    assert (root / "feedback_pnpm.md").exists() is not is_meant
    assert made.refused == [] and made.done == ({"feedback_pnpm.md": "forgotten"} if is_meant else {})
    assert [item.why for item in MemoryInbox(root).list()] == ([] if is_meant else ["removal"])


def writes(root: Path, typed: str, most: int = 3) -> MemoryWrites:
    directory = MemoryDirectory.open(root, gate=WriteGate(root, inbox=MemoryInbox(root)))
    source = RunSource("s", "m", (Evidence(Origin.TYPED, typed, "m"),))
    return MemoryWrites(directory, source, most_losses=most)


def keep(made: MemoryWrites, path: Path, text: str) -> None:
    keeper = made.keeper(path)
    assert keeper is not None
    keeper(text.encode(), path.read_bytes() if path.exists() else None)


def test_no_more_memories_are_lost_in_a_run_than_the_setting_says(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    for number in range(4):
        (root / f"feedback_pnpm_{number}.md").write_text(PNPM.replace("lock file", f"lock file {number}"))
    made = writes(root, "forget all the pnpm rules", most=2)
    keep(made, root / "feedback_pnpm_0.md", "")
    keep(made, root / "feedback_pnpm_1.md", "")
    with pytest.raises(ReverieError, match="at most 2 memories"):
        keep(made, root / "feedback_pnpm_2.md", "")
    assert sorted(path.name for path in root.glob("feedback*")) == ["feedback_pnpm_2.md", "feedback_pnpm_3.md"]
    assert made.done == {"feedback_pnpm_0.md": "forgotten", "feedback_pnpm_1.md": "forgotten"}


def test_in_another_language_one_memory_may_be_forgotten(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    names = ["feedback_a.md", "feedback_b.md"]
    (root / names[0]).write_text(PNPM + "The packages are in the store of the team, and that is not for the build.\n")
    (root / names[1]).write_text(HEAD.format(name="Kiln", about="who loads it") + "Ivo loads the kiln after four.\n")
    made = writes(
        root,
        "vergiss bitte, was du dir zum Paketverwalter gemerkt hast, das ist nicht mehr gültig und wird nicht gebraucht",
    )
    for name in names:
        keep(made, root / name, "")
    assert [path.name for path in root.glob("feedback*")] == ["feedback_b.md"], "the one that the writer chose first"
    assert [item.file for item in MemoryInbox(root).list()] == ["feedback_b.md"]


def test_an_index_keeps_its_lines_and_people_their_own(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    root.mkdir()
    (root / "feedback_pnpm.md").write_text(PNPM)
    index = "# Mine\n\n- [pnpm only](feedback_pnpm.md) — never npm or yarn\n"
    (root / "MEMORY.md").write_text(index)
    made = writes(root, "use pnpm only, never npm or yarn")
    for bad in ("", "# Mine\n", index.replace("# Mine\n", "")):
        keep(made, root / "MEMORY.md", bad)
        assert (root / "MEMORY.md").read_text() == index
    keep(made, root / "MEMORY.md", index.replace("never npm or yarn", "never yarn"))
    assert "never yarn" in (root / "MEMORY.md").read_text() and made.done == {}


def test_a_memory_without_a_head_gets_one(tmp_path: Path) -> None:
    root = tmp_path / "memory"
    made = writes(root, "use pnpm only, never npm")
    keep(made, root / "feedback_pnpm.md", "Use pnpm only, never npm.\n")
    stored = TopicFile.parse((root / "feedback_pnpm.md").read_text())
    assert (stored.name, stored.description) == ("Use pnpm only, never npm", "Use pnpm only, never npm.")
    assert stored.type is MemoryType.FEEDBACK, "as its file is named"
    assert (root / "MEMORY.md").read_text().startswith("- [Use pnpm only, never npm](feedback_pnpm.md)")


def test_the_notice_lists_topic_files_by_what_became_of_them() -> None:
    assert notice({}) is None
    text = notice({"user_a.md": "added", "feedback_b.md": "updated", "user_c.md": "added"})
    assert text is not None and text.startswith("remembered user_a.md, user_c.md; updated feedback_b.md")


HOME = Path("/home/u")
ROOT = HOME / ".reverie" / "projects" / "-home-u-shop" / "memory"


@pytest.mark.parametrize(
    ("command", "is_write"),
    [
        (f"echo 'Use tabs.' > {ROOT}/feedback_tabs.md", True),
        (f"cat <<'E' >> '{ROOT}/feedback_tabs.md'\nUse tabs.\nE", True),
        ("echo x >~/.reverie/projects/-home-u-shop/memory/user_x.md", True),
        ('printf x > "$HOME/.reverie/projects/-home-u-shop/memory/user_x.md"', True),
        (f"rm {ROOT}/user_x.md", True),
        (f"sed -i s/a/b/ {ROOT}/user_x.md && git status", True),
        (f"cd {ROOT} && echo x > user_x.md", True),
        (f"cd {ROOT.parent} && cd memory && mv a.md b.md", True),
        (f"echo x | tee {ROOT}/user_x.md", True),
        (f"bash -c 'rm {ROOT}/user_x.md'", True),
        ("reverie remember 'use tabs'", True),
        ("reverie memory list", False),
        (f"cat {ROOT}/user_x.md", False),
        (f"cat {ROOT}/user_x.md > /tmp/copy.md", False),
        (f"grep -c x {ROOT}/user_x.md && make test", False),
        (f"cd {ROOT} && cd /tmp && touch x", False),
        ("rm memory/user_x.md", False),
        ("make memory > out.txt", False),
        ("echo 'unterminated", False),
        ("", False),
    ],
)
def test_a_shell_command_that_changes_a_memory_is_known_by_its_words(command: str, is_write: bool) -> None:
    own = OwnWrites(ROOT, HOME / "shop", HOME)
    assert own.is_one(ToolUseBlock("c1", "Bash", {"command": command})) is is_write


@given(st.text(max_size=60), st.sampled_from(["Bash", "Write", "Edit", "Read"]))
def test_any_call_can_be_asked_about(text: str, tool: str) -> None:
    own = OwnWrites(ROOT, HOME / "shop", HOME)
    given_to = {"command": f"{ROOT} {text}", "file_path": text}
    assert own.is_one(ToolUseBlock("c1", tool, given_to)) in (True, False)
    assert not own.is_one(ToolUseBlock("c1", tool, {}))
