"""Nothing is lost: what goes stands elsewhere, with its numbers and names; what was not spoken of keeps its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from reverie.models.embedded.consolidate.brief import Brief
from reverie.models.embedded.consolidate.desk import Desk
from reverie.models.embedded.consolidate.gather import Said, Seen
from reverie.models.embedded.consolidate.keeping import facts_missing, identifiers, stands
from reverie.models.embedded.consolidate.plan import think
from reverie.models.embedded.consolidate.statements import body_statements
from tests.models.embedded.consolidate.dreamt import topic

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
    brief = Brief("/m", TODAY, {name: date(2026, 2, 28) for name in files}, (), ())
    spoken = tuple(Said(text, date(2026, 3, 1)) for text in said)
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
            assert not identifiers(one.text) - identifiers(whole), (name, one.text)
            assert any(stands(one.text, text) for text in (*desk.texts.values(), *desk.gave_way)), (name, one.text)


@given(things())
def test_files_about_different_things_are_never_doubles(files: dict[str, str]) -> None:
    speaking = {name: text for name, text in files.items() if name[10:-3] in text.partition("---\n\n")[2].lower()}
    assert dict(dreamt(speaking).texts) == speaking


def test_a_statement_stands_only_with_its_numbers_identifiers_and_names() -> None:
    assert stands("The kiln is fired at 900 degrees.", "For us the kiln is always fired at 900 degrees.")
    assert not stands("The kiln is fired at 900 degrees.", "The kiln is fired at 800 degrees.")
    assert not stands("Spare parts have the prefix KIL-7.", "Spare parts have the prefix VAN-7.")
    assert not stands("In doubt the kiln is opened by Ama.", "In doubt the kiln is opened by Bo.")
    assert facts_missing("Three nodes.", "There are 3 nodes.") == frozenset()
