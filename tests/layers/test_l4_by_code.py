"""What code says of a conversation: true to the record, bounded, the same every time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.layers.l4_compaction.by_code import (
    PARTS,
    Limits,
    names_beside,
    operation_ledger,
    operations,
    ranked_names,
    write_notes,
    write_summary,
)
from reverie.layers.l4_compaction.by_code.definitions import defined_name, definitions, enclosing, telling_line
from reverie.layers.l4_compaction.by_code.operations import only_shows, paths_in_command, plain_command
from reverie.models.tokens import encoded, estimate_text
from reverie.storage.transcript.chain import conversation
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.view import Entry, View
from reverie.types import JsonObject, Message, Origin, TextBlock, ToolResultBlock, ToolUseBlock
from tests.counts import count
from tests.shared_data import sources
from tests.work import cpu_limit


def asked(text: str) -> Entry:
    return Entry(None, Message("user", (TextBlock(text, Origin.TYPED),)))


def said(text: str) -> Entry:
    return Entry(None, Message("assistant", (TextBlock(text, Origin.MODEL),)))


def did(number: int, tool: str, given: JsonObject, result: str, *, error: bool = False) -> list[Entry]:
    name = f"c{number}"
    return [
        Entry(None, Message("assistant", (ToolUseBlock(name, tool, given),))),
        Entry(None, Message("user", (ToolResultBlock(name, result, error or None),))),
    ]


def _names(entries: Sequence[Entry]) -> list[str]:
    return [name.text for name in ranked_names(entries)]


WORK = [
    asked("Fix the failing test in parse_header"),
    *did(
        1, "Read", {"file_path": "/p/src/parse.py"}, "     1→def parse_header(line):\n     2→    clean = line.strip()"
    ),
    *did(2, "Bash", {"command": "cd /p && pytest -q"}, "Exit code 1\nE  AssertionError: bad\n1 failed", error=True),
    *did(
        3,
        "Edit",
        {
            "file_path": "/p/src/parse.py",
            "old_string": "    clean = line.strip()",
            "new_string": "    clean = strip_bom(line)",
        },
        "ok",
    ),
    *did(4, "Bash", {"command": "pytest -q"}, "...\n12 passed in 0.3s"),
    *did(5, "Bash", {"command": "git push"}, "Exit code 128\nfatal: no upstream", error=True),
    *did(6, "Grep", {"pattern": "strip_bom", "path": "/p/src"}, "/p/src/parse.py:2: strip_bom\n/p/src/bom.py:1: def"),
    *did(
        7,
        "TodoWrite",
        {"todos": [{"content": "Add a test", "status": "pending"}, {"content": "x", "status": "completed"}]},
        "ok",
    ),
    said("The header is parsed now; pushing failed because there is no upstream."),
]


def test_a_line_says_what_happened() -> None:
    ledger = operation_ledger(operations(WORK), cwd="/p")
    assert "`pytest -q` → exit 1: E AssertionError: bad; worked later after changing parse.py" in ledger
    assert "`git push` → exit 128: fatal: no upstream\n" in ledger
    assert "src/parse.py: 1 change in parse_header; last −1 +1: clean = strip_bom(line)" in ledger
    assert "`pytest -q` → 12 passed in 0.3s" in ledger
    assert "Grep strip_bom in src → 2 lines: parse.py, bom.py" in ledger
    assert "TodoWrite" not in ledger, "the task list is no operation of its own"


def test_files_that_only_commands_name_and_stretches_that_were_read_are_on_record() -> None:
    work = [
        *did(1, "Read", {"file_path": "/p/a/long.go", "offset": 40, "limit": 20}, "x"),
        *did(2, "Bash", {"command": "grep -n main /p/cmd/run.go | head https://example.com/x.go"}, "1\n2"),
    ]
    ledger = operation_ledger(operations(work), cwd="/p")
    assert "a/: long.go (40–59)" in ledger
    assert "Files only named in commands:\n- cmd/: run.go" in ledger and "x.go\n" not in ledger


@pytest.mark.parametrize(
    ("command", "plain", "shows"),
    [
        ("cd /p/q && git diff\n --stat", "git diff --stat", True),
        ("cd '/p q' && make test", "make test", False),
        ("cat a.txt > b.txt", "cat a.txt > b.txt", False),
        ("sed -n 1,9p x", "sed -n 1,9p x", True),
        ("sed -i s/a/b/ x", "sed -i s/a/b/ x", False),
        ("ls; rm x", "ls; rm x", False),
    ],
)
def test_commands_are_compared_without_where_they_ran(command: str, plain: str, shows: bool) -> None:
    assert plain_command(command) == plain
    assert only_shows(plain) is shows


def test_paths_in_commands_are_files_and_not_addresses() -> None:
    found = paths_in_command(
        "go test ./a/b_test.go github.com/x/y.go s3://b/c.txt ~/n/m.md a/*.go jq .x.y v1.2 {a/b}.c"
    )
    assert found == ["a/b_test.go", "~/n/m.md"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("func (s *Store) Save(ctx context.Context) error {", "Save"),
        ("    async def fetch_all(self) -> None:", "fetch_all"),
        ("pub(crate) fn parse<T>(input: &str) -> T {", "parse"),
        ("export default function App() {", "App"),
        ("export const useThing = async (a: string) => {", "useThing"),
        ("public static void main(String[] args) {", "main"),
        ("static int read_all(struct buf *b) {", "read_all"),
        ("  def valid?", "valid?"),
        ("CREATE TABLE IF NOT EXISTS users (", "users"),
        ("class Größe:", "Größe"),
        ("    if (ready(x)) {", None),
        ("    } else if (a) {", None),
        ("return call(a)", None),
        ("x" * 5_000, None),
    ],
)
def test_definitions_are_seen_in_many_languages(line: str, name: str | None) -> None:
    assert defined_name(line) == name


def test_a_change_is_told_by_where_it_stands_and_what_it_says() -> None:
    file = "import os\n\ndef first():\n    pass\n\ndef second():\n    value = compute(1)\n\nLAST = third()\n"
    assert enclosing(file, "    value = compute(1)") == "second"
    assert enclosing(file, "LAST = third()") is None and enclosing(file, "not there at all") is None
    assert definitions(file) == ["first", "second"]
    assert telling_line('"a"', '"a"\n"strings"') == "imports"
    assert telling_line("", "// why\nx := 1\nresult, err := doSomething(ctx)\n}") == "result, err := doSomething(ctx)"


def test_a_summary_has_all_nine_parts_and_names_what_is_open() -> None:
    summary = write_summary(WORK, cwd="/p")
    positions = [summary.index(f"## {title}") for title in PARTS]
    assert positions == sorted(positions)
    assert "strip_bom" in summary and "Add a test" in summary and "fatal: no upstream" in summary
    beside = write_summary(WORK, cwd="/p", alone=False)
    assert all(f"## {title}" in beside for title in PARTS)
    assert "Commands that worked" in summary and "Commands that worked" not in beside, "the ledger stands beside it"


def test_kinds_of_files_that_were_touched_equally_often_come_in_the_order_of_their_use() -> None:
    """In every process: code only goes on with notes that equal what it would have written itself."""
    kinds = (".sh", ".go", ".py", ".md", ".c")
    read = [entry for n, kind in enumerate(kinds) for entry in did(n, "Read", {"file_path": f"/p/a{kind}"}, "x")]
    assert "Files touched: .sh 1×, .go 1×, .py 1×, .md 1×, .c 1×" in write_summary([asked("Look"), *read], cwd="/p")


def test_a_small_summary_keeps_how_to_go_on() -> None:
    summary = write_summary(WORK, Limits.for_tokens(220), cwd="/p", alone=False)
    assert "First open item: Add a test" in summary
    assert len(encoded(summary)) <= Limits.for_tokens(220).total


def test_tasks_are_followed_to_their_end() -> None:
    work = [
        asked("go"),
        *did(1, "TaskCreate", {"subject": "Write it"}, "Task #1 created"),
        *did(2, "TaskCreate", {"subject": "Test it"}, "Task #2 created"),
        *did(3, "TaskUpdate", {"taskId": "1", "status": "completed"}, "ok"),
    ]
    summary = write_summary(work)
    assert "- Test it\n- (done so far: 1, last: Write it)" in summary
    assert "First open item: Test it" in summary


def test_names_that_people_and_edits_use_come_before_what_was_printed() -> None:
    noise = did(9, "Bash", {"command": "env"}, " ".join(f"printed_name_{i}" for i in range(50)))
    assert _names([*noise, *WORK])[:2] in (["parse_header", "strip_bom"], ["strip_bom", "parse_header"])


def test_names_stand_under_their_file_and_are_not_said_twice() -> None:
    lines = names_beside(WORK, 10, "it says strip_bom already, and no_parse_header_at_all", cwd="/p")
    assert lines == "- src/parse.py: parse_header", "names that Python has built in are known anyway"


def test_words_hashes_and_escapes_are_not_names() -> None:
    text = "Plain words, SHOUTING, deadbeef12 and \\nNewline but realName and ENT-241"
    text += " KeyError, __future__, 0x7ffe12ab"
    work = [*did(1, "Bash", {"command": "git log"}, text)]
    assert set(_names(work)) == {"realName", "ENT-241"}
    assert "deadbeef12" in _names([*work, *did(2, "Bash", {"command": "git show deadbeef12"}, "")])


TEMPLATE = "\n".join(f"# Section {i}\n_hint {i}_\n" for i in range(1, 11))


def test_notes_keep_headings_and_hints_and_stay_within_their_limits() -> None:
    notes = write_notes(WORK, TEMPLATE, Limits(total=6_000), cwd="/p")
    for i in range(1, 11):
        assert f"# Section {i}\n_hint {i}_\n" in notes
    assert "Fix the failing test" in notes and "12 passed" in notes
    assert len(notes) <= 6_000
    assert write_notes([], TEMPLATE).count("# Section") == 10


def busy(count: int, seed: int) -> list[Entry]:
    chance = random.Random(seed)
    entries = [asked(f"Überarbeite alles, Nummer {seed} ✓")]
    for i in range(count):
        tool = chance.choice(["Read", "Bash", "Edit", "Grep", "Write", "WebFetch"])
        given: JsonObject = {
            "file_path": f"/p/dir{i % 9}/datei_{i}_ü.py",
            "command": f"run thing_{i}",
            "pattern": f"p{i}",
            "new_string": f"def fun_{i}():\n    return value_{i}",
            "content": "ß" * (i % 50),
        }
        entries += did(i, tool, given, "Exit code 2\nerror: nö" if i % 5 == 0 else "fine", error=i % 5 == 0)
    return entries


@pytest.mark.parametrize("budget", [0, 300, 2_000, 20_000])
def test_the_ledger_never_exceeds_its_budget_and_keeps_failures_longest(budget: int) -> None:
    ledger = operation_ledger(operations(busy(400, 7)), max_chars=budget, cwd="/p")
    assert len(encoded(ledger)) <= budget
    if budget >= 2_000:
        assert ledger.startswith("Failed")


def test_every_changed_file_is_named_where_there_is_room_for_names() -> None:
    work = [
        e for i in range(40) for e in did(i, "Write", {"file_path": f"/p/d{i % 3}/f{i}.py", "content": "a_b"}, "ok")
    ]
    ledger = operation_ledger(operations(work), max_chars=1_500, cwd="/p")
    assert all(f"f{i}.py" in ledger for i in range(40))


@settings(max_examples=count(15, 400), deadline=None)
@given(tokens=st.integers(0, 6_000), count=st.integers(0, 60), seed=st.integers(0, 5))
def test_what_is_written_never_exceeds_its_limits(tokens: int, count: int, seed: int) -> None:
    entries, limits = busy(count, seed), Limits.for_tokens(tokens)
    for alone in (True, False):
        assert len(encoded(write_summary(entries, limits, alone=alone))) <= limits.total
    heads = len(encoded(TEMPLATE)) + 20
    notes = write_notes(entries, TEMPLATE, limits)
    assert len(encoded(notes)) <= max(heads, limits.total)
    assert notes.count("# Section") == 10
    full = write_notes(entries, TEMPLATE, Limits(total=48_000, section=8_000))
    for section in full.split("# Section")[1:]:
        assert estimate_text(section) <= 2_000 + 20


blocks = st.one_of(
    st.builds(TextBlock, st.text(max_size=80), st.sampled_from(Origin)),
    st.builds(
        ToolUseBlock,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["Read", "Edit", "MultiEdit", "Write", "Bash", "Grep", "TodoWrite", "TaskUpdate", "mcp__x"]),
        st.one_of(
            st.none(),
            st.text(max_size=20),
            st.dictionaries(
                st.sampled_from(["file_path", "command", "edits", "todos", "offset", "limit", "new_string", "taskId"]),
                st.one_of(st.none(), st.integers(), st.text(max_size=30), st.lists(st.text(max_size=5), max_size=3)),
            ),
        ),
    ),
    st.builds(ToolResultBlock, st.sampled_from(["a", "b", "zz"]), st.one_of(st.none(), st.text(max_size=60))),
)


@settings(max_examples=count(25, 1_200), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.lists(blocks, max_size=4)), max_size=12))
def test_any_conversation_is_written_of_and_always_the_same(said_: list[tuple[str, list[TextBlock]]]) -> None:
    entries = [Entry(None, Message("user" if role == "user" else "assistant", tuple(b))) for role, b in said_]
    assert write_summary(entries) == write_summary(entries)
    assert write_notes(entries, TEMPLATE).count("\n_hint ") >= 10
    assert ranked_names(entries) == ranked_names(entries)
    assert len(encoded(operation_ledger(operations(entries), max_chars=500))) <= 500


def test_hostile_and_odd_calls_are_survived() -> None:
    odd = [
        Entry(None, Message("assistant", (ToolUseBlock("x", "Edit", "not an object"), ToolUseBlock("y", "", None)))),
        Entry(None, Message("user", (ToolResultBlock("x", None), ToolResultBlock("zz", "orphan")))),
        *did(3, "TodoWrite", {"todos": "no list"}, ""),
        *did(4, "TaskUpdate", {"taskId": "99", "status": "completed"}, ""),
        *did(5, "Bash", {"command": "\x00\n" * 900}, "\ud800" * 10),
        *did(6, "Write", {"file_path": "/p/min.js", "content": "a b(" * 50_000}, "ok"),
    ]
    with cpu_limit(2.0):
        assert write_summary(odd) and write_notes(odd, TEMPLATE) and operation_ledger(operations(odd))


@pytest.mark.parametrize("folder", sources("transcripts", long=True))
def test_recorded_sessions_are_summarised_quickly_and_the_same_each_time(folder: Path) -> None:
    for path in sorted(folder.glob("*.jsonl"))[:8]:
        entries = View.of(conversation(read_records(path).records)).history
        with cpu_limit(10):
            summary = write_summary(entries)
        assert summary == write_summary(entries) and len(encoded(summary)) <= Limits().total
