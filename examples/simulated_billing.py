"""The worked examples of the vendors' documentation, asked of the simulator with the vendors' own SDKs.

Every number the documentation promises is asserted and printed. Nothing is paid, nothing leaves this machine.
Run it with: python examples/simulated_billing.py
"""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import anthropic
import openai

from reverie.simulator import Meter, Simulator
from reverie.simulator.http import running

MODEL = "claude-opus-5"


def text(tokens: int, name: str, ttl: str | None = None) -> dict[str, Any]:
    """A block of so many tokens: the simulator counts four bytes of text as one."""
    block: dict[str, Any] = {"type": "text", "text": f"{name} ".ljust(tokens * 4, ".")}
    return block if ttl is None else {**block, "cache_control": {"type": "ephemeral", "ttl": ttl}}


def marked(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "cache_control": {"type": "ephemeral"}}


class Example:
    """Asks, checks, prints."""

    def __init__(self, url: str, control_key: str) -> None:
        self._url = url
        self._control = {"x-sim-key": control_key}
        self._client = anthropic.Anthropic(base_url=url, api_key="simulated", max_retries=0)
        self.beta = self._client.beta.messages
        self.openai = openai.OpenAI(base_url=f"{url}/v1", api_key="simulated", max_retries=0)

    def title(self, words: str) -> None:
        print(f"\n{words}")

    def wait(self, seconds: float) -> None:
        """Moves the simulator's clock."""
        body = json.dumps({"advance_s": seconds}).encode()
        request = urllib.request.Request(f"{self._url}/_sim/clock", body, self._control)
        with urllib.request.urlopen(request) as answer:
            answer.read()

    def ask(self, what: str, blocks: list[dict[str, Any]], *, expect: tuple[int, int, int, int], **more: Any) -> Any:
        """`expect`: tokens read, written for 1h, written for 5m, and plain input."""
        request: dict[str, Any] = {"model": MODEL, "max_tokens": 50, **more}
        answer = self._client.messages.create(messages=[{"role": "user", "content": blocks}], **request)
        self.check(what, answer.usage, expect)
        return answer

    def check(self, what: str, usage: Any, expect: tuple[int, int, int, int]) -> None:
        split = usage.cache_creation
        got = (
            usage.cache_read_input_tokens,
            split.ephemeral_1h_input_tokens,
            split.ephemeral_5m_input_tokens,
            usage.input_tokens,
        )
        assert got == expect, f"{what}: expected {expect}, got {got}"
        assert usage.cache_creation_input_tokens == got[1] + got[2]
        print(f"  {what:58} read {got[0]:>7,}  1h {got[1]:>6,}  5m {got[2]:>7,}  input {got[3]:>5,}")

    def refused(self, what: str, message: str, blocks: list[dict[str, Any]], **more: Any) -> None:
        try:
            self._client.messages.create(
                model=MODEL, max_tokens=50, messages=[{"role": "user", "content": blocks}], **more
            )
        except anthropic.BadRequestError as error:
            said = error.body["error"]["message"]  # pyright: ignore
            assert message in said, said
            print(f"  {what:58} 400 {said[:70]}…")
            return
        raise AssertionError(f"{what}: was not refused")


def a_book(example: Example) -> None:
    example.title("A whole book in the system prompt: written once, then read")
    book = [text(188_086, "Pride and Prejudice", "5m")]
    example.ask("first question", [text(21, "Analyse")], system=book, expect=(0, 0, 188_086, 21))
    example.ask("second question", [text(21, "Analyse")], system=book, expect=(188_086, 0, 0, 21))
    example.ask("another question", [text(30, "Summarise")], system=book, expect=(188_086, 0, 0, 30))


def lookback(example: Example) -> None:
    example.title("The lookback: a marker sees 20 positions, its own included")
    blocks = [text(100, f"lookback {number}") for number in range(1, 36)]
    example.ask("turn 1: 10 blocks, marker on 10", [*blocks[:9], marked(blocks[9])], expect=(0, 0, 1_000, 0))
    example.ask("turn 2: 15 blocks, marker on 15", [*blocks[:14], marked(blocks[14])], expect=(1_000, 0, 500, 0))
    example.ask(
        "turn 3: 35 blocks, marker on 35: looks at 35…16", [*blocks[:34], marked(blocks[34])], expect=(0, 0, 3_500, 0)
    )
    other = [text(100, f"second try {number}") for number in range(1, 36)]
    example.ask("again from 15 blocks", [*other[:14], marked(other[14])], expect=(0, 0, 1_500, 0))
    both = [*other[:14], marked(other[14]), *other[15:34], marked(other[34])]
    example.ask("35 blocks, a second marker on 15", both, expect=(1_500, 0, 2_000, 0))


def a_changing_block(example: Example) -> None:
    example.title("A marker on what changes never reads; before it, it does")
    fixed = [text(400, "fixed 1"), text(400, "fixed 2")]
    for time in ("10:00", "10:01"):
        example.ask(f"marker on the time ({time})", [*fixed, marked(text(50, time))], expect=(0, 0, 850, 0))
    example.ask("marker before it", [fixed[0], marked(fixed[1]), text(50, "10:02")], expect=(0, 0, 800, 50))
    example.ask("marker before it", [fixed[0], marked(fixed[1]), text(50, "10:03")], expect=(800, 0, 0, 50))


def mixed_lifetimes(example: Example) -> None:
    example.title("Mixed lifetimes: A = best hit, B = last 1h marker after it, C = last marker")
    blocks = [text(1_000, "for an hour", "1h"), text(500, "for five minutes", "5m"), text(70, "fresh")]
    example.ask("nothing cached: write B at 2x, C-B at 1.25x", blocks, expect=(0, 1_000, 500, 70))
    example.ask("all cached: read C", blocks, expect=(1_500, 0, 0, 70))
    example.wait(301)
    example.ask("after 5 minutes: read B, write C-B", blocks, expect=(1_000, 0, 500, 70))
    example.wait(299)
    example.ask("a read refreshed both", blocks, expect=(1_500, 0, 0, 70))
    example.wait(3_601)
    example.ask("after an hour: all anew", blocks, expect=(0, 1_000, 500, 70))
    more = [blocks[0], text(200, "and for an hour", "1h"), *blocks[1:]]
    example.ask("A, then B and C behind it", more, expect=(1_000, 200, 500, 70))


def minimum(example: Example) -> None:
    example.title("Below a model's minimum nothing is cached, and nothing is said")
    for model, least in (
        ("claude-opus-5", 512),
        ("claude-opus-4-8", 1_024),
        ("claude-sonnet-5", 1_024),
        ("claude-opus-4-7", 2_048),
        ("claude-haiku-4-5", 4_096),
    ):
        below, enough = [text(least - 1, "small", "5m")], [text(least, "large", "5m")]
        example.ask(f"{model}: {least - 1:,} tokens", below, model=model, expect=(0, 0, 0, least - 1))
        example.ask(f"{model}: {least:,} tokens", enough, model=model, expect=(0, 0, least, 0))


def what_is_lost(example: Example) -> None:
    example.title("What a change costs: tools 600, system 300, messages 200 tokens, an entry after each")
    tools = [{"name": "A", "description": "a" * 1_737, "input_schema": {"type": "object"}}]
    tools[0] = marked(tools[0])
    base = {"tools": tools, "system": [text(300, "system", "5m")]}
    talk = [text(200, "talk", "5m")]
    example.ask("first", talk, **base, expect=(0, 0, 1_100, 0))
    example.ask("the same again", talk, **base, expect=(1_100, 0, 0, 0))
    renamed = [{**tools[0], "name": "B"}]
    example.ask("tool definition: all lost", talk, **{**base, "tools": renamed}, expect=(0, 0, 1_100, 0))
    example.ask("model: all lost", talk, **base, model="claude-fable-5", expect=(0, 0, 1_100, 0))
    search = {"type": "web_search_20250305", "name": "web_search"}  # 17 tokens of its own
    example.ask(
        "web search: system and messages lost", talk, **{**base, "tools": [*tools, search]}, expect=(600, 0, 517, 0)
    )
    example.ask("speed: system and messages lost", talk, **base, speed="fast", expect=(600, 0, 500, 0))
    other = [text(300, "other system", "5m")]
    example.ask("system: system and messages lost", talk, **{**base, "system": other}, expect=(600, 0, 500, 0))
    cited = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "d" * 40},
        "citations": {"enabled": True},
    }
    example.ask("citations: system and messages lost", [*talk, cited], **base, expect=(600, 0, 500, 10))
    choice = {"type": "any"}
    example.ask("tool_choice: messages lost", talk, **base, tool_choice=choice, expect=(900, 0, 200, 0))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    example.ask("an image: messages lost", [*talk, picture], **base, expect=(900, 0, 200, 1_600))
    effort = {"effort": "low"}
    example.ask("effort: messages lost", talk, **base, output_config=effort, expect=(900, 0, 200, 0))
    thinking = {"type": "adaptive"}
    example.ask("thinking: messages lost", talk, **base, thinking=thinking, expect=(900, 0, 200, 0))
    example.ask("and the first request still reads all of its own", talk, **base, expect=(1_100, 0, 0, 0))


def automatic(example: Example) -> None:
    example.title("One marker for the whole request: it moves along with the conversation")
    turns = [text(600, "turn 1"), text(200, "turn 2"), text(100, "turn 3")]
    everywhere = {"cache_control": {"type": "ephemeral"}}
    example.ask("turn 1", turns[:1], **everywhere, expect=(0, 0, 600, 0))
    example.ask("turn 2", turns[:2], **everywhere, expect=(600, 0, 200, 0))
    example.ask("turn 3", turns, **everywhere, expect=(800, 0, 100, 0))
    example.ask(
        "already marked with the same lifetime: nothing happens",
        [*turns[:2], marked(turns[2])],
        **everywhere,
        expect=(900, 0, 0, 0),
    )
    example.refused("marked with another lifetime", "differs", [text(600, "x", "1h")], **everywhere)


def prewarm(example: Example) -> None:
    example.title("max_tokens 0 fills the cache and says nothing")
    system = [text(2_000, "warm me", "5m")]
    warm = example.ask("pre-warm", [text(5, "hello")], system=system, max_tokens=0, expect=(0, 0, 2_000, 5))
    assert (warm.content, warm.stop_reason, warm.usage.output_tokens) == ([], "max_tokens", 0)
    example.ask("the first real question", [text(9, "now")], system=system, expect=(2_000, 0, 0, 9))


def refusals(example: Example) -> None:
    example.title("What is refused")
    five = [text(100, str(number), "5m") for number in range(5)]
    example.refused("five markers", "A maximum of 4 blocks with cache_control may be provided. Found 5.", five)
    wrong = [text(100, "short", "5m"), text(100, "long", "1h")]
    example.refused("1h after 5m", "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block", wrong)
    hello = [text(5, "hello")]
    twice = [TOOL, TOOL]
    example.refused("two tools of one name", "tools: Tool names must be unique.", hello, tools=twice)
    odd = [{**TOOL, "name": "read file"}]
    example.refused("a name with a space", "tools.0.custom.name: String should match pattern", hello, tools=odd)
    example.refused("a temperature above 1", "temperature: range: 0..1", hello, extra_body={"temperature": 1.1})
    thinking = {"type": "enabled", "budget_tokens": 2_000}
    example.refused("a budget of thinking above max_tokens", "`max_tokens` must be greater", hello, thinking=thinking)


TOOL = {"name": "read", "description": "reads", "input_schema": {"type": "object", "properties": {}}}


def forced_tools(example: Example) -> None:
    example.title("A forced tool is called, and nothing is said before it")
    schema = {"type": "object", "properties": {"port": {"type": "integer", "minimum": 1}}, "required": ["port"]}
    tools = [TOOL, {"name": "answer", "input_schema": schema}]
    choice = {"type": "tool", "name": "answer"}
    said = example.beta.create(model=MODEL, max_tokens=50, messages=[USER], tools=tools, tool_choice=choice)
    (call,) = said.content
    assert (call.name, call.input, said.stop_reason) == ("answer", {"port": 1}, "tool_use")
    print(f"  {'messages':58} {call.name} {call.input}")
    function = {"type": "function", "name": "answer", "parameters": schema}
    forced = {"type": "function", "name": "answer"}
    answer = example.openai.responses.create(model="gpt-5", input="hi", tools=[function], tool_choice=forced)
    assert json.loads(answer.output[0].arguments) == {"port": 1}
    print(f"  {'responses':58} {answer.output[0].name} {answer.output[0].arguments}")


USER = {"role": "user", "content": [text(700, "a question")]}


def reminders(example: Example) -> None:
    example.title("A system message for one turn is paid once and leaves the cache alone")
    betas = ["mid-conversation-system-clear-at-2026-08-21"]
    common: dict[str, Any] = {"model": MODEL, "max_tokens": 50, "cache_control": {"type": "ephemeral"}, "betas": betas}
    reminder = {"role": "system", "content": text(60, "Be short.")["text"], "clear_at": "next_user_message"}
    first = example.beta.create(messages=[USER, reminder], **common)
    example.check("700 tokens and a reminder of 60 behind the marker", first.usage, (0, 0, 700, 60))
    turns = [USER, reminder, {"role": "assistant", "content": "fine"}, {"role": "user", "content": [text(99, "more")]}]
    second = example.beta.create(messages=turns, **common)
    example.check("the next turn: it is still sent and no longer shown", second.usage, (700, 0, 100, 0))
    count = example.beta.count_tokens(model=MODEL, messages=turns, betas=betas).input_tokens
    assert count == 800
    print(f"  {'the count agrees':58} {count} tokens")


def context_edits(example: Example) -> None:
    example.title("Context editing: old results are cleared, and the cache is lost from there")
    turns: list[Any] = [USER]
    for number in range(6):
        call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text(500, f"result {number}")["text"]}
        turns += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    edit = {"type": "clear_tool_uses_20250919", "trigger": {"type": "tool_uses", "value": 5}, "keep": KEEP}
    common: dict[str, Any] = {"model": MODEL, "max_tokens": 50, "messages": turns, "tools": [TOOL]}
    common |= {"betas": ["context-management-2025-06-27"], "cache_control": {"type": "ephemeral"}}
    plain = example.beta.create(**common)
    cleared = example.beta.create(context_management={"edits": [edit]}, **common)
    (applied,) = cleared.context_management.applied_edits
    # Each of the four results of 500 tokens is replaced by a sentence of 20.
    assert (applied.cleared_tool_uses, applied.cleared_input_tokens) == (4, 4 * (500 - 20))
    saved = plain.usage.cache_creation_input_tokens - cleared.usage.cache_creation_input_tokens
    assert saved == applied.cleared_input_tokens and cleared.usage.cache_read_input_tokens == 0
    print(f"  {'6 results of 500 tokens, keep 2':58} {applied.cleared_tool_uses} cleared, {saved:,} tokens less")
    count = example.beta.count_tokens(
        model=MODEL, messages=turns, tools=[TOOL], betas=common["betas"], context_management={"edits": [edit]}
    )
    assert count.context_management.original_input_tokens - count.input_tokens == saved
    print(f"  {'the count after the edits':58} {count.input_tokens:,} tokens")


KEEP = {"type": "tool_uses", "value": 2}


def summaries(example: Example) -> None:
    example.title("Compaction on demand: a signed block, and the call only in `iterations`")
    begun = {"role": "user", "content": [text(700, "a long talk")]}
    history = [begun, {"role": "assistant", "content": "fine"}, {"role": "user", "content": [text(299, "more", "5m")]}]
    common: dict[str, Any] = {"model": MODEL, "max_tokens": 500, "betas": ["compact-2026-09-04"]}
    example.check("a turn", example.beta.create(messages=history, **common).usage, (0, 0, 1_000, 0))
    summary = example.beta.create(messages=history, compaction={"type": "summarize"}, **common)
    assert (summary.stop_reason, summary.usage.input_tokens, summary.usage.output_tokens) == ("compaction", 0, 0)
    (run,), (block,) = summary.usage.iterations, summary.content
    assert (run.type, run.cache_read_input_tokens, run.input_tokens) == ("compaction", 1_000, 0)
    assert block.type == "compaction" and block.signature
    print(f"  {'the summary reads what the turn wrote':58} read   1,000, {run.output_tokens} written as summary")
    onward = [{"role": "assistant", "content": summary.content}, {"role": "user", "content": [text(50, "go on")]}]
    after = example.beta.create(messages=onward, **common)
    example.check("the block in place of the messages", after.usage, (0, 0, 0, run.output_tokens + 50))


def threads(example: Example) -> None:
    example.title("Threads: refused in a way that clients understand, or kept for five minutes")
    common: dict[str, Any] = {"model": MODEL, "max_tokens": 50, "betas": ["message-threads-2026-08-12"]}
    common["cache_control"] = {"type": "ephemeral"}
    try:
        example.beta.create(messages=[USER], thread={"type": "create"}, **common)
        raise AssertionError("a thread was kept")
    except anthropic.BadRequestError as error:
        code = error.body["error"]["details"]["error_code"]  # pyright: ignore
        assert code == "thread_unsupported_request"
        print(f"  {'a server that keeps no threads':58} 400 {code}")
    simulator = Simulator(threads=True)
    with running(simulator) as url:
        keeping = Example(url, simulator.control_key)
        ask = keeping.beta.create
        first = ask(messages=[USER], thread={"type": "create"}, **common)
        keeping.check("create", first.usage, (0, 0, 700, 0))
        told = -(-len(first.content[0].text.encode()) // 4)
        new = [{"role": "user", "content": [text(100, "and?")]}]
        second = ask(messages=new, thread={"type": "continue", "previous_message_id": first.id}, **common)
        keeping.check("continue, with 100 tokens", second.usage, (700, 0, told + 100, 0))
        keeping.wait(301)
        try:
            ask(messages=new, thread={"type": "continue", "previous_message_id": second.id}, **common)
            raise AssertionError("a thread outlived five minutes")
        except anthropic.NotFoundError as error:
            code = error.body["error"]["details"]["error_code"]  # pyright: ignore
            assert code == "thread_not_found"
            print(f"  {'after five minutes':58} 404 {code}")


def responses(example: Example) -> None:
    example.title("OpenAI: prefixes are cached without markers, from 1,024 tokens on, in steps of 128")
    for model, wanted in (("gpt-5", 2_944), ("gpt-4o", 2_944)):
        history: list[Any] = [{"role": "user", "content": text(3_000, model)["text"]}]
        first = example.openai.responses.create(model=model, input=history)
        assert (first.usage.input_tokens, first.usage.input_tokens_details.cached_tokens) == (3_000, 0)
        second = example.openai.responses.create(model=model, input="go on", previous_response_id=first.id)
        assert second.usage.input_tokens_details.cached_tokens == wanted == 3_000 // 128 * 128
        print(f"  {model + ', 3,000 tokens, then the next turn':58} cached {wanted:,} of {second.usage.input_tokens:,}")
    small = example.openai.responses.create(model="gpt-5", input=text(1_023, "small")["text"])
    again = example.openai.responses.create(model="gpt-5", input="go on", previous_response_id=small.id)
    assert again.usage.input_tokens_details.cached_tokens == 0
    print(f"  {'below 1,024 tokens':58} cached 0")


def misses(example: Example) -> None:
    example.title("Misses are counted within a thread, and too old is told from changed")

    def talk(rounds: int, *last: Any, system: str = "main", task: str = "first") -> dict[str, Any]:
        turns: list[Any] = [{"role": "user", "content": [text(600, "the project"), text(20, task)]}]
        for number in range(rounds):
            turns += [
                {"role": "assistant", "content": f"step {number}"},
                {"role": "user", "content": f"go on {number}"},
            ]
        turns = [*turns, *last]
        body = {"model": MODEL, "max_tokens": 50, "messages": turns, "system": [text(600, system, "5m")]}
        return {**body, "cache_control": {"type": "ephemeral"}}

    fork = ({"role": "assistant", "content": "hm"}, {"role": "user", "content": [text(200, "remember this")]})
    meter = Meter()
    helper = talk(0, system="a sub-agent", task="second")
    for at, body in enumerate([talk(1), talk(2), talk(2, *fork), helper, talk(1, *fork), talk(3)]):
        meter.bill(body, at)
    assert meter.ledger.totals()["misses"] == 0
    print(f"  {'a main thread, two forks and a sub-agent':58} 0 misses")
    for later, cause in ((10, "system"), (400, "expired")):
        meter = Meter()
        meter.bill(talk(2), 0)
        miss = meter.bill(talk(3, system="another"), later).miss
        assert miss is not None and miss.cause == cause
        print(f"  {f'another system prompt after {later} seconds':58} {cause}, {miss.lost_tokens:,} tokens")


def main() -> None:
    simulator = Simulator()
    with running(simulator) as url:
        example = Example(url, simulator.control_key)
        for each in (
            a_book,
            lookback,
            a_changing_block,
            mixed_lifetimes,
            minimum,
            what_is_lost,
            automatic,
            prewarm,
            refusals,
            forced_tools,
            reminders,
            context_edits,
            summaries,
            threads,
            responses,
            misses,
        ):
            each(example)
    totals = simulator.ledger.totals()
    print(
        f"\nAll as documented. {totals['requests']} requests would have cost ${totals['cost_usd']:.2f}; "
        f"{totals['misses']} cache misses were provoked on the way, worth ${totals['missed_cost_usd']:.3f}."
    )


if __name__ == "__main__":
    main()
