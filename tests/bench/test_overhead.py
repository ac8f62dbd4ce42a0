"""`reverie lab overhead`: preparing a request costs by what is new, not by the history."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from reverie.cli.lab import command
from tests.bench.contract import check_keys


def test_overhead_follows_what_is_new() -> None:
    pytest.importorskip("langchain")
    done = CliRunner().invoke(command, ["overhead", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    check_keys("overhead", found)
    assert set(found) == {"20000", "80000", "160000"}
    ours = [found[size]["reverie_ms"] for size in ("20000", "160000")]
    assert ours[1] < 4 * ours[0], "far from eight times for eight times the history (twice is the aim, undisturbed)"
    assert found["160000"]["reverie_ms"] < found["160000"]["langchain_ms"] / 4
