"""A person's sentence as a memory: its kind, its names, its dates, and the memory that it corrects."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.memory.note import classify, dated, note_of, related, revised, title_of
from reverie.memory.taxonomy import MemoryType, Trust, is_topic
from reverie.memory.topic_file import TopicFile

TODAY = date(2026, 11, 15)  # a Sunday


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I'm a data scientist, new to React", "user"),
        ("I prefer short answers", "user"),
        ("My role is release manager", "user"),
        ("Never mock the database in integration tests", "feedback"),
        ("Use tabs, not spaces", "feedback"),
        ("don't summarise at the end of every answer", "feedback"),
        ("I want you to ask before installing packages", "feedback"),
        ("Integration tests must hit a real database", "feedback"),
        ("Pipeline bugs are tracked in Linear project INGEST", "reference"),
        ("Grafana board for latency: https://grafana.example.com/d/abc", "reference"),
        ("The wiki of the on-call team has the runbook", "reference"),
        ("Anna owns the billing service", "project"),
        ("The freeze begins on 2026-11-19", "project"),
        ("不要在最后总结", "feedback"),
        ("我是前端工程师", "user"),
    ],
)
def test_the_kind_follows_from_the_words(text: str, kind: str) -> None:
    assert classify(text) == MemoryType(kind)
    assert note_of(text, today=TODAY).file.startswith(f"{kind}_")


def test_a_note_is_a_file_that_selection_can_use() -> None:
    note = note_of(
        "please remember that we deploy on Fridays only after the smoke test, because the May outage took a weekend. "
        "Ask Tom for the key holder.",
        today=TODAY,
    )
    topic = note.topic
    assert note.file == "project_deploy_fridays_only_after_smoke_test.md"
    assert topic.name == "We deploy on Fridays only after the smoke test"
    assert topic.description.startswith("We deploy on Fridays") and "May outage" in topic.description
    assert (topic.type, topic.trust) == (MemoryType.PROJECT, Trust.CONFIRMED)
    assert topic.body.startswith("We deploy on Fridays only after the smoke test.\n\n**Why:** the May outage")
    assert "Ask Tom" in topic.body and not topic.problems


def test_a_person_overrules_kind_and_name() -> None:
    note = note_of("Anna owns billing", today=TODAY, type=MemoryType.REFERENCE, name="Who owns what")
    assert (note.file, note.topic.name, note.type) == ("reference_owns.md", "Who owns what", MemoryType.REFERENCE)


def test_frontmatter_that_is_there_stays() -> None:
    text = "---\nname: Ports\nowner: anna # keep\ntype: reference\n---\n\nStaging is 8080.\n"
    topic = note_of(text, today=TODAY).topic
    assert topic.fields["owner"] == "anna" and "# keep" in topic.text
    assert (topic.name, topic.type, topic.description) == ("Ports", MemoryType.REFERENCE, "Staging is 8080.")


def test_nothing_is_no_memory() -> None:
    for text in ("", " \n", "---\nname: x\n---\n"):
        with pytest.raises(UserError, match="nothing to remember"):
            note_of(text, today=TODAY)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("The freeze begins tomorrow", "tomorrow (2026-11-16)"),
        ("It is due by Thursday", "by Thursday (2026-11-19)"),
        ("Since Friday the build is red", "Since Friday (2026-11-13)"),
        ("On Sunday nobody works", "On Sunday (2026-11-22)"),
        ("yesterday's build", "yesterday (2026-11-14)'s build"),
        ("next Monday (2026-12-01) it is", "next Monday (2026-12-01)"),
        ("Fridays are quiet", "Fridays are quiet"),
    ],
)
def test_days_get_their_dates(text: str, written: str) -> None:
    assert written in dated(text, TODAY)


@pytest.mark.parametrize(
    "text",
    ["Fixed the login bug", "Tom is lazy", "In this conversation we use SQLite", "The class Loader is in src/load.py"],
)
def test_what_may_not_be_worth_it_is_doubted(text: str) -> None:
    assert note_of(text, today=TODAY).doubt
    assert not note_of("Releases are cut from the branch stable", today=TODAY).doubt


def test_titles_leave_addresses_and_reasons_out() -> None:
    assert title_of("The on-call wiki is at https://wiki.example.com/x") == "The on-call wiki"
    assert title_of("Use real databases, because mocks hid a bug") == "Use real databases"


def memory(text: str) -> str:
    return note_of(text, today=TODAY).topic.text


def test_a_correction_finds_what_it_corrects() -> None:
    memories = {
        "project_staging_port.md": memory("The staging port is 8080"),
        "project_freeze.md": memory("The freeze begins in December"),
    }
    found = related("The staging port is 8081", memories)
    assert found is not None and (found.file, found.same) == ("project_staging_port.md", False)
    again = related("the staging port is 8080!", memories)
    assert again is not None and again.same
    assert related("The production database has three replicas", memories) is None


def test_a_correction_takes_the_place_of_the_old_statement() -> None:
    old = TopicFile.parse(memory("The staging port is 8080"))
    new = revised(old, "The staging port is 8080", note_of("The staging port is 8081", today=TODAY))
    assert "8080" not in new.text and new.name == new.description == "The staging port is 8081"
    whole = old.updated(body="The staging port is 8080\n\nThe staging host is otter.\n\n**Why:** others were taken.\n")
    new = revised(whole, "The staging port is 8080", note_of("The staging port is 8081", today=TODAY))
    assert "8081" in new.body and "8080" not in new.body and "otter" in new.body and "others were taken" in new.body


@given(st.text(min_size=1, max_size=300))
def test_any_text_makes_a_file_with_a_sound_name(text: str) -> None:
    try:
        note = note_of(text, today=TODAY)
    except UserError:
        return
    assert is_topic(note.file) and "/" not in note.file and len(note.file.encode()) <= 255
    assert note.file.startswith(f"{note.type.value}_") and len(note.topic.description) <= 150
    assert TopicFile.parse(note.topic.to_bytes()).type is note.type
