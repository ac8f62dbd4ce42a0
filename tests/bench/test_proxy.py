"""`reverie lab proxy`: two small sessions through the real proxy, and its time beside a proxy that only parses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from bench.proxy.latency import latency_report
from reverie.cli.lab import command
from reverie.library.wires import wire_named
from reverie.library.wires.reading import Readings
from tests.bench.contract import check_keys
from tests.lab.test_replay import Recording


def test_sessions_through_the_proxy_beside_direct(tmp_path: Path) -> None:
    long, short = Recording(), Recording()
    long.say()
    log = "".join(f"line {at} of a long log\n" for at in range(4_000))
    long.call("Bash", {"command": "make"}, f"{log}deepInside_4711 failed\n{log}")
    for number in range(6):
        long.call("Bash", {"command": f"echo {number}"}, f"part {number}\n" * 300)
    long.call("Bash", {"command": "grep deepInside_4711"}, "found")
    long.call("Bash", {"command": "true"}, "done")
    short.say()
    short.call("Bash", {"command": "ls"}, "a b c")
    long.write(tmp_path / "long.jsonl")
    short.write(tmp_path / "short.jsonl")

    ran = CliRunner().invoke(command, ["proxy", str(tmp_path), "--alone", "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    check_keys("proxy", found)
    first, second = (one["ways"] for one in found["sessions"])
    assert first["direct"]["requests"] == 9 and first["direct"]["read_again"] == 0
    assert first["proxy"]["requests"] == 10 and first["proxy"]["read_again"] == 1, "the log is on disk and read again"
    assert first["proxy"]["ratio"] < 0.5
    assert second["proxy"]["ratio"] == 1.0
    assert found["aim"]["holds"] and found["highest_ratio_after_any_round"]["proxy"] <= 1.01


def test_the_time_of_both_proxies_is_measured() -> None:
    found = latency_report(tokens=2_000, runs=3).figures
    check_keys("proxy", found, "latency")
    assert found["runs"] == 3 and found["added_by_proxy_ms"] > 0


def test_messages_that_came_before_are_not_read_again_and_read_the_same() -> None:
    wire, readings = wire_named("messages"), Readings(most_bytes=1_000)

    def message(role: str, text: str, **more: Any) -> dict[str, Any]:
        return {"role": role, "content": [{"type": "text", "text": text, **more}]}

    talk = [message("user", "hi"), message("assistant", "hello"), message("user", "one"), message("assistant", "two")]
    first = readings.read(wire, talk, 400)
    edited = [*json.loads(json.dumps(talk[:3])), message("assistant", "other"), message("user", "three")]
    edited[2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    again = readings.read(wire, edited, 500)
    assert [one.fingerprint for one in again.given] == [one.fingerprint for one in wire.read_messages(edited)]
    assert again.given[0] is first.given[0]
    readings.read(wire, [message("user", "another"), *talk[1:]], 900)
    assert readings.read(wire, talk, 400).given[0] is not first.given[0], "bounded"
