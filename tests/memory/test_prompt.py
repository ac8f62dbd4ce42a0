"""The memory section: its order, its variants, its size, and what it says at the point of decision."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest

from reverie.flags import FLAGS, PrefixFlags
from reverie.memory.prompt import GUIDELINES_BYTES, MAX_BYTES, memory_prompt
from reverie.memory.taxonomy import MemoryType

VARIANTS = ("team_memory", "daily_log", "recall.no_index", "search_past_context")
TRANSCRIPTS = Path("/t")


def flags(*on: str) -> PrefixFlags:
    return PrefixFlags({name: name in on for name, flag in FLAGS.items() if flag.prefix})


def section(directory: Path, *on: str, tools: tuple[str, ...] = ("Grep", "Bash"), guidelines: str = "") -> str:
    return memory_prompt(directory, TRANSCRIPTS, flags(*on), tools, guidelines).text


def headings(text: str) -> list[str]:
    return re.findall(r"^#{1,2} (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)


IN_ORDER = [
    "Memory",
    "What it is for",
    "When you are asked",
    "Types",
    "What does not belong there",
    "How to save",
    "When to use it",
    "Before you recommend something from memory",
    "Plans and tasks are not memory",
    "More about this memory",
    "Searching earlier work",
]


@pytest.mark.parametrize(
    "on", [(), ("team_memory",), ("recall.no_index",), ("daily_log",), ("daily_log", "team_memory")]
)
def test_the_order_is_the_same_in_every_variant(tmp_path: Path, on: tuple[str, ...]) -> None:
    text = section(tmp_path / "m", *on, "search_past_context", guidelines="Be kind.")
    wanted = [name if name != "Types" or "daily_log" not in on else "What goes into the log" for name in IN_ORDER]
    assert headings(text) == wanted


def test_every_variant_is_bounded(tmp_path: Path) -> None:
    largest = 0
    for length in range(len(VARIANTS) + 1):
        for on in itertools.combinations(VARIANTS, length):
            for tools in (("Grep",), ("Bash",), ()):
                text = section(tmp_path / "m", *on, tools=tools)
                largest = max(largest, len(text.replace(str(tmp_path / "m"), "").encode()))
                assert "{{" not in text and "\n\n\n" not in text
                with_guidelines = section(tmp_path / "m", *on, tools=tools, guidelines="é" * 100_000)
                assert len(with_guidelines.encode()) - len(text.encode()) <= GUIDELINES_BYTES + 100
    assert MAX_BYTES * 0.75 < largest <= MAX_BYTES, f"{largest} bytes: state the bound as it is"


def test_long_guidelines_are_cut_and_said_to_be(tmp_path: Path) -> None:
    made = memory_prompt(tmp_path / "m", TRANSCRIPTS, flags(), (), "é" * 5_000)
    assert len(made.diagnostics) == 1 and "10,000 bytes" in made.diagnostics[0]
    assert "é" * 4_000 in made.text and "é" * 4_001 not in made.text


def test_guidelines_are_not_expanded(tmp_path: Path) -> None:
    assert "{{directory}} $1" in section(tmp_path / "m", guidelines="{{directory}} $1")


def test_the_folder_is_there_before_the_prompt_says_so(tmp_path: Path) -> None:
    made = memory_prompt(tmp_path / "a" / "m", TRANSCRIPTS, flags(), ())
    assert str(tmp_path / "a" / "m") in made.text and "mkdir" in made.text
    assert (tmp_path / "a" / "m").is_dir() and (tmp_path / "a" / "m").stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "a" / "m" / "team").exists()
    section(tmp_path / "b", "team_memory")
    assert (tmp_path / "b" / "team").is_dir()


def test_a_folder_that_cannot_be_made_is_said_and_the_prompt_built(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    made = memory_prompt(tmp_path / "file" / "m", TRANSCRIPTS, flags(), ())
    assert headings(made.text)[0] == "Memory"
    assert len(made.diagnostics) == 1 and str(tmp_path / "file" / "m") in made.diagnostics[0]


def test_a_read_only_place(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    try:
        assert memory_prompt(tmp_path / "m", TRANSCRIPTS, flags(), ()).diagnostics
    finally:
        tmp_path.chmod(0o700)


def test_types_are_the_closed_set_each_with_its_parts(tmp_path: Path) -> None:
    text = section(tmp_path / "m")
    types = text[text.index("## Types") : text.index("## What does not belong")]
    parts = re.split(r"^### ", types, flags=re.MULTILINE)[1:]
    assert [part.split("\n")[0] for part in parts] == [kind.value for kind in MemoryType]
    for part in parts:
        assert "- Save when" in part and "- Use it" in part and "- Examples." in part
    for name in ("feedback", "project"):
        body = next(part for part in parts if part.startswith(name))
        assert "**Why:**" in body and "**How to apply:**" in body


def test_scopes_only_with_a_team(tmp_path: Path) -> None:
    alone, team = section(tmp_path / "m"), section(tmp_path / "m", "team_memory")
    assert "Private or shared" not in alone and str(tmp_path / "m" / "team") not in alone
    scopes = team[team.index("### Private or shared") : team.index("## What does not belong")]
    assert [line.split(":")[0] for line in scopes.splitlines() if line.startswith("- ")] == [
        f"- {kind.value}" for kind in MemoryType
    ]
    assert f"`{tmp_path / 'm' / 'team'}`" in team


def test_saving_is_one_step_because_index_lines_follow_the_files(tmp_path: Path) -> None:
    shown, hidden = section(tmp_path / "m"), section(tmp_path / "m", "recall.no_index")
    assert shown == hidden and "MEMORY.md" not in shown
    assert "its line in the index follows" in shown and "in the user's language" in shown


def test_a_daily_log_names_the_pattern_and_touches_nothing_else(tmp_path: Path) -> None:
    text = section(tmp_path / "m", "daily_log", "team_memory")
    assert f"{tmp_path / 'm'}/logs/YYYY/MM/YYYY-MM-DD.md" in text
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", text), "no date that would change the prefix at midnight"
    assert "never touch `MEMORY.md`" in text and "team" not in text.replace(str(tmp_path), "").lower()


def test_verification_stands_at_the_point_of_decision(tmp_path: Path) -> None:
    text = section(tmp_path / "m")
    part = text[text.index("## Before you recommend") : text.index("## Plans and tasks")]
    assert "about to rely" in part and "see that the file is there" in part and "search for it" in part


def test_search_is_worded_for_the_tools_there_are(tmp_path: Path) -> None:
    directory = tmp_path / "with space"
    on = "search_past_context"
    tool = section(directory, on, tools=("Grep", "Bash"))
    shell = section(directory, on, tools=("Bash",))
    assert "Grep with a narrow pattern" in tool and "grep -rn" not in tool
    assert f"grep -rn \"narrow term\" '{directory}'" in shell
    assert "Searching" not in section(directory, on, tools=("Read",))
    assert "Searching" not in section(directory, tools=("Grep",))
    assert tool.index("Topic files first") < tool.index("Transcripts of earlier conversations last")
