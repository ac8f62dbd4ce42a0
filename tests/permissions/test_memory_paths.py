"""Inside or not: every path is tried on a real tree with real links; what is returned is where a write would land."""

from __future__ import annotations

import json
import os
import socket
import stat
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reverie.errors import UserError
from reverie.permissions.memory_paths import (
    PermissionRefused,
    RefusedRoot,
    check_memory_root,
    check_memory_write,
    is_inside,
)
from tests.counts import count
from tests.permissions.path_corpus import (
    BAD_CHARACTERS,
    BAD_NAMES,
    CLIMBS,
    LINKS,
    OUTSIDE,
    PLAIN,
    ROOTS_ALLOWED,
    ROOTS_REFUSED,
    TILDES,
)
from tests.shared_data import sources

HOME = Path("/home/someone")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    base = Path(os.path.realpath(tmp_path)) / "base"
    memory = base / "mem"
    for folder in ("mem/sub", "mem/.hidden", "mem-evil", "other"):
        (base / folder).mkdir(parents=True)
    for name in ("mem/real.md", "mem/data.json", "mem/.lock", "out.md"):
        (base / name).touch()
    return memory


def writes(path: str, root: Path) -> Path | None:
    """Where a write would land, or None if it is refused, in one sentence."""
    try:
        landed = check_memory_write(path, root)
    except PermissionRefused as refusal:
        assert "\n" not in str(refusal) and str(refusal).endswith("."), refusal
        return None
    # Whatever was allowed is a plain place inside: no links left, and the right kind of name.
    assert str(landed).startswith(f"{os.path.realpath(root)}/") and landed.suffix == ".md"
    assert os.path.realpath(landed) == str(landed)
    return landed


def fill(template: str, root: Path) -> str:
    return template.format(root=root, base=root.parent, name=root.parent.name) if "{" in template else template


@pytest.mark.parametrize("name", PLAIN, ids=ascii)
def test_ordinary_names_inside_are_written(root: Path, name: str) -> None:
    landed = writes(f"{root}/{name}", root)
    assert landed is not None
    landed.parent.mkdir(parents=True, exist_ok=True)
    landed.write_text("x")
    assert unicodedata.normalize("NFC", f"{root}/{name}").endswith(landed.name)
    assert writes(f"{root}/{name}", root) == landed, "the same once the file exists"


@pytest.mark.parametrize("end", ["/a.md", "/sub/a.md"])
@pytest.mark.parametrize("climb", CLIMBS, ids=ascii)
def test_no_spelling_of_dot_dot_climbs(root: Path, climb: str, end: str) -> None:
    assert writes(f"{root}/{climb}{end}", root) is None
    assert writes(f"{root}/sub/{climb}{end}", root) is None
    assert not is_inside(f"{root}/{climb}{end}", root)


@pytest.mark.parametrize("char", BAD_CHARACTERS, ids=ascii)
def test_no_name_holds_a_character_that_deceives(root: Path, char: str) -> None:
    for name in (f"a{char}b.md", f"{char}a.md", f"a.md{char}", f"d{char}d/a.md"):
        assert writes(f"{root}/{name}", root) is None, ascii(name)


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name)[:40])
def test_names_that_are_no_topic_file_are_refused(root: Path, name: str) -> None:
    assert writes(f"{root}/{name}", root) is None


@pytest.mark.parametrize("template", OUTSIDE, ids=ascii)
def test_paths_elsewhere_are_refused(root: Path, template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert writes(fill(template, root), root) is None


@pytest.mark.parametrize(("link", "target", "path", "allowed"), LINKS, ids=[f"{a}->{b}:{c}" for a, b, c, _ in LINKS])
def test_links_count_by_where_they_lead(root: Path, link: str, target: str, path: str, allowed: bool) -> None:
    (root / link).symlink_to(fill(target, root))
    assert (writes(f"{root}/{fill(path, root)}", root) is not None) == allowed


def test_a_chain_of_links_counts_by_its_end(root: Path) -> None:
    (root / "one.md").symlink_to("two.md")
    (root / "two.md").symlink_to("three.md")
    (root / "three.md").symlink_to("real.md")
    assert writes(f"{root}/one.md", root) == root / "real.md"
    (root / "three.md").unlink()
    (root / "three.md").symlink_to("../out.md")
    assert writes(f"{root}/one.md", root) is None


def test_two_links_in_a_circle_are_refused(root: Path) -> None:
    (root / "ping").symlink_to("pong")
    (root / "pong").symlink_to("ping")
    assert writes(f"{root}/ping/a.md", root) is None


def test_a_directory_reached_through_links_counts_by_its_real_place(root: Path) -> None:
    alias = root.parent / "alias"
    alias.symlink_to(root)
    assert writes(f"{alias}/a.md", alias) == root / "a.md"
    assert writes(f"{alias}/a.md", root) == root / "a.md"
    assert writes(f"{root}/a.md", alias) == root / "a.md"
    assert writes(f"{alias}-evil/a.md", alias) is None
    assert writes(f"{alias}/.hidden/a.md", root) is None


def test_a_directory_that_does_not_exist_yet_has_an_inside(root: Path) -> None:
    later = root.parent / "later" / "mem"
    assert writes(f"{later}/a.md", later) == later / "a.md"
    assert writes(f"{later}-evil/a.md", later) is None


def test_a_directory_behind_a_dangling_link_has_no_inside(root: Path) -> None:
    gone = root.parent / "gone"
    gone.symlink_to(root.parent / "nowhere")
    assert writes(f"{gone}/a.md", gone) is None
    assert not is_inside(f"{gone}/a.md", gone)


@pytest.mark.parametrize("kind", ["folder", "fifo", "socket", "hard link", "file as folder"])
def test_only_a_regular_file_of_its_own_may_be_overwritten(
    root: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = root / "t.md"
    match kind:
        case "folder":
            target.mkdir()
        case "fifo":
            os.mkfifo(target)
        case "socket":
            monkeypatch.chdir(root)  # a socket's path must be short
            socket.socket(socket.AF_UNIX).bind("t.md")
        case "hard link":
            target.hardlink_to(root.parent / "out.md")
        case _:
            target.touch()
            target = target / "a.md"
    assert writes(str(target), root) is None


def test_a_folder_that_cannot_be_looked_into_is_refused(root: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may look into everything")
    (root / "sub").chmod(stat.S_IRUSR)
    try:
        assert writes(f"{root}/sub/a.md", root) is None
    finally:
        (root / "sub").chmod(0o700)


def test_a_name_on_disk_keeps_its_spelling_and_a_new_one_is_composed(root: Path) -> None:
    decomposed = "cafe\u0301"
    assert writes(f"{root}/{decomposed}.md", root) == root / "caf\u00e9.md"
    (root / decomposed).mkdir()
    assert writes(f"{root}/{decomposed}/a.md", root) == root / decomposed / "a.md"


def test_reading_needs_no_markdown_and_may_name_the_directory(root: Path) -> None:
    for inside in ("", "/", "/data.json", "/.lock", "/sub", "/missing/x.txt", "/real.md"):
        assert is_inside(f"{root}{inside}", root), inside
    (root / "out").symlink_to(root.parent / "other")
    for outside in (str(root.parent), "data.json", f"{root}/out/x", f"{root}/../out.md", f"{root}-evil/x", "", "/"):
        assert not is_inside(outside, root), outside


@given(
    pieces=st.lists(
        st.sampled_from(
            ["/", "..", ".", "a", "sub", "out", "loop", "a.md", "%2e", "\uff0e", "\\", "\u2025", " ", "é", "link"]
        ),
        max_size=12,
    ),
    tail=st.sampled_from(["", ".md", "/a.md"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=count(40, 3_000))
def test_whatever_is_allowed_lands_inside(root: Path, pieces: list[str], tail: str) -> None:
    for link, target in (("out", "../other"), ("loop", "loop"), ("link", "sub")):
        if not (root / link).is_symlink():
            (root / link).symlink_to(target)
    writes(f"{root}/{''.join(pieces)}{tail}", root)  # asserts what it returns


@pytest.mark.parametrize("path", ROOTS_ALLOWED, ids=ascii)
def test_ordinary_roots_are_taken(path: str) -> None:
    taken = check_memory_root(path, home=HOME)
    assert taken.is_absolute() and not str(taken).endswith("/") and "//" not in str(taken)


@pytest.mark.parametrize("path", ROOTS_REFUSED, ids=lambda path: ascii(path)[:40])
def test_other_roots_are_refused_in_one_sentence(path: str) -> None:
    with pytest.raises(RefusedRoot) as refusal:
        check_memory_root(path, home=HOME)
    assert isinstance(refusal.value, UserError)
    assert "\n" not in str(refusal.value) and str(refusal.value).endswith(".")


@pytest.mark.parametrize(("path", "allowed"), TILDES, ids=[ascii(path) for path, _ in TILDES])
def test_a_tilde_stands_for_home_only_at_the_start_and_when_asked(path: str, allowed: bool) -> None:
    if allowed:
        taken = check_memory_root(path, home=HOME, expand_tilde=True)
        assert not path.startswith("~") or HOME in taken.parents
    else:
        with pytest.raises(RefusedRoot):
            check_memory_root(path, home=HOME, expand_tilde=True)
    if path.startswith("~"):
        with pytest.raises(RefusedRoot):
            check_memory_root(path, home=HOME)


@pytest.mark.parametrize(
    ("arrange", "allowed"),
    [
        (lambda spot, home: spot.mkdir(), True),
        (lambda spot, home: spot.symlink_to(home / "mem"), True),
        (lambda spot, home: spot.symlink_to(home), False),
        (lambda spot, home: spot.symlink_to(home.parent), False),
        (lambda spot, home: spot.symlink_to("/"), False),
        (lambda spot, home: spot.symlink_to(home / "nowhere"), False),
        (lambda spot, home: spot.symlink_to(spot), False),
        (lambda spot, home: spot.touch(), False),
    ],
    ids=["folder", "link to a folder", "link to home", "link above home", "link to /", "dangling", "loop", "file"],
)
def test_a_root_counts_by_where_it_leads(tmp_path: Path, arrange: Callable[[Path, Path], None], allowed: bool) -> None:
    home = tmp_path / "home" / "u"
    (home / "mem").mkdir(parents=True)
    spot = tmp_path / "spot"
    arrange(spot, home)
    if allowed:
        assert check_memory_root(str(spot), home=home) == spot
    else:
        with pytest.raises(RefusedRoot):
            check_memory_root(str(spot), home=home)


def verdict(case: dict[str, Any], scratch: Path) -> bool:
    """Build a measured case on disk under `scratch` and ask."""

    def moved(path: str) -> str:
        return f"{scratch}{path}" if path.startswith("/") else path

    if case["kind"] == "root":
        try:
            check_memory_root(case["path"], home=Path("/home/u"), expand_tilde=case.get("expand_tilde", False))
        except RefusedRoot:
            return False
        return True
    memory = Path(moved(case["memory_dir"]))
    for step in case["setup"]:
        kind = next(kind for kind in ("file", "dir", "symlink") if kind in step)
        entry = memory / moved(step[kind])
        entry.parent.mkdir(parents=True, exist_ok=True)
        match kind:
            case "file":
                entry.touch()
            case "dir":
                entry.mkdir(parents=True, exist_ok=True)
            case _:
                entry.symlink_to(moved(step["to"]))
    memory.mkdir(parents=True, exist_ok=True)
    return writes(moved(case["path"]), memory) is not None


@pytest.mark.parametrize(("file", "key"), [("paths-dev", "allow"), ("judgement-calls", "suggest")])
@pytest.mark.parametrize("folder", sources("security"))
def test_every_verdict_of_the_measuring_data_is_right(tmp_path: Path, folder: Path, file: str, key: str) -> None:
    lines = (folder / f"{file}.jsonl").read_text("utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case.get("corpus", "paths") == "paths"]
    base = Path(os.path.realpath(tmp_path))
    wrong = [
        (case["path"][-60:], case["why"])
        for number, case in enumerate(cases)
        if verdict(case, base / str(number)) != case[key]
    ]
    assert wrong == []


def test_our_own_corpus_is_large() -> None:
    written = len(PLAIN) + 2 * 2 * len(CLIMBS) + 4 * len(BAD_CHARACTERS) + len(BAD_NAMES) + len(OUTSIDE) + len(LINKS)
    assert written + len(ROOTS_ALLOWED) + len(ROOTS_REFUSED) + len(TILDES) >= 2 * 140
