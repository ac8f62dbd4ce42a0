"""Layer 3: when notes are taken, by whom, into what, and what happens when they break."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from reverie.events import Notice, TaskChanged
from reverie.layers.l3_session_notes.sections import (
    is_empty,
    is_intact,
    outline,
    over_limit,
    repair_notes,
    shorten_sections,
    split,
)
from reverie.layers.l3_session_notes.trigger import NoteGrowth, NoteNumbers, is_due, safe_point
from reverie.layers.l3_session_notes.writer import default_template, directive, only_edit, template_or_default
from reverie.permissions.rules import Allow, Deny, ToolCall
from reverie.session import Session
from reverie.storage.transcript.records import Cursor
from reverie.types import Purpose
from tests.layers.talks import (
    READS,
    REFERENCE,
    SESSION,
    SMALL,
    STATE,
    files,
    flags,
    notes_path,
    notes_script,
    payloads,
    sent,
)
from tests.sessions import ended, in_session, of_kind, script, turn
from tests.storage.conversations import answer, call, new_log, person, result, says
from tests.waiting import LIMIT_S

NUMBERS = NoteNumbers()


def test_the_template_has_ten_sections_each_with_a_hint() -> None:
    sections = outline(default_template())
    assert len(sections) == 10
    assert all(section.hint.startswith("_") and section.hint.endswith("_") for section in sections)
    assert is_empty(default_template(), default_template()) and is_intact(default_template(), default_template())


@pytest.mark.parametrize(
    ("grown", "expected"),
    [
        (NoteGrowth(True, 9_999, 50, False), False),
        (NoteGrowth(True, 10_000, 0, True), True),
        (NoteGrowth(False, 4_999, 50, False), False),
        (NoteGrowth(False, 5_000, 2, True), False),
        (NoteGrowth(False, 5_000, 3, True), True),
        (NoteGrowth(False, 5_000, 0, False), True),
        (NoteGrowth(False, 90_000, 2, True), False),
    ],
)
def test_when_notes_are_due(grown: NoteGrowth, expected: bool) -> None:
    assert is_due(grown, NUMBERS) is expected


def test_the_numbers_shrink_with_a_small_window() -> None:
    small = NUMBERS.for_window(32_000)
    assert (small.first_tokens, small.growth_tokens, small.section_tokens, small.total_tokens) == (
        1_600,
        800,
        320,
        1_920,
    )
    assert (small.section_characters, small.keep_tokens, small.keep_tokens_most) == (1_280, 1_600, 6_400)
    assert (small.growth_calls, small.keep_messages, small.wait_s, small.ignore_after_s) == (3, 5, 15.0, 60.0)
    assert NUMBERS.for_window(1_000_000) == NUMBERS


def test_a_safe_point_has_no_open_call_behind_it() -> None:
    log = new_log()
    asked = log.append_message(person("go"))
    assert safe_point(log.view) == asked.uuid
    log.append_message(answer("m1", call("a"), call("b"), prompt=10))
    assert safe_point(log.view) == asked.uuid, "both calls are open"
    log.append_message(result("a"))
    assert safe_point(log.view) == asked.uuid, "one is still open"
    last = log.append_message(result("b"))
    assert safe_point(log.view) == last.uuid
    log.append_message(answer("m2", says("one moment"), prompt=10))
    log.append_message(answer("m2", call("c"), prompt=10))
    assert safe_point(log.view) == last.uuid, "a part of a response that also calls is not safe"


def updates(events: list[object], state: str) -> int:
    return sum(isinstance(e, TaskChanged) and e.purpose is Purpose.NOTES and e.state == state for e in events)


def test_notes_are_taken_between_the_rounds_of_one_turn_and_the_cursor_follows(
    tmp_path: Path, prefix_watch: Path
) -> None:
    files(tmp_path, 40, 4_000)  # about 1,200 tokens a round
    paced = READS.replace("  call", "  wait 0.1\n  call")  # a model takes its time: the notes keep up with it
    model = script(tmp_path, paced + notes_script(tmp_path))

    async def work(session: Session) -> tuple[list[object], list[Cursor]]:
        events = await turn(session, "read the files")
        await session.tasks.drain(LIMIT_S)
        cursors = payloads(session.log, Cursor)
        uuids = [entry.uuid for entry in session.view.entries]
        assert all(cursor.uuid in uuids for cursor in cursors)  # type: ignore[union-attr]
        return list(events), cursors  # type: ignore[return-value]

    events, cursors = in_session(
        work, cwd=tmp_path, model=model, session_id=SESSION, overrides={"tools.max_rounds": 30, **REFERENCE}
    )
    assert 3 <= len(cursors) <= 8, "at 10,000 tokens, then every 5,000"
    assert updates(events, "failed") == 0
    assert "Reading the files." in notes_path(tmp_path).read_text()
    assert is_intact(notes_path(tmp_path).read_text(), default_template())
    assert notes_path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert notes_path(tmp_path).parent.stat().st_mode & 0o777 == 0o700
    main = sent(prefix_watch, "main")
    first = sent(prefix_watch, "notes")[0]
    assert len(str(first.parts)) > 25_000, "not before there was something to note"
    assert any(first.parts[: len(one.parts)] == one.parts for one in main), "a fork shares the prefix"


def test_growth_and_then_calls_or_a_pause(tmp_path: Path, prefix_watch: Path) -> None:
    """Through a session: 10,000 tokens at first; then 5,000, and three calls or an answer without any."""
    for name, characters in (("a", 45_000), ("b", 400), ("c", 24_000), ("d", 8_000)):
        line = f"{name}: the lamp of the harbour burns all night long\n"
        (tmp_path / f"{name}.txt").write_text(line * (characters // len(line)))

    def reading(names: str, answer: str) -> str:
        calls = "".join(f'  call Read {{"file_path": "{name}.txt"}}\n  ---\n' for name in names)
        return f"{calls}  say {answer}\n"

    plays = {"one": ("a", "First."), "two": ("b", "Second."), "three": ("c", "Third."), "four": ("dddb", "Fourth.")}
    turns = "".join(f"when /turn {name}/\n{reading(*play)}end\n" for name, play in plays.items())
    model = script(tmp_path, turns + notes_script(tmp_path))

    async def work(session: Session) -> list[int]:
        taken = list[int]()
        for name in plays:
            assert ended(await turn(session, f"turn {name}")).reason == "answered"
            await session.tasks.drain(LIMIT_S)
            taken.append(len(payloads(session.log, Cursor)))
        return taken

    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=REFERENCE) == [1, 1, 2, 3]
    first, third, fourth = [one for one in sent(prefix_watch, "notes") if "<notes>" in one.parts[-1]]
    assert "First." not in str(first.parts), "at first the tokens are enough, in the middle of a turn"
    assert "Third." in str(third.parts), "two calls are too few between rounds"
    assert "Fourth." not in str(fourth.parts), "with three calls the turn's end is not waited for"


def test_below_ten_thousand_tokens_there_are_no_notes(tmp_path: Path, prefix_watch: Path) -> None:
    files(tmp_path, 10, 2_000)
    model = script(tmp_path, READS + notes_script(tmp_path))
    in_session(
        lambda s: turn(s, "read"), cwd=tmp_path, model=model, session_id=SESSION, overrides={"tools.max_rounds": 5}
    )
    assert not sent(prefix_watch, "notes") and not notes_path(tmp_path).exists()


@pytest.mark.parametrize(
    ("overrides", "flag"),
    [
        ({"window.disable_compact": True}, ""),
        ({"window.disable_autocompact": True}, ""),
        ({}, "[compaction]\nauto = false\n"),
        ({}, "context_collapse = true\n"),
        ({}, "session_notes = false\n"),
    ],
)
def test_no_notes_while_auto_compaction_is_off(
    tmp_path: Path, own_home: Path, prefix_watch: Path, overrides: dict[str, bool], flag: str
) -> None:
    flags(own_home, flag)
    files(tmp_path, 40, 8_000)
    model = script(tmp_path, READS + notes_script(tmp_path))
    in_session(
        lambda s: turn(s, "read"),
        cwd=tmp_path,
        model=model,
        session_id=SESSION,
        overrides={"tools.max_rounds": 12, **overrides},
    )
    assert not sent(prefix_watch, "notes")


@pytest.mark.parametrize("flag", ["", "session_notes = false\n", "[compaction]\nauto = false\n"])
def test_by_hand_at_any_time(tmp_path: Path, own_home: Path, flag: str) -> None:
    flags(own_home, flag)
    model = script(tmp_path, "say Hello.\n" + notes_script(tmp_path, "A short talk."))

    async def work(session: Session) -> str:
        await turn(session, "hello")
        info = await session.update_notes().wait(LIMIT_S)
        return info.state.value

    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION) == "completed"
    assert "A short talk." in notes_path(tmp_path).read_text()


@pytest.mark.parametrize(("old", "requests"), [("{LESSONS}", 1), ("no such line", 2)])
def test_several_edits_that_go_through_are_the_whole_update(
    tmp_path: Path, prefix_watch: Path, old: str, requests: int
) -> None:
    """A round less to pay; where one of them fails the writer is told, and may try again."""
    first, _, rest = notes_script(tmp_path, "A short talk.").partition("---\n")
    lessons = "_What worked well, what did not, and what to avoid._"
    found = old.replace("{LESSONS}", lessons)
    second = (
        f'call Edit {{"file_path": "{notes_path(tmp_path)}", "old_string": "{found}", "new_string": "{found}\\nX"}}'
    )
    model = script(tmp_path, f"say Hello.\n{first}{second}\n---\n{rest}")

    async def work(session: Session) -> str:
        await turn(session, "hello")
        return (await session.update_notes().wait(LIMIT_S)).state.value

    assert in_session(work, cwd=tmp_path, model=model, session_id=SESSION) == "completed"
    assert "A short talk." in notes_path(tmp_path).read_text()
    assert len(sent(prefix_watch, "notes")) == requests


def test_runs_never_overlap(tmp_path: Path) -> None:
    slow = notes_script(tmp_path).replace("[notes]\n", "[notes]\nwait 0.2\n")
    model = script(tmp_path, "say Hello.\n" + slow)

    async def work(session: Session) -> None:
        await turn(session, "hello")
        tasks = [session.update_notes() for _ in range(3)]
        running = 0
        while not all(task.info.state.is_over for task in tasks):
            running = max(running, sum(task.info.state.value == "running" for task in tasks))
            await asyncio.sleep(0.02)
        assert running == 1
        assert [task.info.state.value for task in tasks] == ["completed"] * 3

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_the_fork_may_edit_that_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    decide = only_edit(path)

    def asked(tool: str, given: dict[str, str]) -> object:
        return asyncio.run(decide(ToolCall("c", tool, given, False, tmp_path)))  # type: ignore[arg-type]

    assert isinstance(asked("Edit", {"file_path": str(path)}), Allow)
    assert isinstance(asked("Edit", {"file_path": "notes.md"}), Allow)
    assert isinstance(asked("Edit", {"file_path": str(tmp_path / "other.md")}), Deny)
    assert isinstance(asked("Edit", {"file_path": "../notes.md"}), Deny)
    assert isinstance(asked("Edit", {}), Deny)
    for tool in ("Read", "Write", "Bash", "Grep"):
        assert isinstance(asked(tool, {"file_path": str(path)}), Deny)


def test_a_fork_that_writes_elsewhere_is_refused_and_counted(tmp_path: Path) -> None:
    model = script(
        tmp_path,
        'say Hello.\n\n[notes]\ncall Write {"file_path": "made.txt", "content": "x"}\n'
        'call Bash {"command": "touch made.txt"}\n---\nsay Done.\n',
    )

    async def work(session: Session) -> None:
        await turn(session, "hello")
        info = await session.update_notes().wait(LIMIT_S)
        assert info.state.value == "failed" and "left the notes as they were" in (info.error or "")
        assert session.tasks.failures_in_a_row(Purpose.NOTES) == 1

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides={"permissions.mode": "accept_all"})
    assert not (tmp_path / "made.txt").exists()


def test_an_update_that_breaks_a_heading_is_taken_back(tmp_path: Path) -> None:
    path = notes_path(tmp_path)
    good = notes_script(tmp_path, "Kept.")
    broken = f'call Edit {{"file_path": "{path}", "old_string": "# Title", "new_string": "# Another title"}}\n'
    model = script(tmp_path, "say One.\n---\nsay Two.\n" + good)
    other = script(tmp_path, "say One.\n---\nsay Two.\n\n[notes]\n" + broken + "---\nsay x\n", "broken.script")

    async def first(session: Session) -> None:
        await turn(session, "hello")
        assert (await session.update_notes().wait(LIMIT_S)).state.value == "completed"

    async def second(session: Session) -> None:
        before, cursor = path.read_text(), session.view.cursors["notes"]
        await turn(session, "again")
        info = await session.update_notes().wait(LIMIT_S)
        assert info.state.value == "failed" and "heading" in (info.error or "")
        assert path.read_text() == before
        assert session.view.cursors["notes"] == cursor, "the cursor moves on success only"

    in_session(first, cwd=tmp_path, model=model, session_id=SESSION)
    in_session(second, cwd=tmp_path, model=other, resume=SESSION)


def test_a_model_that_fails_at_first_leaves_notes_made_by_code(tmp_path: Path) -> None:
    model = script(tmp_path, "say The answer is 42.\n\n[notes]\nfail authentication\nsay x\n")

    async def work(session: Session) -> None:
        await turn(session, "What is the answer for harbour_light?")
        info = await session.update_notes().wait(LIMIT_S)
        assert info.state.value == "failed"
        assert session.view.cursors["notes"] is not None

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    text = notes_path(tmp_path).read_text()
    assert "harbour_light" in text and is_intact(text, default_template())


def test_the_embedded_model_writes_its_notes_like_any_other(tmp_path: Path, prefix_watch: Path) -> None:
    async def work(session: Session) -> None:
        await turn(session, "Explain harbour_light to me")
        assert (await session.update_notes().wait(LIMIT_S)).state.value == "completed"

    in_session(work, cwd=tmp_path, model="embedded", session_id=SESSION)
    text = notes_path(tmp_path).read_text()
    assert "harbour_light" in text and is_intact(text, default_template())
    assert len(sent(prefix_watch, "notes")) == 1, "its edits in one round, and done with them"


@pytest.mark.parametrize("who", ["embedded", "code"])
def test_notes_by_code_hold_no_secrets(tmp_path: Path, who: str) -> None:
    token = "ghp_x7Kq29sLmP4vTz8RwY3bNc6JdF1hGa5Ue0Qi"
    model = "embedded" if who == "embedded" else script(tmp_path, "say Yes.\n\n[notes]\nfail authentication\nsay x\n")

    async def work(session: Session) -> None:
        await turn(session, f"Explain harbour_light with the token {token} to me. My password is hunter2Fish!9x.")
        await session.update_notes().wait(LIMIT_S)

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    text = notes_path(tmp_path).read_text()
    assert "harbour_light" in text and "[secret]" in text and token not in text and "hunter2" not in text


def test_notes_broken_by_hand_are_mended_and_nothing_written_is_lost(tmp_path: Path) -> None:
    path = notes_path(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text("My own remark.\n\n# Where things stand\nHalf way.\n\n# Something else\nKeep me.\n")
    model = script(tmp_path, "say One.\n" + notes_script(tmp_path, "Going on."))

    async def work(session: Session) -> None:
        await turn(session, "hello")
        assert (await session.update_notes().wait(LIMIT_S)).state.value == "completed"

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    text = path.read_text()
    assert is_intact(text, default_template())
    assert all(kept in text for kept in ("My own remark.", "Half way.", "Keep me.", "Going on."))


def test_the_users_own_template_and_prompt(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    config = own_home / ".reverie" / "session-memory" / "config"
    config.mkdir(parents=True)
    (config / "template.md").write_text(f"# Now\n{STATE}\n\n# Later\n_What can wait._\n")
    (config / "prompt.md").write_text("Mine: {{notesPath}} holds [{{currentNotes}}] and {{unknown}} $1.")
    model = script(tmp_path, "say One.\n" + notes_script(tmp_path, "Mind {{notesPath}} and $1."))

    async def work(session: Session) -> None:
        await turn(session, "hello")
        assert (await session.update_notes().wait(LIMIT_S)).state.value == "completed"
        assert (await session.update_notes().wait(LIMIT_S)).state.value == "completed"

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    path = notes_path(tmp_path)
    assert path.read_text().startswith("# Now\n") and "# Title" not in path.read_text()
    asked = [request.parts[-1] for request in sent(prefix_watch, "notes") if "Mine:" in request.parts[-1]]
    assert f"Mine: {path} holds [# Now" in asked[0] and "{{unknown}} $1." in asked[0]
    assert "Mind {{notesPath}} and $1." in asked[1], "a value is not expanded again"
    assert "under about 2,000 tokens" in asked[0], "the limits are said either way"


@pytest.mark.parametrize("text", ["no heading at all\n", "# A\n# A\n"])
def test_a_template_that_cannot_be_used_is_told_once_and_ours_is_taken(
    tmp_path: Path, own_home: Path, text: str
) -> None:
    config = own_home / ".reverie" / "session-memory" / "config"
    config.mkdir(parents=True)
    (config / "template.md").write_text(text)
    model = script(tmp_path, "say One.\n---\nsay Two.\n" + notes_script(tmp_path))

    async def work(session: Session) -> list[Notice]:
        heard = list[object]()
        session.listen(heard.append)
        await turn(session, "hello")
        for _ in range(2):
            assert (await session.update_notes().wait(LIMIT_S)).state.value == "completed"
        return [n for n in of_kind(heard, Notice) if n.source == "notes"]  # type: ignore[arg-type]

    notices = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    assert len(notices) == 1 and "template.md is not used" in notices[0].text


def test_the_prompt_says_which_section_to_condense() -> None:
    template = default_template()
    long = template.replace(STATE, STATE + "\n\n" + "word " * 3_000)
    path = Path("/notes.md")
    within = directive(template, path, template, NUMBERS)
    assert "Condense" not in within and "2,000 tokens" in within and "12,000" in within
    over = directive(long, path, template, NUMBERS)
    assert '"Where things stand" is about 3,750 tokens long' in over and "matter most" in over
    every = template
    for section in outline(template):
        every = every.replace(section.hint, section.hint + "\n\n" + "word " * 1_100)
    assert "All sections together" in directive(every, path, template, NUMBERS)
    assert over_limit(every, template, section_tokens=2_000, total_tokens=20_000) == []


def test_sections_are_taken_apart_and_cut_at_a_line() -> None:
    template = default_template()
    body = "\n".join(f"line {number} of a long section" for number in range(600))
    notes = template.replace(STATE, f"{STATE}\n\n{body}\n## not a heading of ours\nlast")
    (now,) = [section for section in split(notes, template) if section.hint == STATE]
    assert now.body.startswith("line 0") and now.body.endswith("last")
    cut = shorten_sections(notes, template, characters=8_000, path="/there/summary.md")
    (short,) = [section for section in split(cut, template) if section.hint == STATE]
    assert len(short.body) < 8_100 and "/there/summary.md" in short.body.splitlines()[-1]
    assert re.fullmatch(r"line \d+ of a long section", short.body.splitlines()[-2]), "cut between lines"
    assert shorten_sections(template, template, characters=8_000, path="x") == repair_notes(template, template)


def test_templates() -> None:
    assert template_or_default(None) == (default_template(), None)
    assert template_or_default("# One\ntext\n") == ("# One\ntext\n", None)
    assert template_or_default("nothing")[1] is not None


def test_a_full_background_budget_leaves_the_notes_out(tmp_path: Path, prefix_watch: Path) -> None:
    files(tmp_path, 40, 6_000)
    model = script(tmp_path, READS + notes_script(tmp_path))
    overrides = {"tools.max_rounds": 25, "budget.background_tokens_per_day": 1, **SMALL}
    in_session(lambda s: turn(s, "read"), cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)
    assert len(sent(prefix_watch, "notes")) <= 2, "the first run uses it up"
