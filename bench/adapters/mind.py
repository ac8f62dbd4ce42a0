"""The scripted mind: it answers from the request alone, as a model would, on every wire of the simulator.

It knows the plan of the task and sees what a request shows: the last step, the codes of files, the words of the user.
What it needs and does not see it reads again; what it cannot read again is lost, and its report shows that.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Any, cast

from bench.adapters import task
from reverie.quick import dataclass
from reverie.simulator import Reply

READ_TOOL = "read_file"
TRIES = 3
"""How often it reads a file again for one need."""
MOST_REQUESTS = 4 * task.STEPS
"""After so many requests it gives up: it goes in circles."""
SUMMARY_CODES = 10
"""Codes of files that a summary names: those of the newest steps."""
_STEP = re.compile(rf"Step (\d+) of {task.STEPS}")
_ASKED = re.compile(rf"Do steps \d+ to (\d+) of {task.STEPS}")
_WANTS_SUMMARY = re.compile(r"summar|compact|extract the (highest|most)", re.IGNORECASE)


@dataclass(slots=True)
class Mind:
    """Answers the requests of one run. `on_step` is called when a step is asked for the first time.

    Its counts are for the report; an answer never depends on them.
    """

    on_step: Callable[[int], None] = lambda _step: None
    requests: int = 0
    extra_reads: int = 0
    """Files read again because they were not in view."""
    summaries: int = 0
    others: int = 0
    """Requests without the tool that are not for a summary."""
    repeated: int = 0
    """Steps that were done once more: the progress was lost."""
    steps: set[int] = field(default_factory=set[int])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        del purpose
        with self._lock:
            return self._reply(_Seen.of(body))

    def _reply(self, seen: _Seen) -> Reply:
        self.requests += 1
        if task.QUESTION in seen.last:
            found = task.FACT_WORD in seen.text
            return _say(f"As you told me, {task.FACT}." if found else task.UNKNOWN)
        if _WANTS_SUMMARY.search(seen.last) and not _ASKED.search(seen.last):
            self.summaries += 1
            return _say(summary(seen))
        if seen.tool is None:
            self.others += 1
            return _say("Noted.")
        if self.requests > MOST_REQUESTS:
            return _say("I go in circles, and stop.")
        return self._work(seen)

    def _work(self, seen: _Seen) -> Reply:
        asked = max(map(int, _ASKED.findall(seen.text)), default=0)
        if seen.step > asked:  # what the user asked for is no longer in view: it goes on as before
            asked = task.STEPS
        step = seen.step + 1
        if step <= asked:
            needed = task.NEEDED.get(step)
            if needed is not None and (again := self._fetch(seen, needed, f"step {step}")):
                return again
            quoted = f" {_quote(seen, needed)}." if needed is not None else ""
            if step not in self.steps:
                self.on_step(step)
            elif seen.step:
                self.repeated += 1
            self.steps.add(step)
            name = task.file_of(step)
            return _call(seen, f"Step {step} of {task.STEPS}: I read {name}.{quoted}", {"path": name})
        if asked < task.STEPS or task.REPORT_WORDS not in seen.text:
            return _say(f"Steps up to {asked} are done. Nothing in the files is out of order.")
        for needed in task.REPORTED:
            if again := self._fetch(seen, needed, "the report"):
                return again
        return _say(report(seen))

    def _fetch(self, seen: _Seen, step: int, purpose: str) -> Reply | None:
        """Reads the file of a step again if its code is not in view and it did not try too often."""
        name = task.file_of(step)
        said = f"I need {name} again for {purpose}."
        if task.code_of(name) in seen.text or seen.text.count(said) >= TRIES:
            return None
        self.extra_reads += 1
        given = {"path": name} | ({"find": "code of"} if step in task.LOGS else {})
        return _call(seen, said, given)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a request shows: all its text, the text after the last tool result, and the name of the tool."""

    text: str
    last: str
    tool: str | None
    messages: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> _Seen:
        messages = cast("list[Mapping[str, Any]]", body["messages"])
        texts, last = list[str](), list[str]()
        for message in messages:
            for kind, text in _texts(message.get("content")):
                texts.append(text)
                if kind == "tool_result" or message.get("role") == "assistant":
                    last.clear()
                elif message.get("role") == "user":
                    last.append(text)
        texts.extend(text for _, text in _texts(body.get("system")))
        names = [str(tool.get("name")) for tool in cast("list[Mapping[str, Any]]", body.get("tools") or [])]
        tool = next((name for name in names if name.endswith(READ_TOOL)), None)
        return cls("\n".join(texts), "\n".join(last), tool, len(messages))

    @property
    def step(self) -> int:
        """The last step that shows."""
        return max(map(int, _STEP.findall(self.text)), default=0)


def _texts(content: object) -> Iterator[tuple[str, str]]:
    """The texts of a message, each with the kind of its block."""
    if isinstance(content, str):
        yield "text", content
        return
    for block in cast("list[Mapping[str, Any]]", content or []):
        kind = str(block.get("type"))
        if kind == "tool_result":
            inner = "\n".join(text for _, text in _texts(block.get("content")))
            yield kind, inner
        elif isinstance(block.get("text"), str):
            yield kind, str(block["text"])
        elif isinstance(block.get("content"), str):
            yield kind, str(block["content"])


def summary(seen: _Seen) -> str:
    """A summary of what is in view: the last step, what the user wants, and the codes of the newest files."""
    kept = [statement for word, statement in task.STATEMENTS.items() if word in seen.text]
    asked = max((int(found) for found in _ASKED.findall(seen.text)), default=0)
    names = dict.fromkeys(task.file_of(step) for step in range(seen.step, 0, -1))
    codes = [f"{name}: {task.code_of(name)}" for name in names if task.code_of(name) in seen.text][:SUMMARY_CODES]
    lines = [f"The user said: {statement}" for statement in kept]
    lines += [f"Do steps 1 to {asked} of {task.STEPS} is what the user asked for."] if asked else []
    lines += [f"Step {seen.step} of {task.STEPS} was the last one."] if seen.step else []
    return "<summary>\n" + "\n".join([*lines, "Codes in the newest files:", *codes]) + "\n</summary>"


def report(seen: _Seen) -> str:
    """The last answer of the first conversation."""
    parts = [_quote(seen, step) for step in task.REPORTED]
    customer = task.CUSTOMER if task.CUSTOMER in seen.text else "unknown"
    closing = task.CLOSING_WORD if f'"{task.CLOSING_WORD}"' in seen.text else "the end"
    return f"Report: {'; '.join(parts)}; the customer is {customer}. {closing}"


def _quote(seen: _Seen, step: int) -> str:
    name = task.file_of(step)
    code = task.code_of(name)
    return f"{name} has the code {code if code in seen.text else 'unknown'}"


def _say(text: str) -> Reply:
    return Reply([{"type": "text", "text": text}], "end_turn")


def _call(seen: _Seen, text: str, given: dict[str, str]) -> Reply:
    """A call; its id is new in every conversation, because it names the place of the answer."""
    from hashlib import blake2b

    name = "toolu_01" + blake2b(f"{seen.messages}/{text}/{seen.text.count(text)}".encode(), digest_size=11).hexdigest()
    block = {"type": "tool_use", "id": name, "name": seen.tool, "input": given}
    return Reply([{"type": "text", "text": text}, block], "tool_use")
