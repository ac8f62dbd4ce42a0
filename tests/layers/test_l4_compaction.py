"""Layer 4: who writes the summary, what stands beside it, what is restored, and what happens when it goes wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from reverie.errors import ReverieError, UserError
from reverie.events import Event, Notice
from reverie.layers.base import EffectResult
from reverie.layers.l4_compaction.by_code.written import PARTS
from reverie.layers.l4_compaction.setup import CompactionNumbers
from reverie.layers.l4_compaction.stage import Breakers, may_compact
from reverie.layers.l4_compaction.summary import check_summary, compact_instructions, directive
from reverie.layers.l4_compaction.writers import LEFT_OUT, cut_texts, drop_rounds, rounds, strip_media
from reverie.session import Session
from reverie.storage.transcript.records import SessionHeader, Survival, from_record
from reverie.types import ImageBlock, Message, Origin, Purpose, TextBlock, ToolResultBlock, ToolUseBlock
from tests.layers.talks import (
    READS,
    SESSION,
    SMALL,
    boundaries,
    compaction_script,
    context,
    files,
    flags,
    payloads,
    sent,
)
from tests.sessions import ended, in_session, of_kind, script, turn

NUMBERS = CompactionNumbers()
OFF = "session_notes = false\n"
FAST = {"model.retries": 1, "model.retry_first_wait_s": 0.001, "model.retry_longest_wait_s": 0.001}


# -- pure parts -------------------------------------------------------------------------------------------------------


def test_the_numbers_of_the_reference_and_of_a_small_window() -> None:
    assert (NUMBERS.summary_tokens, NUMBERS.failures, NUMBERS.too_long_tries) == (20_000, 3, 3)
    assert (NUMBERS.restore_files, NUMBERS.restore_file_tokens, NUMBERS.restore_tokens) == (5, 5_000, 50_000)
    assert (NUMBERS.restore_skill_tokens, NUMBERS.restore_skills_tokens) == (5_000, 25_000)
    assert (NUMBERS.refill_turns, NUMBERS.refill_times, NUMBERS.request_bytes) == (3, 3, 2_000)
    small = NUMBERS.for_window(32_000)
    assert (small.summary_tokens, small.restore_file_tokens, small.request_bytes) == (3_200, 800, 320)
    assert (small.failures, small.restore_files, small.pins_bytes) == (3, 5, NUMBERS.pins_bytes)
    assert NUMBERS.for_window(1_000_000) == NUMBERS


def test_nine_parts_are_asked_for_and_the_draft_is_thrown_away() -> None:
    asked = directive("whole", "mind the gap")
    assert len(PARTS) == 9 and all(f"## {part}" in asked for part in PARTS) and "mind the gap" in asked
    whole = EffectResult(ok=True, text="<analysis>hm <b>x</b></analysis>\n<summary>\nThe point.\n</summary> bye")
    assert check_summary(whole, 1_000, len) == ("The point.", "")
    bare = EffectResult(ok=True, text="<analysis>hm</analysis>\n" + "\n".join(f"## {part}\nx" for part in PARTS))
    assert check_summary(bare, 10_000, len)[0].startswith(f"## {PARTS[0]}"), "the tags may be missing, the parts not"


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (EffectResult(ok=True, text=""), "empty"),
        (EffectResult(ok=True, text="<summary>  </summary>"), "empty"),
        (EffectResult(ok=True, text="I would rather not."), "no summary"),
        (EffectResult(ok=True, text="<analysis>only a draft</analysis>"), "no summary"),
        (EffectResult(ok=True, text="<summary>" + "long " * 300 + "</summary>"), "larger than what it replaces"),
        (EffectResult(ok=False, text="the answer was cut off"), "cut off"),
        (EffectResult(ok=False, text="the model called a tool instead of answering"), "tool"),
    ],
)
def test_what_is_not_taken_for_a_summary(result: EffectResult, why: str) -> None:
    text, reason = check_summary(result, 1_000, len)
    assert text == "" and why in reason


def test_compact_instructions_are_found_in_instruction_files() -> None:
    text = "# Project\nx\n\n## Compact instructions\nKeep the schema.\n### more\nand this\n\n## Style\ntabs\n"
    assert compact_instructions(text) == "Keep the schema.\n### more\nand this"
    assert compact_instructions("# COMPACT INSTRUCTIONS:\nA\n# B\n# Compact Instructions\nC") == "A\n\nC"
    assert compact_instructions("nothing here") == ""


def test_who_may_compact_by_itself() -> None:
    never = {Purpose.COMPACTION, Purpose.NOTES, Purpose.EXTRACTION, Purpose.DREAM, Purpose.SIDE_QUESTION}
    assert may_compact(Purpose.MAIN) and may_compact(Purpose.AGENT)
    assert not any(may_compact(purpose) for purpose in never)


def conversation(count: int) -> list[Message]:
    messages = [Message("user", (TextBlock("go", Origin.TYPED),))]
    for number in range(count):
        messages.append(Message("assistant", (ToolUseBlock(f"c{number}", "Read", {}),)))
        messages.append(Message("user", (ToolResultBlock(f"c{number}", "x" * 100),)))
    return messages


def first_call(messages: tuple[Message, ...]) -> str:
    return next(use.id for message in messages for use in message.tool_uses)


def hundred(message: Message) -> int:
    return 100 if message.tool_results else 0


def test_whole_rounds_leave_from_the_front_until_the_excess_is_gone() -> None:
    left = drop_rounds(conversation(10), 250, hundred)
    assert left is not None and left[0].text == LEFT_OUT and left[0].role == "user"
    assert first_call(left) == "c3", "three rounds of 100 tokens"
    assert drop_rounds(conversation(10), 1, hundred) is not None
    most = drop_rounds(conversation(10), 1_000_000, hundred)
    assert most is not None and len(rounds(most)) == 2, "one round is kept, behind the marker"
    assert drop_rounds(conversation(0), 10, hundred) is None, "nothing can go"


def test_a_fifth_leaves_if_nobody_said_how_much() -> None:
    left = drop_rounds(conversation(19), None, hundred)  # twenty rounds with the question
    assert left is not None and first_call(left) == "c3"
    again = drop_rounds(left, None, hundred)
    assert again is not None and first_call(again) == "c6"
    few = drop_rounds(conversation(2), None, hundred)
    assert few is not None and few[0].text == LEFT_OUT, "at least one: the question"


def test_pictures_become_words_and_long_texts_are_cut() -> None:
    image = ImageBlock({"type": "base64", "data": "x" * 1_000})
    message = Message("user", (image, ToolResultBlock("c", (image, TextBlock("t")))))
    assert "base64" not in str(strip_media([message])[0].wire())
    assert len(cut_texts([Message("user", (TextBlock("y" * 10_000),))], 1_000)[0].text) < 1_200


def test_the_breaker_opens_after_three_failures_and_says_so_once() -> None:
    breakers = Breakers()
    assert breakers.failed("a", NUMBERS) is None and breakers.failed("b", NUMBERS) is None
    breakers.succeeded()
    assert [breakers.failed("c", NUMBERS), breakers.failed("d", NUMBERS)] == [None, None]
    told = breakers.failed("e", NUMBERS)
    assert told is not None and "/compact still works" in told and breakers.open_reason == told
    assert breakers.failed("f", NUMBERS) is None, "once"
    breakers.succeeded()
    assert breakers.open_reason is None, "a summary by hand closes it"


def test_a_context_that_is_full_again_at_once_three_times_stops_it() -> None:
    breakers = Breakers()
    assert [breakers.compacted(turn, turn, NUMBERS) for turn in (10, 13, 16)] == [None] * 3
    assert "3 times in a row" in (breakers.compacted(19, 19, NUMBERS) or "")
    calm = Breakers()
    assert not any(calm.compacted(turn, turn, NUMBERS) for turn in (10, 13, 17, 20, 23, 27, 30))
    busy = Breakers()
    assert not any(busy.compacted(1, rounds, NUMBERS) for rounds in range(0, 200, 20)), "one long turn of real work"


# -- through a session ------------------------------------------------------------------------------------------------


def fill(tmp_path: Path, own_home: Path, compaction: str, rounds: int = 30, **options: object) -> list[Event]:
    """One turn that fills a window of 32,000 without notes; the events. The session is in `fill.session`."""
    flags(own_home, OFF)
    files(tmp_path, 60, 4_000)
    model = script(tmp_path, READS + compaction)
    overrides = {"tools.max_rounds": rounds, **SMALL, **FAST, **options}

    async def work(session: Session) -> list[Event]:
        holder["session"] = session
        return await turn(session, "Read all the files and never skip f7.txt.")

    return in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)


holder: dict[str, Session] = {}


def test_over_the_threshold_a_fork_that_shares_the_cache_writes_the_summary(
    tmp_path: Path, own_home: Path, prefix_watch: Path
) -> None:
    events = fill(tmp_path, own_home, compaction_script())
    session = holder["session"]
    first = boundaries(session)[0]
    assert (first.trigger, first.writer, first.extent) == ("auto", "fork", "whole")
    assert first.tokens_before > session.parts.limits.autocompact
    asked = sent(prefix_watch, "compaction")[0]
    before = [one for one in sent(prefix_watch, "main") if one.ts < asked.ts][-1]
    assert asked.parts[: len(before.parts)] == before.parts and asked.announced_break is None
    assert asked.thread != "main"
    after = next(one for one in sent(prefix_watch, "main") if one.ts > asked.ts)
    assert after.announced_break == "the conversation was compacted"
    text = "\n".join(after.parts)
    assert "The harbour lights." in text and "a draft" not in text
    assert "Read all the files and never skip f7.txt." in text, "what the person said stands word for word"
    assert "f1.txt" in text and "read again from disk" in text
    told = [n.text for n in of_kind(events, Notice) if n.text.startswith("Compacted:")]
    assert len(told) == len(boundaries(session)) and "1 of 1 requests" in told[0]


def test_the_records_stand_in_their_order_and_belong_together(tmp_path: Path, own_home: Path) -> None:
    (tmp_path / ".reverie").mkdir()
    hook = '[[hooks.SessionStart]]\nmatcher = "compact"\ncommand = "echo The tide is high."\n'
    (own_home / ".reverie").mkdir(parents=True)
    (own_home / ".reverie" / "settings.toml").write_text(hook)
    fill(tmp_path, own_home, compaction_script())
    log = holder["session"].parts.log
    at = next(i for i, record in enumerate(log.records) if record.subtype == "compact_boundary")
    boundary, header, summary, attached, hooked, report = log.records[at : at + 6]
    assert boundary.parent is None and boundary.data["logicalParentUuid"] == boundary.data["reverie"]["last_uuid"]
    assert boundary.data["compactMetadata"]["trigger"] == "auto"
    assert isinstance(from_record(header), SessionHeader) and summary.data["isCompactSummary"]
    assert "read again from disk" in attached.message.text and "The tide is high." in hooked.message.text  # type: ignore[union-attr]
    assert isinstance(from_record(report), Survival)
    assert boundary.data["reverie"]["sealed_by"] == hooked.uuid
    assert {one.data.get("compactOf") for one in (header, summary, attached, hooked, report)} == {boundary.uuid}
    assert [one.parent for one in (header, summary, attached, hooked)] == [
        boundary.uuid,
        header.uuid,
        summary.uuid,
        attached.uuid,
    ]


def test_off_means_as_if_absent(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    (own_home / ".reverie").mkdir(parents=True)
    files(tmp_path, 60, 4_000)
    flags(own_home, OFF + "[compaction]\nauto = false\n[microcompact]\neconomic = false\n")
    model = script(tmp_path, READS + compaction_script())
    overrides = {"tools.max_rounds": 40, **SMALL}
    event = ended(in_session(lambda s: turn(s, "read"), cwd=tmp_path, model=model, overrides=overrides))
    assert event.reason == "blocked" and "/compact" in (event.error or "")
    assert not sent(prefix_watch, "compaction")


@pytest.mark.parametrize("switch", ["window.disable_compact", "window.disable_autocompact"])
def test_the_environments_switches(tmp_path: Path, own_home: Path, prefix_watch: Path, switch: str) -> None:
    flags(own_home, OFF + "[microcompact]\neconomic = false\n")
    files(tmp_path, 60, 4_000)
    model = script(tmp_path, READS + compaction_script())

    async def work(session: Session) -> str:
        assert ended(await turn(session, "read")).reason == "blocked"
        try:
            return (await session.compact()).writer
        except UserError as error:
            return str(error)

    overrides = {"tools.max_rounds": 40, switch: True, **SMALL}
    came = in_session(work, cwd=tmp_path, model=model, overrides=overrides)
    # A context at the blocking limit may leave a fork no room for the question; a plain request is made shorter first.
    assert ("switched off" in came) if switch.endswith("disable_compact") else came in ("fork", "plain"), came


FAULTS = {
    "overload": "fail overloaded always\nsay x\n",
    "cut stream": "fail cut 5 always\nsay <summary>this is cut off in the middle</summary>\n",
    "prompt too long": "fail prompt-too-long 40000 > 32000 always\nsay x\n",
    "refusal": "say no\nstop refusal\n",
    "empty": "empty\n",
    "tool call": 'call Read {"file_path": "f1.txt"}\n',
    "cut off": "say <summary>half\nstop max_tokens\n",
    "no summary": "say I am done, thank you.\n",
    "inflated": "fill 400000\n",
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_breaker_opens_after_three_failures_says_so_once_and_by_hand_still_works(
    tmp_path: Path, own_home: Path, prefix_watch: Path, name: str
) -> None:
    flags(own_home, OFF + "[microcompact]\neconomic = false\n")
    files(tmp_path, 99, 6_000)
    # A script's faults are chosen by what is asked; by hand the directive carries a word of its own.
    by_hand = "when /please/\n  say <summary>By hand.</summary>\nend\n"
    model = script(tmp_path, READS + "\n[compaction]\n" + by_hand + FAULTS[name])

    async def work(session: Session) -> None:
        events = list[Event]()
        while ended(events).reason != "blocked" if events else True:
            events += await turn(session, "Read on. Never stop before f90.")
        made = boundaries(session)
        assert [one.writer for one in made] == ["code"] * 3, "code stands in, and nothing is lost"
        assert "Read on. Never stop before f90." in context(session)
        told = [n.text for n in of_kind(events, Notice) if "has stopped for this session" in n.text]
        assert len(told) == 1 and "3 times in a row" in told[0]
        before = len(sent(prefix_watch, "compaction"))
        assert ended(await turn(session, "More.")).reason == "blocked"
        assert len(sent(prefix_watch, "compaction")) == before, "nobody is asked any more"
        done = await session.compact("please")
        assert done.writer in ("fork", "plain") and done.text.count("By hand.") == 1
        assert ended(await turn(session, "Go on.")).reason in ("answered", "max_rounds")

    overrides = {"tools.max_rounds": 12, "compaction.refill_times": 100, **SMALL, **FAST}
    in_session(work, cwd=tmp_path, model=model, session_id=SESSION, overrides=overrides)


def test_a_summary_too_long_for_its_request_loses_its_first_rounds(
    tmp_path: Path, own_home: Path, prefix_watch: Path
) -> None:
    faults = "\n[compaction]\nfail prompt-too-long 34000 > 32000 3x\nsay <summary>In the end.</summary>\n"
    fill(tmp_path, own_home, faults)
    assert boundaries(holder["session"])[0].writer == "plain"
    asked = sent(prefix_watch, "compaction")[:4]
    assert len(asked) == 4, "the fork, and three shorter ones"
    assert [one.announced_break is None for one in asked] == [True, False, False, False]
    sizes = [len("".join(one.parts)) for one in asked]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 4
    plain = "\n".join(asked[1].parts)
    assert LEFT_OUT in plain and "You summarise conversations" in plain
    assert "You are" not in asked[1].parts[-1] and any('"tools"' in p or '"tool"' in p for p in asked[1].parts)


def test_reactive_one_compaction_and_the_request_is_sent_again(
    tmp_path: Path, own_home: Path, prefix_watch: Path
) -> None:
    flags(own_home, OFF)
    files(tmp_path, 9, 9_000)
    reads = "\n---\n".join(f'call Read {{"file_path": "f{n}.txt"}}' for n in range(1, 9))
    model = script(
        tmp_path,
        f"{reads}\n---\nfail prompt-too-long 208310 > 200000 1x\nsay x\n\n" + compaction_script().strip() + "\n",
    )
    events = in_session(lambda s: turn(s, "read them"), cwd=tmp_path, model=model, session_id=SESSION)
    assert ended(events).reason == "answered"
    told = [n.text for n in of_kind(events, Notice)]
    assert any("sent again" in text for text in told) and any("Compacted" in text for text in told)
    asked = sent(prefix_watch, "compaction")
    assert asked and all(one.announced_break for one in asked), "the same prompt would be too long again"


def test_reactive_is_a_switch_and_what_cannot_be_helped_is_shown(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, OFF + "[compaction]\nreactive = false\n")
    model = script(tmp_path, "fail prompt-too-long 208310 > 200000 always\nsay x\n")
    event = ended(in_session(lambda s: turn(s, "go"), cwd=tmp_path, model=model))
    assert event.reason == "failed" and "208310" in (event.error or "")


def hooks(own_home: Path, command: str) -> None:
    (own_home / ".reverie").mkdir(parents=True, exist_ok=True)
    (own_home / ".reverie" / "settings.toml").write_text(f"[[hooks.PreCompact]]\ncommand = {json.dumps(command)}\n")


def test_a_hook_adds_instructions(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    hooks(own_home, f"cat > {tmp_path}/told.json; echo Mind the schema.")
    fill(tmp_path, own_home, compaction_script())
    assert "Mind the schema." in sent(prefix_watch, "compaction")[0].parts[-1]
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["trigger"] == "auto" and told["hook_event_name"] == "PreCompact"


def test_a_hook_refuses_and_is_told_about_once(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    hooks(own_home, "echo Not today. >&2; exit 2")
    events = fill(tmp_path, own_home, compaction_script(), rounds=40)
    assert not boundaries(holder["session"]) and not sent(prefix_watch, "compaction")
    told = [n.text for n in of_kind(events, Notice) if "Not today." in n.text]
    assert len(told) == 1


def test_a_hook_that_prints_rubbish_stops_nothing(tmp_path: Path, own_home: Path) -> None:
    hooks(own_home, "printf '{\\xff\\x00 not json'; exit 7")
    fill(tmp_path, own_home, compaction_script())
    assert boundaries(holder["session"])


def test_instruction_files_are_honoured(tmp_path: Path, own_home: Path, prefix_watch: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# Work\nUse tabs.\n\n# Compact instructions\nAlways keep the tide table.\n")
    fill(tmp_path, own_home, compaction_script())
    assert "Always keep the tide table." in sent(prefix_watch, "compaction")[0].parts[-1].split("next step")[-1]


# -- restore ----------------------------------------------------------------------------------------------------------


def test_the_five_files_read_last_come_back_from_disk_within_their_budgets(tmp_path: Path, own_home: Path) -> None:
    fill(tmp_path, own_home, compaction_script())
    log = holder["session"].parts.log
    attached = next(r.message for r in log.records if r.data.get("compactOf") and r.data.get("isMeta"))
    assert attached is not None
    texts = [block.text for block in attached.content if isinstance(block, TextBlock)]
    assert len(texts) == 5
    for text in texts:
        assert "its beginning only" in text and len(text) <= 5_000 * 32 // 200 * 4 + 300, "800 tokens each"


def test_what_is_gone_binary_memory_or_instructions_is_not_restored(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, OFF)
    files(tmp_path, 9, 3_000)
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    names = ["f1.txt", "f2.txt", "AGENTS.md", "f3.txt", "nowhere.txt", "f4.txt"]
    reads = "\n---\n".join(f'call Read {{"file_path": "{name}"}}' for name in names)
    model = script(tmp_path, reads + "\n---\nsay Done.\n" + compaction_script())

    async def work(session: Session) -> str:
        await turn(session, "read")
        (tmp_path / "f2.txt").unlink()
        (tmp_path / "f3.txt").write_bytes(b"\0\1\2")
        (tmp_path / "f4.txt").write_text("It has changed since.\n")
        await session.compact()
        return context(session)

    text = in_session(work, cwd=tmp_path, model=model)
    assert "It has changed since." in text and f"{tmp_path}/f1.txt, read again" in text
    assert not any(
        f"{tmp_path}/{name}, read again" in text for name in ("f2.txt", "f3.txt", "AGENTS.md", "nowhere.txt")
    )


# -- requests, pins, survival -----------------------------------------------------------------------------------------


def test_long_messages_stand_as_excerpts_with_the_path_of_the_whole(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, OFF)
    files(tmp_path, 5, 30_000)
    model = script(
        tmp_path, 'repeat forever\n  call Read {"file_path": "f1.txt"}\n  ---\n  say ok\nend\n' + compaction_script()
    )
    long = "Begin. " + "Mind every word of this. " * 200 + "End."
    exact = "x" * 2_000
    over = "y" * 2_001

    async def work(session: Session) -> str:
        for text in (long, exact, over, "short"):
            await turn(session, text)
        await session.compact()
        return session.view.messages()[0].text

    text = in_session(work, cwd=tmp_path, model=model, session_id=SESSION)
    assert long not in text and "Begin. Mind" in text and "of this. End." in text
    assert exact in text and over not in text and "4. short" in text
    kept = sorted((own_home / ".reverie").rglob("requests/*.txt"))
    wholes = {path.read_text() for path in kept}
    assert {long, over} <= wholes and all(str(path) in text for path in kept if path.read_text() in (long, over))
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in kept)


def test_pins_stand_word_for_word_after_every_compaction(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, OFF)
    files(tmp_path, 5, 9_000)
    model = script(
        tmp_path, 'repeat forever\n  call Read {"file_path": "f1.txt"}\n  ---\n  say ok\nend\n' + compaction_script()
    )
    pinned = "Never   touch\n  the generated files — ünïcode"

    async def work(session: Session) -> None:
        await turn(session, "one")
        name = session.pin(pinned)
        assert session.pins == {name: pinned}
        for number in range(3):
            await turn(session, f"turn {number}")
            await session.compact()
            assert pinned in session.view.messages()[0].text
        with pytest.raises(UserError, match="pinned already"):
            session.pin(pinned)
        with pytest.raises(UserError, match=r"10,000"):
            session.pin("z" * 10_000)
        with pytest.raises(UserError, match="nothing to pin"):
            session.pin("  ")
        assert session.unpin("Never") == pinned
        await turn(session, "last")
        await session.compact()
        assert pinned not in session.view.messages()[0].text and session.pins == {}
        with pytest.raises(UserError, match="no pin"):
            session.unpin("1")

    in_session(work, cwd=tmp_path, model=model, session_id=SESSION)


def test_the_report_counts_what_survived_and_names_what_did_not(tmp_path: Path, own_home: Path) -> None:
    flags(own_home, OFF)
    (tmp_path / "code.py").write_text("def rare_function_name(): return 73_512\n" * 100)
    model = script(tmp_path, 'call Read {"file_path": "code.py"}\n---\nsay ok\n' + compaction_script())

    async def work(session: Session) -> Survival:
        await turn(session, "Look at code.py. You must never rename it.")
        done = await session.compact()
        (report,) = payloads(session.log, Survival)
        assert report == done.report
        return done.report

    report = in_session(work, cwd=tmp_path, model=model)
    assert report.kept["requests"] == report.total["requests"] == 1
    assert report.kept["constraints"] == report.total["constraints"] == 1
    assert report.writer == "fork" and report.total["numbers"] < 5, "line numbers are no numbers"
    assert "rare_function_name" not in str(report.lost), "the file was restored, and the name with it"


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_nothing_to_compact_is_said(tmp_path: Path) -> None:
    model = script(tmp_path, "say Hi.\n" + compaction_script("<summary>" + "long " * 200 + "</summary>"))

    async def work(session: Session) -> None:
        with pytest.raises(UserError, match="nothing to compact"):
            await session.compact()
        await turn(session, "hi")
        with pytest.raises(ReverieError, match="larger than what it replaces"):
            await session.compact()
        assert not boundaries(session)

    in_session(work, cwd=tmp_path, model=model)


def test_cancelled_while_compacting_nothing_has_changed(tmp_path: Path) -> None:
    files(tmp_path, 5, 9_000)
    model = script(
        tmp_path, 'call Read {"file_path": "f1.txt"}\n---\nsay ok\n---\nsay more\n\n[compaction]\nwait 20\nsay x\n'
    )

    async def work(session: Session) -> None:
        await turn(session, "read")
        before = [message.wire() for message in session.view.messages()]
        task = asyncio.create_task(session.compact())
        await asyncio.sleep(0.1)
        assert session.busy
        with pytest.raises(UserError, match="being compacted"):
            await turn(session, "hello?")
        assert session.cancel()
        await asyncio.wait([task])
        assert task.cancelled() and not session.busy
        assert [message.wire() for message in session.view.messages()] == before
        assert ended(await turn(session, "go on")).reason == "answered"

    in_session(work, cwd=tmp_path, model=model)
