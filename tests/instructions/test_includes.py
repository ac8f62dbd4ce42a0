"""`@path`: what is taken in, what stays a word, and what may be read at all."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.instructions.commands import load_commands
from reverie.instructions.includes import expand, includes
from reverie.instructions.load import load_instructions
from reverie.instructions.markdown import MarkdownProse, without_comments
from reverie.paths import Places
from reverie.settings import load_settings
from tests.counts import count
from tests.instructions.conftest import Load, git, texts, write
from tests.work import cpu_limit


def only(load: Load, repo: Path, text: str, **options: object) -> str:
    write(repo / "AGENTS.md", text)
    return load(**options).files[-1].text


def test_relative_home_and_absolute(load: Load, repo: Path, user_home: Path) -> None:
    write(repo / "docs/a.md", "A from @deeper/b.md")
    write(repo / "docs/deeper/b.md", "B")
    write(user_home / "c.md", "C")
    text = only(
        load, repo, f"one\n@docs/a.md\ntwo\n- @~/c.md\n@{repo}/d.md\n", approved_includes=[str(user_home / "c.md")]
    )
    assert text.split("\n")[:2] == ["one", "A from @deeper/b.md"]
    assert "Content of @deeper/b.md:\n\nB" in text
    assert "\nC\n" in text and f"@{repo}/d.md" in text


def test_spaces_punctuation_and_fragments(load: Load, repo: Path) -> None:
    write(repo / "my notes.md", "NOTES")
    write(repo / "x.md", "EX")
    write(repo / "y.md", "WY")
    text = only(load, repo, "See @my\\ notes.md, then (maybe) @x.md. And @y.md#part!\n")
    assert text.startswith("See @my\\ notes.md, then (maybe) @x.md. And @y.md#part!")
    assert text.count("NOTES") == text.count("EX") == text.count("WY") == 1


@pytest.mark.parametrize(
    "text",
    [
        "write to me@x.md",
        "@nobody says hello",
        "`@x.md`",
        "``a ` @x.md``",
        "```\n@x.md\n```",
        "~~~ text\n@x.md\n~~~",
        "```\n@x.md",
        "para\n\n    @x.md",
        "para\n\n\t@x.md",
        "- item\n\n      @x.md",
        "-     @x.md",
        "> ```\n> @x.md\n> ```",
        "<pre>\n@x.md\n</pre>",
        "a `multi\nline @x.md` span",
        "@x.md/",
        "@@x.md",
        "@docs",
        "@" + "a" * 5_000,
        "@\\",
        "@ x.md",
    ],
)
def test_what_is_no_include(load: Load, repo: Path, text: str) -> None:
    write(repo / "x.md", "EX")
    (repo / "docs").mkdir()
    found = only(load, repo, text)
    assert found == text.strip()
    assert load().warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "@x.md",
        "a ` b\n\n@x.md",
        "`code`\n\n@x.md",
        "```\ncode\n```\n@x.md",
        "\\`@y` @x.md",
        "- @x.md",
        "> @x.md",
        "# @x.md",
        "<important>\n@x.md\n</important>",
        "para\n     @x.md",
    ],
)
def test_what_is_one(load: Load, repo: Path, text: str) -> None:
    write(repo / "x.md", "EX")
    assert "EX" in only(load, repo, text)


def test_five_deep_and_no_further(load: Load, repo: Path) -> None:
    for number in range(8):
        write(repo / f"{number}.md", f"level {number}\n@{number + 1}.md\n")
    text = only(load, repo, "@1.md")
    assert "level 5" in text and "level 6" not in text and "@6.md" in text
    assert "more than 5 files deep" in load().warnings[0]


def test_cycles_and_links_that_loop(load: Load, repo: Path) -> None:
    write(repo / "a.md", "A\n@b.md\n@AGENTS.md\n@loop.md\n")
    write(repo / "b.md", "B\n@a.md\n@same.md\n")
    (repo / "same.md").symlink_to("a.md")
    (repo / "loop.md").symlink_to("loop.md")
    rules = repo / ".claude" / "rules"
    rules.mkdir(parents=True)
    (rules / "up").symlink_to(repo / ".claude")
    (rules / "self").symlink_to(rules)
    write(rules / "r.md", "RULE")
    write(repo / "AGENTS.md", "@a.md\n")
    found = load()
    assert texts(found) == ["A\nB\n@loop.md", "RULE"]


def test_each_file_is_shown_once(load: Load, repo: Path) -> None:
    write(repo / "x.md", "EX")
    write(repo / "AGENTS.md", "@x.md\n@x.md\nmore @x.md\n")
    write(repo / "CLAUDE.md", "@x.md\nown\n")
    assert texts(load()) == ["EX\nmore @x.md", "own"]


def test_an_include_bomb_is_no_bomb(load: Load, repo: Path) -> None:
    for number in range(6):
        write(repo / f"{number}.md", f"@{number + 1}.md\n" * 400)
    write(repo / "6.md", "x" * 100_000)
    only(load, repo, "@0.md\n" * 400)
    assert sum(map(len, texts(load()))) < 400_000


class TestOutside:
    def test_needs_approval(self, load: Load, repo: Path, user_home: Path) -> None:
        secret = write(user_home / "plan.txt", "SECRET")
        write(repo / "AGENTS.md", f"@~/plan.txt\n@{secret}\n@../../home/plan.txt\nSee @~/plan.txt.")
        found = load()
        assert "SECRET" not in "".join(texts(found))
        assert len(found.warnings) == 1 and "approved_includes" in found.warnings[0]
        assert "SECRET" in load(approved_includes=[str(secret)]).files[0].text
        assert "SECRET" in load(approved_includes=[str(user_home)]).files[0].text

    def test_links_are_judged_by_where_they_lead(self, load: Load, repo: Path, user_home: Path) -> None:
        write(user_home / "secret.txt", "SECRET")
        (repo / "inside.md").symlink_to(user_home / "secret.txt")
        (repo / "folder").symlink_to(user_home)
        (repo / "CLAUDE.md").symlink_to(user_home / "secret.txt")
        rules = repo / ".claude" / "rules"
        rules.mkdir(parents=True)
        (rules / "r.md").symlink_to(user_home / "secret.txt")
        (rules / "more").symlink_to(user_home)
        write(user_home / "other.md", "SECRET")
        write(repo / "AGENTS.md", "words\n@inside.md\n@folder/secret.txt\n")
        found = load()
        assert "SECRET" not in str(found)
        assert len(found.warnings) >= 3

    def test_a_user_file_may(self, load: Load, repo: Path, user_home: Path) -> None:
        write(user_home / "a.md", "A\n@b.md\n")
        write(user_home / "b.md", "B")
        write(user_home / ".reverie/AGENTS.md", "@~/a.md\n")
        assert texts(load()) == ["A\nB"]

    def test_but_does_not_lend_it_to_the_project(self, load: Load, repo: Path, user_home: Path) -> None:
        write(user_home / "secret.txt", "SECRET")
        write(repo / "notes.md", "project words\n@~/secret.txt\n")
        write(user_home / ".reverie/AGENTS.md", f"@{repo}/notes.md\n")
        assert texts(load()) == ["project words\n@~/secret.txt"]

    def test_a_local_file_is_not_a_user_file(self, load: Load, repo: Path, user_home: Path) -> None:
        """Anybody can commit a file called local."""
        write(user_home / "secret.txt", "SECRET")
        assert "SECRET" not in str(load())
        write(repo / "AGENTS.local.md", "@~/secret.txt")
        assert "SECRET" not in str(load())


def test_hostile_files_are_named_and_the_rest_loads(load: Load, repo: Path) -> None:
    write(repo / "AGENTS.md", "words\n@picture.png\n@pipe\n@huge.md\n@latin.md\n")
    write(repo / "picture.png", b"\x89PNG\0\0")
    write(repo / "latin.md", b"caf\xe9")
    write(repo / "huge.md", "x" * 1_500_000)
    os.mkfifo(repo / "pipe")
    os.mkfifo(repo / "CLAUDE.md")
    write(repo / ".claude/CLAUDE.md", b"\0\0\0")
    write(repo / ".reverie/CLAUDE.md", b"caf\xe9 au lait")
    (repo / ".reverie/AGENTS.md").symlink_to("nowhere")
    write(repo / ".claude/AGENTS.md", "x" * 1_500_000)
    write(repo / "AGENTS.local.md", "\ufefflast\r\nline\r\n")
    found = load()
    assert texts(found) == ["words\n@picture.png\n@pipe\n@huge.md\n@latin.md", "caf\ufffd au lait", "last\nline"]
    named = "\n".join(found.warnings)
    for name in ("picture.png", "huge.md", "latin.md", "repo/CLAUDE.md", ".claude/CLAUDE.md", ".reverie/AGENTS.md"):
        assert name in named
    assert "@pipe" not in named and len(found.warnings) == 8


def test_an_unreadable_file(load: Load, repo: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root may read every file")
    write(repo / "AGENTS.md", "x").chmod(0)
    write(repo / "CLAUDE.md", "words")
    found = load()
    assert texts(found) == ["words"] and "AGENTS.md cannot be read" in found.warnings[0]


def test_large_files_are_warned_about_and_the_total_is_bounded(load: Load, repo: Path) -> None:
    write(repo / "AGENTS.md", "w" * 40_001)
    write(repo / "CLAUDE.md", "@big.md\nown words")
    write(repo / "big.md", "v" * 390_000)
    found = load()
    assert texts(found) == ["w" * 40_001, "@big.md\nown words"]
    assert "40,001 characters" in found.warnings[0] and "big.md was left out" in found.warnings[1]
    write(repo / "AGENTS.md", "w" * 40_000)
    assert not any("40,000" in warning for warning in load(exclude=["CLAUDE.md"]).warnings)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\n<!-- gone -->\nb", "a\nb"),
        ("a\n<!-- gone\n\nall of it\n-->\nb", "a\nb"),
        ("<!-- gone --> kept", " kept"),
        ("<!-- a --><!-- b -->\nc", "\nc"),
        ("in a <!-- sentence --> stays", "in a <!-- sentence --> stays"),
        ("```\n<!-- code -->\n```", "```\n<!-- code -->\n```"),
        ("`x`\n\n    <!-- code -->", "`x`\n\n    <!-- code -->"),
        ("<!-- never closed\nmore", "<!-- never closed\nmore"),
        ("- item\n  <!-- gone -->\n- more", "- item\n- more"),
        ("`a\n<!-- gone -->\nb", "`a\nb"),
    ],
)
def test_comments(text: str, left: str) -> None:
    got = without_comments(text)
    assert got.replace("\n", "").strip() == left.replace("\n", "").strip(), got


def test_a_comment_includes_nothing(load: Load, repo: Path) -> None:
    write(repo / "x.md", "EX")
    assert only(load, repo, "a\n<!--\n@x.md\n-->\nb") == "a\nb"


# -- invariants ---------------------------------------------------------------------------------------------------

PIECES = ["@x.md", "@~/s.txt", "@../s.txt", "`", "``", "```\n", "~~~\n", "    ", "\t", "\n", "\n\n", " ", "- ", "> "]
PIECES += [
    "\\",
    "\\ ",
    "<!--",
    "-->",
    "<pre>",
    "@",
    "word",
    "é",
    "@/etc/hostname",
    "@link.md",
    "#",
    ".",
    "@dir/../s.txt",
]
markdown = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=30).map("".join)


@given(markdown)
@settings(max_examples=count(40, 5_000), deadline=None)
def test_the_parser_never_raises_and_never_expands_code(text: str) -> None:
    from markdown_it import MarkdownIt

    text = text.replace("\r", "\n").replace("\0", "")
    found = list(includes(text))
    assert all(text[one.start] == "@" for one in found)
    assert expand(text, lambda _: False, lambda _: None) == text
    prose = MarkdownProse(text)
    in_prose = sum(1 for at, char in enumerate(text) if char == "@" and prose.holds(at))
    if "<" in text:
        return  # raw HTML may hold backticks that CommonMark does not see and people mean as code
    outside = sum(
        child.content.count("@") + sum(str(value).count("@") for value in child.attrs.values())
        for token in MarkdownIt("commonmark").disable("entity").parse(text)
        for child in token.children or ()
        if child.type != "code_inline"
    )
    assert in_prose <= outside + text.count("[")


@given(markdown)
@settings(max_examples=count(40, 5_000), deadline=None)
def test_only_what_is_approved_is_read_from_outside(text: str) -> None:
    with TemporaryDirectory() as name:
        top = Path(os.path.realpath(name))
        repo = top / "repo"
        (repo / ".git").mkdir(parents=True)
        write(repo / ".git/HEAD", "ref: refs/heads/main\n")
        write(top / "s.txt", "OUTSIDE")
        write(repo / "x.md", "inside @../s.txt")
        (repo / "link.md").symlink_to(top / "s.txt")
        (repo / "dir").symlink_to(top)
        write(repo / "AGENTS.md", text.encode("utf-8", "replace"))
        given_settings = load_settings(repo, env={"HOME": str(top)}, managed_dir=top / "none")
        found = load_instructions(Places.of(repo, given_settings), given_settings, managed_dir=top / "none")
        host = Path("/etc/hostname")
        assert "OUTSIDE" not in "".join(texts(found))
        if host.exists() and (content := host.read_text().strip()) and content not in text:
            assert content not in "".join(texts(found))


@pytest.mark.soak
@pytest.mark.parametrize(
    "text",
    [
        "`" * 900_000,
        "` `` " * 180_000,
        "".join("`" * n + " " for n in range(1_300)),
        "@x.md " * 150_000,
        "<!-- " * 180_000,
        "<!-- -->\n" * 100_000,
        "> " * 450_000,
        "- " * 450_000,
        "\\" * 400_000 + "`" + "\\" * 400_000,
        "<pre>\n" * 150_000,
        "- a\n" * 200_000,
        "[" * 900_000,
    ],
    ids=lambda text: text[:8],
)
def test_as_much_malice_as_fits_takes_seconds_at_most(load: Load, repo: Path, text: str) -> None:
    write(repo / "x.md", "EX")
    write(repo / "AGENTS.md", f"`a`\n\n{text[: count(100_000, 390_000)]}\n\n`@x.md` @x.md\n")
    with cpu_limit(10):
        assert load().files


SECRETS = {
    ".env": "TOKEN=nobody-sees-this",
    "id_rsa": "nobody-sees-this",
    ".git/config": "[remote]\n\turl = https://nobody-sees-this@example.org",
    ".GIT/config": "nobody-sees-this",
    "config/secrets.yaml": "key: nobody-sees-this",
    "deploy/prod.tfstate": "nobody-sees-this",
    ".aws/credentials": "nobody-sees-this",
    ".env.bak": "nobody-sees-this",
}
WAYS = ("include", "include of a link", "include in an include", "link", "rule", "hard link", "link in a folder")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("secret", SECRETS)
def test_a_project_hands_no_secret_to_the_model(load: Load, repo: Path, secret: str, way: str) -> None:
    target = write(repo / secret, SECRETS[secret])
    text = "Hello."
    match way:
        case "include":
            text += f" @{secret}\n@./{secret}\n@{target}"
        case "include of a link":
            (repo / "notes.md").symlink_to(target)
            text += "\n@notes.md"
        case "include in an include":
            write(repo / "docs/a.md", f"@../{secret}")
            text += "\n@docs/a.md"
        case "link":
            (repo / "CLAUDE.md").symlink_to(target)
        case "rule":
            (repo / ".claude/rules").mkdir(parents=True)
            (repo / ".claude/rules/style.md").symlink_to(target)
        case "hard link":
            (repo / "notes.md").hardlink_to(target)
            (target.parent / "near.md").hardlink_to(target)
            text += f"\n@{target.parent / 'near.md'}"
            text += "\n@notes.md" if target.parent == repo else ""
        case _:
            (repo / "docs").symlink_to(target.parent)
            text += f"\n@docs/{target.name}"
    write(repo / "AGENTS.md", text)
    found = load()
    assert "nobody-sees-this" not in repr([*found.files, *found.conditional_rules]), found
    assert any("secrets" in one or "git" in one or "same file" in one for one in found.warnings), found.warnings


def test_the_user_may_approve_a_file_with_the_name_of_a_secret(load: Load, repo: Path) -> None:
    write(repo / "secrets/house-rules.md", "Knock first.")
    assert "Knock" not in only(load, repo, "@secrets/house-rules.md")
    assert "Knock" in only(
        load, repo, "@secrets/house-rules.md", approved_includes=[str(repo / "secrets/house-rules.md")]
    )
    assert "Knock" not in only(load, repo, "@secrets/house-rules.md", approved_includes=[str(repo)])


def test_two_names_of_one_instruction_file_are_no_secret(load: Load, repo: Path) -> None:
    write(repo / "AGENTS.md", "Run make.")
    (repo / "CLAUDE.md").hardlink_to(repo / "AGENTS.md")
    assert [one.text for one in load().files] == ["Run make."]
    assert load().warnings == ()


def test_a_link_out_of_the_project_needs_approval(load: Load, repo: Path, user_home: Path) -> None:
    target = write(user_home / "plan.md", "nobody-sees-this")
    for name in ("AGENTS.md", ".claude/rules/a.md", ".reverie/rules/b.md"):
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).symlink_to(target)
    assert load().files == () and "approved_includes" in "".join(load().warnings)
    (repo / ".claude/rules/a.md").unlink()
    (repo / ".claude/rules").rmdir()
    (repo / ".claude/rules").symlink_to(user_home)
    assert load().files == ()


@pytest.mark.parametrize("name", [".claude/skills/tidy/SKILL.md", ".claude/commands/tidy.md"])
def test_commands_and_skills_of_a_project_hand_over_no_secret(repo: Path, user_home: Path, name: str) -> None:
    target = write(repo / ".env", "TOKEN=nobody-sees-this")
    (repo / name).parent.mkdir(parents=True)
    (repo / name).symlink_to(target)
    found_settings = load_settings(repo, env={"HOME": str(user_home)})
    found = load_commands(Places.of(repo, found_settings), found_settings)
    assert "nobody" not in repr(found) and "has the name of a file with secrets" in "".join(found.problems)


@pytest.mark.parametrize("kept", [".config/gh/hosts.yml", ".docker/config.json", "Documents/notes.txt"])
def test_a_hard_link_to_a_place_that_is_not_known_is_not_read(
    load: Load, repo: Path, user_home: Path, kept: str
) -> None:
    secret = write(user_home / kept, "KEY=hunter2")
    (repo / "CLAUDE.md").hardlink_to(secret)
    (repo / "note.md").hardlink_to(secret)
    write(repo / "AGENTS.md", "@note.md\n")
    found = load()
    assert "hunter2" not in repr(found.files)
    assert len(found.warnings) == 2 and all("hard link" in warning for warning in found.warnings)


def test_two_names_side_by_side_are_one_file(load: Load, repo: Path) -> None:
    write(repo / "AGENTS.md", "Be brief.\n")
    (repo / "CLAUDE.md").hardlink_to(repo / "AGENTS.md")
    assert texts(load()) == ["Be brief."]


@pytest.mark.parametrize(("project", "kept"), [(".config", "gh/hosts.yml"), (".docker", "config.json")])
def test_the_place_of_a_secret_counts_from_the_root(load: Load, user_home: Path, project: str, kept: str) -> None:
    write(user_home / project / kept, "KEY=hunter2")
    git(user_home / project, "init", "-q")
    write(user_home / project / "AGENTS.md", f"@{kept}\n")
    assert "hunter2" not in repr(load(user_home / project).files)
