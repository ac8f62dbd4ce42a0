"""Which rules a question offers, and that no rule for many calls reaches a guarded file."""

from __future__ import annotations

from pathlib import Path

import pytest

from reverie.permissions.offers import Offer, make_offer
from reverie.permissions.policy import PolicyMode, Rules, make_policy
from reverie.permissions.rules import Allow, Ask, ToolCall


def bash(command: str, cwd: Path) -> ToolCall:
    return ToolCall("c", "Bash", {"command": command}, False, cwd)


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("git commit -m 'x'", ["git commit:*"]),
        ("npm run test -- --watch", ["npm run test:*"]),
        ("npm test", ["npm test:*"]),
        ("cargo build --release 2>&1 | tail -20", ["cargo build:*"]),
        ("git add a.py && git commit -m x", ["git add:*", "git commit:*"]),
        ("npm ci && npm run build", ["npm ci:*", "npm run build:*"]),
        ("python -m pytest tests -q", ["python -m pytest:*"]),
        ("uv run pytest", ["uv run pytest:*"]),
        ("pytest -x", ["pytest:*"]),
        ("make test", ["make test:*"]),
        ("docker compose up -d", ["docker compose up:*"]),
        ("gh pr view 1", ["gh pr view:*"]),
    ],
)
def test_known_families_get_a_prefix(tmp_path: Path, command: str, rules: list[str]) -> None:
    offer = make_offer(bash(command, tmp_path))
    assert offer == Offer(tuple(f"Bash({rule})" for rule in rules), can_save=True)
    policy = make_policy(PolicyMode.ASK, Rules.parse(offer.rules))
    assert policy(bash(command, tmp_path)) == Allow(), "the rules cover the command that they were made for"


@pytest.mark.parametrize(
    "command",
    [
        *("bash build.sh", "python tool.py", "python3 -c 'print(1)'", "sudo make install", "env A=1 make", "node x.js"),
        *(
            "xargs rm",
            "git -c a=b commit",
            "git config a b",
            "git rebase main",
            "npx thing",
            "npm exec x",
            "uv run python x",
        ),
        *("docker run x", "rm -r build", "cp a b", "git", "git -C x commit", "python -m http.server", "find . -delete"),
        *("git stash", "docker compose exec db sh", "docker container run x"),
        *("./run.sh", "curl example.com", "ssh host ls", "timeout 5 npm test", "npm run $X", "uv run bash x"),
    ],
)
def test_other_commands_get_only_their_exact_text(tmp_path: Path, command: str) -> None:
    assert make_offer(bash(command, tmp_path)) == Offer((f"Bash({command})",), can_save=True)


def test_compound_commands(tmp_path: Path) -> None:
    assert make_offer(bash("npm test && ./deploy.sh", tmp_path)) == Offer(("Bash(npm test && ./deploy.sh)",))
    assert not make_offer(bash("echo $(date) > x", tmp_path)).can_save
    assert make_offer(bash("touch x; ls *", tmp_path)) == Offer(), "the text would be read as a prefix"


def test_no_rule_for_guarded_files(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for tool, path in (("Edit", "AGENTS.md"), ("Write", ".git/hooks/pre-commit"), ("Read", ".env"), ("Write", "x.pem")):
        call = ToolCall("c", tool, {"file_path": path}, tool == "Read", tmp_path)
        assert make_offer(call) == Offer(), path
        policy = make_policy(PolicyMode.ASK, Rules.parse(allow=["Edit(**)", "Read(**)"]))
        assert isinstance(policy(call), Ask), path
        assert make_policy(PolicyMode.ASK, Rules.parse(allow=[f"{tool}({path})"]))(call) == Allow(), "named by the user"
    policy = make_policy(PolicyMode.ASK, Rules.parse(allow=["Bash(npm run lint:*)", "Bash(cat:*)", "Bash(cp:*)"]))
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


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        ("git fetch", "git fetch --upload-pack='touch x' ."),
        ("git pull", "git pull --upl 'touch x' ."),
        ("git push", "git push --exec='touch x' ."),
        ("git push", "git push -- https://example.com/x main"),
        ("git diff --stat", "git diff --output=src/a.py"),
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
def test_a_prefix_does_not_cover_what_does_more_than_it_says(tmp_path: Path, asked: str, more: str) -> None:
    policy = make_policy(PolicyMode.ASK, Rules.parse(make_offer(bash(asked, tmp_path)).rules))
    assert policy(bash(asked, tmp_path)) == Allow()
    assert isinstance(policy(bash(more, tmp_path)), Ask)
    assert make_policy(PolicyMode.ASK, Rules.parse([f"Bash({more})"]))(bash(more, tmp_path)) == Allow(), (
        "the exact text"
    )


def test_a_prefix_covers_the_usual_options(tmp_path: Path) -> None:
    for rule, command in (
        ("git push:*", "git push -u origin HEAD:refs/heads/x"),
        ("git commit:*", "git commit -am 'see https://example.com'"),
        ("make test:*", "make test -j 4 ARGS='-k name' V=1"),
        ("make:*", "make offline test"),
        ("npm run test:*", "npm run test -- --config x --prefix y"),
        ("./gradlew test:*", "./gradlew test --tests Name --info"),
        ("mvn test:*", "mvn test -DskipTests -q"),
        (make_offer(bash("go test ./...", tmp_path)).rules[0][5:-1], "go test -run Name -count=1 ./..."),
        ("cargo test:*", "cargo test --release -- --nocapture"),
    ):
        assert make_policy(PolicyMode.ASK, Rules.parse([f"Bash({rule})"]))(bash(command, tmp_path)) == Allow(), command
