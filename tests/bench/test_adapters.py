"""The scripted agent of `reverie lab adapters`: what its mind sees, needs and loses, and the command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from click.testing import CliRunner

from bench.adapters import task
from bench.adapters.mind import Mind
from bench.adapters.programs.program import REVERIE, WITHOUT
from bench.adapters.run import NARROW, SDKS, Case, Outcome, cases, report, run
from reverie.cli.lab import command
from reverie.errors import UserError
from tests.bench.contract import check_keys

Messages = list[dict[str, Any]]
TOOLS = [{"name": "mcp__office__read_file"}]


@dataclass
class Talk:
    """An agent in a few lines. `edit` changes the messages of each request, as a context policy would."""

    edit: Callable[[Messages], Messages] = lambda messages: messages
    mind: Mind = field(default_factory=Mind)
    messages: Messages = field(default_factory=list)

    def say(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        while True:
            body = {"messages": self.edit(self.messages), "tools": TOOLS}
            reply = asyncio.run(self.mind.reply(body))
            self.messages.append({"role": "assistant", "content": reply.content})
            calls = [block for block in reply.content if block["type"] == "tool_use"]
            if not calls:
                return reply.content[-1]["text"]
            results = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": read(**call["input"])} for call in calls
            ]
            self.messages.append({"role": "user", "content": results})

    def all(self) -> str:
        return [self.say(text) for text in task.messages()][-1]

    @property
    def calls(self) -> list[str]:
        blocks = [block for message in self.messages for block in message["content"] if isinstance(block, dict)]
        return [block["id"] for block in blocks if block["type"] == "tool_use"]


def read(path: str, find: str = "") -> str:
    text = task.files()[path]
    return "\n".join(line for line in text.splitlines() if find in line)


def clear_old(messages: Messages) -> Messages:
    """All results but the last three are cleared."""
    results = [at for at, message in enumerate(messages) if isinstance(message["content"], list) and at % 2 == 0]
    old = set(results[:-3])
    return [
        message
        if at not in old
        else {**message, "content": [{**block, "content": "[cleared]"} for block in message["content"]]}
        for at, message in enumerate(messages)
    ]


def test_the_task_has_the_sizes_that_it_says() -> None:
    sizes = [len(task.files()[task.file_of(step)]) for step in range(1, task.STEPS + 1)]
    assert sizes.count(task.LOG_BYTES) == 3 and len(task.READ_AGAIN) == 10
    assert all(2_000 <= size <= 8_000 for size in sizes if size != task.LOG_BYTES)
    assert all(task.code_of(name) in text for name, text in task.files().items())


def test_a_mind_that_sees_everything_reads_nothing_twice() -> None:
    talk = Talk()
    assert task.check(talk.all()).is_right
    assert (len(talk.mind.steps), talk.mind.extra_reads, talk.mind.repeated) == (task.STEPS, 0, 0)
    assert len(talk.calls) == len(set(talk.calls)) == task.STEPS


def test_what_was_cleared_is_read_again() -> None:
    talk = Talk(clear_old)
    assert task.check(talk.all()).is_right
    assert len(talk.mind.steps) == task.STEPS and talk.mind.extra_reads >= 8


def test_what_cannot_be_read_again_is_missing_in_the_report() -> None:
    talk = Talk(lambda messages: messages[-40:] if len(messages) > 40 else messages)
    found = task.check(talk.all())
    assert not found.closing and not found.is_right


def test_results_that_never_come_into_view_do_not_make_it_go_in_circles() -> None:
    def hide(messages: Messages) -> Messages:
        hidden = {"type": "text", "text": "[too long]"}
        return [
            m if isinstance(m["content"], str) or m["role"] == "assistant" else {**m, "content": [hidden]}
            for m in messages
        ]

    talk = Talk(hide)
    assert task.check(talk.all()).codes == 0
    assert len(talk.mind.steps) == task.STEPS


def test_a_summary_keeps_what_was_in_view_and_no_more() -> None:
    talk = Talk()
    talk.say(task.messages()[0])
    asked = {"role": "user", "content": "Write a summary of the conversation."}
    whole = asyncio.run(talk.mind.reply({"messages": [*talk.messages, asked]})).content[0]["text"]
    assert task.STATEMENTS[task.FACT_WORD] in whole and "Step 30 of 120" in whole
    end = asyncio.run(talk.mind.reply({"messages": [*talk.messages[-9:], asked]})).content[0]["text"]
    assert task.FACT not in end and "Step 30 of 120" in end
    talk.messages = [{"role": "user", "content": f"Earlier: {whole}"}, talk.messages[-1]]
    assert "60 are done" in talk.say(task.messages()[1])


def test_a_fact_is_used_only_if_the_request_has_it() -> None:
    def answer(*messages: str, system: str = "") -> str:
        body = {"system": system, "messages": [{"role": "user", "content": text} for text in messages]}
        return asyncio.run(Mind().reply(body)).content[0]["text"]

    assert answer(task.QUESTION) == task.UNKNOWN
    assert task.FACT in answer(f"A memory: {task.FACT}.", task.QUESTION)
    assert task.FACT in answer(task.QUESTION, system=f"Memories: {task.FACT}.")


def test_what_must_hold_with_reverie_is_checked() -> None:
    sdk = SDKS[0]
    base = Outcome(Case(sdk, WITHOUT, 1_000_000), bill=2.0)
    good = Outcome(
        Case(sdk, REVERIE, NARROW), bill=1.0, largest=60_000, report_right=True, fact_used=True, continued=True
    )
    found = report([base, good])
    check_keys("adapters", found.figures)
    assert found.holds and found.figures["wrong"] == [] and found.figures["runs"][1]["share"] == 0.5
    bad = Outcome(Case(sdk, REVERIE, NARROW), bill=1.9, largest=70_000, report="4/5")
    found = report([base, bad])
    assert not found.holds and len(found.figures["wrong"]) == 5 and "0.95" in "\n".join(found.lines())
    left_out = Outcome(Case(sdk, REVERIE, NARROW), skipped="no such package")
    found = report([base, left_out])
    assert found.figures["wrong"] == [] and "no such package" in "\n".join(found.lines())


def test_an_unknown_sdk_or_run_is_named() -> None:
    with pytest.raises(UserError, match="'nothing' is not one of the SDKs: anthropic, langchain"):
        cases(("nothing",))
    with pytest.raises(UserError, match="these SDKs run with: without, reverie"):
        cases(("anthropic",), ("both",))


def test_an_sdk_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.adapters.run.SDKS", (replace(SDKS[0], packages=("anthropic", "no_such_sdk")),))
    done = CliRunner().invoke(command, ["adapters", "--json"])
    reasons = {row["skipped"] for row in json.loads(done.stdout)["runs"]}
    assert done.exit_code == 0 and reasons == {"no_such_sdk is not installed: pip install 'reverie[anthropic]'"}


@pytest.mark.integration
@pytest.mark.parametrize("case", cases((), (WITHOUT,)), ids=lambda case: case.sdk.name)
def test_the_agent_finishes_in_every_sdk(case: Case) -> None:
    done = run(case)
    if done.skipped:
        pytest.skip(done.skipped)
    print(json.dumps(done.figures()))
    assert done.failed == "" and done.report_right and done.continued and not done.fact_used
    assert (done.steps, done.refused, done.breaks) == (task.STEPS, 0, {})
