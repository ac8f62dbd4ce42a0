"""The model catalogue: names people write, users' own files, and prices."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.errors import SettingsError
from reverie.models.catalogue import Catalogue
from reverie.models.prices import cost, input_equivalents, price
from reverie.types import Usage


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "models.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4-5", "claude-opus-4-5"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-opus-4-0", "claude-opus-4"),
        ("claude-3-5-haiku-20241022", "claude-haiku-3-5"),
        ("claude-3-5-haiku-latest", "claude-haiku-3-5"),
        ("anthropic/claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("embedded", "embedded"),
        ("scripted", "scripted"),
    ],
)
def test_names_find_their_entry(name: str, entry: str) -> None:
    facts = Catalogue.load().facts(name)
    assert (facts.name, facts.known) == (entry, True)


def test_a_1m_suffix_is_understood_for_known_and_unknown_models() -> None:
    catalogue = Catalogue.load()
    assert catalogue.facts("claude-sonnet-4-5").window == 200_000
    suffixed = catalogue.facts("claude-sonnet-4-5-20250929[1m]")
    assert (suffixed.name, suffixed.window, suffixed.asked_1m) == ("claude-sonnet-4-5", 1_000_000, True)
    assert catalogue.facts("my-own[1M]").window == 1_000_000


def test_an_unknown_model_gets_a_generic_entry_and_says_so() -> None:
    facts = Catalogue.load().facts("llama-9")
    assert not facts.known
    assert not facts.priced
    assert facts.window == 200_000
    assert not facts.cache_markers
    assert Catalogue.load().facts("claude-opus-99").cache_markers


def test_every_shipped_entry_names_a_cheapest_sibling_that_is_in_the_catalogue_and_not_dearer() -> None:
    catalogue = Catalogue.load()
    assert len(catalogue.names) > 20
    for name in catalogue.names:
        facts = catalogue.facts(name)
        assert facts.cheapest is not None, name
        sibling = catalogue.facts(facts.cheapest)
        assert sibling.known, name
        assert sibling.provider == facts.provider, name
        assert sibling.input_price <= facts.input_price, name
        assert facts.max_output < facts.window, name


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-opus-5", 512),
        ("claude-fable-5", 512),
        ("claude-mythos-5", 512),
        ("claude-opus-4-8", 1_024),
        ("claude-sonnet-5", 1_024),
        ("claude-sonnet-4-6", 1_024),
        ("claude-sonnet-4-5", 1_024),
        ("claude-opus-4-1", 1_024),
        ("claude-opus-4", 1_024),
        ("claude-opus-4-7", 2_048),
        ("claude-3-5-haiku", 2_048),
        ("claude-opus-4-6", 4_096),
        ("claude-opus-4-5", 4_096),
        ("claude-haiku-4-5", 4_096),
    ],
)
def test_cache_minimums_are_the_documented_ones(model: str, minimum: int) -> None:
    assert Catalogue.load().facts(model).cache_minimum == minimum


def test_a_users_file_overrides_key_by_key_and_adds_models(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [models."claude-opus-5"]
        window = 300_000
        [models."my-local"]
        window = 32_768
        max_output = 4_096
        """,
    )
    catalogue = Catalogue.load([path])
    opus = catalogue.facts("claude-opus-5")
    assert (opus.window, opus.max_output, opus.input_price) == (300_000, 128_000, 5.0)
    mine = catalogue.facts("my-local")
    assert (mine.window, mine.max_output, mine.known, mine.provider) == (32_768, 4_096, True, "unknown")
    assert Catalogue.load().facts("claude-opus-5").window == 1_000_000, "the shipped catalogue is untouched"


def test_later_files_win(tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    first.write_text("[models.m]\nwindow = 1\nmax_output = 9\n[default]\nwindow = 77_000\n", encoding="utf-8")
    second.write_text("[models.m]\nwindow = 2\n", encoding="utf-8")
    catalogue = Catalogue.load([first, second])
    assert (catalogue.facts("m").window, catalogue.facts("m").max_output) == (2, 9)
    assert catalogue.facts("nobody-knows").window == 77_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models.m]\nwindou = 3\n", ["windou", "did you mean `window`"]),
        ("[modells.m]\nwindow = 3\n", ["modells", "did you mean `models`"]),
        ("[models.m]\nwindow = -3\n", ["window", "-3"]),
        ("[models.m]\nwindow = true\n", ["window"]),
        ("[models.m]\ninput_price = 'dear'\n", ["input_price", "dear"]),
        ("[models.m]\nttls = '5m'\n", ["ttls", "list"]),
        ("[models.m]\nprovider = 'acme'\n", ["provider", "anthropic"]),
        ("[models.m]\ncache_markers = 1\n", ["cache_markers", "true or false"]),
        ("[models]\nm = 3\n", ["m", "table"]),
        ("models = 3\n", ["models", "table"]),
        ("[models.m]\nknown = false\n", ["known"]),
        ("[models.m\n", ["TOML"]),
    ],
)
def test_a_bad_file_is_one_clear_sentence(tmp_path: Path, text: str, said: list[str]) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        Catalogue.load([path])
    message = str(caught.value)
    assert str(path) in message
    for part in said:
        assert part in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.toml"):
        Catalogue.load([tmp_path / "gone.toml"])


def test_costs_in_currency_and_in_input_tokens() -> None:
    facts = Catalogue.load().facts("claude-opus-5")
    usage = Usage(1_000, 200, 10_000, 3_000, 1_000, 2_000)
    in_input_tokens = 1_000 + 10_000 * 0.1 + 1_000 * 1.25 + 2_000 * 2 + 200 * 5
    assert input_equivalents(usage, facts) == pytest.approx(in_input_tokens)
    assert cost(usage, facts) == pytest.approx(in_input_tokens * 5 / 1_000_000)
    assert input_equivalents(usage, facts, with_output=False) == pytest.approx(in_input_tokens - 1_000)


def test_a_write_the_server_did_not_split_counts_as_five_minutes() -> None:
    facts = Catalogue.load().facts("claude-opus-5")
    assert input_equivalents(Usage(cache_creation_input_tokens=800), facts) == pytest.approx(1_000)


def test_long_prompts_cost_more_where_the_vendor_says_so() -> None:
    facts = Catalogue.load().facts("claude-haiku-5-5")
    assert cost(Usage(input_tokens=100_000), facts) == pytest.approx(0.01)
    assert cost(Usage(input_tokens=100_001), facts) == pytest.approx(0.0500005)
    assert price(facts, 200_000).output == 2.5


def test_a_model_without_a_price_costs_nothing_but_still_has_equivalents() -> None:
    facts = Catalogue.load().facts("scripted")
    assert cost(Usage(1_000, 1_000), facts) == 0
    assert input_equivalents(Usage(1_000, 1_000), facts) == 6_000


tokens = st.integers(0, 10**7)


@given(tokens, tokens, tokens, tokens, tokens, st.sampled_from(Catalogue.load().names))
def test_currency_and_equivalents_agree_on_every_model(i: int, o: int, r: int, w5: int, w1: int, model: str) -> None:
    facts = Catalogue.load().facts(model)
    usage = Usage(i, o, r, w5 + w1, w5, w1)
    each = price(facts, usage.prompt)
    assert cost(usage, facts) == pytest.approx(input_equivalents(usage, facts) * each.input / 1_000_000)


def test_every_price_names_the_day_on_which_it_was_checked() -> None:
    catalogue = Catalogue.load()
    priced = [facts for facts in map(catalogue.facts, catalogue.names) if facts.priced]
    assert len(priced) > 20
    for facts in priced:
        assert facts.checked and date.fromisoformat(facts.checked) >= date(2026, 11, 16), facts.name
    sonnet = catalogue.facts("claude-sonnet-5-5")
    assert (sonnet.input_price, sonnet.output_price, sonnet.cache_read) == (2.0, 10.0, 0.05)
    assert price(catalogue.facts("gpt-5.4"), 300_000).input == 5.0
