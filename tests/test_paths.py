"""Where everything lives, which repository a folder belongs to, and which rule decided about memory."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from reverie.errors import SettingsError, StorageError, UserError
from reverie.paths import (
    MemoryPlace,
    Places,
    check_session_id,
    find_repo,
    make_private,
    memory_place,
    memory_switch,
    slug,
    user_home,
)
from reverie.permissions.memory_paths import check_memory_root
from reverie.settings import Settings, load_settings
from tests.settings.conftest import trust_all

ID = "00ef13bd-99a1-4001-a829-09985a069ab2"


def git(where: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=where, capture_output=True, check=True)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "deep" / "er").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return folder


def settings_for(
    cwd: Path, env: Mapping[str, str] | None = None, overrides: Mapping[str, object] | None = None
) -> Settings:
    # The tests' repositories are all called `repo`; the user's home is beside them.
    beside = next((folder.parent for folder in (cwd, *cwd.parents) if folder.name == "repo"), cwd)
    full = {"HOME": str(beside / "u"), **(env or {})}
    return load_settings(cwd, env=full, overrides=overrides, managed_dir=cwd / "no-managed")


def places_for(cwd: Path, env: Mapping[str, str] | None = None) -> Places:
    return Places.of(cwd, settings_for(cwd, env))


# Slugs.


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/u/my.project_x", "-home-u-my-project-x"),
        ("/a b/ç", "-a-b--"),
        ("/日本", "---"),
        ("/x😀y", "-x--y"),
        ("/" + "a" * 199, "-" + "a" * 199),
    ],
)
def test_a_slug_is_the_path_with_dashes(path: str, name: str) -> None:
    assert slug(Path(path)) == name


def test_a_long_slug_is_cut_and_stays_unique() -> None:
    one, two = Path("/" + "a" * 200), Path("/" + "a" * 201)
    assert slug(one).startswith("-" + "a" * 199 + "-")
    assert slug(one) != slug(two)
    assert len(slug(two)) < 255
    assert slug(one) == slug(Path(str(one)))


@examples(deadline=None)
@given(st.text(st.characters(exclude_characters="\0"), min_size=1))
def test_a_slug_is_always_one_safe_name(text: str) -> None:
    name = slug(Path("/" + text))
    assert name and all(char.isascii() and (char.isalnum() or char == "-") for char in name)
    assert len(name) <= 220


# Repositories.


def test_a_folder_outside_git_is_its_own_root(tmp_path: Path) -> None:
    found = find_repo(tmp_path)
    assert (found.root, found.checkout, found.git_dir) == (tmp_path, tmp_path, None)


def test_every_folder_of_a_repository_has_its_root(repo: Path) -> None:
    for folder in (repo, repo / "deep", repo / "deep" / "er", repo / "deep" / "not there yet"):
        assert find_repo(folder).root == repo
    (repo / "deep" / ".git").mkdir()
    assert find_repo(repo / "deep" / "er").root == repo, "an empty .git folder is no repository"


def test_a_link_to_a_repository_is_that_repository(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repo / "deep")
    assert find_repo(tmp_path / "link").root == repo
    places = places_for(tmp_path / "link")
    assert places.cwd == repo / "deep"


def test_all_worktrees_share_the_main_root(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree one"), "-b", "one")
    git(tmp_path / "tree one", "worktree", "add", "-q", str(repo / "deep" / "inside"), "-b", "two")
    for tree in (tmp_path / "tree one", repo / "deep" / "inside"):
        found = find_repo(tree)
        assert found.root == repo
        assert found.checkout == tree
    one, main = places_for(tmp_path / "tree one"), places_for(repo)
    assert one.default_memory.name == "memory"
    assert one.default_memory.parent.name == main.default_memory.parent.name == slug(repo)
    assert one.project != main.project, "transcripts go by the working directory"


def test_worktrees_with_relative_links(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "-q", str(tree))
    inner = repo / ".git" / "worktrees" / "tree"
    (tree / ".git").write_text("gitdir: ../repo/.git/worktrees/tree\n")
    (inner / "gitdir").write_text("../../../../tree/.git\n")
    assert find_repo(tree).root == repo


def test_worktrees_of_a_bare_repository_share_it(repo: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "-q", "--bare", str(repo), str(bare))
    git(bare, "worktree", "add", "-q", str(tmp_path / "one"), "-b", "one")
    git(bare, "worktree", "add", "-q", str(tmp_path / "two"), "-b", "two")
    assert find_repo(tmp_path / "one").root == find_repo(tmp_path / "two").root == bare


def test_a_submodule_and_its_worktrees_have_a_root_of_their_own(repo: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "x")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    assert find_repo(repo / "sub").root == repo / "sub"
    git(repo / "sub", "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "tree")
    assert find_repo(tmp_path / "tree").root == repo / "sub"


def test_a_repository_with_its_git_folder_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    git(tmp_path / "work", "init", "-q", "--separate-git-dir", str(tmp_path / "store"))
    assert find_repo(tmp_path / "work").root == tmp_path / "work"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"gitdir:",
        b"gitdir: /nowhere",
        b"nonsense",
        b"gitdir: \xff\xfe",
        b"gitdir: a\nb",
        b"gitdir: a\0b",
        b"x" * 9999,
    ],
)
def test_a_broken_git_file_is_no_repository(tmp_path: Path, text: bytes) -> None:
    (tmp_path / ".git").write_bytes(text)
    assert find_repo(tmp_path).root == tmp_path


def test_a_forged_git_file_does_not_get_another_projects_memory(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "tree"))
    for target in (repo / ".git" / "worktrees" / "tree", repo / ".git"):
        forged = tmp_path / f"forged {target.name}"
        forged.mkdir()
        (forged / ".git").write_text(f"gitdir: {target}\n")
        assert find_repo(forged).root == forged


# Places.


def test_everything_of_a_session_is_by_the_working_directory(repo: Path) -> None:
    places = places_for(repo / "deep", {"REVERIE_HOME": "/h"})
    base = f"/h/projects/{slug(repo / 'deep')}"
    assert str(places.transcript(ID)) == f"{base}/{ID}.jsonl"
    assert str(places.tool_results(ID)) == f"{base}/{ID}/tool-results"
    assert str(places.session_notes(ID)) == f"{base}/{ID}/session-memory/summary.md"
    assert str(places.agent_transcript(ID, "a1")) == f"{base}/{ID}/subagents/agent-a1.jsonl"
    assert str(places.flags_file) == "/h/flags.toml"
    assert str(places.background_log) == "/h/logs/background.jsonl"
    assert str(places.inbox("team", "bob")) == "/h/teams/team/inboxes/bob.json"


def test_agent_memory_has_three_scopes(repo: Path) -> None:
    places = places_for(repo / "deep", {"REVERIE_HOME": "/h"})
    assert str(places.agent_memory_user("review:fast")) == "/h/agent-memory/review-fast"
    assert places.agent_memory_project("x") == repo / ".reverie" / "agent-memory" / "x"
    assert places.agent_memory_local("x") == repo / ".reverie" / "agent-memory-local" / "x"
    remote = places_for(repo, {"REVERIE_REMOTE_MEMORY_DIR": "/mnt"})
    assert str(remote.agent_memory_local("x")) == f"/mnt/projects/{slug(repo)}/agent-memory-local/x"
    assert str(remote.default_memory) == f"/mnt/projects/{slug(repo)}/memory"
    assert remote.transcript(ID).is_relative_to(remote.home), "only memory moves"


@pytest.mark.parametrize(
    "bad", ["", ".", "..", "../x", "a/b", "a\0b", "-x", ".x", "a b", "é", "x" * 129, "a\n", "a\\b"]
)
def test_an_id_cannot_lead_anywhere_else(repo: Path, bad: str) -> None:
    places = places_for(repo)
    for use in (check_session_id, places.transcript, places.session, places.socket, places.agent_memory_user):
        with pytest.raises(UserError, match="is not a"):
            use(bad)
    with pytest.raises(UserError):
        places.inbox(bad, "x")
    with pytest.raises(UserError):
        places.inbox("x", bad)


@examples(deadline=None)
@given(st.text())
def test_any_accepted_id_stays_in_the_project_folder(text: str) -> None:
    places = Places(Path("/h"), Path("/c"), Path("/c"), Path("/c"))
    try:
        found = places.session(text)
    except UserError:
        return
    assert os.path.normpath(found) == str(found)
    assert found.parent == places.project


@pytest.mark.parametrize("length", [1, 50, 150, 250])
@pytest.mark.parametrize("runtime", [True, False])
def test_a_socket_can_be_bound_however_long_the_home(tmp_path: Path, length: int, runtime: bool) -> None:
    home = tmp_path / ("h" * min(length, 200)) / ("x" * max(1, length - 200))
    env = {"REVERIE_HOME": str(home)}
    if runtime:
        env["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    places = places_for(tmp_path, env)
    path = places.socket(ID)
    assert path == places_for(tmp_path.parent, env).socket(ID), "the same from every folder"
    assert path != places.socket("other")
    assert path != places_for(tmp_path, {**env, "REVERIE_HOME": str(home) + "2"}).socket(ID)
    make_private(path.parent)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
    path.unlink()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_private_folders(tmp_path: Path) -> None:
    folder = make_private(tmp_path / "a" / "b" / "c")
    assert make_private(folder) == folder
    for made in (folder, folder.parent, folder.parent.parent):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    for wrong in ("file", "file/below", "dangling"):
        with pytest.raises(StorageError):
            make_private(tmp_path / wrong)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12_345, 12_345)
    with pytest.raises(StorageError, match="belongs to another user"):
        make_private(tmp_path / "theirs")


def test_home_without_the_variable_is_what_the_system_says() -> None:
    assert user_home({}).is_absolute()
    assert user_home({"HOME": "relative"}) == user_home({})
    assert user_home({"HOME": "/x"}) == Path("/x")


# Memory: whether and where.


@pytest.mark.parametrize(
    ("env", "overrides", "on", "rule"),
    [
        ({}, {}, True, "default"),
        ({"REVERIE_DISABLE_MEMORY": "1", "REVERIE_REMOTE": "0"}, {}, False, "REVERIE_DISABLE_MEMORY is 1"),
        ({"REVERIE_DISABLE_MEMORY": "true"}, {"memory.enabled": True}, False, "REVERIE_DISABLE_MEMORY is 1"),
        ({"REVERIE_DISABLE_MEMORY": "0", "REVERIE_BARE": "1"}, {}, True, "REVERIE_DISABLE_MEMORY is 0"),
        ({"REVERIE_DISABLE_MEMORY": "false", "REVERIE_REMOTE": "1"}, {}, True, "REVERIE_DISABLE_MEMORY is 0"),
        ({"REVERIE_BARE": "1"}, {"memory.enabled": True}, False, "bare (environment REVERIE_BARE)"),
        ({}, {"session.bare": True}, False, "bare (command line)"),
        ({"REVERIE_REMOTE": "1"}, {}, False, "REVERIE_REMOTE is set and REVERIE_REMOTE_MEMORY_DIR is not"),
        ({"REVERIE_REMOTE": "1", "REVERIE_REMOTE_MEMORY_DIR": "/m"}, {}, True, "default"),
        ({"REVERIE_REMOTE": "1", "REVERIE_REMOTE_MEMORY_DIR": "/m"}, {"memory.enabled": False}, False, "setting"),
        ({}, {"memory.enabled": False}, False, "setting memory.enabled (command line)"),
    ],
)
def test_memory_is_on_or_off_by_the_first_rule_that_answers(
    repo: Path, env: dict[str, str], overrides: dict[str, object], on: bool, rule: str
) -> None:
    found = memory_switch(settings_for(repo, env, overrides))
    assert (found.on, found.rule[: len(rule)]) == (on, rule)


def where(cwd: Path, env: Mapping[str, str] | None = None) -> MemoryPlace:
    settings = settings_for(cwd, env)
    return memory_place(Places.of(cwd, settings), settings, check_memory_root)


def test_memory_lives_where_the_first_rule_says(repo: Path, tmp_path: Path) -> None:
    home = tmp_path / "u" / ".reverie"
    found = where(repo / "deep")
    assert found == MemoryPlace(home / "projects" / slug(repo) / "memory", "default; one per repository")
    env = {"REVERIE_REMOTE_MEMORY_DIR": "/mnt/m"}
    assert where(repo, env) == MemoryPlace(Path(f"/mnt/m/projects/{slug(repo)}/memory"), "REVERIE_REMOTE_MEMORY_DIR")
    (repo / ".reverie").mkdir()
    (repo / ".reverie" / "settings.toml").write_text('memory.directory = "/theirs/memory"')
    assert where(repo, env).rule == "REVERIE_REMOTE_MEMORY_DIR", "a project's committed settings never move it"
    home.mkdir(parents=True)
    (home / "settings.toml").write_text('\nmemory.directory = "~/mine/memory"')
    found = where(repo, env)
    assert found.directory == tmp_path / "u" / "mine" / "memory"
    assert found.rule == f"setting memory.directory ({home}/settings.toml:2)"
    (repo / ".reverie" / "settings.local.toml").write_text('memory.directory = "/local/memory"')
    assert where(repo, env).directory == tmp_path / "u" / "mine" / "memory", "nor do those of a folder nobody trusts"
    trust_all(settings_for(repo, env), repo)
    assert where(repo, env).directory == Path("/local/memory")
    env["REVERIE_MEMORY_PATH"] = "/env/memory"
    assert where(repo, env) == MemoryPlace(Path("/env/memory"), "REVERIE_MEMORY_PATH")


@pytest.mark.parametrize("bad", ["~/memory", "relative", "/", "/a", "C:\\x"])
def test_a_refused_memory_path_is_an_error_that_names_the_variable(repo: Path, bad: str) -> None:
    with pytest.raises(SettingsError, match="environment REVERIE_MEMORY_PATH: "):
        where(repo, {"REVERIE_MEMORY_PATH": bad})


@pytest.mark.parametrize("bad", ["~", "~/", "~/.", "~/..", "~/x/../..", "relative", "/"])
def test_a_refused_memory_directory_is_an_error_that_names_file_and_line(repo: Path, tmp_path: Path, bad: str) -> None:
    home = tmp_path / "u" / ".reverie"
    home.mkdir(parents=True)
    (home / "settings.toml").write_text(f'[memory]\ndirectory = "{bad}"')
    with pytest.raises(SettingsError, match=r"settings.toml:2: `memory.directory`: "):
        where(repo)


def test_an_existing_tree_of_claude_code_is_used_as_it_is(repo: Path, tmp_path: Path) -> None:
    memory = tmp_path / "u" / ".claude" / "projects" / slug(repo) / "memory"
    memory.mkdir(parents=True)
    assert where(repo, {"REVERIE_HOME": "~/.claude"}).directory == memory
