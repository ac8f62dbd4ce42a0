"""Kill switches: every flag of the reference, files that change under a running session, other providers."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from openfeature.provider.in_memory_provider import InMemoryFlag, InMemoryProvider

from reverie.errors import SettingsError
from reverie.flags import FLAGS, Flags, PrefixFlags
from reverie.flags.file_provider import GRACE_S
from reverie.flags.registry import all_names, env_name, numbers
from reverie.paths import Places
from reverie.settings import load_settings

ON = [
    "mcp",
    "tool_results",
    "tool_results.message_budget",
    "microcompact.time",
    "microcompact.economic",
    "session_notes",
    "compaction.auto",
    "compaction.notes",
    "compaction.reactive",
    "compaction.partial",
    "extraction",
    "dream",
    "recall",
    "search_past_context",
    "agent_memory",
    "progress_summary",
    "rules",
    "fork_children",
    "cache_watch",
]
OFF = [
    "microcompact.cache_edits",
    "microcompact.server",
    "extraction.noninteractive",
    "recall.no_index",
    "team_memory",
    "daily_log",
    "coordinator",
    "context_collapse",
    "history_snip",
]


BELOW = {
    "tool_results.message_budget": "tool_results",
    "extraction.noninteractive": "extraction",
    "recall.no_index": "recall",
    "compaction.notes": "session_notes",
}
"""Flags that are off with another one."""


class World:
    """A home, a managed folder, and flags opened on them."""

    def __init__(self, root: Path) -> None:
        self.home, self.managed = root / "home", root / "managed"
        self.home.mkdir()
        self.managed.mkdir()
        self.file = self.home / "flags.toml"
        self.opened: list[Flags] = []

    def open(self, env: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None) -> Flags:
        full = {"HOME": str(self.home.parent), "REVERIE_HOME": str(self.home), **(env or {})}
        settings = load_settings(self.home, env=full, overrides=overrides, managed_dir=self.managed)
        flags = Flags.open(Places.of(self.home, settings), settings, managed_dir=self.managed)
        self.opened.append(flags)
        return flags


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for flags in made.opened:
        flags.close()


def test_every_flag_of_the_reference_with_its_default(world: World) -> None:
    assert set(FLAGS) == {*ON, *OFF}
    found = {name: on for name, (on, _) in world.open().all().items()}
    assert found == {**dict.fromkeys(ON, True), **dict.fromkeys(OFF, False)}


def test_flags_and_numbers_have_names_of_their_own() -> None:
    assert not set(FLAGS) & set(numbers())
    variables = [env_name(name) for name in all_names()]
    assert len(variables) == len(set(variables))


def test_an_unknown_name_is_a_programming_error(world: World) -> None:
    flags = world.open()
    with pytest.raises(KeyError, match="sesion_notes"):
        flags.on("sesion_notes")
    with pytest.raises(KeyError, match="live"):
        flags.number("tools.read_lines", 1)
    with pytest.raises(KeyError, match="snapshot"):
        flags.on("daily_log")
    with pytest.raises(KeyError, match=r"Flags\.on"):
        flags.snapshot().on("dream")


def test_a_file_in_every_spelling(world: World) -> None:
    world.file.write_text(
        'dream = false\n"recall.no_index" = true\nmicrocompact.time = false\n[extraction]\non = false\n'
        "noninteractive = true\n[compaction]\nauto = false\n"
    )
    flags = world.open()
    assert not flags.on("dream")
    assert not flags.on("microcompact.time")
    assert flags.on("microcompact.economic")
    assert not flags.on("extraction")
    assert not flags.on("compaction.auto")
    assert flags.snapshot().on("recall.no_index")
    assert flags.warnings == ()
    world.file.write_text("[extraction]\non = true\nnoninteractive = true\n")
    assert world.open().on("extraction.noninteractive")


def test_a_flag_below_another_one_is_off_with_it(world: World) -> None:
    """`tool_results = false` switches all of layer 1 off, whatever is said about its parts."""
    assert {name for name in FLAGS if name.rpartition(".")[0] in FLAGS} == {*BELOW} - {"compaction.notes"}
    for name, above in BELOW.items():
        world.file.write_text(f'"{above}" = false\n"{name}" = true\n')
        flags = world.open()
        assert not flags.all()[name][0] and not flags.all()[above][0]
        assert not (flags.snapshot().on(name) if FLAGS[name].prefix else flags.on(name))
        world.file.write_text(f'"{above}" = true\n"{name}" = true\n# longer')
        assert flags.snapshot().on(name) if FLAGS[name].prefix else flags.on(name)
    assert world.open().on("compaction.auto"), "a name that no flag has switches nothing off"


def test_a_switch_stops_what_is_running(world: World) -> None:
    flags = world.open()
    assert flags.on("extraction")
    world.file.write_text("extraction = false")
    assert not flags.on("extraction")
    world.file.write_text("extraction = true ")
    assert flags.on("extraction")
    world.file.write_text("extraction = false")
    assert not flags.on("extraction")


def test_two_changes_within_one_tick_of_the_clock_are_both_seen(world: World) -> None:
    world.file.write_text("window.autocompact_buffer = 1")
    flags = world.open()
    for number in (2, 3, 4, 5, 6, 7, 8, 9):
        moment = world.file.stat().st_mtime_ns
        world.file.write_text(f"window.autocompact_buffer = {number}")
        os.utime(world.file, ns=(moment, moment))  # as if the clock had not moved
        assert flags.number("window.autocompact_buffer", 13_000) == number


def test_prefix_flags_are_read_once(world: World) -> None:
    flags = world.open()
    before = flags.snapshot()
    world.file.write_text("daily_log = true\nsearch_past_context = false")
    assert (before.on("daily_log"), before.on("search_past_context")) == (False, True)
    after = flags.snapshot()
    assert (after.on("daily_log"), after.on("search_past_context")) == (True, False)
    again = PrefixFlags.from_json(before.to_json())
    assert again.to_json() == before.to_json()
    assert {flag.name for flag in FLAGS.values() if flag.prefix} == set(before.to_json())


def test_a_header_from_before_a_flag_existed(world: World) -> None:
    old = PrefixFlags.from_json({"coordinator": True, "gone": True, "team_memory": "yes"})
    assert old.on("coordinator")
    assert not old.on("search_past_context"), "it cannot have shaped that prefix"
    assert not old.on("team_memory")


def test_managed_wins_over_variables_and_these_over_the_home(world: World) -> None:
    world.file.write_text("dream = false\nrecall = false\nextraction = false")
    flags = world.open({"REVERIE_FLAG_DREAM": "1", "REVERIE_FLAG_RECALL": "true", "REVERIE_FLAG_EXTRACTION": ""})
    assert flags.on("dream") and flags.on("recall") and not flags.on("extraction")
    (world.managed / "flags.toml").write_text("recall = false")
    assert flags.on("dream") and not flags.on("recall")
    found = flags.all()
    assert found["dream"] == (True, "environment REVERIE_FLAG_DREAM")
    assert found["recall"] == (False, str(world.managed / "flags.toml"))
    assert found["extraction"] == (False, str(world.file))
    assert found["rules"] == (True, "default")


def test_a_project_has_no_flags(world: World) -> None:
    (world.home / ".reverie").mkdir()
    (world.home / ".reverie" / "flags.toml").write_text("extraction = false")
    assert world.open().on("extraction")


def test_numbers_change_settings_of_the_same_name(world: World) -> None:
    world.file.write_text("[window]\nautocompact_buffer = 5_000\n[tool_results.limits]\nBash = 10\nMine = 20")
    flags = world.open({"REVERIE_FLAG_TOOLS_PARALLEL": "4"})
    assert flags.number("window.autocompact_buffer", 13_000) == 5_000
    assert flags.number("window.warning_buffer", 20_000) == 20_000
    assert flags.number("tool_results.limits.Bash", 30_000) == 10
    assert flags.number("tool_results.limits.Mine", 50_000) == 20
    assert flags.number("tool_results.limits.Grep", 20_000) == 20_000
    found = flags.number("tools.parallel", 10)
    assert found == 4 and isinstance(found, int)
    assert flags.numbers()["tools.parallel"] == (4, "environment REVERIE_FLAG_TOOLS_PARALLEL")


def test_a_variable_sets_a_number_of_a_table(world: World) -> None:
    """Variables are in capitals and have no dots, so the name of the tool is found without regard to them."""
    world.file.write_text("[tool_results.limits]\nBash = 10\nGrep = 30")
    variables = {
        "REVERIE_FLAG_TOOL_RESULTS_LIMITS_BASH": "2_000",
        "REVERIE_FLAG_TOOL_RESULTS_LIMITS_MCP__MY_SERVER__LOOK_UP": "70",
        "REVERIE_FLAG_TOOL_RESULTS_DEFAULT_LIMIT": "900",
        "REVERIE_FLAG_MICROCOMPACT_PAUSE_MINUTES": "2",
    }
    flags = world.open(variables)
    assert flags.number("tool_results.limits.Bash", 30_000) == 2_000
    assert flags.number("tool_results.limits.mcp__my-server__look_up", 50_000) == 70
    assert flags.number("tool_results.limits.Grep", 20_000) == 30
    assert flags.number("tool_results.default_limit", 50_000) == 900
    assert flags.number("microcompact.pause_minutes", 60) == 2
    assert flags.warnings == ()
    found = flags.numbers()
    assert found["tool_results.limits.Bash"] == (2_000, "environment REVERIE_FLAG_TOOL_RESULTS_LIMITS_BASH")
    assert len(found) == 5
    (world.managed / "flags.toml").write_text("[tool_results.limits]\nBash = 5")
    assert world.open(variables).number("tool_results.limits.Bash", 30_000) == 5
    for text in ("0", "-3", "many", "1.5", "true"):
        with pytest.raises(SettingsError, match=f"LIMITS_BASH: '{text}' is not a whole number"):
            world.open({"REVERIE_FLAG_TOOL_RESULTS_LIMITS_BASH": text})
    for name in ("TOOL_RESULTS_LIMITS", "TOOL_RESULTS_LIMITS_"):
        assert any("unknown flag" in one for one in world.open({f"REVERIE_FLAG_{name}": "5"}).warnings)


@pytest.mark.parametrize("text", ["-1", "0", "nan", "inf", "1.5", '"many"', "true", "[1]"])
def test_a_number_that_does_not_fit_is_an_error_at_the_start(world: World, text: str) -> None:
    world.file.write_text(f"\nwindow.autocompact_buffer = {text}")
    with pytest.raises(SettingsError, match=r"flags.toml:2: `window.autocompact_buffer` is .* must be a whole number"):
        world.open()


def test_mistakes_at_the_start_are_errors(world: World) -> None:
    world.file.write_text("\n[extraction]\non = 3")
    with pytest.raises(SettingsError, match=r"flags.toml:3: `extraction` is 3, but must be true or false"):
        world.open()
    world.file.write_text("dream = ")
    with pytest.raises(SettingsError, match=r"flags.toml:1: not valid TOML"):
        world.open()
    world.file.unlink()
    with pytest.raises(SettingsError, match="environment REVERIE_FLAG_DREAM: 'maybe' is not true or false"):
        world.open({"REVERIE_FLAG_DREAM": "maybe"})


def test_an_unknown_flag_is_a_warning_with_the_nearest_name(world: World) -> None:
    world.file.write_text("\nextracton = false\n[recall]\nnoindex = true")
    flags = world.open({"REVERIE_FLAG_DREEM": "0"})
    assert flags.on("extraction") and flags.on("dream")
    assert flags.warnings == (
        "environment REVERIE_FLAG_DREEM: unknown flag, ignored; did you mean REVERIE_FLAG_DREAM?",
        f"{world.file}:2: unknown flag `extracton`, ignored; did you mean `extraction`?",
        f"{world.file}:4: unknown flag `recall.noindex`, ignored; did you mean `recall.no_index`?",
    )


def test_a_file_that_breaks_leaves_the_switches_as_they_were(world: World) -> None:
    world.file.write_text("extraction = false")
    flags = world.open()
    assert not flags.on("extraction")
    for broken in (b"extraction = fal", b"\xff", b"extraction = 3"):
        world.file.write_bytes(broken)
        assert not flags.on("extraction")
        assert "The flags stay as they were." in flags.warnings[-1]
    world.file.write_text("extraction = true")
    assert flags.on("extraction")


def test_a_change_whose_time_was_set_back_is_seen(world: World) -> None:
    world.file.write_text("window.autocompact_buffer = 1")
    os.utime(world.file, (1_700_000_000, 1_700_000_000))
    flags = world.open()
    assert flags.number("window.autocompact_buffer", 13_000) == 1
    time.sleep(0.1)
    assert flags.number("window.autocompact_buffer", 13_000) == 1
    world.file.write_text("window.autocompact_buffer = 2")
    os.utime(world.file, (1_700_000_000, 1_700_000_000))
    assert flags.number("window.autocompact_buffer", 13_000) == 2


def test_saving_a_file_never_switches_anything_on_for_a_moment(world: World) -> None:
    world.file.write_text("extraction = false")
    flags = world.open()
    stop = threading.Event()

    def save_like_editors_do() -> None:
        while not stop.is_set():
            with world.file.open("w") as file:  # truncates first
                time.sleep(0.002)
                file.write("extraction = false\n")
            world.file.rename(world.home / "backup")
            time.sleep(0.002)
            world.file.write_text("extraction = false\n# saved\n")
            time.sleep(0.01)  # a file that is never seen whole counts as gone after a second

    editor = threading.Thread(target=save_like_editors_do)
    editor.start()
    until = time.monotonic() + 1.0
    seen = [flags.on("extraction") for _ in iter(lambda: time.monotonic() < until, False)]
    stop.set()
    editor.join()
    assert len(seen) > 100
    assert not any(seen)


def test_a_file_that_is_gone_for_good_is_believed(world: World) -> None:
    world.file.write_text("extraction = false")
    flags = world.open()
    assert not flags.on("extraction")
    world.file.unlink()
    assert not flags.on("extraction")
    time.sleep(GRACE_S + 0.1)
    assert flags.on("extraction")


def test_any_provider_can_be_plugged_in() -> None:
    def flag(value: object) -> InMemoryFlag[object]:
        return InMemoryFlag("it", {"it": value})

    given_flags = {
        "extraction": flag(False),
        "team_memory": flag(True),
        "dream": flag("not a boolean"),
        "window.warning_buffer": flag(7.0),
        "window.blocking_buffer": flag(-7.0),
        "window.output_reserve": flag(1.5),
    }
    flags = Flags(InMemoryProvider(given_flags))
    try:
        assert not flags.on("extraction")
        assert flags.snapshot().on("team_memory")
        assert flags.on("dream"), "the default holds where a provider says something else than asked"
        assert flags.on("recall")
        assert flags.number("window.warning_buffer", 20_000) == 7
        assert flags.number("window.blocking_buffer", 3_000) == 3_000
        assert flags.number("window.output_reserve", 20_000) == 20_000
        assert flags.warnings == (
            "flag `dream`: its value has the wrong type: Expected type <class 'bool'> but got <class 'str'>; "
            "the default is used.",
            "flag `window.blocking_buffer` is -7, but must be a whole number of 1 or more; 3000 is used.",
            "flag `window.output_reserve` is 1.5, but must be a whole number of 1 or more; 20000 is used.",
        )
        assert flags.all()["extraction"] == (False, "In-Memory Provider")
    finally:
        flags.close()


def test_two_sessions_in_one_process_have_their_own_flags(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = World(tmp_path / "one"), World(tmp_path / "two")
    one.file.write_text("dream = false")
    first, second = one.open(), two.open()
    assert (first.on("dream"), second.on("dream")) == (False, True)
    first.close()
    assert second.on("dream")
    second.close()


class Failing(InMemoryProvider):
    """A flag service that is down."""

    def __init__(self) -> None:
        super().__init__({"dream": InMemoryFlag("it", {"it": False})})

    def initialize(self, evaluation_context: object) -> None:
        raise ConnectionError("nobody there")

    def resolve_boolean_details(self, *given: object, **more: object) -> NoReturn:
        raise ConnectionError("nobody there")


def test_a_provider_that_is_down_leaves_the_defaults_and_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    flags = Flags(Failing())
    try:
        assert flags.on("dream")
        assert "is not ready; where it does not answer, the defaults are used" in flags.warnings[0]
        assert capfd.readouterr().err == "", "a traceback at each use helps nobody"
    finally:
        flags.close()


def make_provider() -> InMemoryProvider:
    return InMemoryProvider({"dream": InMemoryFlag("it", {"it": False})})


def test_closed_flags_leave_nothing_behind(world: World) -> None:
    """A server opens and closes them for every conversation."""
    world.file.write_text("dream = false\n", encoding="utf-8")
    left = list[weakref.ref[object]]()
    for _ in range(5):
        provider = make_provider()
        left.append(weakref.ref(provider))
        flags = Flags(provider)
        assert not flags.on("dream")
        flags.close()
        flags.close()
        other = world.open()
        assert flags.on("dream") and not other.on("dream"), "closed flags have the defaults"
        other.close()
    del flags, provider
    until = time.monotonic() + 5
    while any(one() is not None for one in left) and time.monotonic() < until:
        time.sleep(0.01)  # OpenFeature shuts providers down in threads
        gc.collect()
    assert [one() for one in left] == [None] * 5


def test_a_provider_named_in_settings(world: World) -> None:
    assert not world.open(overrides={"flags.provider": "tests.test_flags:make_provider"}).on("dream")
    for name in ("tests.test_flags:nothing", "no.such.module:x", "json", "tests.test_flags:ON", "json:dumps"):
        with pytest.raises(SettingsError, match=r"flags\.provider"):
            world.open(overrides={"flags.provider": name})


@examples(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(FLAGS)), st.booleans()))
def test_what_the_file_says_holds_and_the_rest_is_default(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, bool]
) -> None:
    world = World(tmp_path_factory.mktemp("flags"))
    world.file.write_text("".join(f'"{name}" = {str(value).lower()}\n' for name, value in said.items()))
    flags = world.open()
    meant = {name: said.get(name, flag.default) for name, flag in FLAGS.items()}
    for name, above in BELOW.items():
        meant[name] = meant[name] and meant[above]
    assert {name: on for name, (on, _) in flags.all().items()} == meant
    flags.close()


def test_looking_at_settings_loads_no_openfeature() -> None:
    code = (
        "import sys, reverie.settings, reverie.paths, reverie.flags; sys.exit('openfeature' in str(list(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
