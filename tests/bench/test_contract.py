"""`reverie lab NAME` keeps its names, options and keys, and says where the measurements are if they are not here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import reverie
from bench.mcp.calls import CallCase, CallResult
from bench.mcp.calls import report as calls_report
from bench.serve.run import Measured, Times, report
from bench.writes import writes
from reverie.cli.lab import command
from reverie.lab.measurement import Column, Result, Table, measurement, plain
from tests.bench.contract import CONTRACT, check_keys
from tests.counts import SOAK
from tests.shared_data import EVALS, sample


def _commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from _commands(found, f"{name} ")
        else:
            yield f"{path}{name}", found


def _parameters(found: click.Command) -> str:
    names = [one.opts[0] if isinstance(one, click.Option) else one.human_readable_name for one in found.params]
    return " ".join(sorted(names))


def test_names_and_options_stay() -> None:
    found = {name: _parameters(one) for name, one in _commands(command)}
    assert found == {name: told["options"] for name, told in CONTRACT.items()}


@pytest.mark.parametrize(
    ("name", "part", "args"),
    [
        ("billing", "keys", []),
        ("survival", "keys", [str(sample("transcripts"))]),
        ("tokens", "keys", [str(sample("transcripts"))]),
        ("replay", "keys", [f"{sample('transcripts')}/04a1de00-0000-4000-8000-000000000004.jsonl"]),
        ("recall", "unrelated", ["--unrelated", str(EVALS / "recall-unrelated.jsonl")]),
    ],
)
def test_the_keys_stay(name: str, part: str, args: list[str]) -> None:
    done = CliRunner().invoke(command, [name, *args, "--json"], catch_exceptions=False)
    check_keys(name, json.loads(done.stdout), part)


@pytest.mark.soak
@pytest.mark.skipif(not SOAK, reason="starts chats, servers and clients: run by `make soak`")
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("screen", ["--runs", "1"]),
        ("web", ["--memories", "20", "--sessions", "5", "--rounds", "10", "--runs", "1"]),
        ("mcp sizes", []),
        ("mcp saves", ["--count", "2"]),
        ("adapters", ["--only", "anthropic"]),
    ],
)
def test_the_keys_of_slow_ones_stay(name: str, args: list[str]) -> None:
    done = CliRunner().invoke(command, [*name.split(), *args, "--json"], catch_exceptions=False)
    check_keys(name, json.loads(done.stdout))


def test_the_keys_of_the_writes_stay(tmp_path: Path) -> None:
    cases = tmp_path / "writes.jsonl"
    cases.write_text("\n".join((EVALS / "writes-fourth.jsonl").read_text().splitlines()[:3]))
    check_keys("writes", writes.measure(cases, None).figures)


def test_the_keys_of_the_server_stay() -> None:
    few, many = (Measured("server", size, Times(1.0, 2.0, 3.0), Times(1.0, 2.0 * size, 3.0)) for size in (1, 4))
    assert report([few, few]).holds and not report([few, many]).holds
    check_keys("serve", report([few, many]).figures)


def test_the_keys_of_the_calls_stay() -> None:
    needs, other = (CallCase(name, "What do we use?", needs=name == "a") for name in ("a", "b"))
    found = calls_report([CallResult(needs, ["recall"], found=True), CallResult(other, ["Read"], problem="no answer")])
    check_keys("mcp calls", found.figures)
    assert found.figures["recalled"] == found.figures["problems"] == 1 and "no answer" in "\n".join(found.lines())


def test_without_the_checkout_only_the_measurements_on_own_sessions_are_there(tmp_path: Path) -> None:
    """As in a wheel: the package alone, in a folder with no `bench` next to `src`."""
    shutil.copytree(Path(reverie.__file__).parent, tmp_path / "lib" / "reverie")

    def lab(*args: str) -> subprocess.CompletedProcess[str]:
        asked = [sys.executable, "-m", "reverie", "lab", *args]
        env = {"PYTHONPATH": str(tmp_path / "lib"), "HOME": str(tmp_path), "PATH": ""}
        return subprocess.run(asked, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    told = lab("tokens", ".")
    assert told.returncode == 2 and told.stdout == "" and "Traceback" not in told.stderr
    assert "there are: replay, survival. The others are in bench/ of Reverie's source code" in told.stderr
    assert "There is no policy" in lab("replay", str(sample("transcripts")), "--policy", "nothing").stderr


def test_a_measurement_is_shown_as_json_or_for_people_and_fails_if_it_does_not_hold() -> None:
    @measurement("reverie lab weigh")
    def weigh() -> Result:
        """Weighs."""
        rows = [{"what": "stone", "grams": 1_234, "part": {"of": 0.12345678}}, {"what": "air", "grams": None}]
        columns = ("what", "grams", Column("part.of", "", "{:.0%}"))
        return Result({"rows": rows}, (Table(rows[:1], columns), "Done."), holds=False)

    shown = CliRunner().invoke(weigh, [])
    assert shown.exit_code == 1 and shown.output == "what   grams   of\nstone  1,234  12%\n\nDone.\n"
    printed = CliRunner().invoke(weigh, ["--json"])
    assert printed.exit_code == 1 and '"of": 0.12346' in printed.output


def test_figures_that_are_not_whole_are_rounded() -> None:
    assert plain([123_456.78, 0.000123456, 12, float("inf"), 0.0]) == [123_456.8, 0.00012346, 12, float("inf"), 0.0]
