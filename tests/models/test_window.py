"""Which window holds, and the thresholds inside it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import SettingsError
from reverie.models.window import Thresholds, Window, WindowSource, resolve_window, scaled, thresholds

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "given_facts", "expected"),
    [
        ("m[1m]", {"catalogued": 200_000, "beta_1m": True, "configured": 5}, Window(MILLION, WindowSource.SUFFIX)),
        ("m[1M]", {}, Window(MILLION, WindowSource.SUFFIX)),
        ("m", {"catalogued": 200_000, "beta_1m": True, "configured": 5}, Window(200_000, WindowSource.CATALOGUE)),
        ("m", {"beta_1m": True, "configured": 5}, Window(MILLION, WindowSource.BETA_HEADER)),
        ("m", {"configured": 32_768}, Window(32_768, WindowSource.SETTING)),
        ("m", {}, Window(200_000, WindowSource.DEFAULT)),
        ("[1m]-distil", {"catalogued": 8_192}, Window(8_192, WindowSource.CATALOGUE)),
    ],
)
def test_first_that_answers(model: str, given_facts: dict[str, Any], expected: Window) -> None:
    assert resolve_window(model, **given_facts) == expected


@pytest.mark.parametrize(
    ("window", "max_output", "settings", "expected"),
    [
        (200_000, 64_000, {}, Thresholds(200_000, 180_000, 167_000, 147_000, 177_000)),
        (200_000, 8_192, {}, Thresholds(200_000, 191_808, 178_808, 158_808, 188_808)),
        (MILLION, 128_000, {}, Thresholds(MILLION, 980_000, 967_000, 947_000, 977_000)),
        (32_000, 64_000, {}, Thresholds(32_000, 28_800, 26_720, 23_520, 28_320)),
        (32_000, 1_000, {}, Thresholds(32_000, 31_000, 28_920, 25_720, 30_520)),
        # a share of effective, and only downwards
        (200_000, 64_000, {"autocompact_pct": 50}, Thresholds(200_000, 180_000, 90_000, 70_000, 177_000)),
        (200_000, 64_000, {"autocompact_pct": 100}, Thresholds(200_000, 180_000, 167_000, 147_000, 177_000)),
        (200_000, 64_000, {"autocompact_pct": 92.5}, Thresholds(200_000, 180_000, 166_500, 146_500, 177_000)),
        (200_000, 64_000, {"autocompact_pct": 5}, Thresholds(200_000, 180_000, 9_000, 0, 177_000)),
        # only shrinks
        (MILLION, 64_000, {"autocompact_window": 400_000}, Thresholds(400_000, 380_000, 367_000, 347_000, 377_000)),
        (200_000, 64_000, {"autocompact_window": 400_000}, Thresholds(200_000, 180_000, 167_000, 147_000, 177_000)),
        (200_000, 64_000, {"autocompact_window": 32_000}, Thresholds(32_000, 28_800, 26_720, 23_520, 28_320)),
        (
            200_000,
            64_000,
            {"blocking_limit": 100_000},
            Thresholds(200_000, 180_000, 167_000, 147_000, 100_000, is_set=True),
        ),
        (
            200_000,
            64_000,
            {"blocking_limit": 190_000},
            Thresholds(200_000, 180_000, 167_000, 147_000, 190_000, is_set=True),
        ),
    ],
)
def test_table(window: int, max_output: int, settings: dict[str, Any], expected: Thresholds) -> None:
    assert thresholds(window, max_output, **settings) == expected


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"autocompact_pct": 0}, "REVERIE_AUTOCOMPACT_PCT"),
        ({"autocompact_pct": -3}, "REVERIE_AUTOCOMPACT_PCT"),
        ({"autocompact_pct": 100.5}, "REVERIE_AUTOCOMPACT_PCT"),
        ({"autocompact_pct": float("nan")}, "REVERIE_AUTOCOMPACT_PCT"),
        ({"autocompact_window": 0}, "REVERIE_AUTOCOMPACT_WINDOW"),
        ({"blocking_limit": -1}, "REVERIE_BLOCKING_LIMIT"),
    ],
)
def test_a_setting_out_of_range_is_named(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        thresholds(200_000, 64_000, **settings)


def test_windows_of_nothing_are_refused() -> None:
    with pytest.raises(SettingsError, match="context window is 0"):
        thresholds(0, 1)
    with pytest.raises(SettingsError, match="REVERIE_CONTEXT_WINDOW is -1"):
        resolve_window("m", configured=-1)


def test_percent_left() -> None:
    table = thresholds(200_000, 64_000)
    used = (0, 1, 83_500, 147_000, 166_999, 167_000, 190_000)
    assert [table.percent_left(tokens) for tokens in used] == [100, 100, 50, 12, 0, 0, 0]
    assert thresholds(200_000, 64_000, autocompact_pct=50).percent_left(45_000) == 50
    half = Thresholds(250, 250, 200, 100, 250)
    assert [half.percent_left(tokens) for tokens in (195, 199)] == [3, 1]  # 2.5 and 0.5 go up


def test_absolute_numbers_scale_below_the_reference_window() -> None:
    assert [scaled(50_000, window) for window in (1_000_000, 200_000, 100_000, 32_000)] == [
        50_000,
        50_000,
        25_000,
        8_000,
    ]


windows = st.integers(1, 3_000_000)
outputs = st.integers(1, 200_000)
percents = st.none() | st.floats(0, 100, exclude_min=True)
limits = st.none() | st.integers(1, 3_000_000)


@given(windows, outputs, percents, limits)
def test_thresholds_are_ordered(window: int, max_output: int, percent: float | None, shrunk: int | None) -> None:
    table = thresholds(window, max_output, autocompact_pct=percent, autocompact_window=shrunk)
    assert 0 <= table.warning < table.autocompact <= table.effective <= table.window <= window
    assert table.autocompact <= thresholds(window, max_output).autocompact
    assert 1 <= table.blocking <= table.effective
    if percent is None:
        assert table.autocompact <= table.blocking


@given(windows, st.integers(0, 500_000), outputs)
def test_a_larger_window_never_compacts_earlier(window: int, more: int, max_output: int) -> None:
    small, large = thresholds(window, max_output), thresholds(window + more, max_output)
    assert small.effective <= large.effective
    assert small.autocompact <= large.autocompact
    assert small.blocking <= large.blocking


@given(windows, outputs, st.integers(0, 3_000_000), st.integers(0, 500_000))
def test_percent_left_falls_as_the_context_grows(window: int, max_output: int, used: int, more: int) -> None:
    table = thresholds(window, max_output)
    assert 0 <= table.percent_left(used + more) <= table.percent_left(used) <= 100
    assert table.percent_left(table.autocompact) == 0
