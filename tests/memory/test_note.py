"""A person's sentence as a memory: its kind, its names, its dates, and the memory that it corrects."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.memory.index import entries, index_line
from reverie.memory.note import add_dates, classify, find_related, make_note, revise, title_of
from reverie.memory.taxonomy import MemoryType, Trust, is_topic
from reverie.memory.topic_file import TopicFile, encode
from reverie.text.cutting import shorten

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
        ("I have written Go for ten years", "user"),
        ("I maintain the compiler backend at a small company", "user"),
        ("We moved the staging cluster to Frankfurt in March", "project"),
        ("I usually review pull requests in the morning", "user"),
        ("Deploy only after Petra has signed off", "feedback"),
        ("My manager is Sabine and she wants weekly reports", "user"),
        ("The release train leaves every second Tuesday", "project"),
        ("Tests that need Docker are marked slow", "project"),
        ("You can find the design system in Figma under Foundations", "reference"),
        ("I get confused by long diffs", "user"),
        ("Sort imports with isort before you commit", "feedback"),
        ("Ich programmiere seit zwölf Jahren in Java", "user"),
        ("Schreib Commit-Nachrichten auf Englisch", "feedback"),
        ("Wir stellen im Mai auf PostgreSQL 17 um", "project"),
        ("Die Runbooks liegen im Confluence-Bereich OPS", "reference"),
        ("Mein Sohn heißt Jonas und ist vier", "user"),
        ("Verwende keine Emojis in der Dokumentation", "feedback"),
        ("Ich mag knappe Antworten ohne Einleitung", "user"),
        ("Der Kunde will die Rechnung bis Ende November", "project"),
        ("Antworte auf Deutsch, wenn ich Deutsch schreibe", "feedback"),
        # written before the rules, and not looked at while they were made:
        ("I studied chemistry before I became a programmer", "user"),
        ("I can't read colour-coded charts because I'm colour-blind", "user"),
        ("Our fiscal year starts in February", "project"),
        ("Group related changes into one commit", "feedback"),
        ("Latency graphs are on the Grafana board called checkout", "reference"),
        ("I work from Lisbon and start at ten", "user"),
        ("Kim left the team, Ola took over payments", "project"),
        ("Please don't touch the generated files", "feedback"),
        ("My laptop has only 8 GB of memory", "user"),
        ("Incidents are filed in the ServiceNow queue PAY-OPS", "reference"),
        ("I want the summary first and the details after it", "user"),
        ("Ich lebe in Graz und habe zwei Hunde", "user"),
        ("Lass die Migrationen immer zweimal laufen", "feedback"),
        ("Das Lager zieht nächstes Jahr nach Linz", "project"),
        ("Die Spezifikation steht unter https://docs.example.org/spec", "reference"),
        ("Meine Frau ist Ärztin", "user"),
        ("Frag mich, bevor du etwas löschst", "feedback"),
        ("Anna kümmert sich um die Abrechnung", "project"),
        ("Ich kenne mich mit Kubernetes nicht aus", "user"),
        ("Benutze Tabs statt Leerzeichen", "feedback"),
        # the first word is a noun, or the user did something once:
        ("Test reports are in the S3 bucket", "reference"),
        ("Red builds block the release", "project"),
        ("Release notes are due on Monday", "project"),
        ("My branch waits for a review", "project"),
        ("I merged the fix yesterday", "project"),
    ],
)
def test_the_kind_follows_from_the_words(text: str, kind: str) -> None:
    assert classify(text) == MemoryType(kind)
    assert make_note(text, today=TODAY).file.startswith(f"{kind}_")


def test_a_note_is_a_file_that_selection_can_use() -> None:
    note = make_note(
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
    note = make_note("Anna owns billing", today=TODAY, type=MemoryType.REFERENCE, name="Who owns what")
    assert (note.file, note.topic.name, note.type) == ("reference_owns.md", "Who owns what", MemoryType.REFERENCE)


def test_frontmatter_that_is_there_stays() -> None:
    text = "---\nname: Ports\nowner: anna # keep\ntype: reference\n---\n\nStaging is 8080.\n"
    topic = make_note(text, today=TODAY).topic
    assert topic.fields["owner"] == "anna" and "# keep" in topic.text
    assert (topic.name, topic.type, topic.description) == ("Ports", MemoryType.REFERENCE, "Staging is 8080.")


def test_nothing_is_no_memory() -> None:
    for text in ("", " \n", "---\nname: x\n---\n"):
        with pytest.raises(UserError, match="nothing to remember"):
            make_note(text, today=TODAY)


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
    assert written in add_dates(text, TODAY)


@pytest.mark.parametrize(
    "text",
    ["Fixed the login bug", "Tom is lazy", "In this conversation we use SQLite", "The class Loader is in src/load.py"],
)
def test_what_may_not_be_worth_it_is_doubted(text: str) -> None:
    assert make_note(text, today=TODAY).doubt
    assert not make_note("Releases are cut from the branch stable", today=TODAY).doubt


def test_titles_leave_addresses_and_reasons_out() -> None:
    assert title_of("The on-call wiki is at https://wiki.example.com/x") == "The on-call wiki"
    assert title_of("Use real databases, because mocks hid a bug") == "Use real databases"


def memory(text: str) -> str:
    return make_note(text, today=TODAY).topic.text


def test_a_memory_that_may_be_about_the_same_is_found() -> None:
    memories = {
        "project_staging_port.md": memory("The staging port is 8080"),
        "project_freeze.md": memory("The freeze begins in December"),
    }
    found = find_related("The staging port is 8081", memories)
    assert found is not None and found.file == "project_staging_port.md"
    assert find_related("The production database has three replicas", memories) is None


def test_a_correction_takes_the_place_of_the_old_statement() -> None:
    old = TopicFile.parse(memory("The staging port is 8080"))
    new = revise(old, "The staging port is 8080", make_note("The staging port is 8081", today=TODAY))
    assert "8080" not in new.text and new.name == new.description == "The staging port is 8081"
    whole = old.with_changes(
        body="The staging port is 8080\n\nThe staging host is otter.\n\n**Why:** others were taken.\n"
    )
    new = revise(whole, "The staging port is 8080", make_note("The staging port is 8081", today=TODAY))
    assert "8081" in new.body and "8080" not in new.body and "otter" in new.body and "others were taken" in new.body


@given(st.text(min_size=1, max_size=300))
def test_any_text_makes_a_file_with_a_sound_name(text: str) -> None:
    try:
        note = make_note(text, today=TODAY)
    except UserError:
        return
    assert is_topic(note.file) and "/" not in note.file and len(note.file.encode()) <= 255
    assert note.file.startswith(f"{note.type.value}_") and len(note.topic.description) <= 150
    assert TopicFile.parse(encode(note.topic.text)).type is note.type


def link_of(line: str) -> tuple[str, str, str]:
    """Title, target and rest of an index line, as a Markdown reader sees them; the line is one item with one link."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(line)
    inline = [token for token in tokens if token.type == "inline"]
    assert [token.type for token in tokens[:2]] == ["bullet_list_open", "list_item_open"] and len(inline) == 1, line
    parts = inline[0].children or []
    links = [token for token in parts if token.type == "link_open"]
    assert len(links) == 1 and parts[0].type == "link_open", line
    end = next(place for place, token in enumerate(parts) if token.type == "link_close")
    shown = "".join(token.content for token in parts[1:end])
    return shown, str(links[0].attrs["href"]), "".join(token.content for token in parts[end + 1 :])


CUT = [
    ("Prod is deployed by ops by Thursday", "Prod is deployed by ops by Thursday (2026-11-19)"),
    ("The runbook is at <https://wiki.example.org/run>", "The runbook"),
    ("See the wiki (https://wiki.example.org/a) for ports", "See the wiki for ports"),
    ("Use tabs (mostly because make breaks) in Makefiles", "Use tabs"),
    ("Deploy (see docs. Then wait) before noon. Then go", "Deploy (see docs. Then wait) before noon"),
    (
        "Production and staging wait for operations (both run on the old cluster in Vienna)",
        "Production and staging wait for operations",
    ),
    ("Before every release somebody runs `make lamps --all --quietly --twice`", "Before every release somebody runs"),
    (
        "The lead says at every single meeting “never on a Friday, never at night”",
        "The lead says at every single meeting",
    ),
    (".env is never committed", ".env is never committed"),
    (":) is fine in commits", ":) is fine in commits"),
    ('The 19" rack is in room 4', 'The 19" rack is in room 4'),
    ("*Always* squash", "*Always* squash"),
    ("**Never push on Fridays**", "Never push on Fridays"),
]


@pytest.mark.parametrize(("text", "title"), CUT)
def test_a_title_is_cut_without_breaking_a_pair(text: str, title: str) -> None:
    assert make_note(text, today=TODAY).topic.name == title


def test_a_reason_inside_brackets_stays_there() -> None:
    body = make_note("Never use tabs there (only spaces because make breaks) or else", today=TODAY).topic.body
    assert "(only spaces because make breaks)" in body


def test_a_long_word_and_joined_characters_are_cut_between_characters() -> None:
    assert len(title_of("Use " + "y" * 200)) > 40
    family = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
    assert title_of(family * 30) == family * (59 // len(family))
    assert title_of("e\u0301" * 100) == "e\u0301" * 29


PIECES = ("lamp", "(", ")", "pier)", "`make", "all`", "``", "“no", "no”", "«ja", "ja»", "[x]", "![", "](y)", "because",
    "https://a.example/b", "Then.", "。", "部署（生产）", "don't", "'quoted", "text'", "\\", "<b>", "*")  # fmt: skip
WORDS = st.lists(st.sampled_from([*PIECES, "by Thursday", "(by the", "x" * 70]), min_size=1, max_size=25)


@given(WORDS)
def test_whatever_is_remembered_its_index_line_is_one_link_with_its_title(words: list[str]) -> None:
    note = make_note(" ".join(words), today=TODAY)
    title = note.topic.name
    assert title and len(title) <= 60
    shown, target, _ = link_of(index_line(title, note.file, note.topic.description))
    assert target.endswith(".md")
    if not set("`*\\") & set(title):  # else Markdown shows them as code or emphasis
        assert shown == title
    (entry,) = entries(index_line(title, note.file, note.topic.description))
    assert entry.title == " ".join(title.split()) and entry.file == note.file


@given(st.text(alphabet="ab ()[]{}“”«»", min_size=1, max_size=200))
def test_what_is_balanced_stays_balanced(text: str) -> None:
    def left_open(line: str) -> int:
        stack: list[str] = []
        pairs = {")": "(", "]": "[", "}": "{", "”": "“", "»": "«"}
        for char in line:
            if char in pairs and stack and stack[-1] == pairs[char]:
                stack.pop()
            elif char in "()[]{}“”«»":
                stack.append(char)
        return len(stack)

    if not left_open(text):
        assert left_open(shorten(text, 60)) == 0


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "Mr. Smith (a.k.a. J. S.) owns billing [ref 12]. Second sentence.",
            "Mr. Smith (a.k.a. J. S.) owns billing [ref 12]",
        ),
        ("What? Really! Yes; no, maybe...", "What? Really! Yes; no, maybe"),
        ("[link](http://x.y) is our wiki page", "link is our wiki page"),
        ("We ship to the U.S. Army only. Then more.", "We ship to the U.S. Army only"),
        ("Reviews go to J. Doe at noon. Not later.", "Reviews go to J. Doe at noon"),
        ("The answer is no. Use the other one.", "The answer is no"),
    ],
)
def test_a_title_ends_where_a_sentence_does(text: str, title: str) -> None:
    assert make_note(text, today=date(2026, 1, 5)).topic.name == title
