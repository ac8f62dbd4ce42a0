"""The fixed estimate, the calibrator that betters it, and the count of a context."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.models.calibration import Calibrator
from reverie.models.count import ContextMeter
from reverie.models.features import Feature, Features, measure_blocks, measure_message
from reverie.models.tokens import estimate_block, estimate_blocks, estimate_message, estimate_text, pad
from reverie.types import (
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    Origin,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    parse_block,
)

PICTURE = ImageBlock({"type": "base64", "media_type": "image/png", "data": "A" * 90_000})


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (TextBlock("12345678"), 2),
        (TextBlock("123456789"), 3),
        (TextBlock(""), 0),
        (TextBlock("日本語です"), 4),  # 15 bytes
        (ThinkingBlock("a" * 40, signature="s" * 400), 10),
        (ToolUseBlock("toolu_1", "Read", {"k": "v"}), 5),  # {"k": "v"} is 10 bytes
        (ToolResultBlock("toolu_1", "a" * 400), 100),
        (ToolResultBlock("toolu_1", None), 0),
        (ToolResultBlock("toolu_1", (TextBlock("a" * 400), PICTURE)), 2_100),
        (PICTURE, 2_000),
        (DocumentBlock({"type": "base64", "data": "A"}), 2_000),
        (OtherBlock({"type": "new"}), 8),  # {"type": "new"} is 15 bytes
        (TextBlock("\ud800"), 1),
    ],
)
def test_fixed_estimate(block: Block, tokens: int) -> None:
    assert estimate_block(block) == tokens


def test_content_of_json_files_is_dense() -> None:
    text = "x" * 400
    assert estimate_text(text, is_json=True) == 200
    for path, expected in (("/a/b.json", 200), ("log.JSONL", 200), ("a.py", 100), ("json", 100)):
        call = ToolUseBlock("toolu_1", "Read", {"file_path": path})
        result = ToolResultBlock("toolu_1", text)
        assert estimate_blocks([call, result]) - estimate_block(call) == expected, path
    other = ToolResultBlock("toolu_2", text)
    assert estimate_blocks([ToolUseBlock("toolu_1", "Read", {"file_path": "b.json"}), other]) < 100 + 50


def test_message_is_the_sum_of_its_blocks() -> None:
    message = Message("user", (TextBlock("a" * 40), ToolResultBlock("t", "b" * 80)))
    assert estimate_message(message) == 30


def test_pad_is_four_thirds_rounded_up() -> None:
    assert [pad(n) for n in (0, 1, 2, 3, 300, 301)] == [0, 2, 3, 4, 400, 402]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
raw_blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(st.characters())),
    st.builds(lambda text, sig: {"type": "thinking", "thinking": text, "signature": sig}, st.text(), st.text()),
    st.builds(lambda given: {"type": "tool_use", "id": "t", "name": "N", "input": given}, json_values),
    st.builds(lambda text: {"type": "tool_result", "tool_use_id": "t", "content": text}, st.text(st.characters())),
    json_values,
)


@given(st.lists(raw_blocks, max_size=6), st.integers(0, 6))
def test_anything_can_be_estimated_and_parts_add_up(raw: list[Any], cut: int) -> None:
    blocks = [parse_block(one, Origin.TOOL) for one in raw]
    assert estimate_blocks(blocks) >= 0
    whole = measure_blocks(blocks)
    parts = measure_blocks(blocks[:cut]) + measure_blocks(blocks[cut:])
    assert parts.values == pytest.approx(whole.values)
    assert all(amount >= 0 for amount in whole.values)


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_more_content_never_weighs_less(text: str, more: str) -> None:
    prior = Calibrator.prior()
    short = prior.estimate(measure_blocks([TextBlock(text)]))
    long = prior.estimate(measure_blocks([TextBlock(text + more)]))
    assert long >= short


def test_classes_are_told_from_content() -> None:
    def found(block: Block) -> set[Feature]:
        features = measure_blocks([block])
        return {feature for feature in Feature if features[feature] > 0} - {Feature.FRAMING}

    assert found(TextBlock("hello there")) == {Feature.PROSE}
    assert found(TextBlock("日本語")) == {Feature.NON_ASCII}
    assert found(ThinkingBlock("hm, let me see")) == {Feature.THINKING}
    assert found(ToolUseBlock("t", "Read", {"a": 1})) == {Feature.TOOL_INPUT}
    assert found(ToolResultBlock("t", "ok, done")) == {Feature.TOOL_OUTPUT}
    assert found(ToolResultBlock("t", "   12\tdef f():\n   13\t  pass")) == {Feature.NUMBERED_OUTPUT}
    assert found(ToolResultBlock("t", (TextBlock('{"a": 1}'),))) == {Feature.JSON_OUTPUT}
    assert found(PICTURE) == {Feature.MEDIA}
    assert found(DocumentBlock({"type": "text", "data": "plain words"})) == {Feature.TOOL_OUTPUT}


def test_thinking_that_only_the_signature_tells_of_is_counted() -> None:
    shown = ThinkingBlock("t" * 3_000, signature="s" * (232 + 4_000))
    summarised = ThinkingBlock("t" * 300, signature="s" * (232 + 4_000))
    left_out = ThinkingBlock("", signature="s" * (232 + 4_000))
    redacted = OtherBlock({"type": "redacted_thinking", "data": "s" * (232 + 4_000)})
    assert measure_blocks([shown])[Feature.SEALED_THINKING] == 0
    assert measure_blocks([summarised])[Feature.SEALED_THINKING] == pytest.approx(2_700 * 0.3)
    assert measure_blocks([left_out])[Feature.SEALED_THINKING] == pytest.approx(3_000 * 0.3)
    assert measure_blocks([redacted])[Feature.SEALED_THINKING] == pytest.approx(3_000 * 0.3)


def sample(rng: random.Random) -> Features:
    """What a round of ordinary work appends."""
    return Features.of(
        {
            Feature.PROSE: rng.uniform(0, 200),
            Feature.THINKING: rng.uniform(0, 400),
            Feature.TOOL_INPUT: rng.uniform(20, 800),
            Feature.TOOL_OUTPUT: rng.choice([0, rng.uniform(0, 3_000)]),
            Feature.NUMBERED_OUTPUT: rng.choice([0, rng.uniform(0, 6_000)]),
            Feature.FRAMING: rng.uniform(80, 300),
            Feature.ROUNDS: 1,
        }
    )


def test_learns_another_tokenizer_within_a_few_responses() -> None:
    rng = random.Random(7)
    calibrator = Calibrator.prior()
    for _ in range(8):
        features = sample(rng)
        calibrator = calibrator.observe(features, round(1.4 * Calibrator.prior().estimate(features)))
    probe = Features.of({Feature.NUMBERED_OUTPUT: 8_000, Feature.TOOL_INPUT: 2_000})
    assert calibrator.estimate(probe) == pytest.approx(1.4 * 10_000, rel=0.05)
    # Content it has not seen yet is expected to be off by the same share.
    unseen = Features.of({Feature.JSON_OUTPUT: 10_000})
    assert calibrator.estimate(unseen) == pytest.approx(14_000, rel=0.1)


def test_learns_one_class_apart_from_the_others() -> None:
    rng = random.Random(8)
    calibrator = Calibrator.prior()
    for _ in range(60):
        features = sample(rng)
        real = Calibrator.prior().estimate(features) + 0.3 * features[Feature.TOOL_OUTPUT]
        calibrator = calibrator.observe(features, round(real))
    assert calibrator.weights[Feature.TOOL_OUTPUT] == pytest.approx(1.3, abs=0.08)
    assert calibrator.weights[Feature.NUMBERED_OUTPUT] == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("hidden", [4_000, 30_000, 150_000])
def test_hidden_content_and_absurd_figures_do_not_spoil_it(hidden: int) -> None:
    rng = random.Random(9)
    calm = spoilt = Calibrator.prior()
    for number in range(60):
        features = sample(rng)
        real = round(Calibrator.prior().estimate(features))
        calm = calm.observe(features, real)
        spoilt = spoilt.observe(features, real + hidden if number % 10 == 9 else real)
        spoilt = spoilt.observe(features, -40_000)
        spoilt = spoilt.observe(features, 0)
    probe = Features.of({Feature.NUMBERED_OUTPUT: 5_000, Feature.TOOL_OUTPUT: 3_000, Feature.TOOL_INPUT: 2_000})
    assert spoilt.estimate(probe) == pytest.approx(calm.estimate(probe), rel=0.02)


amounts = st.lists(st.floats(0, 50_000), min_size=len(Feature), max_size=len(Feature))


@given(st.lists(st.tuples(amounts, st.integers(-10_000, 400_000)), max_size=30))
def test_weights_stay_within_bounds_whatever_is_reported(seen: list[tuple[list[float], int]]) -> None:
    calibrator = Calibrator.prior()
    for given_amounts, growth in seen:
        calibrator = calibrator.observe(Features(tuple(given_amounts)), growth)
    for feature in Feature:
        low, high = (0, 2_000) if feature in (Feature.ROUNDS, Feature.TURNS) else (0.1, 3)
        assert low <= calibrator.weights[feature] <= high
        assert calibrator.covariance[feature][feature] > 0


def user(text: str) -> Message:
    return Message("user", (TextBlock(text, Origin.TYPED),))


def test_meter_learns_at_each_response_and_keeps_count() -> None:
    meter = ContextMeter()
    meter.append(user("please look at the file"))
    assert 0 < meter.tokens < 100
    assert meter.respond(Usage(input_tokens=20_000)) is None  # nothing to compare with yet
    meter.append(Message("assistant", (ToolUseBlock("t", "Read", {"file_path": "a"}),)))
    meter.append(Message("user", (ToolResultBlock("t", "words of output " * 500),)))
    guess = meter.tokens
    assert guess > 21_500
    growth = meter.respond(Usage(input_tokens=3, cache_read_input_tokens=20_000, cache_creation_input_tokens=3_000))
    assert growth is not None
    assert growth.tokens == 3_003
    assert meter.calibrator.observations == 1
    assert meter.calibrator.estimate(growth.features) > Calibrator.prior().estimate(growth.features)
    # What stands before the last response is reported, not estimated.
    assert abs(meter.tokens - 23_003) < 60


def test_meter_does_not_learn_across_a_rewritten_context() -> None:
    meter = ContextMeter()
    meter.respond(Usage(input_tokens=150_000))
    meter.append(user("go on"))
    meter.reset()
    assert meter.respond(Usage(input_tokens=30_000)) is None
    meter.append(user("go on"))
    assert meter.respond(Usage(input_tokens=29_000)) is None  # shrank by itself
    assert meter.calibrator.observations == 0
    assert abs(meter.tokens - 29_000) < 60


def test_meter_follows_a_rewrite_without_learning_from_it() -> None:
    meter = ContextMeter()
    large, small = ToolResultBlock("t", "words of output " * 500), ToolResultBlock("t", "[cleared]")
    meter.append(Message("user", (large,)))
    meter.respond(Usage(input_tokens=50_000))
    before = meter.tokens
    meter.rewrite([large], [small])
    assert before - meter.tokens == pytest.approx(
        Calibrator.prior().estimate(measure_blocks([large])) - Calibrator.prior().estimate(measure_blocks([small])),
        abs=2,
    )
    twin = meter.copy()
    assert meter.respond(Usage(input_tokens=50_500)) is None
    assert meter.calibrator.observations == 0
    meter.append(user("go on"))
    assert meter.respond(Usage(input_tokens=50_530)) is not None
    assert meter.calibrator.observations == 1
    # The copy has its own count and still knows that a rewrite came before.
    assert twin.tokens < 50_000
    assert twin.respond(Usage(input_tokens=50_500)) is None


def test_older_models_drop_the_thinking_of_the_last_turn() -> None:
    thinking = Message("assistant", (ThinkingBlock("let me think about it " * 200), TextBlock("Done.", Origin.MODEL)))
    sizes: list[int] = []
    for keeps in (True, False):
        meter = ContextMeter(keeps_thinking=keeps)
        meter.append(user("go"))
        meter.respond(Usage(input_tokens=10_000))
        meter.append(thinking)
        assert meter.tokens > 10_700
        meter.append(Message("user", (ToolResultBlock("t", "ok"),)))
        assert meter.tokens > 10_700  # a tool result does not end the turn
        meter.append(user("and now?"))
        sizes.append(meter.tokens)
    kept, dropped = sizes
    assert kept - dropped == pytest.approx(Calibrator.prior().estimate(measure_blocks(thinking.content[:1])), abs=2)
    assert measure_message(user("x"))[Feature.TURNS] == 1


def test_what_the_last_response_wrote_counts_as_the_server_says() -> None:
    meter = ContextMeter()
    meter.respond(Usage(input_tokens=10_000, output_tokens=6_000))  # most of it is thinking that is not shown
    meter.append(Message("assistant", (TextBlock("Done.", Origin.MODEL),)))
    assert 16_000 <= meter.tokens < 16_060
    meter.append(user("and now?"))
    assert 16_000 < meter.tokens < 16_100
    # A recording of a stream has the figure of its first event; the content says that there was more.
    meter.respond(Usage(input_tokens=20_000, output_tokens=1))
    meter.append(Message("assistant", (TextBlock("words of an answer " * 500, Origin.MODEL),)))
    assert meter.tokens > 21_500
    meter.report_output(7_000)
    assert 27_000 <= meter.tokens < 27_060
    # The next prompt says how much of it was real, and only that is learnt.
    growth = meter.respond(Usage(input_tokens=22_500))
    assert growth is not None and growth.tokens == 2_500
