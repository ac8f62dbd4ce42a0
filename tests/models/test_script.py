"""The script language: what is chosen, what is counted, what is said about mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.models.script import CLOSING, Script, ScriptedReply
from tests.counts import count

Messages = list[dict[str, Any]]


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def answered(messages: Messages, reply: ScriptedReply, result: str = "ok") -> Messages:
    """The conversation after a reply: its calls answered, or the person going on."""
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": result}
        for block in reply.content
        if block["type"] == "tool_use"
    ]
    return [*messages, {"role": "assistant", "content": reply.content}, user(results or "go on")]


def play(script: Script, rounds: int, *, purpose: str = "main", first: str = "hello") -> list[ScriptedReply]:
    messages: Messages = [user(first)]
    replies: list[ScriptedReply] = []
    for _ in range(rounds):
        replies.append(script.reply(messages, purpose=purpose))
        messages = answered(messages, replies[-1])
    return replies


def said(reply: ScriptedReply) -> str:
    return "".join(block["text"] for block in reply.content if block["type"] == "text")


def test_replies_are_chosen_by_the_number_of_answers_so_a_new_process_goes_on() -> None:
    text = 'say one\ncall Read {"file_path": "a"}\n---\nsay two\n---\nsay three'
    whole = play(Script.parse(text), 4)
    assert [said(reply) for reply in whole] == ["one", "two", "three", CLOSING]
    assert [reply.stop_reason for reply in whole] == ["tool_use", "end_turn", "end_turn", "end_turn"]

    messages: Messages = [user("hello")]
    for expected in whole:
        reply = Script.parse(text).reply(messages)
        assert reply == expected
        messages = answered(messages, reply)


def test_an_answer_recorded_in_several_messages_is_one_answer() -> None:
    script = Script.parse("think hm\nsay one\n---\nsay two\nwhen /port/\nsay a\n---\nsay b\nend")
    first = script.reply([user("hello")])
    split = [{"role": "assistant", "content": [block]} for block in first.content]
    assert said(script.reply([user("hello"), *split, user("go on")])) == "two"
    assert said(script.reply([user("port"), *split, user("go on")])) == "b"


def test_parallel_and_generated_calls_have_ids_of_their_own() -> None:
    reply = play(Script.parse('call Read {"file_path": "{i}.txt", "offset": {i}} x30\ncall Glob'), 1)[0]
    assert [block["input"] for block in reply.content[:30]] == [
        {"file_path": f"{i}.txt", "offset": i} for i in range(1, 31)
    ]
    assert reply.content[30]["input"] == {}
    assert len({block["id"] for block in reply.content}) == 31


def test_ids_differ_when_a_compaction_takes_the_position_back() -> None:
    script = Script.parse("repeat forever\n call Read {}\nend")
    before = script.reply([user("hello")])
    after = script.reply([user("This is the summary of what went before.")])
    assert before.content[0]["id"] != after.content[0]["id"]


def test_a_thousand_rounds_take_four_lines() -> None:
    script = Script.parse('repeat 500\ncall Read {"file_path": "f{loop}.txt"}\n---\nsay Round {round}.\nend\nsay bye')
    replies = play(script, 1002)
    assert replies[998].content[0]["input"] == {"file_path": "f500.txt"}
    assert said(replies[999]) == "Round 1000."
    assert [said(reply) for reply in replies[1000:]] == ["bye", CLOSING]
    ids = [block["id"] for reply in replies for block in reply.content if block["type"] == "tool_use"]
    assert len(ids) == len(set(ids)) == 500


def test_a_matcher_takes_precedence_and_plays_all_its_replies() -> None:
    script = Script.parse(
        "say first\n---\nsay second\n"
        'when /which port/i\ncall Grep {"pattern": "port"}\n---\nsay It says: {result}\nend\n'
        "when /No such file/\nsay The file is gone.\nend"
    )
    assert said(script.reply([user("hello")])) == "first"
    asked: Messages = [user("Which PORT is it?")]
    call = script.reply(asked)
    assert call.content[0]["name"] == "Grep"
    assert said(script.reply(answered(asked, call, "port = 8080"))) == "It says: port = 8080"
    assert said(script.reply(answered(asked, call, "No such file"))) == "The file is gone."
    on = answered(answered(asked, call), script.reply(answered(asked, call)))
    assert said(script.reply(on)) == CLOSING


def test_forks_have_sections_of_their_own_and_count_their_own_rounds() -> None:
    script = Script.parse("repeat forever\ncall Read {}\nend\n[notes]\ncall Edit {}\n---\nsay noted\n[*]\nsay other")
    messages: Messages = [user("hello")]
    for _ in range(5):
        messages = answered(messages, script.reply(messages))
    fork = [*messages, user("Update the notes.")]
    first = script.reply(fork, purpose="notes")
    assert first.content[0]["name"] == "Edit"
    assert said(script.reply(answered(fork, first), purpose="notes")) == "noted"
    assert said(script.reply(fork, purpose="extraction")) == "other"
    assert said(Script.parse("say main only").reply(fork, purpose="recall")) == CLOSING


def test_faults_strike_so_many_times_and_then_let_the_reply_through() -> None:
    script = Script.parse("fail overloaded 2x retry-after 1.5\nfail cut 3\nsay through\n---\nfail unreachable\nsay b")
    faults = [script.reply([user("hello")]).fault for _ in range(4)]
    assert [fault and fault.kind for fault in faults] == ["overloaded", "overloaded", "cut", None]
    assert faults[0] and faults[0].retry_after == 1.5
    assert faults[2] and faults[2].after_chars == 3
    later = answered([user("hello")], script.reply([user("hello")]))
    assert [bool(script.reply(later).fault) for _ in range(2)] == [True, False]


def test_prompt_too_long_stays_until_the_request_changes() -> None:
    script = Script.parse("fail prompt-too-long 208310 > 200000\nsay never")
    for _ in range(3):
        fault = script.reply([user("hello")]).fault
        assert fault and (fault.kind, fault.actual, fault.limit) == ("prompt-too-long", 208310, 200000)


def test_odd_answers_can_be_scripted() -> None:
    script = Script.parse(
        'malformed Read {"file_path": "a\n---\nempty\n---\nsay half\nstop max_tokens\n---\nsay No.\nstop refusal\n'
        '---\nwait 2\nslow 0.25\nfill 250\nusage {"input_tokens": 7}\n---\nthink hm\nsay\n| a\n|\n|  b'
    )
    replies = play(script, 6)
    assert replies[0].content[0]["input"] == {"_unparsed": '{"file_path": "a'}
    assert (replies[1].content, replies[1].stop_reason) == ([], "end_turn")
    assert [reply.stop_reason for reply in replies[2:4]] == ["max_tokens", "refusal"]
    assert (replies[4].wait_s, replies[4].delay_s, replies[4].usage) == (2.0, 0.25, {"input_tokens": 7})
    assert len(said(replies[4])) == 250
    assert replies[5].content[0]["thinking"] == "hm" and said(replies[5]) == "a\n\n b"


def test_placeholders_are_safe_inside_json() -> None:
    text = 'He said "no"\\ and left {round}\n'
    reply = Script.parse('call Write {"content": "{text}", "turn": {turn}}').reply([user(text)])
    assert reply.content[0]["input"] == {"content": text, "turn": 1}


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("sya hello", 1, "did you mean `say`"),
        ("say a\n---\ncall Read {bad}", 3, "not valid JSON"),
        ("call Read [1]", 1, "must be a JSON object"),
        ("call", 1, "call wants a tool"),
        ("# c\n\nrepeat 3\nsay a", 3, "this `repeat` has no `end`"),
        ("repeat 3\nend", 1, "holds no reply"),
        ("repeat x\nsay a\nend", 1, "repeat wants a number"),
        ("say a\nend", 2, "without a `repeat`"),
        ("when port\nsay a\nend", 1, "between slashes"),
        ("when /(/\nsay a\nend", 1, "not a regular expression"),
        ("repeat 2\nwhen /a/\nsay a\nend\nend", 2, "not inside another block"),
        ("[note]\nsay a", 1, "did you mean `notes`"),
        ("say a\n[main]\nsay b", 2, "appears twice"),
        ("fail overload", 1, "did you mean `overloaded`"),
        ("fail", 1, "unknown fault"),
        ("fail cut", 1, "fail cut 40"),
        ("fail prompt-too-long 3", 1, "both sizes"),
        ("fail overloaded 3", 1, "3x"),
        ("wait soon", 1, "wants seconds"),
        ("empty\nsay a", 2, "must be alone"),
        ("usage 3", 1, "JSON object"),
        ("stop", 1, "stop reason"),
        ("| text", 1, "unknown statement"),
    ],
)
def test_mistakes_are_named_with_file_and_line(text: str, line: int, what: str) -> None:
    with pytest.raises(UserError) as caught:
        Script.parse(text, "demo.script")
    assert str(caught.value).startswith(f"demo.script:{line}: ")
    assert what in str(caught.value)


def test_a_missing_or_unreadable_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        Script.load(tmp_path / "none.script")
    (tmp_path / "bad.script").write_bytes(b"say \xff")
    with pytest.raises(UserError, match="not UTF-8"):
        Script.load(tmp_path / "bad.script")


_text = st.text(
    st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], blacklist_characters="{"), min_size=1
)
_json = st.dictionaries(_text, st.one_of(_text, st.integers(), st.booleans(), st.none()), max_size=3)
_reply = st.one_of(
    _text.map(lambda text: (f"say {text}", [{"type": "text", "text": text}])),
    st.tuples(_json, st.integers(1, 4)).map(
        lambda made: (f"call Read {json.dumps(made[0])} x{made[1]}", [{"name": "Read", "input": made[0]}] * made[1])
    ),
    st.just(("empty", [])),
)
_tree = st.recursive(
    _reply.map(lambda reply: (reply[0], [reply[1]])),
    lambda inner: st.tuples(st.lists(inner, min_size=1, max_size=3), st.integers(1, 3)).map(
        lambda made: (
            "\n".join([f"repeat {made[1]}", "\n---\n".join(text for text, _ in made[0]), "end"]),
            [reply for _, replies in made[0] for reply in replies] * made[1],
        )
    ),
    max_leaves=8,
)


@given(st.lists(_tree, max_size=4))
@settings(max_examples=count(25, 1_500), deadline=None)
def test_what_is_written_is_what_is_played(trees: list[tuple[str, list[list[dict[str, Any]]]]]) -> None:
    script = Script.parse("\n---\n".join(text for text, _ in trees))
    expected = [reply for _, replies in trees for reply in replies]
    played = play(script, len(expected) + 1)
    for reply, blocks in zip(played, expected, strict=False):
        assert [{key: got[key] for key in want} for got, want in zip(reply.content, blocks, strict=True)] == blocks
    assert said(played[-1]) == CLOSING


@given(st.text())
@settings(max_examples=count(30, 2_000), deadline=None)
def test_no_text_crashes_the_parser(text: str) -> None:
    try:
        script = Script.parse(text)
    except UserError as error:
        assert str(error).startswith("script:")
    else:
        assert script.reply([user("hello")]).stop_reason
