"""Nothing is lost: what goes stands elsewhere, with its numbers and names; what was not spoken of keeps its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.offline.consolidate.brief import DreamTask
from reverie.offline.consolidate.desk import Desk
from reverie.offline.consolidate.gather import Seen, TypedText
from reverie.offline.consolidate.losses import find_identifiers, find_missing_facts, is_stated
from reverie.offline.consolidate.plan import think
from reverie.offline.consolidate.statements import body_statements
from tests.offline.consolidate.dreamt import topic

TODAY = date(2026, 3, 2)
NOUNS = ["door", "kiln", "van", "loom", "organ", "buoy", "sauna", "drone", "till", "hoist", "well", "over"]
TEMPLATES = [
    "Manual of the {noun}: binder {number}, shelf {letter}.",
    "Spare parts have the prefix {key}.",
    "The {noun} is serviced every {few} months by crew {letter}.",
    "Reset takes {few} minutes; the {noun} restarts with reduced load.",
    "Questions about the {noun} go to extension {number}.",
    "Ask {person} before you open it.",
    "Its log is kept in /srv/{noun}/{number}.log.",
    "Keys hang at the gate.",
]


def dreamt(files: Mapping[str, str], said: Sequence[str] = ()) -> Desk:
    """What a dream makes of these files, all written the day before yesterday, and of what was said yesterday."""
    brief = DreamTask("/m", TODAY, {name: date(2026, 2, 28) for name in files}, (), ())
    spoken = tuple(TypedText(text, date(2026, 3, 1)) for text in said)
    return think(Seen(brief, files, frozenset(), {}, spoken))


@st.composite
def things(draw: st.DrawFn) -> dict[str, str]:
    """Files written by one template about different things, each with keys of its own."""
    lines = draw(st.lists(st.sampled_from(TEMPLATES), min_size=1, max_size=5, unique=True))
    nouns = draw(st.lists(st.sampled_from(NOUNS), min_size=2, max_size=5, unique=True))
    found: dict[str, str] = {}
    for at, noun in enumerate(nouns):
        values = {
            "noun": noun,
            "number": str(draw(st.integers(40, 60)) + 100 * at),
            "few": str(draw(st.integers(2, 5))),
            "letter": draw(st.sampled_from("ABC")),
            "key": f"{noun[:3].upper()}-{700 + at}",
            "person": draw(st.sampled_from(["Ama", "Bo", "Cyd"])),
        }
        body = "".join(f"{line.format(**values)}\n" for line in lines)
        about = body.splitlines()[0].rstrip(".")
        found[f"reference_{noun}.md"] = topic(noun.title(), body, "reference", f'"{about}"')
    return found


@given(things())
def test_what_a_removed_file_said_stands_in_what_remains_or_was_contradicted(files: dict[str, str]) -> None:
    desk = dreamt(files)
    whole = "\n".join(desk.texts.values())
    for name in desk.into:
        for one in body_statements(files[name]):
            assert not find_identifiers(one.text) - find_identifiers(whole), (name, one.text)
            assert any(is_stated(one.text, text) for text in (*desk.texts.values(), *desk.gave_way)), (name, one.text)


@given(things())
def test_files_about_different_things_are_never_doubles(files: dict[str, str]) -> None:
    speaking = {name: text for name, text in files.items() if name[10:-3] in text.partition("---\n\n")[2].lower()}
    assert dict(dreamt(speaking).texts) == speaking


@given(things())
def test_a_form_filled_in_for_several_things_stays_several(files: dict[str, str]) -> None:
    """Here only the titles name the things; each file has a number of its own."""
    forms = {name: f"{text}The meter shows {500 + at}.\n" for at, (name, text) in enumerate(files.items())}
    assert dict(dreamt(forms).texts) == forms


def test_a_statement_stands_only_with_its_numbers_identifiers_and_names() -> None:
    assert is_stated("The kiln is fired at 900 degrees.", "For us the kiln is always fired at 900 degrees.")
    assert not is_stated("The kiln is fired at 900 degrees.", "The kiln is fired at 800 degrees.")
    assert not is_stated("Spare parts have the prefix KIL-7.", "Spare parts have the prefix VAN-7.")
    assert not is_stated("In doubt the kiln is opened by Ama.", "In doubt the kiln is opened by Bo.")
    assert find_missing_facts("Three nodes.", "There are 3 nodes.") == frozenset()


UNRELATED = [
    "Tests run on Thursdays in bay 4.",
    "Bay 7 has 3 lamps and a Lumex dimmer.",
    "Production is hosted at Norvik in Aldhaven.",
    "Backups go to Norvik every night.",
    "The archive is kept at Ostra, shelf 12.",
    "Ama leads the night shift.",
    "The release is on 2026-05-04.",
    "Invoices go to billing@ostra.example within 30 days.",
    "We use Lumex for the stage.",
    "Sensor HS-20 reads 3 % too high.",
]
SAID = [
    "The HS-40 in bay 4 reads 5 % too high, so don't touch the offset.",
    "Actually the garden isn't at Tolland any more, it's at Exmoor in Genf since February.",
    "We dropped Quill, it's Parchment now, still 9 nodes.",
    "That's outdated, Quill is gone. We moved to Parchment in January.",
    "It's 42 goats, we sold six.",
    "The ferry moved to 10:45.",
    "Zoe left, Ida does the tuning now.",
    "The kiosk was renamed to pavilion.",
    "From now on the choir sings on Mondays, not on Fridays.",
]


@given(st.lists(st.sampled_from(UNRELATED), min_size=1, max_size=6, unique=True), st.lists(st.sampled_from(SAID)))
def test_what_was_said_of_other_things_edits_no_statement(lines: list[str], said: list[str]) -> None:
    files = {"project_house.md": topic("House", "".join(f"{line}\n" for line in lines))}
    after = [one.text for text in dreamt(files, said).texts.values() for one in body_statements(text)]
    assert [line for line in lines if line not in after] == []


NAMES = ["Norvik", "Ostra", "Lumex", "Quill", "Tolland"]
PLACES = ["Aldhaven", "Genf", "Exmoor"]


@given(
    st.permutations(NAMES),
    st.permutations(PLACES),
    st.sampled_from(["Production", "The choir", "Payroll"]),
    st.booleans(),
)
def test_a_correction_leaves_no_half_of_the_old_with_the_new(
    names: list[str], places: list[str], what: str, with_place: bool
) -> None:
    old, new, third = names[0], names[1], names[2]
    was, is_ = f"{old} in {places[0]}", f"{new} in {places[1]}" if with_place else new
    kept = f"The annex is with {third} in {places[2]}."
    files = {"project_home.md": topic("Home", f"{what} is hosted at {was}.\n{kept}\nThe bill comes on day 4.\n")}
    said = f"Actually {what[:1].lower()}{what[1:]} isn't at {old} any more, it's at {is_} since February."
    text = dreamt(files, [said]).texts["project_home.md"]
    assert kept in text and "The bill comes on day 4." in text
    assert f"is hosted at {old}" not in text and f"{new} in {places[0]}" not in text and f"at {is_} since" in text
    assert not any(text.count(name) > said.count(name) + kept.count(name) + 1 for name in (new, *places))


HOUSE = (
    "The lift is run by Marek (ext. 221).\nPaper comes from Papyra, contract PP-2231.\n"
    "The contact at Papyra is Jonas Brandt, jonas@papyra.example.\nThe choir meets every second Tuesday at 14:00.\n"
    "Tea is served by Kolb in the cellar.\nFeed comes from Lurex every Monday.\n"
)


@pytest.mark.parametrize(
    ("said", "mixed"),
    [
        ("We left Papyra, paper comes from Bindra now.", "Bindra, contract PP-2231"),
        ("Jonas left Papyra, talk to Lena Ott.", "Lena Brandt"),
        ("Marek isn't with the lift any more, Idris took over.", "Idris (ext. 221)"),
        ("We no longer have Kolb, tea is served by Anders Holm now.", "Holm in the cellar"),
        ("Lurex went bankrupt, feed comes from Basto on Tuesdays now.", "Lurex every Tuesday"),
    ],
)
def test_what_hangs_on_a_value_is_not_left_to_the_next(said: str, mixed: str) -> None:
    files = {"project_house.md": topic("House", HOUSE, description="Lift, paper and choir")}
    text = dreamt(files, [said]).texts["project_house.md"]
    assert mixed not in text and all(fact in text for fact in ("PP-2231", "jonas@papyra.example", "ext. 221", "cellar"))
    assert dreamt({"project_house.md": text}, [said]).texts["project_house.md"] == text
