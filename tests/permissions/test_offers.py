"""Which rules a question offers, and that no rule for many calls reaches a guarded file."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.permissions.offers import Offer, make_offer
from reverie.permissions.policy import Policy, PolicyMode, Rules, make_policy
from reverie.permissions.rules import Allow, Ask, ToolCall
from reverie.permissions.sandbox.sandboxes import Sandboxes


def by_rules(mode: PolicyMode, rules: Rules = Rules(), *, can_ask: bool = True) -> Policy:  # noqa: B008 (frozen)
    """A policy where there is no sandbox, so that every command that no rule allows asks."""
    return make_policy(mode, rules, can_ask=can_ask, sandboxes=Sandboxes(wanted=False))


def bash(command: str, cwd: Path) -> ToolCall:
    return ToolCall("c", "Bash", {"command": command}, False, cwd)


@pytest.mark.parametrize(
    "command",
    [
        *("git commit -m 'x'", "npm run test -- --watch", "cargo build --release 2>&1 | tail -20", "uv run pytest"),
        *("git add a.py && git commit -m x", "python -m pytest tests -q", "docker compose up -d", "bash build.sh"),
        *("sudo make install", "npm run $X", "npm test && ./deploy.sh"),
    ],
)
def test_a_question_offers_exactly_what_it_shows(tmp_path: Path, command: str) -> None:
    offer = make_offer(bash(command, tmp_path))
    assert offer == Offer((f"Bash({command})",), can_save=True)
    policy = by_rules(PolicyMode.ASK, Rules.parse(offer.rules))
    assert policy(bash(command, tmp_path)) == Allow(), "the rule covers the command that it was made for"


def test_a_command_whose_text_does_not_say_all_is_not_kept(tmp_path: Path) -> None:
    for command in ("echo $(date) > x", "CC=gcc make test", "make test > log.txt"):
        assert make_offer(bash(command, tmp_path)) == Offer((f"Bash({command})",))
    assert make_offer(bash("touch x; ls *", tmp_path)) == Offer(), "the text would be read as a prefix"


def test_no_rule_for_guarded_files(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for tool, path in (("Edit", "AGENTS.md"), ("Write", ".git/hooks/pre-commit"), ("Read", ".env"), ("Write", "x.pem")):
        call = ToolCall("c", tool, {"file_path": path}, tool == "Read", tmp_path)
        assert make_offer(call) == Offer(), path
        policy = by_rules(PolicyMode.ASK, Rules.parse(allow=["Edit(**)", "Read(**)"]))
        assert isinstance(policy(call), Ask), path
        assert by_rules(PolicyMode.ASK, Rules.parse(allow=[f"{tool}({path})"]))(call) == Allow(), "named by the user"
    policy = by_rules(PolicyMode.ASK, Rules.parse(allow=["Bash(npm run lint:*)", "Bash(cat:*)", "Bash(cp:*)"]))
    for command in (
        *(
            "cat .env",
            "npm run lint -- --config=.env",
            "cp x .git/hooks/pre-commit",
            "cp evil AGENTS.md",
            "cat ~/.ssh/id_rsa",
        ),
        "npm run lint && cat .env",
    ):
        assert isinstance(policy(bash(command, tmp_path)), Ask), command
        assert make_offer(bash(command, tmp_path)) == Offer(), command
    assert policy(bash("npm run lint -- --fix src", tmp_path)) == Allow()
    assert policy(ToolCall("c", "Edit", {"file_path": "src/a.py"}, False, tmp_path)) != Allow()


_MORE = {
    "python -m pip list": ["python -m pip install evil"],
    "git clean -n": ["git clean -fdx", "git clean -n -fdx", "git -c core.fsmonitor=./x clean -n"],
    "gofmt -l .": ["gofmt -w .", "gofmt -l -w ."],
    "make test": [
        *("CC=./evil make test", "make test CC=./evil", "make test -f evil.mk", "make -C ../other test"),
        *("make test deploy", "make test > ../log", "make test < evil", "make test; ./evil", "make test && ./evil"),
        *("make test | sh", "make  test; ./evil", "cd evil && make test", "(make test; ./evil)", "make test &"),
        *("PATH=.:$PATH make test", "make test\n./evil", "make test $(./evil)", "make 'test ; ./evil'"),
    ],
    "pytest -x": ["pytest -x -p evil", "pytest --rootdir=../other", "PYTHONPATH=. pytest -x"],
    "npm test": ["npm test --script-shell=./x", "npm install evil"],
    "git fetch": ["git fetch --upload-pack='touch x' .", "GIT_SSH_COMMAND=./x git fetch"],
    "git push": ["git push --force", "git push -- https://example.com/x main", "git push --exec='touch x' ."],
    "docker compose up": ["docker compose exec db sh", "docker compose -f evil.yml up"],
    "gh repo view": ["gh repo delete x"],
    "uv run pytest": ["uv run pytest --pdb", "uv run --with evil pytest"],
}


@pytest.mark.parametrize("asked", _MORE)
def test_an_offered_rule_covers_nothing_else(tmp_path: Path, asked: str) -> None:
    policy = by_rules(PolicyMode.ASK, Rules.parse(make_offer(bash(asked, tmp_path)).rules))
    assert policy(bash(asked, tmp_path)) == Allow()
    for more in _MORE[asked]:
        assert isinstance(policy(bash(more, tmp_path)), Ask), more


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        ("git fetch", "git fetch --upload-pack='touch x' ."),
        ("git pull", "git pull --upl 'touch x' ."),
        ("git push", "git push --exec='touch x' ."),
        ("git push", "git push -- https://example.com/x main"),
        ("git diff", "git diff --output=src/a.py"),
        ("make test", "make test SHELL=./x"),
        ("make test", "make test 'ARGS=-v; touch x'"),
        ("make test", "make test -kf notes.txt"),
        ("make test", "make test deploy"),
        ("npm test", "npm test --script-shell=./x"),
        ("pnpm test", "pnpm test --dir ../other"),
        ("go build", "go build --toolexec ./x"),
        ("cargo build", "cargo build --config build.rustc-wrapper='./x'"),
        ("./gradlew test", "./gradlew test -Ix.gradle"),
        ("mvn test", "mvn test exec:exec"),
        ("rake test", "rake test -e 1"),
        ("docker compose up", "docker compose exec db sh"),
        ("gh repo view", "gh repo delete x"),
    ],
)
def test_a_prefix_does_not_cover_what_does_more_than_it_says(tmp_path: Path, rule: str, more: str) -> None:
    policy = by_rules(PolicyMode.ASK, Rules.parse([f"Bash({rule}:*)"]))
    assert policy(bash(rule, tmp_path)) == Allow()
    assert isinstance(policy(bash(more, tmp_path)), Ask)
    assert by_rules(PolicyMode.ASK, Rules.parse([f"Bash({more})"]))(bash(more, tmp_path)) == Allow(), "the exact text"


def test_a_prefix_covers_the_usual_options(tmp_path: Path) -> None:
    for rule, command in (
        ("git push:*", "git push -u origin HEAD:refs/heads/x"),
        ("git commit:*", "git commit -am 'see https://example.com'"),
        ("make test:*", "make test -j 4 ARGS='-k name' V=1"),
        ("make:*", "make offline test"),
        ("npm run test:*", "npm run test -- --config x --prefix y"),
        ("./gradlew test:*", "./gradlew test --tests Name --info"),
        ("mvn test:*", "mvn test -DskipTests -q"),
        ("go test:*", "go test -run Name -count=1 ./..."),
        ("cargo test:*", "cargo test --release -- --nocapture"),
    ):
        assert by_rules(PolicyMode.ASK, Rules.parse([f"Bash({rule})"]))(bash(command, tmp_path)) == Allow(), command


@pytest.mark.parametrize("mark", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2028", "\u3000"])
def test_white_space_that_a_shell_passes_on_is_another_command(tmp_path: Path, mark: str) -> None:
    """`bash build.sh` and the same with a no-break space at its end run two files."""
    policy = by_rules(PolicyMode.ASK, Rules.parse(make_offer(bash("bash build.sh", tmp_path)).rules))
    assert isinstance(policy(bash(f"bash build.sh{mark}", tmp_path)), Ask)
