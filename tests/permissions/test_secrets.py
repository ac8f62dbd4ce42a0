"""Secret files: one list for paths, words, globs and recursive searches, and few false alarms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reverie.permissions.policy import PolicyMode, Rules, make_policy
from reverie.permissions.rules import Allow, Ask, Profile, ToolCall
from reverie.permissions.sandbox.sandboxes import Sandboxes
from reverie.permissions.sensitive import is_sensitive
from reverie.permissions.strict_shell import is_read_only_shell
from tests.tools.calls import make_context, text, use


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with keys in it, and a project without any."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (
        ".ssh/id_rsa",
        ".docker/config.json",
        "work/a.md",
        "work/b.json",
        "work/src/a.py",
        "work/src/.env.example",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("PRIVATE foo\n")
    return tmp_path


def shell(command: str, cwd: Path) -> ToolCall:
    return ToolCall("id", "Bash", {"command": command}, is_read_only_shell(command), cwd)


READS_SECRETS = [
    "cat .env",
    "cat .env*",
    "cat id_rs?",
    "cat ./[.]env",
    "cat .en[v]",
    "cat server.pem",
    "cat *.pem",
    "cat ./*.ke?",
    "head -5 '.env'",
    "cat .e\\nv",
    "cat .ENV",
    "cat -- .env.production",
    "cat src/../.env",
    "grep -h . .env",
    "grep -e x prod.env",
    "grep -f .env a.md",
    "tail -3 ~/.docker/config.json",
    "cat ~/.d*/config.json",
    "cat ~/.n*",
    "wc -c terraform.tfstate",
    "cat service-account-prod.json",
    "cat .npmrc a.md",
    "ls | grep x .env",
    "ls; cat .env",
    "cat a.md | grep -rn foo",
    "grep -rn fo*o",  # the glob may stay a pattern
    "grep -rn -f a.md",
    "grep -rh PRIVATE ~ --include=id_*",
    "grep -rh PRIVATE ~",
    "grep -r PRIVATE ..",
    "grep -d recurse PRIVATE ~",
    "grep -R PRIVATE linked",
    "cat link.txt",
    "cat l*.txt",
    "cat linked/*",
    "cat keys/*",
    "grep -rn foo keys",
    "grep -rn foo . --include=*.key --exclude=a.md",
]


WITHOUT = Sandboxes(wanted=False)


@pytest.mark.parametrize("command", READS_SECRETS)
def test_a_command_that_may_read_a_secret_is_not_run_unasked(home: Path, command: str) -> None:
    """Where there is no sandbox."""
    work = home / "work"
    (work / "link.txt").symlink_to(home / ".ssh/id_rsa")
    (work / "linked").symlink_to(home / ".ssh")
    (work / "keys").mkdir()
    (work / "keys/server.key").touch()
    for mode in (PolicyMode.ASK, PolicyMode.ACCEPT_EDITS, PolicyMode.READ_ONLY):
        decision = make_policy(mode, sandboxes=WITHOUT)(shell(command, work))
        assert not isinstance(decision, Allow), decision


def test_no_command_in_the_sandbox_shows_a_secret(home: Path) -> None:
    work = home / "work"
    (work / "link.txt").symlink_to(home / ".ssh/id_rsa")
    (work / "linked").symlink_to(home / ".ssh")
    for name in (".env", ".env.production", "id_rsa", "server.pem", "prod.env", "keys/server.key"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("PRIVATE foo\n")
    context = make_context(home, profile=Profile.READ_ONLY)
    more = [
        "cat $(ls -a)",
        "tar cf - . | strings",
        "find ~ -type f -exec cat {} +",
        "cp -r . $TMPDIR; cat $TMPDIR/.env",
    ]
    visible = {"a.md", "b.json", "src/a.py", "src/.env.example"}
    for name in visible:
        (work / name).write_text("PUBLIC foo\n")
    for command in (*READS_SECRETS, *more):
        assert "PRIVATE" not in text(use(context, "Bash", command=command)), command


def test_a_rule_for_one_part_does_not_bring_a_secret_along(home: Path) -> None:
    policy = make_policy(PolicyMode.ASK, Rules.parse(allow=["Bash(npm test:*)"]), sandboxes=WITHOUT)
    assert policy(shell("npm test | tail -5", home / "work")) == Allow()
    assert isinstance(policy(shell("npm test; cat .env", home / "work")), Ask)


@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".env.production", ".env.foo.local", "x/prod.env", ".envrc", ".netrc", "id_rsa", "id_ed25519_work"),
        *("deploy_rsa", "server.pem", "tls.key", "a.p12", "a.kdbx", "a.jks", ".npmrc", ".pypirc", ".git-credentials"),
        *(".aws/credentials", ".aws/config", ".kube/config", ".docker/config.json", ".ssh/config", ".gnupg/x"),
        *("terraform.tfstate", "terraform.tfstate.backup", "secrets.yaml", "client_secret_1.json", ".bash_history"),
        *("/etc/shadow", "/etc/shadow-", "/proc/1/environ", "/run/secrets/db", ".config/gh/hosts.yml", ".PGPASS"),
    ],
)
def test_names_that_mean_secrets(name: str) -> None:
    assert is_sensitive(Path("/work") / name)


NOT_ONLY_BY_ONE_NAME = [
    *("secrets.txt", "secrets.sh", "secrets.toml", "secrets.env", "secrets.json", "secrets.gpg", "secrets.prod.yaml"),
    *(
        "secrets.yaml.bak",
        "passwords.xlsx",
        "secret.json~",
        "secrets.conf",
        "secrets.xml",
        "secret.yaml",
        "secrets/db.txt",
        "app-secrets.json",
    ),
    *("secrets-prod.yaml", ".zhistory", ".histfile", "fish_history", ".local/state/zsh/history", ".bash_history-1.tmp"),
    *("gcp-service_account.json", "service-account.yaml", "prod-service-account-2.json"),
    *(".env~", ".env-local", ".env_prod", "prod.env.bak", ".envrc.local", "server.key.bak", "server.key~", ".#.env"),
    *("server.pem.old", ".netrc~", ".pgpass.bak", ".npmrc.bak", "server.key.2024-05-01", "tls.pem_backup2", ".env.swp"),
    *("a.p12.orig.1", "deploy_rsa.old", "terraform.tfvars.save", "credentials.json.bak", "server.key (1)", "a.key-old"),
    *("kubeconfig", "kubeconfig.yaml", "dev.kubeconfig", ".vault_pass", ".vault_pass.txt", ".claude.json", ".kaggle/x"),
    *(".config/containers/auth.json", ".config/sops/age/keys.txt", ".cache/huggingface/token", ".oci/config"),
]


SOURCE = ["secrets.py", "secrets.ts", "secret.rs", "test_secrets.py", "secrets.md", "secrets.d.ts", "passwords.go"]


@pytest.mark.parametrize("name", SOURCE)
def test_source_code_and_docs_about_secrets_are_ordinary_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("PUBLIC\n")
    policy = make_policy(PolicyMode.READ_ONLY)
    assert policy(ToolCall("id", "Read", {"file_path": name}, True, tmp_path)) == Allow()
    for command in (f"cat {name}", "grep -rn PUBLIC .", f"cat *{Path(name).suffix}"):
        decision = make_policy(PolicyMode.READ_ONLY, sandboxes=WITHOUT)(shell(command, tmp_path))
        assert isinstance(decision, Allow), command


@pytest.mark.parametrize("name", NOT_ONLY_BY_ONE_NAME)
def test_copies_and_variants_of_secrets(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("PRIVATE\n")
    policy = make_policy(PolicyMode.READ_ONLY)
    assert isinstance(policy(ToolCall("id", "Read", {"file_path": name}, True, tmp_path)), Ask)
    for command in (f"cat '{name}'", "grep -rn PRIVATE ."):
        decision = make_policy(PolicyMode.READ_ONLY, sandboxes=WITHOUT)(shell(command, tmp_path))
        assert not isinstance(decision, Allow), command


def test_a_search_passes_copies_and_variants_over(tmp_path: Path) -> None:
    context = make_context(tmp_path)
    for name in (*NOT_ONLY_BY_ONE_NAME, "monkey.txt", "keys.py", "secretary.md", "notes.txt.old", *SOURCE):
        (context.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (context.cwd / name).write_text("PRIVATE\n")
    found = text(use(context, "Grep", pattern="PRIVATE"))
    assert sorted(found.splitlines()) == sorted(["keys.py", "monkey.txt", "notes.txt.old", "secretary.md", *SOURCE])


def test_what_the_system_shows_of_a_process(tmp_path: Path) -> None:
    policy = make_policy(PolicyMode.READ_ONLY)
    me = os.getpid()
    for name in ("environ", "mem", "maps", "fd/3", f"task/{me}/environ", "cmdline", "root/etc/passwd"):
        for who in (str(me), "self", "thread-self"):
            path = f"/proc/{who}/{name}"
            assert isinstance(policy(ToolCall("id", "Read", {"file_path": path}, True, tmp_path)), Ask), path
            assert isinstance(policy(ToolCall("id", "Grep", {"pattern": "x", "path": path}, True, tmp_path)), Ask), path
            decision = make_policy(PolicyMode.READ_ONLY, sandboxes=WITHOUT)(shell(f"cat {path}", tmp_path))
            assert not isinstance(decision, Allow), path
    for path in ("/proc/cpuinfo", "/proc/meminfo", "/proc/self/status"):
        assert policy(ToolCall("id", "Read", {"file_path": path}, True, tmp_path)) == Allow(), path


def test_a_folder_that_only_this_process_has_gets_a_sentence(tmp_path: Path) -> None:
    found = use(make_context(tmp_path), "Grep", pattern="PATH", path=f"/proc/self/task/{os.getpid()}/status")
    assert found.is_error
    assert text(found).endswith(": search in another folder.") and "Error" not in text(found)


@pytest.mark.parametrize(
    "name",
    [
        *(".env.example", ".env.sample", ".env.template", "id_rsa.pub", "id_generator.py", "environment.py"),
        *("certifi/cacert.pem", "config.json", "keys.py", "src/credentials.py", "/etc/hosts"),
        *("monkey.txt", "secretary.md", "detect_secrets.py", "test_secrets.py", "secret_reads.py", "turkey.bak"),
        *("templates/serviceaccount.yaml", "notes.txt.old", "app.key.ts", "dev.env.js", "src/proc/linux/maps/a.c"),
        *("/proc/cpuinfo", "/proc/1/status", "tokenizer.json", "environment-local.ts"),
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not is_sensitive(Path("/work") / name)


def test_a_search_passes_secrets_over_wherever_it_starts(home: Path, tmp_path: Path) -> None:
    context = make_context(tmp_path)
    for name in (".ENV", "prod.env", "etc/shadow", "etc/hosts", ".docker/config.json", ".docker/daemon.json", "a.key"):
        (context.cwd / name).parent.mkdir(exist_ok=True)
        (context.cwd / name).write_text("PRIVATE\n")
    found = text(use(context, "Grep", pattern="PRIVATE"))
    assert sorted(found.split()) == [".docker/daemon.json", "a.md", "b.json", "etc/hosts", "src/a.py"]
    assert text(use(context, "Grep", pattern="PRIVATE", path="etc")) == "etc/hosts"
    assert text(use(context, "Grep", pattern="PRIVATE", path=".docker")) == ".docker/daemon.json"
    assert text(use(context, "Grep", pattern="PRIVATE", glob=".env*")) == "No files found."
    assert text(use(context, "Grep", pattern="PRIVATE", glob="*.env")) == "No files found."
