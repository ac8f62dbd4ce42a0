"""A purge takes a secret out of every place where text is kept, names included, and says truthfully what is left."""

from __future__ import annotations

import base64
import json
import re
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reverie.cli.app import commands
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.taxonomy import MemoryType
from reverie.memory.topic_file import TopicFile
from reverie.memory.upkeep.purge_forms import PURGED_NAME
from reverie.paths import Places
from reverie.paths.places import hooks_folder
from reverie.paths.text_places import TEXT_PLACES, Treatment, find_text_place
from reverie.settings import load_settings
from tests.counts import count

SECRET = "Wombat" + "-Quartz7" + "Tulip93"


class Planted:
    """A home with the secret in every place that the list names, in contents and in names."""

    def __init__(self, work: Path, secret: str = SECRET) -> None:
        self.work, self.secret = work, secret
        self.slug = slug = self.slug_of(secret)
        self.places = places = Places.of(work, load_settings(work))
        self.home = places.home
        self.memory = MemoryDirectory.open(places.default_memory, gate=lambda _write: None)
        info = WriteInfo(Writer.USER, f"because of {secret}")
        for name, text in (
            (f"reference_{slug}.md", f"The word is {secret}."),
            ("reference_gone.md", f"Gone: {secret}"),
            ("project_plain.md", "Nothing here."),
        ):
            self.memory.create(
                name,
                TopicFile.new(name=name[:-3], description=f"about {secret}", type=MemoryType.REFERENCE, body=text),
                info,
            )
        self.memory.remove("reference_gone.md", info)
        self.agents = MemoryDirectory.open(places.agent_memory_user("keeper"), gate=lambda _write: None)
        self.agents.create(
            f"feedback_{slug}.md",
            TopicFile.new(name="a", description=secret, type=MemoryType.FEEDBACK, body=secret),
            info,
        )
        encoded = base64.b64encode(f"user:{secret}:x".encode()).decode()
        body = json.dumps({"text": secret, "deep": json.dumps({"again": secret}), "encoded": encoded}) + "\n"
        project, session = places.project, places.project / "5e55-1"
        self.files = [
            project / "5e55-1.jsonl",
            project / "5e55-1.jsonl.torn",
            project / ".0123456789abcdef.tmp",
            session / "tool-results" / "t1.txt",
            session / "tool-results" / f"of-{secret}.txt",
            session / "session-memory" / "summary.md",
            session / "subagents" / "agent-a1.jsonl",
            session / "letters.json",
            self.memory.root / ".inbox" / "w1.json",
            self.memory.root / ".dreams" / "dream-1.json",
            self.memory.root / ".trust" / "marks.jsonl",
            places.background_log,
            places.day_books / "2026-01-01.jsonl",
            places.home / "heartbeats" / "dream.json",
            places.extracted / "one.json",
            places.followed / "folders" / "one.json",
            hooks_folder(places.home) / "digests" / "one.json",
            hooks_folder(places.home) / "sessions" / "one.json",
            places.chat_history,
            places.inbox("red", "ann"),
            places.team_sync(self.memory.root) / "base" / "a.md",
            places.team_sync(self.memory.root) / "base" / f"project_{slug}.md",
            places.home / "dreams" / "copy" / "a.md",
            places.home / "requests.jsonl",
            places.home / "some-new-place" / "x.bin",
            places.search_index(self.memory.root),
            places.home / "indexes" / "0000000000000000.sqlite",
        ]
        for path in self.files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)

    @staticmethod
    def slug_of(secret: str) -> str:
        return re.sub(r"[^a-z0-9]+", "_", secret.lower()).strip("_")

    def found(self) -> list[str]:
        """Every file of the home, git's objects unpacked, that still holds the secret, or has it as its name."""
        secret = self.secret
        forms = [secret, self.slug, base64.b64encode(secret.encode()).decode()[:-4], secret.encode().hex()]
        forms += [base64.b64encode(b"user:" + secret.encode()).decode()[8:24]]
        found: list[str] = []
        for path in self.home.rglob("*"):
            held = path.name.encode()
            if path.is_file():
                raw = path.read_bytes()
                held += raw
                if "objects" in path.parts and len(path.name) == 38:
                    held += zlib.decompress(raw)
                if path.suffix == ".pack":
                    git = ["git", f"--git-dir={path.parents[2]}", "cat-file", "--batch-all-objects", "--batch"]
                    held += subprocess.run(git, capture_output=True, check=True).stdout
            if any(form.encode() in held or form.encode().lower() in held.lower() for form in forms):
                found.append(str(path.relative_to(self.home)))
        return found


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def purged(work: Path, secret: str = SECRET) -> Result:
    args = ["memory", "purge", "--yes", "-C", str(work)]
    done = CliRunner().invoke(commands, args, input=secret, standalone_mode=False)
    assert done.exception is None, done.exception
    return done


def test_nothing_is_left_anywhere(planted: Planted) -> None:
    before = planted.found()
    kinds = {find_text_place(name).pattern for name in before}
    wanted = {one.pattern for one in TEXT_PLACES if one.treatment is not Treatment.YOURS} - {"run/*"}
    assert wanted <= kinds, "the secret is planted in every place that the list names"
    done = purged(planted.work)
    assert done.return_value == 0, done.output
    assert planted.found() == []
    assert "searched again" in done.output
    assert planted.memory.exists(f"reference_{PURGED_NAME}.md")
    assert f"(reference_{PURGED_NAME}.md)" in planted.memory.index()
    git = ["git", f"--git-dir={planted.memory.history.git_dir}"]
    subprocess.run([*git, "fsck", "--strict"], check=True, capture_output=True)


def test_packed_versions_are_rid_of_names_too(planted: Planted) -> None:
    git_dir = planted.memory.history.git_dir
    subprocess.run(["git", f"--git-dir={git_dir}", "gc", "-q", "--prune=now"], check=True, capture_output=True)
    assert purged(planted.work).return_value == 0
    assert planted.found() == []


@pytest.mark.parametrize(
    "secret",
    ["jyKcbduXgxDWm@xiCKDk", "correct horse battery staple", "open-sesame-please", "Sommerregenzeit", "Hunter2!"],
)
def test_names_made_of_a_secret_go_whatever_its_characters(tmp_path: Path, secret: str) -> None:
    planted = Planted(tmp_path, secret)
    assert any(planted.slug in name for name in planted.found())
    assert purged(tmp_path, secret).return_value == 0
    assert planted.found() == []
    assert planted.memory.exists(f"reference_{PURGED_NAME}.md")


def test_words_of_a_purged_phrase_stay_where_they_are_just_words(tmp_path: Path) -> None:
    planted = Planted(tmp_path, "Green Mountain")
    note = planted.places.home / "dreams" / "note.md"
    note.write_text("The green mountain, in green-mountain.txt: Green Mountain.\n")
    assert purged(tmp_path, "Green Mountain").return_value == 0
    assert note.read_text() == "The green mountain, in [purged].txt: [purged].\n"


def test_files_of_the_user_are_named_and_left(planted: Planted) -> None:
    own = planted.home / "settings.toml"
    own.write_text(f"# {SECRET}\n")
    done = purged(planted.work)
    assert done.return_value == 1
    assert "settings.toml" in done.output and "change it yourself" in " ".join(done.output.split())
    assert planted.found() == ["settings.toml"]
    assert SECRET in own.read_text()


_KILLED_AT = """
import os, signal, sys
left = int(sys.argv.pop(1))
def watch(event, args):
    global left
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    left -= bool(writes) or event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.utime")
    if left == 0:
        left = -1  # the kill is such an event too
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(watch)
from reverie.cli.app import app
app()
"""


@pytest.mark.soak
@pytest.mark.parametrize("step", range(20, 200, count(90, 4)))
def test_a_purge_that_was_killed_before_any_write_is_finished_by_the_next(planted: Planted, step: int) -> None:
    args = ["memory", "purge", "--yes", "-C", str(planted.work), SECRET]
    killed = subprocess.run([sys.executable, "-c", _KILLED_AT, str(step), *args], capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    assert purged(planted.work).return_value == 0
    assert planted.found() == []


def test_the_docs_list_every_place() -> None:
    page = (Path(__file__).parents[3] / "docs" / "write-gate.md").read_text()
    for one in TEXT_PLACES:
        assert f"| `{one.pattern}` | {one.what} | {one.treatment.value} |" in page
