"""Where settings come from: the order of places, how they are merged, and what is told about each value."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from reverie.errors import SettingsError
from reverie.settings import Settings, explain_settings
from reverie.settings.schema import list_settings
from tests.settings.conftest import Load, trust_all


def told(settings: Settings, key: str) -> str:
    return next(one.source for one in explain_settings(settings) if one.key == key)


def test_each_place_wins_over_the_one_before(load: Load, home: Path, repo: Path, managed: Path) -> None:
    places = [
        (managed / "settings.toml", 1),
        (home / "settings.toml", 2),
        (repo / ".reverie" / "settings.toml", 3),
        (repo / ".reverie" / "settings.local.toml", 4),
    ]
    for path, value in places:
        path.write_text(f"\n[window]\nblocking_limit = {value}\n")
        trust_all(load(), repo)
        settings = load()
        assert settings.window.blocking_limit == value
        assert told(settings, "window.blocking_limit") == f"{path}:3"
    settings = load({"REVERIE_BLOCKING_LIMIT": "5"})
    assert settings.window.blocking_limit == 5
    assert told(settings, "window.blocking_limit") == "environment REVERIE_BLOCKING_LIMIT"
    settings = load({"REVERIE_BLOCKING_LIMIT": "5"}, {"window.blocking_limit": 6})
    assert settings.window.blocking_limit == 6
    assert told(settings, "window.blocking_limit") == "command line"


def test_without_files_everything_is_default(load: Load, home: Path) -> None:
    settings = load()
    assert settings.places.home == home
    assert settings == dataclasses.replace(Settings(), places=settings.places)
    sources = {one.key: one.source for one in explain_settings(settings)}
    assert set(sources) == set(list_settings())
    assert {key for key, source in sources.items() if source != "default"} == {"places.user_home"}


def test_lists_add_up_and_nobody_can_take_a_managed_rule_away(
    load: Load, home: Path, repo: Path, managed: Path
) -> None:
    (managed / "settings.toml").write_text('permissions.deny = ["Bash(rm:*)"]')
    (home / "settings.toml").write_text('permissions.deny = []\npermissions.allow = ["Read"]')
    (repo / ".reverie" / "settings.local.toml").write_text('permissions.deny = ["Write", "Bash(rm:*)"]')
    settings = load(overrides={"permissions.deny": ("Edit",), "permissions.allow": "Grep"})
    assert settings.permissions.deny == ("Bash(rm:*)", "Write", "Edit")
    assert settings.permissions.allow == ("Read", "Grep")
    assert told(settings, "permissions.deny").count(",") == 3


def test_tables_of_numbers_are_joined_key_by_key(load: Load, home: Path, repo: Path) -> None:
    (home / "settings.toml").write_text("[tool_results.limits]\nBash = 1\nMine = 2")
    (repo / ".reverie" / "settings.toml").write_text("tool_results.limits = {Mine = 1}")
    assert dict(load().tool_results.limits) == {"Grep": 20_000, "Bash": 1, "Mine": 1}


def test_hooks_are_lists_of_commands_in_order(load: Load, home: Path, managed: Path) -> None:
    (managed / "settings.toml").write_text('[[hooks.Stop]]\ncommand = "first"')
    (home / "settings.toml").write_text(
        '[[hooks.Stop]]\ncommand = "second"\ntimeout_s = 3\n[[hooks.Stop]]\ncommand = "third"\nmatcher = "Bash|Edit"'
    )
    hooks = load().hooks
    assert [hook.command for hook in hooks.of("Stop")] == ["first", "second", "third"]
    assert hooks.Stop[0].timeout_s == 60.0
    assert hooks.Stop[1].timeout_s == 3.0
    assert (hooks.Stop[1].matcher, hooks.Stop[2].matcher) == ("*", "Bash|Edit")
    assert hooks.of("SessionEnd") == ()


def test_there_is_a_list_of_hooks_for_every_event() -> None:
    from reverie.runtime.hooks import HookEvent

    assert {key.split(".")[1] for key in list_settings() if key.startswith("hooks.")} == {
        str(event) for event in HookEvent
    }


def test_paths_start_at_the_file_they_stand_in(load: Load, home: Path, repo: Path) -> None:
    (home / "settings.toml").write_text('catalogue.files = ["mine.toml", "~/x.toml", "/abs.toml"]')
    files = load({"REVERIE_REQUEST_LOG": "log.jsonl"})
    assert files.catalogue.files == (home / "mine.toml", home.parent / "x.toml", Path("/abs.toml"))
    assert files.debug.request_log == repo / "log.jsonl"


def test_keys_come_from_the_environment_or_own_files_and_are_never_shown(load: Load, home: Path) -> None:
    (home / "settings.toml").write_text('[model]\nopenai_api_key = "sk-own-file"')
    settings = load({"ANTHROPIC_API_KEY": "sk-ant-variable"})
    assert settings.model.anthropic_api_key == "sk-ant-variable"
    assert settings.model.openai_api_key == "sk-own-file"
    shown = repr(settings) + "".join(str(one.shown) + one.source for one in explain_settings(settings))
    assert "sk-" not in shown


def test_the_users_own_file_is_not_read_again_as_a_projects(load: Load, home: Path) -> None:
    (home / "settings.toml").write_text('[[hooks.Stop]]\ncommand = "mine"')
    settings = load(cwd=home.parent)
    assert [hook.command for hook in settings.hooks.Stop] == ["mine"]
    assert settings.warnings == ()


def test_home_may_be_written_with_a_tilde_but_not_relative(load: Load, home: Path) -> None:
    assert load({"REVERIE_HOME": "~/.claude"}).places.home == home.parent / ".claude"
    assert told(load({"REVERIE_HOME": "/x/../y"}), "places.home") == "environment REVERIE_HOME"
    assert load({"REVERIE_HOME": "/x/../y"}).places.home == Path("/y")
    with pytest.raises(SettingsError, match=r"REVERIE_HOME.*not an absolute path"):
        load({"REVERIE_HOME": "here"})


def test_settings_cannot_be_changed_and_are_copied_with_replace(load: Load) -> None:
    settings = load()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.tools.parallel = 3  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del settings.tools.parallel
    changed = dataclasses.replace(settings.tools, parallel=3)
    assert (changed.parallel, settings.tools.parallel) == (3, 10)
    assert changed != settings.tools
    assert changed == dataclasses.replace(settings.tools, parallel=3)
    with pytest.raises(TypeError, match="paralel"):
        dataclasses.replace(settings.tools, paralel=3)  # type: ignore[call-arg]


def test_defaults_are_those_of_the_reference() -> None:
    settings = Settings()
    window, results = settings.window, settings.tool_results
    assert (window.output_reserve, window.autocompact_buffer) == (20_000, 13_000)
    assert (window.warning_buffer, window.blocking_buffer) == (20_000, 3_000)
    assert (results.default_limit, results.message_characters, results.preview_bytes) == (50_000, 200_000, 2_000)
    assert dict(results.limits) == {"Grep": 20_000, "Bash": 30_000}
    assert (settings.model.max_output, settings.model.raised_output, settings.model.go_on_nudges) == (8_000, 64_000, 3)
    assert settings.background.exit_wait_s == 60.0
    assert (settings.transcript.fsync, settings.transcript.expire_days) == (False, 0)
    assert settings.memory.enabled and settings.memory.disable is None
