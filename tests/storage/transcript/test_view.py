"""What the model sees: joined, repaired, decided; the same live and on resume."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import dump_record, parse_line, read_records
from reverie.storage.transcript.joined_message import NO_RESULT
from reverie.storage.transcript.records import (
    Clears,
    CompactBoundary,
    Cursor,
    ForkUsage,
    Pin,
    ResultDecisions,
    Rewind,
    Surfaced,
    Undo,
)
from reverie.storage.transcript.session_log import SessionLog
from reverie.storage.transcript.view import View
from reverie.types import Message, Origin, Record, TextBlock, ThinkingBlock, ToolResultBlock
from tests.counts import count
from tests.shared_data import sources
from tests.storage.conversations import HEADER, answer, call, new_log, person, result, says


def reloaded(log: SessionLog, tmp_path: Path) -> SessionLog:
    """The same session read back from a file."""
    path = tmp_path / "again.jsonl"
    path.write_bytes(b"".join(dump_record(record) for record in log.records))
    again = new_log()
    again.load(path)
    return again


def wire(log: SessionLog) -> list[dict[str, object]]:
    return [message.wire() for message in log.view.messages()]


def is_sendable(messages: tuple[Message, ...]) -> None:
    """What the API demands of a conversation."""
    assert not messages or messages[0].role == "user"
    for before, after in pairwise(messages):
        assert before.role != after.role
    for i, message in enumerate(messages):
        assert message.content
        assert all(block.text.strip() for block in message.content if isinstance(block, TextBlock))
        calls = [use.id for use in messages[i - 1].tool_uses] if i else []
        results = [block.tool_use_id for block in message.tool_results]
        assert results == (calls if message.role == "user" else [])
        kinds = [isinstance(block, ToolResultBlock) for block in message.content]
        assert kinds == sorted(kinds, reverse=True), "results stand first"
    if messages:
        assert messages[-1].role == "user" or not messages[-1].tool_uses


def test_results_are_joined_in_the_order_of_their_calls() -> None:
    log = new_log()
    log.append(HEADER)
    log.append_message(person("go"))
    log.append_message(answer("m1", call("c1"), call("c2"), call("c3")))
    for name in ("c3", "c1", "c2"):
        log.append_message(result(name))
    log.append_message(Message("user", (TextBlock("beside", Origin.HOOK),)), isMeta=True)
    last = log.view.messages()[-1]
    assert [block.tool_use_id for block in last.tool_results] == ["c1", "c2", "c3"]
    assert last.text == "<hook-text>\nbeside\n</hook-text>"


def test_a_split_response_with_results_in_between_is_one_message() -> None:
    log = new_log()
    log.append_message(person("go"))
    log.append_message(answer("m1", ThinkingBlock("hm", "sig"), call("c1")))
    log.append_message(result("c1"))
    log.append_message(answer("m1", call("c2")))
    log.append_message(result("c2"))
    roles = [message.role for message in log.view.messages()]
    assert roles == ["user", "assistant", "user"]
    assert [use.id for use in log.view.messages()[1].tool_uses] == ["c1", "c2"]
    is_sendable(log.view.messages())


def test_open_calls_are_named_until_they_are_answered() -> None:
    log = new_log()
    log.append_message(person("go"))
    log.append_message(answer("m1", call("c1"), call("c2")))
    log.append_message(result("c2"))
    assert [use.id for use in log.view.open_calls] == ["c1"]
    log.append_message(result("c1"))
    assert log.view.open_calls == ()


def test_orphans_second_answers_and_gaps_never_reach_the_api() -> None:
    log = new_log()
    log.append_message(answer("m0", says("I begin")))
    log.append_message(person("go"))
    log.append_message(result("nobody"))
    log.append_message(answer("m1", call("c1"), call("c2")))
    log.append_message(result("c1", "first"))
    log.append_message(result("c1", "second"))
    log.append_message(answer("m2", says("  ")))
    log.append_message(answer("m3", says("done")))
    log.append_message(result("c2", "too late"))
    log.append_message(person("go on"))
    messages = log.view.messages()
    is_sendable(messages)
    texts = [block.content for message in messages for block in message.tool_results]
    assert texts == ["first", NO_RESULT]


def test_decided_bytes_stand_for_a_result_and_never_flip() -> None:
    log = new_log()
    log.append_message(person("go"))
    log.append_message(answer("m1", call("c1"), call("c2")))
    log.append_message(result("c1", "long"))
    log.append_message(result("c2", "short"))
    log.append(ResultDecisions(replaced={"c1": "[on disk]"}, kept=("c2",)))
    log.append(ResultDecisions(replaced={"c2": "[late]"}))
    assert [block.content for block in log.view.messages()[-1].tool_results] == ["[on disk]", "short"]
    log.append(Clears("time", {"c1": "[cleared]"}))
    assert [block.content for block in log.view.messages()[-1].tool_results] == ["[cleared]", "short"]


def test_web_results_are_marked_as_such() -> None:
    log = new_log()
    log.append_message(person("go"))
    log.append_message(answer("m1", call("c1", "WebFetch"), call("c2", "Read")))
    log.append_message(result("c1"))
    log.append_message(result("c2"))
    assert [block.origin for block in log.view.messages()[-1].tool_results] == [Origin.PAGE, Origin.TOOL]


def compacted(log: SessionLog, *, keep: tuple[str, str] | None) -> str:
    """Compacts the log as a layer would; the boundary's uuid."""
    boundary = "boundary"
    preserved = (keep[0], "summary", keep[1]) if keep else None
    log.append(CompactBoundary("manual", 100, log.head, preserved), uuid=boundary)
    log.append(HEADER, compactOf=boundary)
    summary = Message("user", (TextBlock("what happened", Origin.SUMMARY),))
    log.append_message(summary, uuid="summary", isCompactSummary=True, compactOf=boundary)
    return boundary


def talk(log: SessionLog, *texts: str) -> list[str]:
    names = list[str]()
    for text in texts:
        names.append(log.append_message(person(text)).uuid or "")
        names.append(log.append_message(answer(f"m-{text}", says(f"re {text}"), prompt=50)).uuid or "")
    return names


def test_a_compaction_keeps_the_preserved_messages_after_the_summary(tmp_path: Path) -> None:
    log = new_log()
    log.append(HEADER)
    names = talk(log, "one", "two", "three")
    compacted(log, keep=(names[2], names[5]))
    talk(log, "four")
    texts = [message.text for message in log.view.messages()]
    assert texts == [
        "<summary-text>\nwhat happened\n</summary-text>\ntwo",
        "re two",
        "three",
        "re three",
        "four",
        "re four",
    ]
    assert wire(reloaded(log, tmp_path)) == wire(log)


def test_undo_brings_the_whole_history_back_and_keeps_later_turns(tmp_path: Path) -> None:
    log = new_log()
    log.append(HEADER)
    names = talk(log, "one", "two")
    before = wire(log)
    boundary = compacted(log, keep=(names[2], names[3]))
    talk(log, "three")
    log.append(Undo(boundary))
    assert wire(log)[: len(before)] == before
    assert [message.text for message in log.view.messages()][-2:] == ["three", "re three"]
    assert wire(reloaded(log, tmp_path)) == wire(log)
    talk(log, "four")
    assert wire(reloaded(log, tmp_path)) == wire(log)


def test_a_rewind_leaves_what_came_after_aside(tmp_path: Path) -> None:
    log = new_log()
    log.append(HEADER)
    names = talk(log, "one", "two")
    log.append(Rewind(names[1]))
    assert [message.text for message in log.view.messages()] == ["one", "re one"]
    assert wire(reloaded(log, tmp_path)) == wire(log)
    talk(log, "other")
    assert [message.text for message in log.view.messages()] == ["one", "re one", "other", "re other"]
    assert wire(reloaded(log, tmp_path)) == wire(log)
    log.append(Rewind(None, "clear"))
    assert log.view.messages() == () and log.view.header is None
    log.append(HEADER)
    talk(log, "new")
    assert [message.text for message in log.view.messages()] == ["new", "re new"]
    log.append(Rewind(names[3]))
    assert [message.text for message in log.view.messages()] == ["one", "re one", "two", "re two"]
    assert wire(reloaded(log, tmp_path)) == wire(log)


def test_cursors_pins_and_fork_costs_are_kept(tmp_path: Path) -> None:
    log = new_log()
    talk(log, "one")
    log.append(Cursor("notes", "x"))
    log.append(Pin("p1", "never touch main"))
    log.append(Pin("p2", "other"))
    log.append(Pin("p2", removed=True))
    log.append(Surfaced(("a.md", "b.md"), 30))
    log.append(ForkUsage("notes", "m", {"input_tokens": 5, "cache_read_input_tokens": 7}))
    for view in (log.view, reloaded(log, tmp_path).view):
        assert view.cursors == {"notes": "x"}
        assert view.pins == {"p1": "never touch main"}
        assert sum(view.surfaced.values()) == 30 and set(view.surfaced) == {"a.md", "b.md"}
        assert view.fork_usage[0].tokens().prompt == 12


def test_the_reminder_stands_before_the_first_message_and_is_not_rendered_again() -> None:
    log = new_log()
    log.append(type(HEADER)(model="m", system=("s",), tools=(), reminder="<system-reminder>hi</system-reminder>"))
    talk(log, "one")
    first = log.view.messages()[0]
    assert [block.origin for block in first.content] == [Origin.CODE, Origin.TYPED]
    assert log.view.messages()[0] is first, "an unchanged message is the same object"


def test_the_meter_counts_from_the_first_record_of_a_response() -> None:
    """Tool results between the records of one response are counted, the response itself only once."""
    log = new_log()
    log.append_message(person("go"))
    log.append_message(answer("m1", call("c1"), prompt=10_000, output=20))
    with_call = log.view.meter.tokens
    log.append_message(result("c1", "x " * 20_000))
    with_result = log.view.meter.tokens
    log.append_message(answer("m1", call("c2"), prompt=10_000, output=20))
    assert with_result - with_call > 3_000
    assert log.view.meter.tokens - with_result < 200


steps = st.lists(
    st.one_of(
        st.tuples(st.just("person"), st.sampled_from(["hello", " ", "more"])),
        st.tuples(st.just("calls"), st.integers(0, 3)),
        st.tuples(st.just("split"), st.integers(0, 1)),
        st.tuples(st.just("result"), st.integers(0, 30)),
        st.tuples(st.just("replace"), st.integers(0, 30)),
        st.tuples(st.just("clear"), st.integers(0, 30)),
        st.tuples(st.just("compact"), st.integers(0, 5)),
        st.tuples(st.just("undo"), st.just(0)),
        st.tuples(st.just("rewind"), st.integers(0, 30)),
        st.tuples(st.just("header"), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=count(40, 3_000), deadline=None)
@given(steps)
def test_any_history_is_sendable_and_reads_back_the_same(history: list[tuple[str, object]]) -> None:
    log = new_log()
    calls, responses, boundaries = 0, 0, list[str]()
    for kind, value in history:
        names = [entry.uuid or "" for entry in log.view.entries]
        match kind, value:
            case "person", str(text):
                log.append_message(person(text))
            case "calls", int(number):
                responses += 1
                made = [call(f"c{calls + i}", "Bash") for i in range(number)]
                calls += number
                log.append_message(answer(f"m{responses}", *made, prompt=100 * responses))
            case "split", _:
                log.append_message(answer(f"m{responses}", call(f"c{calls}"), prompt=100 * responses))
                calls += 1
            case "result", int(number):
                log.append_message(result(f"c{number}", f"result {number}"))
            case "replace", int(number):
                log.append(ResultDecisions(replaced={f"c{number}": "[on disk]"}))
            case "clear", int(number):
                log.append(Clears("time", {f"c{number}": "[cleared]"}))
            case "compact", int(back) if names:
                keep = (names[max(0, len(names) - 1 - back)], names[-1]) if back else None
                boundary, anchor = f"b{len(log.records)}", f"a{len(log.records)}"
                preserved = (keep[0], anchor, keep[1]) if keep else None
                log.append(CompactBoundary("auto", 1, log.head, preserved), uuid=boundary)
                summary = Message("user", (TextBlock("so far", Origin.SUMMARY),))
                log.append_message(summary, uuid=anchor, isCompactSummary=True, compactOf=boundary)
                boundaries.append(boundary)
            case "undo", _ if boundaries:
                log.append(Undo(boundaries.pop()))
            case "rewind", int(number) if names:
                log.append(Rewind(names[number % len(names)]))
                responses += 1  # a response that was left aside is never added to
            case "header", _:
                log.append(HEADER)
            case _:
                pass
        is_sendable(log.view.messages())
    records = list[Record]()
    for record in log.records:
        records += parse_line(dump_record(record))
    rebuilt = View.of(conversation(records))
    assert [m.wire() for m in rebuilt.messages()] == wire(log)
    copy = log.view.copy()
    copy.apply(Record({"type": "user", "uuid": "z"}, person("only in the copy")))
    assert [m.wire() for m in rebuilt.messages()] == wire(log)


@pytest.mark.parametrize("folder", sources("transcripts", long=True))
def test_recorded_sessions_give_sendable_conversations(folder: Path) -> None:
    for path in sorted(folder.glob("*.jsonl")):
        loaded = read_records(path)
        assert not loaded.bad
        view = View.of(conversation(loaded.records))
        assert view.entries
        is_sendable(view.messages())
