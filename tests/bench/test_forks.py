"""Children of one message share all they can: what each reads from the cache, and what all of them cost."""

from __future__ import annotations

import json

from click.testing import CliRunner

from bench.forks import forks
from reverie.cli.lab import command
from tests.bench.contract import check_keys


def test_eight_children_after_a_long_history_read_it_from_the_cache() -> None:
    found = forks.measure(8, 100_000).figures
    first, further = found["first"], found["further"]
    assert found["history_tokens"] >= 100_000 and len(further) == 7
    assert found["least_read_share"] >= 0.98
    assert all(child["read_tokens"] > first["read_tokens"] for child in further), (
        "the first fills the cache with the message they share, and the others wait for it"
    )
    assert found["ratio"] <= 0.2
    assert all(child["first_cost"] <= 0.15 * child["fresh_first_cost"] for child in (first, *further))


def test_the_command_prints_what_programs_read() -> None:
    done = CliRunner().invoke(command, ["forks", "--children", "2", "--tokens", "5000", "--json"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.output)
    check_keys("forks", figures)
    assert figures["children"] == 2 and len(figures["further"]) == 1
    assert figures["first"]["prompt_tokens"] > figures["history_tokens"] > 5_000
    assert 0 < figures["ratio"] < 1
