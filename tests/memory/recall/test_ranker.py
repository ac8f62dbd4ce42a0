"""The local ranker through its public surface: what it finds, what it leaves out and why, and when it says nothing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.memory.recall.ranker import Ranker, Ranking
from tests.counts import count
from tests.work import calls

DAY = 86_400.0
NOW = 1_780_000_000.0


def topic(
    memory: Path, name: str, title: str, description: str, body: str = "", *, kind: str = "project", age: float = 10
) -> Path:
    path = memory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {title}\ndescription: {description}\ntype: {kind}\n---\n\n{body}\n"
    path.write_text(text, encoding="utf-8")
    os.utime(path, (NOW - age * DAY, NOW - age * DAY))
    return path


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A dozen memories, so that words have weights."""
    folder = tmp_path / "memory"
    topic(
        folder,
        "project_boiler.md",
        "Boiler replacement",
        "The boiler in the east wing is replaced in March",
        "By Otto.",
    )
    topic(
        folder,
        "project_roof.md",
        "Roof survey",
        "Slates on the north roof are loose; survey in June",
        "Ladder is in B2.",
    )
    topic(folder, "feedback_letters.md", "Letters to parents", "Letters to parents are one page, signed by the head")
    topic(folder, "feedback_colours.md", "No red ink", "Marks are never written in red ink", "Parents complained.")
    topic(folder, "user_role.md", "Caretaker", "Works as caretaker of the school, knows plumbing well")
    topic(folder, "user_hours.md", "Hours", "Works from six to two, not on Wednesdays")
    topic(folder, "reference_keys.md", "Keys", "Keys hang in the office, numbered by floor", kind="reference")
    topic(folder, "project_canteen.md", "Canteen menu", "Two vegetarian dishes a week since autumn")
    topic(folder, "project_library.md", "Library move", "Books move to the old gym over the summer holidays")
    topic(folder, "project_bells.md", "Bell times", "The bell rings at five to eight since the bus timetable changed")
    topic(folder, "reference_suppliers.md", "Suppliers", "Whom to call for glass, paint and heating oil")
    topic(folder, "project_garden.md", "School garden", "Class 4 waters the beds on Mondays and Thursdays")
    return folder


@pytest.fixture
def ranker(memory: Path, tmp_path: Path) -> Iterator[Ranker]:
    with Ranker.open(memory, tmp_path / "index.sqlite", tier="builtin") as opened:
        yield opened


def ranked(ranking: Ranking) -> list[str]:
    return [one.path for one in ranking.ranked]


def shown(ranking: Ranking) -> list[str]:
    return [one.path for one in ranking.shown]


def reason(ranking: Ranking, path: str) -> str:
    return next((left.reason for left in ranking.left_out if left.candidate.path == path), "")


def test_the_memory_that_shares_words_comes_first_and_says_which(ranker: Ranker) -> None:
    ranking = ranker.rank("when do we replace the old boilers?", now=NOW)
    assert ranked(ranking)[0] == "project_boiler.md"
    assert shown(ranking)[0] == "project_boiler.md"
    assert "boiler" in ranking.shown[0].why
    assert ranking.tier == "builtin"
    assert ranking.files == 12


def test_filename_name_description_and_body_are_all_searched(memory: Path, ranker: Ranker) -> None:
    topic(memory, "project_quokka.md", "Wombat", "about a numbat", "and a bilby")
    for word in ("quokka", "wombat", "numbat", "bilby"):
        assert ranked(ranker.rank(f"tell us about our {word}", now=NOW))[0] == "project_quokka.md"


@pytest.mark.parametrize(
    "query",
    ["Wie weit ist die Ernte der Äpfel?", "ernte apfel", "ÄPFEL", "что с урожаем яблок", "リンゴの収穫はいつですか"],
)
def test_other_languages_and_scripts_are_found(memory: Path, ranker: Ranker, query: str) -> None:
    topic(memory, "project_apples.md", "Ernte", "Die Apfelernte beginnt im September")
    topic(memory, "project_yabloki.md", "Урожай", "Урожай яблок убирают в сентябре")
    topic(memory, "project_ringo.md", "りんご", "リンゴの収穫は九月に始まる")
    found = ranked(ranker.rank(query, now=NOW))
    wanted = (
        "project_apples.md" if query[0] in "WeÄ" else "project_yabloki.md" if query[0] == "ч" else "project_ringo.md"
    )
    assert found[0] == wanted


def test_small_talk_and_general_questions_are_met_with_silence_and_a_reason(ranker: Ranker) -> None:
    for query in ("what is the capital of Peru?", "thanks, that was all", "write a poem about a fox"):
        ranking = ranker.rank(query, now=NOW)
        assert not ranking.shown
        assert ranking.silent
        assert 0 <= ranking.confidence < 0.5


def test_a_query_without_words_and_an_empty_memory_are_silent(ranker: Ranker, tmp_path: Path) -> None:
    assert not ranker.rank("?!", now=NOW).shown
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "not there"):
        with Ranker.open(folder, None, tier="builtin") as nothing:
            ranking = nothing.rank("when do we replace the boiler?", now=NOW)
            assert (ranking.ranked, ranking.shown, ranking.files) == ((), (), 0)
            assert ranking.silent


def test_what_was_shown_or_read_before_is_left_out_before_the_choice(ranker: Ranker) -> None:
    query = "is the boiler in the east wing replaced and is the survey of the north roof done?"
    first = ranker.rank(query, now=NOW)
    assert set(shown(first)[:2]) == {"project_boiler.md", "project_roof.md"}
    again = ranker.rank(query, exclude={"project_boiler.md"}, now=NOW)
    assert "project_boiler.md" not in ranked(again)
    assert shown(again)[0] == "project_roof.md"


def test_no_more_than_the_limit_is_shown(memory: Path, ranker: Ranker) -> None:
    for n in range(9):
        topic(memory, f"project_pump{n}.md", f"Pump number {n}", f"cellar pump serviced in week {n} by firm {n * 7}")
    ranking = ranker.rank("which of our cellar pumps were serviced last week?", now=NOW, limit=3)
    assert len(ranking.shown) == 3
    assert "best 3" in ranking.left_out[-1].reason


TOOL = "mcp__heating__set"


def with_tool_files(memory: Path) -> None:
    usage = f"How to call {TOOL}: parameters and examples"
    topic(memory, "reference_heating_tool.md", f"Using {TOOL}", usage, f"`{TOOL}(zone, celsius)`", kind="reference")
    topic(memory, "gotcha_heating.md", f"{TOOL} pitfalls", "Warning: a zone above 24 is silently cut", kind="feedback")
    cli = "Commands for backing up with the restic program"
    topic(memory, "reference_backup.md", "Backups by hand", cli, "`restic backup /srv`", kind="reference")
    topic(memory, "feedback_restic.md", "restic prune", "Never prune on Mondays, the tape job runs", kind="feedback")


def test_the_manual_of_a_tool_in_use_is_never_shown_but_its_warnings_are(memory: Path, ranker: Ranker) -> None:
    with_tool_files(memory)
    query = "set zone 3 to 25 degrees with the heating tool"
    before = ranker.rank(query, now=NOW)
    assert "reference_heating_tool.md" in shown(before), "not in use yet: the manual is what is needed"
    during = ranker.rank(query, tools_in_use=["Read", TOOL], now=NOW)
    assert "reference_heating_tool.md" not in ranked(during)
    assert "in use" in reason(during, "reference_heating_tool.md")
    assert shown(during)[0] == "gotcha_heating.md"


def test_a_program_seen_in_a_shell_counts_as_a_tool(memory: Path, ranker: Ranker) -> None:
    with_tool_files(memory)
    used = ["Bash(sudo RESTIC_REPOSITORY=/b /usr/bin/restic backup /srv)"]
    ranking = ranker.rank("please clean up the old backups by hand now", tools_in_use=used, now=NOW)
    assert "reference_backup.md" not in ranked(ranking)
    assert "feedback_restic.md" in ranked(ranking)[:2], "about the tool, though it shares no word with the query"


def test_built_in_tools_hide_nothing(ranker: Ranker) -> None:
    query = "where do the keys for the office hang?"
    assert shown(ranker.rank(query, tools_in_use=["Read", "Bash", "Grep"], now=NOW)) == shown(
        ranker.rank(query, now=NOW)
    )


def test_a_memory_that_says_it_is_replaced_is_left_out_unless_the_past_is_asked_for(
    memory: Path, ranker: Ranker
) -> None:
    old = "SUPERSEDED by the contract of 2026. Heating oil came from Brandt"
    topic(memory, "project_oil_2025.md", "Heating oil contract 2025 (superseded)", old, age=400)
    topic(memory, "project_oil_2026.md", "Heating oil contract 2026", "Heating oil comes from Lund until 2028", age=5)
    now = ranker.rank("who delivers our heating oil under the contract?", now=NOW)
    assert shown(now)[0] == "project_oil_2026.md"
    assert "project_oil_2025.md" not in ranked(now)
    assert "replaced" in reason(now, "project_oil_2025.md")
    then = ranker.rank("who was the previous supplier of heating oil under the old contract?", now=NOW)
    assert "project_oil_2025.md" in ranked(then)


def test_a_memory_that_tells_what_it_replaced_is_not_itself_replaced(memory: Path, ranker: Ranker) -> None:
    topic(
        memory,
        "project_phones.md",
        "Pagers replaced by phones",
        "Phones since May; no pagers left",
        "The old list is out of date.",
    )
    assert ranked(ranker.rank("do we still have pagers?", now=NOW))[0] == "project_phones.md"


def test_of_two_memories_that_say_nearly_the_same_the_newer_is_shown(memory: Path, ranker: Ranker) -> None:
    same = "Fire drill assembly point is behind the {} gym"
    topic(memory, "project_drill_a.md", "Fire drill assembly point", same.format("large"), age=300)
    topic(memory, "project_drill_b.md", "Fire drill assembly point", same.format("small"), age=2)
    ranking = ranker.rank("where is the assembly point of our fire drill?", now=NOW)
    assert shown(ranking)[0] == "project_drill_b.md"
    assert "project_drill_b.md" in reason(ranking, "project_drill_a.md")


@pytest.mark.parametrize(
    "data",
    [
        b"---\nname: Giraffe house\ndescription: giraffe\n\nno end of the header",
        b"\xef\xbb\xbf---\r\nname: Giraffe house\r\ndescription: giraffe\r\n---\r\n\r\nbody\r\n",
        b"---\nmetadata:\n  type: project\nname: 'Giraffe house'\ndescription: >\n  about the\n  giraffe\n---\nbody",
        b"giraffe house, without any header",
        b"\xff\xfe giraffe house \x00 broken bytes",
    ],
)
def test_files_with_a_broken_header_are_found_all_the_same(memory: Path, ranker: Ranker, data: bytes) -> None:
    (memory / "zoo.md").write_bytes(data)
    assert ranked(ranker.rank("what about our giraffe house", now=NOW))[0] == "zoo.md"


def test_changes_are_seen_at_once_also_those_made_in_place(memory: Path, ranker: Ranker) -> None:
    assert not ranked(ranker.rank("xylophone", now=NOW))
    path = topic(memory, "project_music.md", "Music room", "The xylophone is in the music room")
    assert ranked(ranker.rank("xylophone", now=NOW)) == ["project_music.md"]
    with path.open("a", encoding="utf-8") as file:  # the folder does not change
        file.write("\nIt was sold to the xylophone museum.\n")
    ranking = ranker.rank("where is our xylophone, has it been sold to the museum?", now=NOW)
    assert shown(ranking) == ["project_music.md"]
    assert "museum" in ranking.shown[0].why
    path.unlink()
    assert not ranked(ranker.rank("xylophone", now=NOW))


def test_a_file_from_the_future_counts_as_from_now(memory: Path, ranker: Ranker) -> None:
    topic(memory, "project_zeppelin.md", "Zeppelin", "Zeppelin visit", age=-50)
    assert ranker.rank("zeppelin", now=NOW).ranked[0].mtime == NOW


def test_the_index_may_be_deleted_or_damaged_while_in_use(memory: Path, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    query = "when is the boiler replaced?"
    with Ranker.open(memory, path, tier="builtin") as ranker:
        before = shown(ranker.rank(query, now=NOW))
        assert before
        size = path.stat().st_size
        for sidecar in (path, Path(f"{path}-wal")):
            if sidecar.exists():
                sidecar.write_bytes(b"\x5a" * max(size, 8192))
        with sqlite3.connect(":memory:"):
            assert shown(ranker.rank(query, now=NOW)) == before
    for name in tmp_path.glob("index.sqlite*"):
        name.unlink()
    with Ranker.open(memory, path, tier="builtin") as ranker:
        assert shown(ranker.rank(query, now=NOW)) == before


def test_the_memory_directory_is_only_read(memory: Path, tmp_path: Path) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in memory.rglob("*") if path.is_file()}
    with Ranker.open(memory, tmp_path / "index.sqlite", tier="builtin") as ranker:
        ranker.rank("when is the boiler replaced?", now=NOW)
    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in memory.rglob("*") if path.is_file()
    } == before


def test_an_index_inside_the_memory_directory_is_refused(memory: Path) -> None:
    with pytest.raises(UserError, match="outside the memory directory"):
        Ranker.open(memory, memory / "index.sqlite")


def test_without_an_encoder_auto_makes_do_and_semantic_says_what_to_do(memory: Path, tmp_path: Path) -> None:
    with Ranker.open(memory, None, tier="auto", models_dir=tmp_path / "none") as ranker:
        assert ranker.tier == "builtin"
        assert "reverie models add minilm" in ranker.note
        assert shown(ranker.rank("when is the boiler replaced?", now=NOW))
    with pytest.raises(UserError, match="reverie models add minilm"):
        Ranker.open(memory, None, tier="semantic", models_dir=tmp_path / "none")


def test_a_thousand_files_are_searched_in_a_moment(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    for n in range(1000):
        topic(memory, f"project_{n}.md", f"Thing {n}", f"thing number {n} of shelf {n % 37} in hall {n % 11}")
    with Ranker.open(memory, tmp_path / "index.sqlite", tier="builtin") as ranker:
        reading = calls(ranker.prepare)
        asked = "where do we keep thing number 512 of the shelf?"
        assert calls(lambda: ranker.rank(asked, now=NOW)) < reading / 3, "no file is read again"
        ranking = ranker.rank(asked, now=NOW)
        assert ranked(ranking)[0] == "project_512.md"


@settings(max_examples=count(40, 500), deadline=None)
@given(query=st.text(max_size=200), tools=st.lists(st.text(max_size=30), max_size=3))
def test_no_prompt_and_no_tool_name_can_break_it(
    tmp_path_factory: pytest.TempPathFactory, query: str, tools: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("any") / "memory"
    topic(folder, "a.md", "Boiler", "Replaced in March")
    with Ranker.open(folder, None, tier="builtin") as ranker:
        ranking = ranker.rank(query, tools_in_use=tools, now=NOW)
        assert {one.path for one in ranking.shown} <= {"a.md"}
        assert bool(ranking.silent) != bool(ranking.shown)


UNRELATED = {
    "project_deploy_day.md": "Production deploys go out on Tuesdays only",
    "feedback_code_style.md": "Prefers early returns over nested ifs",
    "user_marta.md": "Marta is the data protection officer",
    "reference_dashboard.md": "Checkout latency is on the Grafana board of the shop",
    "project_audit.md": "The audit takes place on 12 March",
}


def test_without_evidence_in_words_nothing_is_shown_however_the_prompt_sounds(memory: Path, ranker: Ranker) -> None:
    for name, text in UNRELATED.items():
        topic(memory, name, name.removesuffix(".md"), text)
    for prompt in (
        "why does the CSV export time out for large customers",
        "our build is broken again, can you please look into it and fix what is wrong with my branch today?",
    ):
        found = ranker.rank(prompt, now=NOW)
        assert shown(found) == [] and "evidence in words" in found.silent
    assert shown(ranker.rank("on which day do production deploys go out?", now=NOW)) == ["project_deploy_day.md"]


def test_one_rare_word_is_not_enough_if_the_directory_knows_no_other_word_of_the_prompt(
    memory: Path, ranker: Ranker
) -> None:
    topic(
        memory, "project_kiln_soak.md", "Kiln soak", "The soak of the kiln takes an hour", "The soak is timed by Mira."
    )
    other = "how long must 3 kg of dried chickpeas soak, and can they do that outside the fridge?"
    assert shown(ranker.rank(other, now=NOW)) == []
    about = "does the soak of the kiln still take so long?"
    assert shown(ranker.rank(about, now=NOW))[:1] == ["project_kiln_soak.md"]


def test_a_word_that_most_memories_have_is_no_evidence(memory: Path, ranker: Ranker) -> None:
    for n in range(30):
        topic(memory, f"project_{n}.md", f"Zephyrion part {n}", f"Zephyrion has a part number {n}")
    assert shown(ranker.rank("write the release notes of zephyrion", now=NOW)) == []
    topic(memory, "project_notes.md", "Zephyrion releases", "Zephyrion release notes are signed off by Odalys")
    assert shown(ranker.rank("who signs off the release notes of zephyrion?", now=NOW))[0] == "project_notes.md"
