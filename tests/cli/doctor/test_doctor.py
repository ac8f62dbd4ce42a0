"""`reverie doctor`: finds what is there and what is broken, and says what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command


@pytest.fixture(autouse=True)
def as_shipped(reverie: Command) -> None:
    reverie.extra.clear()


def examined(reverie: Command, *args: str, code: int = 0) -> dict[str, dict[str, Any]]:
    """The worst finding of each matter."""
    found = json.loads(reverie("doctor", "--json", *args, code=code).stdout)
    assert found["healthy"] is (code == 0)
    order = ("ok", "warning", "broken")
    return {check["name"]: check for check in sorted(found["checks"], key=lambda one: order.index(one["state"]))}


def test_a_new_home_is_healthy_and_stays_untouched(reverie: Command) -> None:
    found = examined(reverie)
    assert {check["state"] for check in found.values()} == {"ok"}
    assert "embedded" in found["model"]["found"]
    assert "200,000 tokens (catalogue)" in found["window"]["found"]
    assert "not in a repository" in found["git"]["found"]
    assert "default; one per repository" in found["memory"]["found"]
    assert not reverie.home.exists()


def test_for_people_every_matter_has_a_mark(reverie: Command) -> None:
    shown = reverie("doctor").stdout
    assert shown.count("✓") == len(examined(reverie))


def test_a_key_chooses_the_model(reverie: Command) -> None:
    reverie.extra["ANTHROPIC_API_KEY"] = "sk-ant-very-secret"
    shown = reverie("doctor", "--json").stdout
    assert "an Anthropic key is set" in shown
    assert "very-secret" not in shown


def test_an_unknown_model_is_broken(reverie: Command) -> None:
    reverie.extra["REVERIE_MODEL"] = "antropic:claude"
    assert "There is no model" in examined(reverie, code=1)["model"]["found"]


def test_settings_that_changed_the_window_are_named(reverie: Command) -> None:
    reverie.extra["REVERIE_AUTOCOMPACT_PCT"] = "50"
    assert "window.autocompact_pct" in examined(reverie)["window"]["found"]


def test_a_home_in_the_way_is_broken(reverie: Command) -> None:
    reverie.home.write_text("")
    found = examined(reverie, code=1)["settings"]
    assert found["state"] == "broken" and "home is a folder" in found["found"]


def test_a_home_open_to_others_is_worth_a_look(reverie: Command) -> None:
    reverie.home.mkdir(mode=0o755)
    reverie.home.chmod(0o755)
    home = examined(reverie)["home"]
    assert home["state"] == "warning"
    assert home["todo"].startswith("chmod 700")


@pytest.mark.parametrize("name", ["settings", "flags"])
def test_a_file_with_a_mistake_is_named_with_its_line(reverie: Command, name: str) -> None:
    reverie.home.mkdir(mode=0o700)
    (reverie.home / f"{name}.toml").write_text("# a comment\nthis is no TOML\n")
    check = examined(reverie, code=1)[name]
    assert f"{name}.toml" in check["found"]
    assert "2" in check["found"]


def test_what_a_project_may_not_set_is_a_warning(reverie: Command) -> None:
    (reverie.work / ".reverie").mkdir()
    (reverie.work / ".reverie" / "settings.toml").write_text('[model]\nname = "embedded"\n')
    assert "not trusted" in examined(reverie)["settings"]["found"]


def test_memory_says_which_rule_decided(reverie: Command) -> None:
    reverie.extra["REVERIE_DISABLE_MEMORY"] = "1"
    assert "off (REVERIE_DISABLE_MEMORY is 1)" in examined(reverie)["memory"]["found"]


def test_a_memory_that_cannot_be_made_is_broken(reverie: Command) -> None:
    (reverie.work / "file").write_text("x")
    for path in ("/proc/nope/memory", str(reverie.work / "file" / "memory"), str(reverie.work / ("x" * 300))):
        reverie.extra["REVERIE_MEMORY_PATH"] = path
        assert examined(reverie, code=1)["memory"]["state"] == "broken", path
    reverie.extra["REVERIE_MEMORY_PATH"] = str(reverie.work / "a" / "b")
    assert examined(reverie)["memory"]["state"] == "ok" and not (reverie.work / "a").exists()


def test_a_number_of_the_flags_file_and_a_window_that_changes_nothing(reverie: Command) -> None:
    reverie.home.mkdir(parents=True, exist_ok=True)
    (reverie.home / "flags.toml").write_text("[tool_results.limits]\nBash = 1234\n")
    assert "tool_results.limits.Bash is 1,234" in examined(reverie)["flags"]["found"]
    window = examined(reverie)["window"]["found"]
    reverie.extra["REVERIE_CONTEXT_WINDOW"] = window.partition(" ")[0].replace(",", "")
    assert "changed by" not in examined(reverie)["window"]["found"]


def test_flags_that_are_not_as_shipped_are_named(reverie: Command) -> None:
    reverie.home.mkdir(mode=0o700)
    (reverie.home / "flags.toml").write_text("recall = false\n")
    assert "recall is off" in examined(reverie)["flags"]["found"]


def test_the_repository_is_found(reverie: Command) -> None:
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(reverie.work)], check=True)
    inside = reverie.work / "deep" / "down"
    inside.mkdir(parents=True)
    found = examined(reverie, "-C", str(inside))["git"]["found"]
    assert found == f"{Path(reverie.work).resolve()}, branch trunk"


def test_failures_of_the_background_are_told(reverie: Command) -> None:
    from reverie.runtime.background_log import BackgroundLog

    reverie.home.mkdir(mode=0o700)
    log = BackgroundLog(reverie.home / "logs" / "background.jsonl", "s")
    log.write("task_failed", task="dream-1", purpose="dream", error="no room")
    check = examined(reverie)["background"]
    assert check["state"] == "warning"
    assert "dream: no room" in check["found"]


def test_live_sessions_are_named(reverie: Command) -> None:
    process = reverie.start("run", "--json", "--model", reverie.script("slow 0.05\nfill 9000\n"), "a long one")
    assert process.stdout is not None
    while b'"text"' not in process.stdout.readline():
        pass
    assert f"PID {process.pid}" in examined(reverie)["live"]["found"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_memory_folder_that_cannot_be_made_is_broken(reverie: Command) -> None:
    reverie.extra["REVERIE_MEMORY_PATH"] = "/proc/nope/memory"
    assert "cannot be written" in examined(reverie, code=1)["memory"]["found"]


def test_a_setting_that_changes_nothing_is_not_said_to_change_the_window(reverie: Command) -> None:
    reverie.extra["REVERIE_CONTEXT_WINDOW"] = "150000"
    window = examined(reverie)["window"]["found"]
    assert ("changed by" in window) is ("200,000 tokens" not in window)


def test_numbers_of_flags_are_named(reverie: Command) -> None:
    reverie.home.mkdir()
    (reverie.home / "flags.toml").write_text("[tool_results.limits]\nBash = 1234\n")
    assert "tool_results.limits.Bash is 1,234" in examined(reverie)["flags"]["found"]
