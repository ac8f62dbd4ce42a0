"""The shape of the house, enforced: which way imports point, how long a module may be, what may not be named what."""

from __future__ import annotations

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tools import house

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
SOURCE = TESTS.parent / "src" / "reverie"
BENCH = TESTS.parent / "bench"
MODULES = sorted(SOURCE.rglob("*.py"))
MEASURING = sorted(BENCH.rglob("*.py"))
"""The measurements: outside the package, under the same rules of style. They may import everything of it."""

# Floors from the ground up. A module may import its own floor and those below it.
FLOORS = (
    "quick types origins events errors parsing settings flags paths prompts moments regular_files plugins __init__",
    "models storage permissions runtime text",
    "tools simulator",
    "memory instructions",
    "layers",
    "offline",  # a mind knows the files and the tasks of the floors below; it is loaded by name
    "context",
    "loop",
    "agents",
    "session",
    "library sync",
    "adapters daemon proxy server",
    "connect",
    "cli lab web __main__",
)
FLOOR = {name: level for level, names in enumerate(FLOORS) for name in names.split()}
MAX_LINES = 700  # one concept per module: split where a concept ends, never to please a number
MAX_LOOP_LINES = 250
MAX_MODULES = 24
BANNED = re.compile(r"^(utils?|helpers?|misc|common|manager|\w*_v\d+)$")


@cache
def text_of(path: Path) -> str:
    return path.read_text()


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Every node of a module; each file is parsed once for all rules."""
    return list(ast.walk(ast.parse(text_of(path))))


@pytest.fixture(scope="module", autouse=True)
def without_collector() -> Iterator[None]:
    """The nodes are a million objects without a cycle; the collector looks at them again and again for nothing."""
    gc.disable()
    yield
    nodes.cache_clear()
    gc.enable()


def name_of(path: Path) -> str:
    """The path of a module as the rules name it: inside the package, or `bench/…`."""
    return str(path.relative_to(SOURCE if path.is_relative_to(SOURCE) else BENCH.parent))


def room(path: Path) -> str:
    """The top-level name of a module inside the package."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path: Path) -> list[tuple[int, str]]:
    """Every import of our own package, with its line; also those inside functions and under TYPE_CHECKING."""
    found = list[tuple[int, str]]()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "reverie":
            if node.module == "reverie":
                found += [(node.lineno, f"reverie.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, node.module))
        elif isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] == "reverie"]
    return found


def test_imports_point_down() -> None:
    wrong = list[str]()
    for path in MODULES:
        here = room(path)
        if here not in FLOOR:
            wrong.append(f"{here} has no floor: give it one in tests/test_architecture.py")
            continue
        for line, name in imports(path):
            target = name.removeprefix("reverie").removeprefix(".").split(".")[0]
            target = target if target in FLOOR else "__init__"
            if here == "__init__":  # the package's own lazy door to its public names
                continue
            if FLOOR[target] > FLOOR[here]:
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {name}, which is above {here}")
    assert not wrong, "\n".join(wrong)


def test_the_package_does_not_know_the_bench() -> None:
    """`cli/lab.py` loads the measurements by name, if they are there."""
    for path in MODULES:
        for node in nodes(path):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.value)] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
            known = any(re.fullmatch(r"bench(\.\w+)*", name) for name in names)
            assert not known or name_of(path) == "cli/lab.py", f"{name_of(path)} names a measurement"


def test_no_package_grows() -> None:
    """A ratchet: what was removed stays removed, and what is added has a reason."""
    known = house.ceilings()
    assert set(known) == set(house.HOUSES)
    problems = [text for name in house.HOUSES for text in house.wrong(name, house.lines_of(ROOT / name), known[name])]
    assert not problems, "\n".join(problems)


def test_the_ceiling_says_what_to_do() -> None:
    assert house.wrong("src", {"web": 1_000}, {"web": 1_000}) == house.wrong("src", {"web": 980}, {"web": 1_000}) == []
    (over,) = house.wrong("src", {"web": 1_001}, {"web": 1_000})
    assert "web: 1,001 lines, and the ceiling is 1,000. Remove code" in over
    (below,) = house.wrong("src", {"web": 979}, {"web": 1_000})
    (gone,) = house.wrong("src", {}, {"web": 10})
    (new,) = house.wrong("src", {"web": 1}, {})
    assert "Lower it" in below and "Lower it" in gone and "Remove code" in new


def test_no_module_of_the_session_needs_itself() -> None:
    """Lazy and type-only imports count: who needs something above it declares a protocol."""
    modules = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in MODULES}
    below = {
        name: {target for _, target in imports(path) if target.startswith("reverie.session.")}
        for name, path in modules.items()
        if name.startswith("reverie.session.") and not name.endswith("__init__")
    }
    while free := [name for name, needed in below.items() if not needed & below.keys()]:
        for name in free:
            del below[name]
    assert not below, f"an import cycle: {sorted(below)}"


LOOK_AT_A_CLOCK = {  # limits of what would hang, how long a soak goes on, and one measure of parsers by their growth
    *("waiting.py", "work.py", "warm.py", "cli/terminal.py", "cli/fault_driver.py", "agents/team/test_team.py"),
    *("agents/messages/test_inbox_file.py", "layers/test_l6_dreaming.py", "memory/test_soak_saves.py"),
    *("storage/test_lease.py", "test_parse_time.py", "permissions/test_strict_shell_fuzz.py"),
    "permissions/sandbox/attacks.py",
    "proxy/test_two_clients.py",
}
_CLOCK = re.compile(r"\b(perf_counter|monotonic|process_time|thread_time)(_ns)?\(|loop\(\)\.time\(")


def test_no_test_looks_at_a_clock() -> None:
    """What takes long on a busy machine is no defect: count work or wait for events (`work.py`, `waiting.py`)."""
    found = {
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if not {"integration", "attack", "lab", "full_screen"} & {*path.parts} and _CLOCK.search(path.read_text())
    }
    assert not found - LOOK_AT_A_CLOCK


def test_collection_imports_no_sdk() -> None:
    """Every worker collects every test: a fixture imports what takes long to import."""
    heavy = re.compile(r"^(?:import|from) (?:acp|anthropic|langchain|langgraph|mcp|openai)\b", re.MULTILINE)
    tests = [path for path in TESTS.rglob("test_*.py") if "integration" not in path.parts]
    heads = {str(path.relative_to(TESTS)): text_of(path).partition("\n\n\n")[0] for path in tests}
    assert [name for name, head in heads.items() if heavy.search(head)] == []


def test_modules_are_short_and_well_named() -> None:
    wrong = list[str]()
    for path in (*MODULES, *MEASURING):
        name = Path(name_of(path))
        lines = len(text_of(path).splitlines())
        limit = MAX_LOOP_LINES if path == SOURCE / "loop.py" else MAX_LINES
        if lines > limit:
            wrong.append(f"{name} has {lines} lines; the limit is {limit}")
        if any(BANNED.match(part) for part in name.with_suffix("").parts):
            wrong.append(f"{name}: a name that explains nothing")
    assert not wrong, "\n".join(wrong)


def test_folders_are_small() -> None:
    """A reader sees a folder at a glance."""
    for folder in {path.parent for path in (*MODULES, *MEASURING)}:
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        assert len(modules) <= MAX_MODULES, f"{name_of(folder)} has {len(modules)} modules: make rooms in it"


def test_modules_say_what_they_are() -> None:
    silent = [
        path for path in (*MODULES, *MEASURING) if text_of(path).strip() and not ast.get_docstring(nodes(path)[0])
    ]  # type: ignore[arg-type]
    assert not silent, [name_of(path) for path in silent]


def test_every_prompt_file_is_used_once() -> None:
    source = {path: text_of(path) for path in (*MODULES, *MEASURING)}
    prompts = [path for house in (SOURCE, BENCH) for path in house.rglob("*.md") if path.parent.name == "prompts"]
    assert prompts
    for prompt in prompts:
        package = prompt.parent.parent
        users = [
            path
            for path, text in source.items()
            if path.is_relative_to(package) and re.search(rf"""["']{re.escape(prompt.name)}["']""", text)
        ]
        assert len(users) == 1, f"{name_of(prompt)} is used by {[path.name for path in users]}"


def test_only_settings_reads_the_environment() -> None:
    """Handing the whole environment to a child process is not reading it; looking a variable up is."""
    for path in (*MODULES, *MEASURING):
        if name_of(path).startswith("settings/"):
            continue
        for node in nodes(path):
            looked_into = node.value if isinstance(node, ast.Subscript | ast.Attribute) else None
            is_environ = isinstance(looked_into, ast.Attribute) and looked_into.attr in ("environ", "environb")
            is_getenv = isinstance(node, ast.Attribute) and node.attr in ("getenv", "getenvb")
            assert not (is_environ or is_getenv), f"{path.name}:{node.lineno} reads the environment"


def test_broad_excepts_stand_at_the_edges_only() -> None:
    """Errors stop in few places: a pipeline stage, a background task, a tool call, a server, code of other packages."""
    allowed = {"context/pipeline.py", "runtime/tasks.py", "tools/run.py", "runtime/live.py", "plugins.py"}
    allowed.add("server/worker.py")
    allowed.add("server/app.py")
    for path in (*MODULES, *MEASURING):
        for node in nodes(path):
            if not isinstance(node, ast.ExceptHandler):
                continue
            broad = node.type is None or (
                isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
            )
            cleans_up = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
            name = name_of(path)
            assert not broad or cleans_up or name in allowed, f"{name}:{node.lineno} catches everything"


def test_foreign_text_is_parsed_in_one_place() -> None:
    """JSON, YAML and TOML go through `parsing`, which bounds their size and depth."""
    allowed = {
        "parsing.py",
        "models/sdk.py",  # what this process has just written itself
        "permissions/sandbox/order.py",  # what this program tells its own helper, which imports little
        "daemon/hook.py",  # the answer of our own service, in a program that imports nothing of ours
        "bench/recall/scale.py",  # what a child of the measurement prints
    }
    banned = {
        "json": {"load", "loads", "JSONDecoder"},
        "yaml": {"load", "safe_load", "full_load", "unsafe_load", "load_all", "safe_load_all", "parse", "compose"},
        "tomllib": {"load", "loads"},
        "ast": {"literal_eval"},
        "pickle": {"load", "loads"},
    }
    for path in (*MODULES, *MEASURING):
        name = name_of(path)
        if name in allowed:
            continue
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert node.attr not in banned.get(node.value.id, ()), f"{name}:{node.lineno}: use reverie.parsing"
            if isinstance(node, ast.ImportFrom) and node.module in banned:
                taken = {alias.name for alias in node.names} & banned[node.module]
                assert not taken, f"{name}:{node.lineno}: use reverie.parsing"


READS_ITS_OWN = {  # package data and /proc
    "prompts.py",
    "regular_files.py",
    "permissions/sandbox/keeper.py",
    "permissions/sandbox/watching.py",
    "runtime/agent_above.py",
    "runtime/process_family.py",
    "memory/recall/ranking/manner.py",
    "memory/recall/encoder.py",
    "layers/l6_dreaming/lock.py",
    "cli/team/supervisor.py",
    "server/job_schema.py",
    "server/migrating.py",
}


def calls(path: Path) -> list[tuple[int, str]]:
    """The name of every method that a module calls, with its line."""
    found = [node for node in nodes(path) if isinstance(node, ast.Call)]
    return [(node.lineno, node.func.attr) for node in found if isinstance(node.func, ast.Attribute)]


def product_modules() -> list[tuple[str, Path]]:
    return [(name_of(path), path) for path in MODULES if not name_of(path).startswith("cli/demo")]


def test_foreign_files_are_read_in_one_place() -> None:
    """A pipe, a device or a file of a terabyte may lie anywhere: `regular_files` opens what others may have put."""
    for name, path in product_modules():
        if name not in READS_ITS_OWN:
            for line, call in calls(path):
                assert call not in ("read_bytes", "read_text"), f"{name}:{line}: read it with `reverie.regular_files`"


def test_foreign_times_are_read_in_one_place() -> None:
    """A file may say any time, and so may a record: `moments` makes dates of them, and never raises."""
    dates = {"moments.py", "offline/place.py", "memory/daily_log.py"}  # the last two: a day that they check
    for name, path in product_modules():
        if name not in dates:
            for line, call in calls(path):
                assert call not in ("fromtimestamp", "fromisoformat", "utcfromtimestamp"), f"{name}:{line}: see moments"


def test_nothing_goes_past_the_writer_to_the_terminal() -> None:
    """`cli/screen.py` cleans what is written; styles are made there, and three modules draw the screen themselves."""
    draws = {"cli/screen.py", "cli/chat/prompt.py", "cli/team/view.py"}
    for name, path in product_modules():
        text = text_of(path)
        if name.startswith("cli/") and name != "cli/screen.py":
            assert "\\x1b" not in text and "\\033" not in text, f"{name}: styles come from `output.Paint`"
            assert "ensure_ascii=False" not in text, f"{name}: write JSON with `screen.json_text`"
        if name not in draws:
            for word in ("raw_stream", "__stdout__", "__stderr__", "stdout.buffer", "/dev/tty"):
                assert word not in text, f"{name}: {word} goes past the writer of `cli/screen.py`"
