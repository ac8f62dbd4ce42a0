"""Hook commands as real processes: what they are told, what their answers do, and that none of them hurts."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.runtime.hooks import CONTEXT_CHARACTERS, NOTHING, HookEvent, HookOutcome, HookRule, Hooks
from reverie.types import JsonObject
from tests.counts import count
from tests.waiting import FOREVER_S, LIMIT_S, until, wait_until

E = HookEvent


@pytest.fixture(autouse=True)
def nothing_on_the_terminal(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The event loop reports what goes wrong in its callbacks on standard error, in the middle of a conversation."""
    yield
    assert [record.message for record in caplog.get_records("call") if record.name == "asyncio"] == []


def hooks(cwd: Path, event: HookEvent, *rules: HookRule | str) -> Hooks:
    made = [HookRule(rule) if isinstance(rule, str) else rule for rule in rules]
    return Hooks({event: made}, cwd, "s-1", cwd / "s-1.jsonl")


def fire(
    cwd: Path, event: HookEvent, *rules: HookRule | str, match_on: str | None = None, payload: JsonObject | None = None
) -> HookOutcome:
    return asyncio.run(hooks(cwd, event, *rules).fire(event, payload or {}, match_on=match_on))


def says(answer: object) -> str:
    """A command that prints an answer as JSON."""
    return f"printf %s {shlex.quote(json.dumps(answer))}"


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def gone(pid: int) -> bool:
    def is_gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        stat = Path(f"/proc/{pid}/stat")  # dead; whoever adopted it has not collected it yet
        return stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"

    return wait_until(is_gone)


def test_a_hook_is_told_what_happens_where(tmp_path: Path) -> None:
    payload = {
        "tool_name": "Bash",
        "tool_input": {"command": "ls ä \ud800"},
        "tool_response": {"stdout": "x" * 300_000},
    }
    command = "cat > told.json; echo $REVERIE_PROJECT_DIR $CLAUDE_PROJECT_DIR $PWD > env"
    outcome = fire(tmp_path, E.POST_TOOL_USE, command, match_on="Bash", payload=payload)
    told = json.loads((tmp_path / "told.json").read_text())
    assert told == {
        "session_id": "s-1",
        "transcript_path": str(tmp_path / "s-1.jsonl"),
        "cwd": str(tmp_path),
        "hook_event_name": "PostToolUse",
        **payload,
    }
    assert set((tmp_path / "env").read_text().split()) == {str(tmp_path)}
    assert outcome == NOTHING


@pytest.mark.parametrize(
    ("matcher", "name", "runs"),
    [
        ("*", "Edit", True),
        ("", "Edit", True),
        ("Edit", "Edit", True),
        ("Edit", "MultiEdit", False),
        ("Edit", "EditX", False),
        ("Edit|Write", "Write", True),
        ("Edit|Write", "WriteAll", False),
        ("mcp__.*", "mcp__memory__add", True),
        ("Notebook.*", "Read", False),
        ("startup", None, True),
    ],
)
def test_matchers_match_the_whole_name(tmp_path: Path, matcher: str, name: str | None, runs: bool) -> None:
    rule = HookRule("echo ran >&2; exit 2", matcher)
    assert fire(tmp_path, E.PRE_TOOL_USE, rule, match_on=name).blocked is runs


def test_only_hooks_of_this_event_run_and_the_same_command_once(tmp_path: Path) -> None:
    rules = {E.STOP: [HookRule("echo x >> ran"), HookRule("echo x >> ran")], E.SESSION_END: [HookRule("echo y >> ran")]}
    both = Hooks(rules, tmp_path, "s", tmp_path / "t")
    asyncio.run(both.fire(E.STOP, {}))
    assert (tmp_path / "ran").read_text() == "x\n"
    assert both.listens_to(E.STOP) and not both.listens_to(E.PRE_COMPACT)


def test_a_project_folder_apart_from_the_working_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    made = Hooks(
        {E.STOP: [HookRule("echo $REVERIE_PROJECT_DIR > where")]}, tmp_path / "sub", "s", tmp_path, project_dir=tmp_path
    )
    asyncio.run(made.fire(E.STOP, {}))
    assert (tmp_path / "sub" / "where").read_text().strip() == str(tmp_path)


@pytest.mark.parametrize("event", list(HookEvent))
def test_plain_text_is_context_only_where_it_is_asked_for(tmp_path: Path, event: HookEvent) -> None:
    outcome = fire(tmp_path, event, "echo '  use tabs '")
    wanted = event in (
        *(E.SESSION_START, E.USER_PROMPT_SUBMIT, E.USER_PROMPT_EXPANSION, E.SUBAGENT_START, E.PRE_COMPACT),
    )
    assert outcome == HookOutcome(context=("use tabs",) if wanted else ())


@pytest.mark.parametrize("event", list(HookEvent))
def test_exit_code_2_refuses_with_stderr_as_the_reason(tmp_path: Path, event: HookEvent) -> None:
    outcome = fire(tmp_path, event, "echo ignored; echo 'not on my watch' >&2; exit 2")
    if event in (E.SESSION_START, E.INSTRUCTIONS_LOADED, E.POST_COMPACT, E.SUBAGENT_START, E.SESSION_END):
        assert not outcome.blocked and "not on my watch" in outcome.notices[0].text
        return
    assert outcome.blocked and outcome.reason == "not on my watch" and outcome.context == ()
    assert outcome.permission == ("deny" if event is E.PRE_TOOL_USE else None)


def test_a_refusal_without_words_names_the_hook(tmp_path: Path) -> None:
    assert fire(tmp_path, E.STOP, "exit 2").reason == "Hook `exit 2` refused without saying why."


@pytest.mark.parametrize("command", ["echo oops >&2; exit 1", "no-such-command-anywhere", "kill -9 $$", "exit 255"])
def test_a_failing_hook_is_a_warning_and_nothing_more(tmp_path: Path, command: str) -> None:
    outcome = fire(tmp_path, E.PRE_TOOL_USE, command)
    assert [notice.level for notice in outcome.notices] == ["warning"]
    assert command[:10] in outcome.notices[0].text and outcome.notices[0].source == "hook"
    assert outcome == HookOutcome(notices=outcome.notices)


def test_a_working_folder_that_is_gone_is_a_warning(tmp_path: Path) -> None:
    outcome = fire(tmp_path / "gone", E.STOP, "true")
    assert "could not be started" in outcome.notices[0].text


@pytest.mark.parametrize(
    ("event", "answer", "expected"),
    [
        (E.STOP, {"continue": False, "stopReason": "enough"}, HookOutcome(stop=True, stop_reason="enough")),
        (E.STOP, {"continue": True}, NOTHING),
        (E.STOP, {"decision": "block", "reason": "tests fail"}, HookOutcome(blocked=True, reason="tests fail")),
        (E.USER_PROMPT_SUBMIT, {"decision": "block", "reason": "no"}, HookOutcome(blocked=True, reason="no")),
        (E.POST_TOOL_USE, {"decision": "approve", "reason": "fine"}, NOTHING),
        (E.PRE_TOOL_USE, {"decision": "approve", "reason": "ok"}, HookOutcome(permission="allow", reason="ok")),
        (
            E.PRE_TOOL_USE,
            {"decision": "block", "reason": "no"},
            HookOutcome(blocked=True, permission="deny", reason="no"),
        ),
        (
            E.PRE_TOOL_USE,
            {"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}},
            HookOutcome(permission="ask", reason="sure?"),
        ),
        (
            E.PRE_TOOL_USE,
            {
                "decision": "block",
                "reason": "no",
                "hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {}},
            },
            HookOutcome(blocked=True, permission="deny", reason="no"),
        ),
        (
            E.PRE_TOOL_USE,
            {
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "allow",
                    "updatedInput": {"command": "ls", "n": [1, {"ü": "\ud83d"}]},
                    "additionalContext": "listed only",
                }
            },
            HookOutcome(
                permission="allow",
                updated_input={"command": "ls", "n": [1, {"ü": "?"}]},
                context=("listed only",),
            ),
        ),
        (
            E.SESSION_START,
            {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "branch main"}},
            HookOutcome(context=("branch main",)),
        ),
        (E.POST_TOOL_USE, {"hookSpecificOutput": {"updatedInput": {"a": 1}, "permissionDecision": "deny"}}, NOTHING),
        (E.SESSION_START, {"suppressOutput": True, "unknown": {"x": 1}}, NOTHING),
    ],
)
def test_json_answers(tmp_path: Path, event: HookEvent, answer: JsonObject, expected: HookOutcome) -> None:
    assert fire(tmp_path, event, says(answer)) == expected


def test_a_message_for_the_person_is_a_notice(tmp_path: Path) -> None:
    outcome = fire(tmp_path, E.STOP, says({"systemMessage": "formatted 3 files\x1b[2J"}))
    assert [(notice.text, notice.level) for notice in outcome.notices] == [("formatted 3 files[2J", "info")]


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "maybe"},
        {"decision": 5},
        {"continue": "no"},
        {"hookSpecificOutput": []},
        {"hookSpecificOutput": {"hookEventName": "Stop", "permissionDecision": "allow"}},
        {"hookSpecificOutput": {"permissionDecision": "yes"}},
        {"hookSpecificOutput": {"updatedInput": "ls"}},
    ],
)
def test_answers_of_the_wrong_shape_are_ignored_with_a_notice(tmp_path: Path, answer: JsonObject) -> None:
    outcome = fire(tmp_path, E.PRE_TOOL_USE, says(answer))
    assert len(outcome.notices) == 1 and "ignored" in outcome.notices[0].text
    assert outcome == HookOutcome(notices=outcome.notices)


def test_the_strictest_permission_wins_and_order_is_as_configured(tmp_path: Path) -> None:
    def decides(permission: str, reason: str, delay: float) -> str:
        said = {"permissionDecision": permission, "permissionDecisionReason": reason, "additionalContext": reason}
        return f"sleep {delay}; {says({'hookSpecificOutput': said})}"

    slow, quick = decides("allow", "first", 0.2), decides("ask", "second", 0)
    outcome = fire(tmp_path, E.PRE_TOOL_USE, slow, quick, decides("ask", "third", 0.1))
    assert (outcome.permission, outcome.reason, outcome.blocked) == ("ask", "second\nthird", False)
    assert outcome.context == ("first", "second", "third")
    denied = fire(tmp_path, E.PRE_TOOL_USE, quick, "sleep 0.1; echo one >&2; exit 2", "echo two >&2; exit 2")
    assert (denied.permission, denied.reason, denied.blocked) == ("deny", "one\ntwo", True)


def test_of_several_changed_inputs_the_last_counts_and_a_refusal_drops_them(tmp_path: Path) -> None:
    first, second = (says({"hookSpecificOutput": {"updatedInput": {"n": n}}}) for n in (1, 2))
    outcome = fire(tmp_path, E.PRE_TOOL_USE, first, second)
    assert outcome.updated_input == {"n": 2} and "last one counts" in outcome.notices[0].text
    assert fire(tmp_path, E.PRE_TOOL_USE, first, "exit 2").updated_input is None


def test_all_run_at_once(tmp_path: Path) -> None:
    # Each waits for all the others to have begun: run one after the other, they would never end.
    wait = "until [ -e 1 -a -e 2 -a -e 3 -a -e 4 ]; do sleep 0.02; done"
    rules = [HookRule(f"touch {n}; {wait}", timeout_s=LIMIT_S) for n in (1, 2, 3, 4)]
    assert fire(tmp_path, E.STOP, *rules) == NOTHING


def test_the_time_limit_kills_children_and_grandchildren(tmp_path: Path) -> None:
    command = (
        f"sh -c 'sleep {FOREVER_S} & echo $! >> pids; sleep {FOREVER_S}' & echo $! >> pids; "
        f"trap '' TERM INT HUP; sleep {FOREVER_S}; sleep {FOREVER_S}"
    )
    outcome = fire(tmp_path, E.PRE_TOOL_USE, HookRule(command, timeout_s=2))
    assert "ran longer than 2 s and was ended" in outcome.notices[0].text and not outcome.blocked
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2 and all(gone(pid) for pid in pids)


@pytest.mark.soak
def test_cancelling_the_turn_at_any_moment_kills_the_hook_and_its_children(tmp_path: Path) -> None:
    command = f"echo $$ >> pids; sleep {FOREVER_S} & echo $! >> pids; sleep {FOREVER_S}"

    def begun() -> int:
        return (tmp_path / "pids").read_text().count("\n") if (tmp_path / "pids").exists() else 0

    async def cancel(delay: float, *, when_begun: bool = False) -> None:
        before = begun()
        firing = asyncio.create_task(hooks(tmp_path, E.STOP, command).fire(E.STOP, {"text": "x" * 100_000}))
        await asyncio.sleep(delay)
        await until(lambda: not when_begun or begun() >= before + 2)
        firing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await firing

    rounds = count(20, 500)
    for number in range(rounds):
        asyncio.run(cancel(0.03 * number / rounds))
    asyncio.run(cancel(0, when_begun=True))
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) >= 2 and all(gone(pid) for pid in pids)


def test_a_process_left_behind_does_not_hold_the_session(tmp_path: Path) -> None:
    outcome = fire(tmp_path, E.SESSION_START, f"sleep {FOREVER_S} & echo $! > pid; echo context")
    assert outcome.context == ("context",)
    left = int((tmp_path / "pid").read_text())
    os.kill(left, 9)  # it lives: a hook may start a server


def test_a_hook_that_never_reads_what_it_is_told(tmp_path: Path) -> None:
    outcome = fire(tmp_path, E.USER_PROMPT_SUBMIT, "exec <&-; echo fine", payload={"prompt": "x" * 5_000_000})
    assert outcome == HookOutcome(context=("fine",))


def test_invalid_utf8_and_terminal_codes_are_made_harmless(tmp_path: Path) -> None:
    outcome = fire(tmp_path, E.SESSION_START, r"printf 'caf\351 \377\033[31mred\000\a'")
    assert outcome.context == ("caf\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}[31mred",)
    refused = fire(tmp_path, E.PRE_TOOL_USE, r"printf '\377no\033]0;x\a' >&2; exit 2")
    assert refused.reason == "\N{REPLACEMENT CHARACTER}no]0;x"


def test_printing_100_mb_costs_little_memory_and_keeps_the_beginning(tmp_path: Path) -> None:
    command = "echo first; head -c 100000000 /dev/zero | tr '\\0' a; head -c 9000000 /dev/zero >&2"
    tracemalloc.start()
    outcome = fire(tmp_path, E.SESSION_START, command)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    (text,) = outcome.context
    assert text.startswith("first\naaa") and text.endswith("…") and len(text) == CONTEXT_CHARACTERS
    assert len(outcome.notices) == 2 and all(notice.level == "warning" for notice in outcome.notices)


def test_nothing_stays_open(tmp_path: Path) -> None:
    async def many() -> tuple[int, int]:
        slow = HookRule(f"sleep {FOREVER_S}", timeout_s=0.05)
        made = hooks(tmp_path, E.STOP, "cat >/dev/null", "exec <&-", "exit 3", slow)
        await made.fire(E.STOP, {"text": "x" * 200_000})
        before = len(os.listdir("/dev/fd"))  # noqa: PTH208 the shortest way to count
        for _ in range(10):
            await made.fire(E.STOP, {"text": "x" * 200_000})
        await asyncio.sleep(0.05)
        return before, len(os.listdir("/dev/fd"))  # noqa: PTH208

    before, after = asyncio.run(many())
    assert after <= before


def test_printing_for_ever_ends_at_the_time_limit(tmp_path: Path) -> None:
    outcome = fire(tmp_path, E.SESSION_START, HookRule("yes", timeout_s=0.5))
    assert outcome.context == () and "ran longer" in outcome.notices[0].text


def test_json_nested_to_make_us_fall_over_is_plain_text(tmp_path: Path) -> None:
    command = python("print('{\"continue\":' + '[' * 200_000)")
    assert fire(tmp_path, E.PRE_TOOL_USE, command) == NOTHING
    assert fire(tmp_path, E.PRE_TOOL_USE, "echo '{\"continue\": ' $(seq 5000 | tr -d '\\n') }") == NOTHING


@pytest.mark.parametrize(
    ("arguments", "says_so"),
    [
        (("", "*"), "no command"),
        (("  ", "*"), "no command"),
        (("a\0b", "*"), "character"),
        (("true", "("), "regular expression"),
        (("true", "*", 0), "time limit"),
        (("true", "*", float("nan")), "time limit"),
        (("true", "*", float("inf")), "time limit"),
    ],
)
def test_bad_rules_are_refused_in_one_sentence(arguments: tuple[str, str, float], says_so: str) -> None:
    with pytest.raises(UserError, match=says_so) as caught:
        HookRule(*arguments)
    assert "\n" not in str(caught.value)


HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["block", "approve", "allow", "deny", "Stop"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KEYS = ["continue", "stopReason", "decision", "reason", "systemMessage", "hookSpecificOutput"]
INNER = ["hookEventName", "permissionDecision", "permissionDecisionReason", "additionalContext", "updatedInput"]


@pytest.mark.soak
def test_no_answer_whatever_breaks_the_outcome(tmp_path_factory: pytest.TempPathFactory) -> None:
    cwd = tmp_path_factory.mktemp("fuzz")
    inner = st.dictionaries(st.sampled_from(INNER), HOSTILE)
    answers = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, HOSTILE | inner))

    async def all_of(event: HookEvent, commands: list[str]) -> None:
        for outcome in [await hooks(cwd, event, *commands).fire(event, {}, match_on="Bash")]:
            json.dumps([outcome.reason, outcome.context, outcome.updated_input, outcome.stop_reason]).encode()
            "".join([outcome.reason, outcome.stop_reason, *outcome.context]).encode()
            assert outcome.permission in (None, "allow", "ask", "deny")
            assert not (outcome.blocked and event in (E.SESSION_START, E.SESSION_END))
            assert not (outcome.blocked and outcome.permission == "allow")

    @given(event=st.sampled_from(list(HookEvent)), said=st.lists(answers, min_size=4, max_size=4))
    def check(event: HookEvent, said: list[JsonObject]) -> None:
        asyncio.run(all_of(event, [says(answer).replace("\0", "") for answer in said]))

    from hypothesis import HealthCheck, settings

    settings(max_examples=count(30, 1000), deadline=None, suppress_health_check=list(HealthCheck))(check)()


DOCS = Path(__file__).resolve().parents[2] / "docs" / "hooks.md"


def test_the_examples_in_the_docs_do_what_they_say(tmp_path: Path) -> None:
    """Every ```sh block headed by `# <Event> <tool or ->: <outcome>` is run as that hook."""
    blocks = re.findall(r"```sh\n# (\w+) (\S+): (.+?)\n(.*?)```", DOCS.read_text(), re.S)
    assert len(blocks) >= 4
    for event, name, promised, script in blocks:
        payload: JsonObject = {"tool_name": name, "tool_input": {"command": "rm -rf /", "file_path": "a.py"}}
        outcome = fire(tmp_path, HookEvent(event), script, payload={**payload, "prompt": "hello"})
        done = {
            "refused": outcome.blocked,
            "context": bool(outcome.context),
            "asks": outcome.permission == "ask",
            "input changed": outcome.updated_input is not None,
            "nothing": outcome == NOTHING,
        }
        assert done[promised], (event, promised, outcome)
