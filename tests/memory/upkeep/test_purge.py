"""Purging a secret from real files, a real git history, transcripts, tool results, logs, inbox and index."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.errors import SessionBusy, UserError
from reverie.memory.changes import ProposedWrite, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.inbox import FOLDER, MemoryInbox
from reverie.memory.gate.write_gate import WriteGate
from reverie.memory.recall.search_index import SearchIndex
from reverie.memory.topic_file import TopicFile
from reverie.memory.upkeep.purge import PurgeReport, PurgeScope, purge
from reverie.memory.upkeep.purge_forms import PURGED, PurgeTarget, SecretForms
from reverie.storage.transcript.file import read_records
from tests.counts import count
from tests.memory.secrets_corpus import TOKENS, Draw, frame
from tests.waiting import LIMIT_S
from tests.work import cpu_limit

SECRET = TOKENS["GitHub classic token"](Draw(11))
KEY = frame("RSA PRI" + "VATE KEY", Draw(12).wrapped(300))


class Home:
    """A home as a user's afternoon leaves it, with the secret everywhere."""

    def __init__(self, root: Path, secret: str) -> None:
        self.project = root / "projects" / "-work-app"
        self.root = self.project / "memory"
        self.inbox = MemoryInbox(self.root)
        self.memory = MemoryDirectory.open(self.root, gate=WriteGate(self.root, inbox=self.inbox))
        info = WriteInfo(Writer.USER, "a test")
        self.memory.create(
            "user_role.md", TopicFile.parse("---\nname: Role\ntype: user\n---\n\nAnalytics lead.\n"), info
        )
        self._by_hand("reference_ci.md", f"---\nname: CI\n---\n\nThe CI token is {secret}\n")
        self._by_hand("reference_ci.md", f"---\nname: CI\n---\n\nThe CI token is {secret} and expires in May\n")
        self._by_hand("reference_old.md", f"once: {quote(secret, safe='')}\n")
        (self.root / "reference_old.md").unlink()
        self.memory.absorb()
        (self.root / FOLDER).mkdir()
        (self.root / FOLDER / "0badcafe.json").write_text(
            json.dumps({"id": "0badcafe", "file": "x.md", "text": secret})
        )
        self.transcript = self.project / "s1.jsonl"
        self.lines = [
            {"type": "user", "uuid": "u1", "message": {"role": "user", "content": f"remember {secret} — ok?"}},
            {"type": "assistant", "uuid": "u2", "message": {"role": "assistant", "content": "no"}},
            {"type": "user", "uuid": "u3", "toolUseResult": {"stdout": f"a\n\t\"{secret}\"\n", "n": 1.50}},
        ]  # fmt: skip
        text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in self.lines)
        self.transcript.write_text(text + '{"torn": "' + secret)
        results = self.project / "s1" / "tool-results"
        results.mkdir(parents=True)
        (results / "t1.txt").write_text(
            f"TOKEN={secret}\r\n" + base64.b64encode(f"ci:{secret}:x".encode()).decode() + "\n"
        )
        (self.project / "s1" / "session-memory").mkdir()
        (self.project / "s1" / "session-memory" / "summary.md").write_text(f"# Notes\ntried {secret}\n")
        (self.project / "s2.jsonl").write_text('{"type":"user","uuid":"x"}\n')
        self.log = root / "logs" / "background.jsonl"
        self.log.parent.mkdir()
        self.log.write_text(json.dumps({"kind": "x", "detail": secret}) + "\n")
        self.index = root / "index.sqlite"
        with SearchIndex(self.root, self.index) as index:
            index.refresh()

    def _by_hand(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)
        self.memory.absorb()

    def purge(self, wanted: PurgeTarget, *, dry_run: bool = False) -> PurgeReport:
        scope = PurgeScope((self.project,), (self.log,), (self.index,), self.inbox)
        return purge(wanted, self.memory, scope, dry_run=dry_run)

    def everything(self) -> bytes:
        """Every byte under the home, and every object of the history as git sees it."""
        files = [path for path in self.project.parent.parent.rglob("*") if path.is_file()]
        git = ["git", f"--git-dir={self.memory.history.git_dir}"]
        names = subprocess.run(
            [*git, "cat-file", "--batch-all-objects", "--batch-check"], capture_output=True, check=True
        )
        objects = b"".join(
            subprocess.run([*git, "cat-file", "-p", line.split()[0].decode()], capture_output=True, check=True).stdout
            for line in names.stdout.splitlines()
        )
        return b"\n".join(path.read_bytes() for path in files) + objects


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path, SECRET)


def _forms(secret: str) -> list[bytes]:
    return [form.encode() for form in (secret, json.dumps(secret)[1:-1], quote(secret, safe=""), secret.encode().hex())]


def test_a_dry_run_finds_everything_and_changes_nothing(home: Home) -> None:
    before = home.everything()
    report = home.purge(PurgeTarget.of_text(SECRET), dry_run=True)
    assert report.dry_run
    kinds = {place.kind for place in report.places}
    assert kinds == {"memory", "history", "inbox", "transcript", "session", "log"}
    assert home.everything() == before
    assert SECRET not in repr(report)


def test_a_purge_leaves_nothing_anywhere(home: Home) -> None:
    assert SECRET.encode() in home.everything()
    report = home.purge(PurgeTarget.of_text(SECRET))
    assert report.left == ()
    assert report.versions > 0
    after = home.everything()
    assert not [form for form in _forms(SECRET) if form in after]
    assert base64.b64encode(f"ci:{SECRET}:x".encode()) not in after
    assert not home.index.exists()
    assert SECRET not in repr(report)
    assert home.purge(PurgeTarget.of_text(SECRET), dry_run=True).places == ()


def test_the_rest_stays_as_it_was(home: Home) -> None:
    untouched = {
        path: path.read_bytes()
        for path in (home.root / "user_role.md", home.root / "MEMORY.md", home.project / "s2.jsonl")
    }
    os.utime(home.transcript, (1_700_000_000, 1_700_000_000))
    home.purge(PurgeTarget.of_text(SECRET))
    assert {path: path.read_bytes() for path in untouched} == untouched
    assert home.transcript.stat().st_mtime == 1_700_000_000
    lines = home.transcript.read_text().split("\n")
    wanted = [
        json.dumps(line, ensure_ascii=False, separators=(",", ":")).replace(SECRET, PURGED) for line in home.lines
    ]
    assert lines[:3] == wanted, "only the value differs, byte for byte"
    loaded = read_records(home.transcript)
    assert [record.uuid for record in loaded.records] == ["u1", "u2", "u3"]
    assert (home.root / "reference_ci.md").read_text().endswith(f"The CI token is {PURGED} and expires in May\n")


def test_git_can_still_read_the_history(home: Home) -> None:
    home.purge(PurgeTarget.of_text(SECRET))
    git = ["git", f"--git-dir={home.memory.history.git_dir}"]
    assert subprocess.run([*git, "fsck", "--full", "--strict"], capture_output=True).returncode == 0
    shown = subprocess.run([*git, "log", "-p", "--all"], capture_output=True, check=True, text=True).stdout
    assert PURGED in shown
    assert SECRET not in shown
    assert len(list(home.memory.log("reference_ci.md"))) >= 2


def test_a_pattern_takes_out_all_it_matches(tmp_path: Path) -> None:
    first, second = TOKENS["npm token"](Draw(1)), TOKENS["npm token"](Draw(2))
    home = Home(tmp_path, first)
    (home.project / "s2.jsonl").write_text(json.dumps({"type": "user", "text": f"or {second}"}) + "\n")
    report = home.purge(PurgeTarget.of_pattern(r"npm_[A-Za-z0-9]{36}"))
    assert report.left == ()
    after = home.everything()
    assert first.encode() not in after
    assert second.encode() not in after


def test_a_key_block_goes_line_by_line_too(tmp_path: Path) -> None:
    home = Home(tmp_path, KEY)
    numbered = "\n".join(f"{number:>5}→{line}" for number, line in enumerate(KEY.splitlines(), 1))
    (home.project / "s1" / "tool-results" / "t2.txt").write_text(numbered)
    assert home.purge(PurgeTarget.of_text(KEY)).left == ()
    after = home.everything().decode(errors="replace")
    assert not [line for line in KEY.splitlines() if "-----" not in line and len(line) > 30 and line in after]


def test_a_live_session_that_holds_it_is_named_and_nothing_changes(home: Home) -> None:
    code = (
        "import sys; from pathlib import Path; from reverie.storage.lease import Lease\n"
        "Lease.take(Path(sys.argv[1]), info={'session': 's1'}); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(home.project / "s1" / "session.lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(SessionBusy) as busy:
            home.purge(PurgeTarget.of_text(SECRET))
        assert busy.value.pid == other.pid
        assert str(other.pid) in str(busy.value)
        assert SECRET not in str(busy.value)
        assert SECRET in (home.root / "reference_ci.md").read_text(), "all or nothing"
        assert other.stdin is not None
        other.stdin.close()
        other.wait(LIMIT_S)
    assert home.purge(PurgeTarget.of_text(SECRET)).left == ()


def test_other_secrets_in_the_same_file_do_not_stand_in_the_way(home: Home) -> None:
    other = TOKENS["GitLab token"](Draw(5))
    path = home.root / "reference_ci.md"
    path.write_text(f"{path.read_text()}and {other}\n")
    assert home.purge(PurgeTarget.of_text(SECRET)).left == ()
    assert other in path.read_text()


@pytest.mark.parametrize("text", ["", "   ", "abc", "\n\nab\n"])
def test_what_stands_everywhere_is_not_purged(text: str) -> None:
    with pytest.raises(UserError, match="at least 4"):
        PurgeTarget.of_text(text)


@pytest.mark.parametrize("pattern", ["(", "a*", ".{0,3}"])
def test_patterns_that_are_none_or_match_nothing_are_refused(pattern: str) -> None:
    with pytest.raises(UserError):
        PurgeTarget.of_pattern(pattern)


VALUES = st.text(min_size=6, max_size=40).filter(
    lambda text: len(text.strip()) >= 6 and "\n" not in text and "\r" not in text
)


@settings(deadline=None, max_examples=count(100, 1_000))
@given(VALUES, st.text(max_size=20), st.text(max_size=20), st.booleans())
def test_every_form_of_any_value_is_found_and_goes(value: str, before: str, after: str, ascii_only: bool) -> None:
    value = value.encode("utf-8", "replace").decode()
    text = (before + value + after).encode("utf-8", "replace").decode()
    forms = SecretForms([value])
    for hidden in (
        text,
        json.dumps({"x": [text]}, ensure_ascii=ascii_only),
        json.dumps(json.dumps(text, ensure_ascii=ascii_only), ensure_ascii=ascii_only),
        f"{before}{quote(value, safe='')}{after}",
        f"see {value.encode().hex()}!",
        base64.b64encode(text.encode()).decode(),
        base64.urlsafe_b64encode(text.encode()).decode(),
    ):
        assert forms.count_in_line(hidden), hidden
        assert not forms.count_in_line(forms.replace_in_line(hidden))


@settings(deadline=None, max_examples=count(30, 600))
@given(
    VALUES,
    st.recursive(
        st.none() | st.integers() | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
)
def test_lines_of_json_stay_json_and_lines(value: str, data: object) -> None:
    line = json.dumps({"data": data, "held": value})
    done = SecretForms([value]).replace_in_line(line)
    assert "\n" not in done
    assert json.loads(done)["held"] != value or value in PURGED


def test_the_gate_lets_a_purge_pass(tmp_path: Path) -> None:
    gate = WriteGate(tmp_path)
    other = TOKENS["npm token"](Draw(9))
    gate(ProposedWrite("x.md", f"{PURGED} {other}", f"{SECRET} {other}", Writer.USER, restores=True))


def test_a_long_run_of_letters_is_searched_in_a_blink() -> None:
    forms, run = SecretForms(["hunterGreen-4411"]), "x" * 100_000
    with cpu_limit(2):
        assert forms.count(run) == 0
        encoded = base64.b64encode(b"user:hunterGreen-4411:x").decode()
        assert forms.replace(f"a {run}{encoded}{run} hunterGreen-4411{encoded} b") == "a [purged] [purged][purged] b"
