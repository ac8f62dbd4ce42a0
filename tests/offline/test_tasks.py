"""The embedded model's background tasks: notes, summary, selection and progress, asked for as any model is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from reverie.layers.base import EffectResult
from reverie.layers.l3_session_notes.sections import is_intact, over_limit, split
from reverie.layers.l3_session_notes.trigger import NoteNumbers
from reverie.layers.l3_session_notes.writer import default_template
from reverie.layers.l3_session_notes.writer import directive as notes_directive
from reverie.layers.l4_compaction.by_code import PARTS, Limits, write_notes, write_summary
from reverie.layers.l4_compaction.summary import check_summary
from reverie.layers.l4_compaction.summary import directive as summary_directive
from reverie.memory.recall.reminder import SCHEMA, parse_selection, selector_question, selector_system
from reverie.models.base import Request, Response
from reverie.models.tokens import PROSE_BYTES, estimate_message, estimate_text
from reverie.offline.model import EmbeddedModel
from reverie.offline.notes_merging import merge_section
from reverie.session import Session
from reverie.storage.transcript.view import Entry
from reverie.types import Message, Origin, Purpose, TextBlock, ToolResultBlock, ToolUseBlock
from tests.counts import count
from tests.models.requests import ask, person, request
from tests.sessions import in_session, turn
from tests.waiting import LIMIT_S
from tests.work import cpu_limit

NOTES = Path("/home/ada/.reverie/projects/x/s/session-memory/summary.md")
EDIT = {
    "name": "Edit",
    "description": "Edits.",
    "input_schema": {"type": "object", "properties": {"file_path": {}, "old_string": {}, "new_string": {}}},
}
SYSTEM = ("You are terse.", "# Where you are\n- Working folder: /repo\n- Date when this conversation began: 2026-03-02")


def says(text: str) -> Message:
    return Message("assistant", (TextBlock(text, Origin.MODEL),))


def called(number: int, tool: str, result: str, *, failed: bool = False, **given_: object) -> list[Message]:
    use = ToolUseBlock(f"t{number}", tool, given_)
    return [
        Message("assistant", (use,)),
        Message("user", (ToolResultBlock(f"t{number}", result, failed or None),)),
    ]


def talk() -> list[Message]:
    return [
        person("Make the lamp of the harbour blink, please. Never touch lamp_driver.c."),
        *called(1, "Read", "1\tdef blink(): pass", file_path="/repo/harbour/lamp.py"),
        *called(2, "Bash", "Exit code 1\nE   AssertionError: dark", failed=True, command="pytest tests/test_lamp.py"),
        *called(
            3,
            "Edit",
            "Changed.",
            file_path="/repo/harbour/lamp.py",
            old_string="def blink(): pass",
            new_string="def blink():\n    lamp.on()",
        ),
        *called(4, "Bash", "3 passed in 0.1s", command="pytest tests/test_lamp.py"),
        says("The lamp blinks now; all three tests pass."),
    ]


def injected(text: str) -> Message:
    return Message("user", (TextBlock(text, Origin.CODE),))


def asked_for_notes(messages: list[Message], notes: str, numbers: NoteNumbers | None = None) -> Request:
    told = notes_directive(notes, NOTES, default_template(), numbers or NoteNumbers())
    return request(*messages, injected(told), system=SYSTEM, tools=(EDIT,), purpose=Purpose.NOTES)


def answer(asked: Request) -> Response:
    return ask(EmbeddedModel(), asked)[1]


def edited(notes: str, response: Response) -> str:
    """The notes after the edits of a response, each of which must fit exactly once."""
    for call in Message("assistant", response.content).tool_uses:
        assert call.name == "Edit" and call.input["file_path"] == str(NOTES)
        assert notes.count(call.input["old_string"]) == 1
        notes = notes.replace(call.input["old_string"], call.input["new_string"])
    return notes


def bodies(notes: str) -> list[str]:
    return [section.body for section in split(notes, default_template())]


# -- notes ------------------------------------------------------------------------------------------------------------


def test_notes_are_written_by_edits_of_the_file_that_is_named() -> None:
    first = answer(asked_for_notes(talk(), default_template()))
    notes = edited(default_template(), first)
    assert is_intact(notes, default_template())
    by_code = write_notes(
        [Entry(None, message) for message in talk()],
        default_template(),
        Limits(total=12_000 * PROSE_BYTES, ledger=2_000 * PROSE_BYTES),
        cwd="/repo",
    )
    assert bodies(notes) == bodies(by_code), "as good as what code writes from the record"
    assert "harbour/lamp.py" in notes and "Never touch lamp_driver.c" in notes and "AssertionError: dark" in notes


def test_after_the_edits_it_says_that_it_is_done_and_what_failed() -> None:
    asked = asked_for_notes(talk(), default_template())
    first = answer(asked)
    calls = Message("assistant", first.content).tool_uses
    done = Message("user", tuple(ToolResultBlock(call.id, "Changed.") for call in calls))
    last = answer(replace(asked, messages=(*asked.messages, Message("assistant", first.content), done)))
    assert last.content == (TextBlock("The notes are up to date.", Origin.MODEL),)
    refused = Message("user", tuple(ToolResultBlock(call.id, "Not here.", is_error=True) for call in calls))
    last = answer(replace(asked, messages=(*asked.messages, Message("assistant", first.content), refused)))
    assert "Not here." in Message("assistant", last.content).text


def test_notes_that_say_it_already_are_left_alone() -> None:
    notes = edited(default_template(), answer(asked_for_notes(talk(), default_template())))
    again = answer(asked_for_notes(talk(), notes))
    assert again.content == (TextBlock("The notes are up to date.", Origin.MODEL),)


def test_what_left_the_window_and_what_a_person_wrote_stays_in_the_notes() -> None:
    notes = edited(default_template(), answer(asked_for_notes(talk(), default_template())))
    hint = split(notes, default_template())[7].hint
    notes = notes.replace(hint, hint + "\n\n- Ask Marta before a release.", 1)
    summary = Message("user", (TextBlock("Its summary:\n\n…", Origin.SUMMARY),))
    later = [
        summary,
        person("Now paint the pier."),
        *called(9, "Read", "1\tpaint = None", file_path="/repo/pier/paint.py"),
        says("The pier is painted."),
    ]
    now = edited(notes, answer(asked_for_notes(later, notes)))
    assert is_intact(now, default_template())
    title, stands, wanted, _, commands, errors, _, lessons, _, log = bodies(now)
    assert "lamp" in title, "the session is what it was"
    assert "The pier is painted." in stands and "lamp blinks" not in stands
    assert wanted.index("lamp of the harbour") < wanted.index("Now paint the pier.")
    assert "pytest tests/test_lamp.py" in commands and "AssertionError: dark" in errors
    assert "Ask Marta before a release." in lessons
    assert "harbour/lamp.py" in log and "paint.py" in log


def test_a_cleared_result_does_not_take_the_place_of_what_was_noted() -> None:
    notes = edited(default_template(), answer(asked_for_notes(talk(), default_template())))
    cleared = [
        replace(message, content=(replace(message.content[0], content="[Cleared to save room; run it again]"),))
        if isinstance(message.content[0], ToolResultBlock)
        else message
        for message in talk()
    ]
    now = edited(notes, answer(asked_for_notes(cleared, notes)))
    assert "3 passed in 0.1s" in bodies(now)[4] and "[Cleared" not in bodies(now)[4]


def test_notes_keep_within_the_limits_they_are_given() -> None:
    numbers = NoteNumbers(section_tokens=60, total_tokens=300)
    messages, notes = talk(), default_template()
    for number in range(20, 60):
        messages += called(number, "Read", "1\tx", file_path=f"/repo/harbour/part_{number}.py")
        messages += called(100 + number, "Bash", f"{number} passed", command=f"make check-{number}")
        if number % 13 == 0:
            notes = edited(notes, answer(asked_for_notes(messages, notes, numbers)))
    assert not over_limit(notes, default_template(), section_tokens=60, total_tokens=300)


def test_somebodys_own_template_is_filled_by_what_its_headings_say() -> None:
    own = "# Current state\n_Now._\n\n# Poem\n_A verse a day._\n\n# Worklog\n_Steps in order._\n"
    told = notes_directive(
        own, NOTES, own, NoteNumbers(), prompt="Mind {{notesPath}}!\n<notes>\n{{currentNotes}}\n</notes>"
    )
    response = answer(request(*talk(), injected(told), system=SYSTEM, tools=(EDIT,), purpose=Purpose.NOTES))
    now = [section.body for section in split(edited(own, response), own)]
    assert "The lamp blinks now" in now[0] and now[1] == "" and "lamp.py" in now[2]


def test_without_notes_in_the_directive_it_does_nothing() -> None:
    response = answer(request(*talk(), injected("Update the notes."), tools=(EDIT,), purpose=Purpose.NOTES))
    assert response.stop_reason == "end_turn"


def test_notes_of_a_hundred_thousand_tokens_are_taken_quickly() -> None:
    messages = list[Message]()
    line = "    value_{n} = compute_value({n}, harbour.lamp, retries=3)  # checked by test_value\n"
    number = 0
    while number < 120:
        text = "".join(line.format(n=number * 40 + k) for k in range(40))
        messages += [person(f"Step {number}: see to part_{number}.py")] if number % 6 == 0 else []
        messages += called(3 * number, "Read", text, file_path=f"/repo/src/part_{number}.py")
        messages += called(3 * number + 1, "Bash", text[:400] + f"{number} passed", command=f"pytest part_{number}")
        number += 1
    assert sum(map(estimate_message, messages)) > 100_000
    asked = asked_for_notes(messages, default_template())
    with cpu_limit(10):
        response = answer(asked)
    assert response.stop_reason == "tool_use"


LINES = st.lists(
    st.sampled_from(
        [
            "- `make` → ok",
            "- `make` → 3 failed (2×)",
            "- Edit `lamp.py` → refused",
            "- src/: a.py, b.py (1–40), c.py",
            "- src/: d.py",
            "- lamp.py: 2 changes; last −1 +2",
            "- lamp.py\n```\ndef blink():\n\n- no bullet\n```",
            "\nFiles changed (2 of 5):\n- pier.py: 1 change",
            "\nSearches:\n- Grep reef → 3 lines",
            "[… cut to fit]",
            "- `ls` → [Cleared to save room; run it again]",
        ]
    ),
    max_size=8,
).map("\n".join)


@example(kind=2, old="", new="[… cut to fit]", limit=40)
@example(kind=2, old="- `make` → ok\n- `make` → ok\n- `make` → ok", new="- `make` → 3 failed (2×)", limit=40)
@given(kind=st.integers(1, 9), old=LINES, new=LINES, limit=st.integers(40, 400))
@hypothesis_settings(max_examples=count(40, 3_000), deadline=None)
def test_a_merged_section_is_bounded_and_merging_again_changes_nothing(
    kind: int, old: str, new: str, limit: int
) -> None:
    once = merge_section(kind, old, new, limit)
    assert len(once.encode()) <= limit
    wide = merge_section(kind, merge_section(kind, old, new, 10_000), new, 10_000)
    assert merge_section(kind, wide, new, 10_000) == wide
    if kind not in (1, 8):
        assert all(name in wide for name in ("a.py", "d.py", "`ls`") if name in old), (
            "nothing is lost where there is room"
        )


# -- summary ----------------------------------------------------------------------------------------------------------


def summary_of(messages: list[Message], told: str, **more: object) -> str:
    asked = request(
        *messages, injected(told), **{"system": SYSTEM, "purpose": Purpose.COMPACTION, "max_tokens": 20_000, **more}
    )
    text = Message("assistant", answer(asked).content).text
    assert text.startswith("<analysis>")
    found, why = check_summary(EffectResult(ok=True, text=text), 10**9, estimate_text)
    assert found, why
    return found


def test_a_summary_has_its_nine_parts_and_is_what_code_would_write() -> None:
    messages = [*talk() * 4]
    told = summary_directive("whole", "")
    text = summary_of(messages, told)
    assert all(f"## {part}" in text for part in PARTS)
    room = int(0.9 * sum(map(estimate_message, messages)))
    by_code = write_summary([Entry(None, m) for m in messages], Limits.for_tokens(room), cwd="/repo", alone=False)
    assert text == by_code


def test_a_summary_is_always_shorter_than_what_it_stands_for() -> None:
    messages = talk() * 3
    text = summary_of(messages, summary_directive("whole", ""))
    assert estimate_text(text) < sum(estimate_message(message) for message in messages)


def test_a_summary_from_a_message_on_leaves_out_what_stands_before() -> None:
    painted = [m for n in range(40) for m in called(20 + n, "Bash", f"{n} painted", command=f"make paint-{n}")]
    messages = [*talk(), person("Now paint the pier."), *painted, says("The pier is painted.")]
    text = summary_of(messages, summary_directive("from", "", beginning="Now paint the pier."))
    assert "paint the pier" in text and "lamp" not in text


def test_what_the_person_wants_kept_is_quoted() -> None:
    messages = [*talk() * 3, says("The tide table lives at /srv/tides.csv, refreshed hourly."), *talk() * 3]
    assert "/srv/tides.csv" not in summary_of(messages, summary_directive("whole", ""))
    text = summary_of(messages, summary_directive("whole", "Keep everything about the tide table."))
    assert "The tide table lives at /srv/tides.csv, refreshed hourly." in text


def test_what_was_wanted_at_first_survives_a_second_summary() -> None:
    earlier = f"## {PARTS[0]}\n- At first: Chart the reef\n- Last: Ring the bell\n"
    messages = [Message("user", (TextBlock(earlier, Origin.SUMMARY),)), *talk() * 3]
    assert "- At first: Chart the reef" in summary_of(messages, summary_directive("whole", ""))


def test_a_tag_in_the_conversation_does_not_end_the_summary() -> None:
    messages = [person("Write </summary> into the page."), *talk() * 3, person("Write </summary> again.")]
    assert "What was being done just now" in summary_of(messages, summary_directive("whole", ""))


# -- selection --------------------------------------------------------------------------------------------------------


def test_it_leaves_the_choice_of_memories_to_the_ranker() -> None:
    question = selector_question(
        "Should the tests mock the sandbox?", "", "- [user] a.md (2026-03-01T10:00:00Z): a", ()
    )
    asked = request(injected(question), system=(selector_system(),), output_schema=SCHEMA, purpose=Purpose.RECALL)
    assert parse_selection(Message("assistant", answer(asked).content).text, {"a.md"}) == []


# -- progress ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (called(1, "Read", "x", file_path="/repo/harbour/lamp.py"), "Reading lamp.py in harbour"),
        (called(1, "Write", "ok", file_path="notes.md", content="x"), "Writing the file notes.md"),
        (
            called(1, "Edit", "ok", file_path="/r/lamp.py", old_string="def blink(): 1", new_string="def blink(): 2"),
            "Editing blink in lamp.py",
        ),
        (
            called(1, "Bash", "ok", command="cd /repo && pytest tests/models/test_lamp.py -q"),
            "Running pytest on test_lamp.py",
        ),
        (called(1, "Bash", "ok", command="npm test"), "Running the command npm test"),
        (called(1, "Grep", "none", pattern="blink now", path="/repo/src"), "Searching src for blink-now"),
    ],
)
def test_progress_names_the_file_at_hand_in_three_to_five_words(messages: list[Message], expected: str) -> None:
    asked = request(person("Make it blink."), *messages, injected("What are you doing?"), purpose=Purpose.PROGRESS)
    text = Message("assistant", answer(asked).content).text
    assert text == expected and 3 <= len(text.split()) <= 5


# -- through the session ----------------------------------------------------------------------------------------------


def test_a_session_on_the_embedded_model_is_compacted_by_it_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "lamp.py").write_text("".join(f"lamp_{n} = {n}  # of the harbour\n" for n in range(400)))

    async def work(session: Session) -> None:
        for _ in range(3):
            await turn(session, "Where is lamp_399 of the harbour set in lamp.py?")
        done = await session.compact()
        assert done.writer == "fork" and done.tokens_after < done.tokens_before
        assert "lamp.py" in done.text
        events = await turn(session, "Where is lamp_12 of the harbour set in lamp.py?")
        assert events

    in_session(work, cwd=tmp_path, model="embedded")


def test_the_same_request_gets_the_same_bytes_in_every_process(capsys: pytest.CaptureFixture[str]) -> None:
    """Here, and in a process that orders its sets in another way."""
    code = (
        "from tests.offline.test_tasks import *\n"
        "print(answer(asked_for_notes(talk() * 3, default_template())).content)\n"
        "print(summary_of(talk() * 3, summary_directive('whole', 'the lamp')))"
    )
    exec(code, {})
    here = capsys.readouterr().out
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    env = {**os.environ, "PYTHONHASHSEED": other}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    assert here == done.stdout and "lamp.py" in here
