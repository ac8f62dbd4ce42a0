"""Kinds of agents from files: where they are found, which one counts, and one sentence for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.agents.definition import AgentDefinition, list_kinds, load_definitions, read_definition
from reverie.memory.sharing.agent_memory import AgentMemoryScope
from reverie.paths import Places
from reverie.settings import load_settings
from tests.counts import count


def write(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def head(**fields: str) -> str:
    return "---\n" + "".join(f"{key}: {value}\n" for key, value in fields.items()) + "---\nDo it.\n"


def places(cwd: Path) -> Places:
    return Places.of(cwd, load_settings(cwd))


def test_nearer_files_take_the_place_of_farther_ones(tmp_path: Path) -> None:
    project, inner = tmp_path / "project", tmp_path / "project" / "inner"
    inner.mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    home = places(inner).home
    write(home / "agents", "a.md", head(name="a", description="from home"))
    write(home / "agents", "h.md", head(name="h", description="from home"))
    write(project / ".claude" / "agents", "a.md", head(name="a", description="from .claude"))
    write(project / ".reverie" / "agents", "b.md", head(name="b", description="from the top"))
    write(inner / ".reverie" / "agents", "b.md", head(name="b", description="from the folder"))
    write(tmp_path / ".reverie" / "agents", "c.md", head(name="c", description="from above the repository"))
    found = load_definitions(places(inner))
    assert {kind.name: kind.description for kind in found.own} == {
        "a": "from .claude",
        "b": "from the folder",
        "h": "from home",
    }
    assert set(found.kinds) == {"general", "explore", "a", "b", "h"} and not found.problems
    assert set(load_definitions(places(inner), bare=True).kinds) == {"general", "explore"}
    assert list_kinds(found).count("\n- ") == 3


def test_all_that_a_head_can_say(tmp_path: Path) -> None:
    text = (
        '---\nname: team:reviewer\ndescription: "Reviews, strictly"\ntools: [Read, Grep]\nmodel: inherit\n'
        "memory: project\ncolor: blue\n---\n\nYou review.\n"
    )
    found = read_definition(write(tmp_path, "x.md", text))
    assert isinstance(found, AgentDefinition)
    assert (found.name, found.description, found.prompt) == ("team:reviewer", "Reviews, strictly", "You review.")
    assert found.tools == ("Read", "Grep") and found.model == "" and found.memory is AgentMemoryScope.PROJECT
    plain = read_definition(write(tmp_path, "by-name.md", head(description="d", tools='"*"')))
    assert isinstance(plain, AgentDefinition) and plain.name == "by-name" and plain.tools is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("You review.\n", "start the file with `---`"),
        ("---\nname: a\n", "start the file with `---`"),
        (head(name="a"), "`description` is missing"),
        ("---\nname: a\ndescription: d\n---\n  \n", "is empty"),
        (head(name="a b", description="d"), "is not a valid name"),
        (head(name="a", description="d", memory="everywhere"), "is not a scope"),
    ],
)
def test_a_bad_file_is_one_sentence_and_the_others_load(tmp_path: Path, text: str, says: str) -> None:
    folder = tmp_path / ".reverie" / "agents"
    bad = write(folder, "bad.md", text)
    write(folder, "good.md", head(name="good", description="fine"))
    found = load_definitions(places(tmp_path))
    assert [kind.name for kind in found.own] == ["good"]
    (problem,) = found.problems
    assert str(bad) in problem and says in problem


def test_what_is_no_text_or_too_long_or_gone(tmp_path: Path) -> None:
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "long.md").write_bytes(b"x" * 100_001)
    (tmp_path / "dangling.md").symlink_to(tmp_path / "nowhere")
    assert "not UTF-8" in str(read_definition(tmp_path / "binary.md"))
    assert "100,000 bytes" in str(read_definition(tmp_path / "long.md"))
    assert "cannot be read" in str(read_definition(tmp_path / "dangling.md"))


@settings(max_examples=count(25, 800))
@given(st.text(max_size=300))
def test_any_text_is_a_kind_or_a_sentence(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.md"
        path.write_text(text, errors="replace")
        found = read_definition(path)
        assert isinstance(found, AgentDefinition) or (str(path) in found and found.endswith("."))
