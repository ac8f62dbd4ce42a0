"""run_calls: one result a call whatever happens, reads side by side, changes alone and in order, denials said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import settings
from hypothesis import strategies as st

from reverie.errors import StorageError
from reverie.permissions.policy import read_only
from reverie.permissions.rules import Allow, Ask, Decision, Deny, ToolCall
from reverie.tools.base import Caller, ReadCache, Tool, ToolContext, ToolOutput
from reverie.tools.registry import BUILT_IN_ORDER, list_schemas, make_builtin_tools, sort_tools
from reverie.tools.run import MAX_PARALLEL, run_calls
from reverie.tools.validate import explain_invalid
from reverie.types import JsonObject, Purpose, TextBlock, ToolUseBlock
from tests.counts import count
from tests.tools.calls import TOOLS, allow_everything, make_context, text
from tests.waiting import until


@dataclass
class Probe:
    """A tool of a test: notes when it starts and ends, and does what the input says."""

    name: str = "Probe"
    log: list[str] = field(default_factory=list[str])
    most: int = 0
    now: int = 0

    @property
    def schema(self) -> JsonObject:
        return {"name": self.name, "description": "a probe", "input_schema": {"type": "object"}}

    def is_read_only(self, given: JsonObject) -> bool:
        return bool(given.get("reads", True))

    async def run(self, given: JsonObject, context: ToolContext) -> ToolOutput:
        label = str(given.get("label", ""))
        self.log.append(f"start {label}")
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(given.get("seconds", 0))
            match given.get("then"):
                case "raise":
                    raise KeyError("nothing here")
                case "refuse":
                    raise StorageError("The disk is full.")
                case "cancel":
                    raise asyncio.CancelledError
                case "surrogate":
                    return ToolOutput((TextBlock("a\ud800"),))
                case _:
                    return ToolOutput(label)
        finally:
            self.now -= 1
            self.log.append(f"end {label}")


def probe_calls(*inputs: JsonObject) -> list[ToolUseBlock]:
    return [ToolUseBlock(f"id{n}", "Probe", {"label": str(n), **given}) for n, given in enumerate(inputs)]


def run(
    calls: list[ToolUseBlock], context: ToolContext, tools: dict[str, Tool] | None = None, **more: Any
) -> list[tuple[ToolUseBlock, ToolOutput]]:
    async def collect() -> list[tuple[ToolUseBlock, ToolOutput]]:
        return [pair async for pair in run_calls(calls, tools or TOOLS, context, **more)]

    return asyncio.run(collect())


def test_reads_overlap(context: ToolContext) -> None:
    probe = Probe()
    results = run(probe_calls(*[{"seconds": 0.05}] * 5), context, {"Probe": probe})
    assert probe.most == 5 and len(results) == 5


def test_real_commands_that_only_read_overlap(context: ToolContext) -> None:
    for number in range(4):
        (context.cwd / f"{number}.txt").write_text(f"content {number}\n")
    calls = [ToolUseBlock(str(n), "Bash", {"command": f"cat {n}.txt"}) for n in range(4)]
    events: list[str] = []
    results = run(
        calls,
        context,
        on_start=lambda call: events.append(f"start {call.id}"),
        on_finish=lambda call, output, seconds: events.append(f"end {call.id}"),
    )
    assert {(call.id, text(output)) for call, output in results} == {(str(n), f"content {n}") for n in range(4)}
    assert events[:4] == [f"start {n}" for n in range(4)]


def test_reads_are_bounded(context: ToolContext) -> None:
    probe = Probe()
    run(probe_calls(*[{"seconds": 0.02}] * 35), context, {"Probe": probe})
    assert probe.most == MAX_PARALLEL


def test_changes_run_alone_and_in_order(context: ToolContext) -> None:
    probe = Probe()
    reads, changes = {"seconds": 0.02}, {"seconds": 0.02, "reads": False}
    run(probe_calls(reads, reads, changes, changes, reads), context, {"Probe": probe})
    assert probe.log[:2] == ["start 0", "start 1"] and set(probe.log[2:4]) == {"end 0", "end 1"}
    assert probe.log[4:] == ["start 2", "end 2", "start 3", "end 3", "start 4", "end 4"]


def test_a_change_is_seen_by_the_next_call(context: ToolContext) -> None:
    calls = [
        ToolUseBlock("1", "Write", {"file_path": "f", "content": "one"}),
        ToolUseBlock("2", "Edit", {"file_path": "f", "old_string": "one", "new_string": "two"}),
        ToolUseBlock("3", "Read", {"file_path": "f"}),
        ToolUseBlock("4", "Bash", {"command": "cat f && rm f"}),
        ToolUseBlock("5", "Glob", {"pattern": "f"}),
    ]
    outputs = [text(output) for _, output in run(calls, context)]
    assert outputs[2] == "     1\ttwo" and outputs[3] == "two" and outputs[4].startswith("No files")


def test_each_result_comes_as_it_is_ready(context: ToolContext) -> None:
    probe = Probe()
    results = run(probe_calls({"seconds": 0.2}, {"seconds": 0.1}, {}), context, {"Probe": probe})
    assert [call.id for call, _ in results] == ["id2", "id1", "id0"]


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("Nope", {}, "There is no tool named Nope: there are Read, Write, Edit, Grep, Glob, Bash, Agent"),
        ("Read", {"_unparsed": '{"file_pa'}, "was not valid JSON"),
        ("Read", "text", "must be a JSON object"),
        ("Read", None, "must be a JSON object"),
        ("Read", {}, "file_path is missing."),
        ("Read", {"file_path": 3}, "file_path must be text, not a whole number."),
        ("Read", {"path": "a"}, "path is not a parameter: did you mean file_path?"),
        ("Read", {"file_path": "a", "limit": 0}, "limit must be at least 1, not 0."),
        ("Read", {"file_path": "a", "limit": True}, "limit must be a whole number, not true or false."),
        ("Read", {"file_path": "a", "limit": 1.5}, "limit must be a whole number, not a number."),
        ("Bash", {"command": "ls", "timeout": 700_000}, "timeout must be at most 600,000, not 700,000."),
        (
            "Bash",
            {"command": "ls", "run_in_background": True},
            "run_in_background is not a parameter: it takes command",
        ),
        (
            "Grep",
            {"pattern": "x", "output_mode": "all"},
            "output_mode must be one of content, files_with_matches, count",
        ),
        ("Edit", {"file_path": "a", "old_string": None, "new_string": ""}, "old_string must be text, not null."),
    ],
)
def test_what_does_not_fit_is_a_sentence(context: ToolContext, name: str, given: Any, sentence: str) -> None:
    ((call, output),) = run([ToolUseBlock("id", name, given)], context)
    assert call.id == "id" and output.is_error and sentence in text(output)


def test_a_whole_number_may_be_written_with_a_point(context: ToolContext) -> None:
    (context.cwd / "f").write_text("a\nb\nc\n")
    ((_, output),) = run([ToolUseBlock("id", "Read", {"file_path": "f", "offset": 2.0, "limit": 1.0})], context)
    assert text(output).startswith("     2\tb\n")


def test_a_failing_tool_is_contained(context: ToolContext) -> None:
    probe = Probe()
    calls = probe_calls({"then": "raise"}, {"then": "refuse"}, {"then": "cancel"}, {"then": "surrogate"}, {})
    results = {call.id: output for call, output in run(calls, context, {"Probe": probe})}
    assert text(results["id0"]) == "Probe failed: KeyError: 'nothing here'" and results["id0"].is_error
    assert text(results["id1"]) == "The disk is full."
    assert "was cancelled" in text(results["id2"]) and results["id2"].is_error
    assert results["id3"].content == (TextBlock("a\ufffd"),)
    assert text(results["id4"]) == "4"


def answering(decide: Callable[[ToolCall], Decision]) -> Any:
    async def permission(call: ToolCall) -> Decision:
        return decide(call)

    return permission


def test_every_call_is_decided(tmp_path: Path) -> None:
    asked: list[ToolCall] = []

    def decide(call: ToolCall) -> Decision:
        asked.append(call)
        return {"1": Allow(), "2": Deny("Not today."), "3": Ask("May I?")}[call.id]

    context = make_context(tmp_path, permission=answering(decide))
    context.caller = Caller(Purpose.EXTRACTION, "agent-7")
    calls = [ToolUseBlock(str(n), "Write", {"file_path": f"f{n}", "content": "x"}) for n in (1, 2, 3)]
    results = [output for _, output in run(calls, context)]
    assert [output.is_error for output in results] == [False, True, True]
    assert text(results[1]) == "Not today." and "denied" in text(results[2])
    assert sorted(path.name for path in context.cwd.iterdir()) == ["f1"]
    assert (asked[0].tool, asked[0].read_only, asked[0].cwd) == ("Write", False, context.cwd)
    assert (asked[0].purpose, asked[0].agent_id) == (Purpose.EXTRACTION, "agent-7")


def test_a_permission_function_that_fails_denies(tmp_path: Path) -> None:
    def decide(call: ToolCall) -> Decision:
        raise ValueError("broken rule")

    context = make_context(tmp_path, permission=answering(decide))
    ((_, output),) = run([ToolUseBlock("1", "Write", {"file_path": "f", "content": "x"})], context)
    assert output.is_error and not (context.cwd / "f").exists()


def test_a_changed_input_is_what_runs_if_it_fits(tmp_path: Path) -> None:
    changed: dict[str, JsonObject] = {
        "1": {"file_path": "elsewhere", "content": "changed"},
        "2": {"file_path": "f2", "contents": "misspelt"},
        "3": {"file_path": 3, "content": "x"},
    }
    context = make_context(tmp_path, permission=answering(lambda call: Allow(changed[call.id])))
    calls = [ToolUseBlock(str(n), "Write", {"file_path": f"f{n}", "content": "x"}) for n in (1, 2, 3)]
    results = [text(output) for _, output in run(calls, context)]
    assert {path.name: path.read_text() for path in context.cwd.iterdir()} == {"elsewhere": "changed"}
    assert "hook" in results[1] and "did you mean content?" in results[1]
    assert "file_path must be text" in results[2]


def test_policies_stand_before_the_tools(tmp_path: Path) -> None:
    context = make_context(tmp_path, permission=answering(read_only))
    (context.cwd / "f").write_text("x")
    calls = [ToolUseBlock("1", "Read", {"file_path": "f"}), ToolUseBlock("2", "Bash", {"command": "rm f"})]
    assert [output.is_error for _, output in run(calls, context)] == [False, True]
    context.permission = answering(lambda _call: Deny("A side question calls no tools."))
    assert [text(output) for _, output in run(calls, context)] == ["A side question calls no tools."] * 2


def test_cancelling_waits_for_the_tools_to_clean_up(context: ToolContext) -> None:
    probe = Probe()

    async def cancelled() -> None:
        async def consume() -> None:
            async for _ in run_calls(probe_calls(*[{"seconds": 60}] * 3), {"Probe": probe}, context):
                pass

        task = asyncio.ensure_future(consume())
        await until(lambda: probe.now == 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert probe.now == 0 and len(asyncio.all_tasks()) == 1

    asyncio.run(cancelled())
    assert probe.log.count("end 0") == 1


def test_leaving_early_stops_the_rest(context: ToolContext) -> None:
    probe = Probe()

    async def leave() -> None:
        calls = probe_calls({}, {"seconds": 60}, {"reads": False})
        async with aclosing(run_calls(calls, {"Probe": probe}, context)) as results:
            async for call, _ in results:
                assert call.id == "id0"
                break
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(leave())
    assert probe.now == 0 and "start 2" not in probe.log


def test_times_are_told(context: ToolContext) -> None:
    told: list[tuple[str, float]] = []
    run(
        probe_calls({"seconds": 0.1}),
        context,
        {"Probe": Probe()},
        on_finish=lambda call, output, seconds: told.append((call.id, seconds)),
    )
    assert told[0][0] == "id0" and 0.09 < told[0][1] < 1


@settings(max_examples=count(20, 600), deadline=None)
@hypothesis_given(
    st.lists(
        st.fixed_dictionaries(
            {"reads": st.booleans(), "then": st.sampled_from(["", "raise", "refuse", "cancel", "surrogate"])}
        ),
        max_size=12,
    )
)
def test_exactly_one_result_a_call(inputs: list[JsonObject]) -> None:
    calls = probe_calls(*inputs)
    context = ToolContext(Path("/"), Caller(), allow_everything, ReadCache(), Path("/nonexistent"))
    results = run(calls, context, {"Probe": Probe()})
    assert sorted(call.id for call, _ in results) == sorted(call.id for call in calls)


# -- the registry and the schemas


def test_the_order_is_fixed_and_the_bytes_are_the_same() -> None:
    names = [tool.name for tool in make_builtin_tools()]
    assert names == list(BUILT_IN_ORDER[: len(names)])
    first, second = (
        json.dumps(list_schemas(tools)) for tools in (make_builtin_tools(), reversed(make_builtin_tools()))
    )
    assert first == second
    others = [Probe("zeta"), Probe("alpha")]
    assert [tool.name for tool in sort_tools([*others, *make_builtin_tools()])] == [*names, "alpha", "zeta"]


def test_schemas_are_what_the_api_wants() -> None:
    for schema in list_schemas(make_builtin_tools()):
        assert set(schema) == {"name", "description", "input_schema"}
        assert 50 < len(schema["description"]) < 1_200
        shape = schema["input_schema"]
        assert shape["type"] == "object" and set(shape["required"]) <= set(shape["properties"])
        assert all(member.get("description") for member in shape["properties"].values())


def test_the_validator_reads_nested_schemas() -> None:
    schema = {
        "type": "object",
        "properties": {
            "edits": {
                "type": "array",
                "items": {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]},
            },
            "note": {"type": ["string", "null"]},
        },
    }
    assert explain_invalid({"edits": [{"at": 1}], "note": None, "more": 1}, schema) is None
    assert explain_invalid({"edits": [{"at": 1}, {}]}, schema) == "edits[1].at is missing."
    assert explain_invalid({"edits": [{"at": "x"}]}, schema) == "edits[0].at must be a whole number, not text."
    assert explain_invalid({"note": 3}, schema) == "note must be text or null, not a whole number."
