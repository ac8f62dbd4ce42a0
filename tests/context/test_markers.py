"""Where cache markers stand, judged by the bill: whatever happens to a conversation, its next request reads it all."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.context.request import (
    IMAGE_BATCH,
    IMAGE_LEFT_OUT,
    LOOKBACK,
    MAX_IMAGES,
    End,
    ImageCount,
    assemble,
    end_of,
    place_markers,
)
from reverie.models.base import Capabilities, Request
from reverie.models.wire import body
from reverie.simulator import Billing, Meter
from reverie.storage.transcript.records import SessionHeader
from reverie.types import ImageBlock, Message, Origin, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from tests.counts import count

MODEL = "anthropic:claude-opus-5"
BOTH = Capabilities(cache_markers=True, ttls=("5m", "1h"))
TOOL = {"name": "Read", "description": "Reads. " * 40, "input_schema": {"type": "object"}}


def header(**fields: object) -> SessionHeader:
    given: dict[str, object] = {"model": MODEL, "system": ("static " * 400, "dynamic"), "tools": (TOOL,)}
    return SessionHeader(**(given | fields))  # type: ignore[arg-type]


def text(words: str, size: int = 30) -> TextBlock:
    return TextBlock(f"{words} " * size, Origin.TYPED)


@dataclass(slots=True)
class Talk:
    """A conversation that grows, is interrupted and forks, and the server that bills it."""

    header: SessionHeader = field(default_factory=header)
    meter: Meter = field(default_factory=Meter)
    messages: list[Message] = field(default_factory=list[Message])
    sent: End | None = None
    number: int = 0
    bills: list[Billing] = field(default_factory=list[Billing])

    def request(self, **more: object) -> Request:
        made = assemble(
            self.header,
            tuple(self.messages),
            max_tokens=100,
            capabilities=BOTH,
            sent=self.sent,
            **more,  # type: ignore[arg-type]
        )
        self.sent = end_of(made.messages)
        return made

    def say(self, *blocks: TextBlock | ToolResultBlock) -> None:
        if self.messages and self.messages[-1].role == "user":
            blocks = (*self.messages.pop().content, *blocks)  # type: ignore[assignment]
        self.messages.append(Message("user", blocks))

    def ask(self) -> Billing:
        """A request whose response begins, complete or not."""
        self.bills.append(self.meter.bill(body(self.request()), now=0.0))
        return self.bills[-1]

    def answer(self, calls: int, thinks: bool) -> None:
        """A response; its calls are answered at once."""
        self.number += 1
        names = [f"toolu_{self.number}_{i}" for i in range(calls)]
        thought = [ThinkingBlock(f"thought {self.number}", "signed")] if thinks else []
        said = [*thought, text(f"answer {self.number}", 5), *(ToolUseBlock(n, "Read", {"n": n}) for n in names)]
        self.messages.append(Message("assistant", tuple(said)))
        if names:
            self.say(*(ToolResultBlock(n, f"result {n} " * 20) for n in names))


rounds = st.tuples(st.just("round"), st.integers(0, 40), st.booleans())
lost = st.tuples(st.just("lost"), st.integers(1, 45), st.booleans())
turns = st.tuples(st.just("turn"), st.integers(1, 3), st.booleans())


@settings(max_examples=count(30, 600), deadline=None)
@given(st.lists(st.one_of(rounds, rounds, lost, turns), min_size=1, max_size=12), st.sampled_from(["5m", "1h"]))
def test_every_request_reads_all_that_the_one_before_it_sent(steps: list[tuple[str, int, bool]], ttl: str) -> None:
    """Rounds of up to forty calls, answers that were lost after they had begun, turns of several messages."""
    talk = Talk(header(ttl=ttl))
    talk.say(text("question", 200))
    talk.ask()
    for kind, size, thinks in steps:
        if kind == "round":
            talk.answer(size, thinks)
            if size == 0:
                talk.say(text("go on"))
        elif kind == "turn":
            talk.answer(0, thinks)
            talk.say(*(text(f"part {i}") for i in range(size)))
        else:  # cancelled in the middle of the answer: what is said next is added to the same message
            talk.say(*(text(f"added {i}") for i in range(size)))
        talk.ask()
    for before, after in pairwise(talk.bills):
        assert after.usage.cache_read_input_tokens == before.usage.prompt
        assert after.miss is None


@settings(max_examples=count(40, 400), deadline=None)
@given(st.lists(rounds, min_size=1, max_size=6), st.booleans(), st.integers(1, 3), st.sampled_from(["5m", "1h"]))
def test_a_fork_reads_all_of_its_parent_and_markers_keep_the_rules(
    steps: list[tuple[str, int, bool]], in_a_round: bool, own: int, ttl: str
) -> None:
    talk = Talk(header(ttl=ttl))
    talk.say(text("question", 200))
    parent = talk.ask()
    for _, size, thinks in steps:
        talk.answer(size, thinks)
        if size == 0:
            talk.say(text("go on"))
        parent = talk.ask()
    talk.answer(3 if in_a_round else 0, False)
    from_here = max(i for i, message in enumerate(talk.messages) if message.role == "assistant") + 1
    fork = Talk(talk.header, talk.meter, list(talk.messages), talk.sent)
    before = parent.usage.prompt
    for i in range(own):
        fork.say(text(f"directive {i}"))
        last = i == own - 1
        request = fork.request(own_from=from_here, reused=not last)
        order = [marker.ttl for marker in request.markers]
        assert len(order) <= 4 and order == sorted(order), "an hour never stands behind five minutes"
        assert all(m.ttl == "5m" for m in request.markers if m.section == "messages" and m.index >= from_here)
        bill = talk.meter.bill(body(request), now=0.0)
        assert bill.usage.cache_read_input_tokens == before
        if last:
            assert bill.usage.cache_creation_input_tokens == 0, "nobody will read it"
        before = bill.usage.prompt
        fork.answer(0, False)


def test_a_new_turn_goes_on_from_where_the_last_one_began_on_models_that_drop_thinking() -> None:
    talk = Talk(header(model="anthropic:claude-sonnet-4-5"))
    talk.say(text("question", 1_000))
    first = talk.ask()
    for _ in range(12):
        talk.answer(3, thinks=True)
        talk.ask()
    talk.answer(0, thinks=True)
    talk.say(text("next question"))
    assert talk.ask().usage.cache_read_input_tokens >= first.usage.prompt


def test_a_lifetime_the_model_does_not_offer_is_not_asked_for() -> None:
    only = Capabilities(cache_markers=True, ttls=("5m",))
    messages = (Message("user", (text("hi"),)),)
    request = assemble(header(ttl="1h"), messages, max_tokens=10, capabilities=only)
    assert {marker.ttl for marker in request.markers} == {"5m"}
    none = assemble(header(), messages, max_tokens=10, capabilities=Capabilities())
    assert none.markers == ()


def test_a_question_nobody_will_continue_marks_the_static_part_only() -> None:
    messages = (Message("user", (text("a long manifest", 500),)),)
    markers = place_markers(header(), messages, reused=False)
    assert [marker.section for marker in markers] == ["system"]


def test_the_lookback_is_the_documented_one() -> None:
    from reverie.simulator.cache import LOOKBACK as SERVERS

    assert LOOKBACK == SERVERS


def test_images_are_left_out_in_batches_so_that_most_requests_keep_the_prefix() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}

    def talk(images: int) -> tuple[Message, ...]:
        return tuple(Message("user", (ImageBlock(source), TextBlock(f"image {i}"))) for i in range(images))

    assert [ImageCount().left_out(talk(n)) for n in (0, MAX_IMAGES)] == [0, 0]
    counts = [ImageCount().left_out(talk(MAX_IMAGES + n)) for n in range(1, 2 * IMAGE_BATCH + 1)]
    assert counts == [IMAGE_BATCH] * IMAGE_BATCH + [2 * IMAGE_BATCH] * IMAGE_BATCH
    shown = assemble(
        header(), talk(101), max_tokens=1, capabilities=BOTH, images_left_out=ImageCount().left_out(talk(101))
    ).messages
    left = [m for m in shown if any(isinstance(b, TextBlock) and b.text == IMAGE_LEFT_OUT for b in m.content)]
    assert left == list(shown[:IMAGE_BATCH])
