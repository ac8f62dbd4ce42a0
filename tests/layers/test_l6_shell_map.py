"""A dream's shell commands see the copy wherever they name the memory directory, or do not run at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.layers.l6_dreaming.shell_map import NotMapped, ShellMap
from reverie.permissions.shell.read_only import is_read_only_shell
from tests.waiting import LIMIT_S


@pytest.fixture
def places(tmp_path: Path) -> ShellMap:
    root, copy, cwd = tmp_path / "home" / "memory", tmp_path / "dreams" / "memory", tmp_path / "work"
    for folder, text in ((root, "REAL"), (copy, "COPY")):
        (folder / "logs").mkdir(parents=True)
        for name in ("a.md", "b c.md", "logs/day.md"):
            (folder / name).write_text(f"{text} {name}\n")
    (copy / "new.md").write_text("COPY new\n")
    cwd.mkdir()
    (cwd / "code.py").write_text("import this\n")
    (root.parent / "session.jsonl").write_text('{"type": "user"}\n')
    (cwd / "link").symlink_to(root)
    return ShellMap(root, copy, cwd, tmp_path / "home")


def run(places: ShellMap, command: str) -> str:
    command = command.replace("MEM", str(places.root)).replace("UP", str(places.root.parent))
    assert is_read_only_shell(command), command
    mapped = places.command(command)
    assert is_read_only_shell(mapped), mapped
    done = subprocess.run(["bash", "-c", mapped], cwd=places.cwd, capture_output=True, text=True, timeout=LIMIT_S)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "sees"),
    [
        ("cat MEM/a.md", "COPY a.md"),
        ("cat 'MEM/b c.md'", "COPY b c.md"),
        ('cat "MEM/b c.md"', "COPY b c.md"),
        ("cat MEM/b\\ c.md", "COPY b c.md"),
        ("cat MEM/new.md", "COPY new"),
        ("cat MEM/./logs/../a.md", "COPY a.md"),
        ("cat link/a.md", "COPY a.md"),
        ("cat ./link/a.md", "COPY a.md"),
        ("cat ~/memory/a.md", "COPY a.md"),
        ("ls MEM", "new.md"),
        ("ls -la MEM/", "new.md"),
        ("ls -R MEM", "day.md"),
        ("ls MEM/*.md", "new.md"),
        ("head -n 1 MEM/a.md && tail -n 1 MEM/new.md", "COPY new"),
        ("grep -rn COPY MEM | head -3", "COPY"),
        ("grep -l COPY MEM/*.md", "new.md"),
        ("grep COPY MEM/n*.md", "COPY new"),
        ("find MEM -name '*.md' -mmin -5", "new.md"),
        ("find MEM -type f", "day.md"),
        ("wc -l MEM/a.md MEM/new.md", "new.md"),
        ("stat -c %n MEM/new.md", "new.md"),
        ("cat code.py; cat MEM/a.md", "COPY a.md"),
        ("grep -h user UP/*.jsonl", '"user"'),
        ("cat UP/session.jsonl | head -1", '"user"'),
        ("ls UP", "memory"),
        ("cat code.py", "import this"),
    ],
)
def test_it_sees_the_copy(places: ShellMap, command: str, sees: str) -> None:
    seen = run(places, command)
    assert sees in seen and "REAL" not in seen


def test_a_pattern_that_looks_like_a_path_stays_a_pattern(places: ShellMap) -> None:
    (places.cwd / "log.txt").write_text(f"wrote {places.root}/a.md\n")
    assert "wrote" in run(places, "grep MEM/a.md log.txt")
    assert "wrote" in run(places, "grep -e MEM/a.md log.txt")


@pytest.mark.parametrize(
    "command",
    [
        "grep -r REAL UP",
        "find UP -name '*.md'",
        "ls -R UP",
        "ls -R ~",
        "cat UP/*/a.md",
        "ls UP/m*",
        "grep -f MEM/a.md code.py",
        "find code.py -newer MEM/a.md",
        "find MEM -path 'MEM/*'",
        "find . -samefile MEM/a.md",
        "cat MEM/[a-b].md",
    ],
)
def test_what_might_meet_the_real_one_is_refused(places: ShellMap, command: str) -> None:
    command = command.replace("MEM", str(places.root)).replace("UP", str(places.root.parent))
    assert is_read_only_shell(command), command
    with pytest.raises(NotMapped):
        places.command(command)


def test_a_search_of_the_working_folder_that_holds_the_memory_is_refused(places: ShellMap) -> None:
    above = ShellMap(places.root, places.copy, places.root.parent, places.home)
    for command in ("grep -r x", "find . -name a.md", "ls -R", "find -name a.md"):
        if is_read_only_shell(command):
            with pytest.raises(NotMapped):
                above.command(command)
    inside = ShellMap(places.root, places.copy, places.root, places.home)
    with pytest.raises(NotMapped):
        inside.command("ls")
    assert str(places.copy) in inside.command("cat a.md")


names = st.sampled_from(["a.md", "logs/day.md", "new.md", "b c.md", ".", "", "logs", "*.md", "a*"])
quotes = st.sampled_from(["{}", "'{}'", '"{}"'])


@given(
    program=st.sampled_from(["cat", "ls", "head -n 2", "wc -l", "stat", "grep -n REAL", "grep -rh REAL", "find"]),
    name=names,
    quote=quotes,
    way=st.sampled_from(
        ["{root}/{name}", "link/{name}", "{root}/./{name}", "../home/memory/{name}", "~/memory/{name}"]
    ),
)
def test_no_spelling_reaches_the_real_files(
    tmp_path_factory: pytest.TempPathFactory, program: str, name: str, quote: str, way: str
) -> None:
    folder = tmp_path_factory.mktemp("m")
    root, copy, cwd = folder / "home" / "memory", folder / "dreams" / "memory", folder / "work"
    for place, text in ((root, "REAL"), (copy, "COPY")):
        (place / "logs").mkdir(parents=True)
        for file in ("a.md", "b c.md", "logs/day.md"):
            (place / file).write_text(f"{text}\n")
    cwd.mkdir()
    (cwd / "link").symlink_to(root)
    places = ShellMap(root, copy, cwd, folder / "home")
    command = f"{program} {quote.format(way.format(root=root, name=name))}"
    if not is_read_only_shell(command):
        return
    try:
        mapped = places.command(command)
    except NotMapped:
        return
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder / "home")}
    done = subprocess.run(["bash", "-c", mapped], cwd=cwd, capture_output=True, text=True, timeout=LIMIT_S, env=env)
    assert "REAL" not in done.stdout.replace("grep -n REAL", ""), mapped
