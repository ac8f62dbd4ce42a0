"""Children of one message share all they can: what each reads from the cache, and what all of them cost."""

from __future__ import annotations

import json

from click.testing import CliRunner

from bench.forks import measure_forks
from reverie.cli.lab import command
from tests.bench.contract import check_keys


def test_eight_children_after_a_long_history_read_it_from_the_cache() -> None:
    found = measure_forks(8, 100_000)
    assert found.history >= 100_000 and len(found.children) == 8
    first, *further = found.children
    assert all(child.share >= 0.98 for child in found.children)
    assert all(child.first.cache_read_input_tokens > first.first.cache_read_input_tokens for child in further), (
        "the first fills the cache with the message they share, and the others wait for it"
    )
    assert found.ratio <= 0.2
    assert all(child.first_cost <= 0.15 * child.fresh_first_cost for child in found.children)


def test_the_command_prints_what_programs_read() -> None:
    done = CliRunner().invoke(command, ["forks", "--children", "2", "--tokens", "5000", "--json"])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.output)
    check_keys("forks", figures)
    assert figures["children"] == 2 and len(figures["further"]) == 1
    assert figures["first"]["prompt_tokens"] > figures["history_tokens"] > 5_000
    assert 0 < figures["ratio"] < 1
