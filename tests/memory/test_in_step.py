"""Name, description and index line say what the body says: after every writer, and after an edit by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.memory.changes import Change, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile

FILE = "feedback_pnpm.md"
RULE = "Always use pnpm in this repository"


def remembered(
    tmp_path: Path, name: str = RULE, described: str = f"{RULE}.", body: str = f"{RULE}."
) -> MemoryDirectory:
    directory = MemoryDirectory.open(tmp_path / "memory", gate=lambda _: None)
    made = TopicFile.new(name=name, description=described, type=MemoryType.FEEDBACK, body=body)
    directory.create(FILE, made, WriteInfo(Writer.EXTRACTION, "said"))
    return directory


def with_body(directory: MemoryDirectory, body: str) -> str:
    return directory.read(FILE).topic.with_changes(body=body).text


@pytest.mark.parametrize("writer", [Writer.USER, Writer.AGENT, Writer.EXTRACTION, Writer.DREAM, Writer.HAND])
@pytest.mark.parametrize(
    "body",
    [
        "Use yarn in this repository, not pnpm.",
        "Use yarn here.\n\nUntil 2026-11-16: Always use pnpm in this repository.",
    ],
)
def test_a_replaced_rule_is_replaced_in_head_and_index(tmp_path: Path, writer: Writer, body: str) -> None:
    directory = remembered(tmp_path)
    text = with_body(directory, body)
    if writer is Writer.HAND:
        (directory.root / FILE).write_text(text)
        directory.absorb()
    else:
        directory.transaction([Change(FILE, text)], WriteInfo(writer, "changed"))
    now = directory.read(FILE).topic
    assert now.name.startswith("Use yarn") and now.description.startswith("Use yarn") and now.body == f"{body}\n"
    assert "Use yarn" in directory.index() and "Always" not in directory.index()
    assert len(list(directory.log())) == 2, "also an edit by hand and what follows it are one version"


@pytest.mark.parametrize(
    ("name", "described"),
    [("The package manager", "Packages: pnpm"), ("Package manager pnpm", "How packages are installed")],
)
def test_what_somebody_worded_freely_stays_unless_it_is_wrong_now(tmp_path: Path, name: str, described: str) -> None:
    directory = remembered(tmp_path, name, described, "Always use pnpm.\n\nTests run with vitest.")
    index = directory.root / "MEMORY.md"
    index.write_text(f"# Mine\n\n- [Packages]({FILE}) — we take pnpm\n")
    directory.absorb()
    directory.transaction(
        [Change(FILE, with_body(directory, "Always use pnpm.\n\nTests run with jest."))], WriteInfo(Writer.AGENT, "x")
    )
    now = directory.read(FILE).topic
    assert (now.name, now.description) == (name, described) and "we take pnpm" in directory.index()
    directory.transaction(
        [Change(FILE, with_body(directory, "Always use yarn.\n\nTests run with jest."))], WriteInfo(Writer.AGENT, "x")
    )
    now = directory.read(FILE).topic
    assert "pnpm" not in f"{now.name} {now.description} {directory.index()}".replace(FILE, "")
    assert "pnpm" in name or now.name == name
    assert directory.index().startswith("# Mine\n") and "yarn" in directory.index()


def test_a_line_and_a_head_that_the_writer_words_anew_stay_as_worded(tmp_path: Path) -> None:
    directory = remembered(tmp_path)
    text = directory.read(FILE).topic.with_changes(name="Packages", description="yarn", body="Use yarn.").text
    index = f"- [Yarn]({FILE}) — instead of pnpm\n"
    directory.transaction([Change(FILE, text), Change("MEMORY.md", index)], WriteInfo(Writer.AGENT, "x"))
    assert directory.read(FILE).text == text and directory.index() == index


def test_a_body_that_says_more_keeps_its_head(tmp_path: Path) -> None:
    directory = remembered(tmp_path)
    (directory.root / FILE).write_text(with_body(directory, f"{RULE}, also for the docs.\n\n**Why:** workspaces."))
    directory.absorb()
    assert directory.read(FILE).topic.name == RULE and len(list(directory.log())) == 2


def test_a_secret_that_was_typed_into_a_file_is_not_repeated_in_the_index(tmp_path: Path) -> None:
    directory = remembered(tmp_path)
    (directory.root / FILE).write_text(with_body(directory, "The token is ghp_16C7e42F292c6912E7710c838347Ae178B4a."))
    directory.absorb()
    assert "ghp_" not in directory.index()
