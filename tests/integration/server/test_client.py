"""The memory directory of machines and a memory server: real `reverie` processes in homes of their own, a real server.
Nothing is lost, conflicts are questions, and nobody sees the private files of another person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.conftest import Served, client

pytestmark = pytest.mark.integration
SECRET = "ghp_" + "a8Kd93kLmQ0zXw7RtY5uVb2Nc4Jf6Hg1Ss9P"
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Machine:
    """A home and a project folder, used by real processes."""

    folder: Path
    url: str
    token: str
    project: str = "shop"

    def __post_init__(self) -> None:
        (self.folder / "work").mkdir(parents=True)

    def env(self, url: str = "") -> dict[str, str]:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "REVERIE_HOME": str(self.folder / "home"),
            "REVERIE_STORE": url or self.url,
            "REVERIE_STORE_PROJECT": self.project,
            "REVERIE_STORE_TOKEN": self.token,
        }
        return {name: value for name, value in env.items() if value}

    def run(self, *args: str, code: int = 0, url: str = "", stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "reverie", *args],
            env=self.env(url),
            cwd=self.folder / "work",
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def sync(self, **more: Any) -> dict[str, Any]:
        return json.loads(self.run("memory", "sync", "--json", **more))

    @property
    def root(self) -> Path:
        (found,) = (self.folder / "home" / "projects").glob("*/memory")
        return found

    def files(self) -> dict[str, str]:
        found = {path.relative_to(self.root).as_posix(): path.read_text() for path in self.root.rglob("*.md")}
        return {name: text for name, text in sorted(found.items()) if not name.endswith("MEMORY.md")}

    def write(self, name: str, says: str) -> None:
        """As an editor does it."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(topic(name, says))

    def questions(self) -> list[dict[str, Any]]:
        items = json.loads(self.run("memory", "inbox", "--json"))["items"]
        return [item for item in items if item["why"] == "conflict"]


def topic(name: str, says: str) -> str:
    return f"---\nname: {name}\ndescription: about {name}\ntype: project\n---\n{says}\n"


def says(text: str) -> str:
    return text.rpartition("---\n")[2].strip()


@pytest.fixture
def machine(tmp_path: Path, served: Served) -> Callable[..., Machine]:
    def make(name: str, token: str, **more: Any) -> Machine:
        return Machine(tmp_path / name, served.url, token, **more)

    return make


def settle(*machines: Machine) -> None:
    """Syncs everybody until nobody has anything new."""
    for _ in range(6):
        reports = [one.sync() for one in machines]
        if not any(report["sent"] or report["received"] for report in reports):
            return
    raise AssertionError(reports)


def test_a_laptop_offline_for_a_day(machine: Callable[..., Machine], served: Served) -> None:
    desk, laptop = machine("desk", served.anna), machine("laptop", served.anna)
    desk.run("remember", "We deploy on Tuesdays.")
    for number in range(50):
        desk.write(f"n{number:02}.md", f"fact {number}")
    settle(desk, laptop)
    before = laptop.files()
    assert len(before) == 51 and desk.files() == before
    wanted = {name: says(text) for name, text in before.items()}
    asked = set[str]()

    def each(here: Machine, there: Machine, mark: str, start: int) -> None:
        """What only one side does: 10 edits, 3 removals, 4 renames, 7 new files."""
        del there
        for number in range(start, start + 10):
            here.write(f"n{number:02}.md", f"{mark} knows more about {number}")
            wanted[f"n{number:02}.md"] = f"{mark} knows more about {number}"
        for number in range(start + 10, start + 13):
            (here.root / f"n{number:02}.md").unlink()
            del wanted[f"n{number:02}.md"]
        for number in range(start + 13, start + 17):
            (here.root / f"n{number:02}.md").rename(here.root / f"{mark}_{number}.md")
            wanted[f"{mark}_{number}.md"] = wanted.pop(f"n{number:02}.md")
        for number in range(7):
            here.write(f"new_{mark}_{number}.md", f"{mark} found {number}")
            wanted[f"new_{mark}_{number}.md"] = f"{mark} found {number}"

    each(desk, laptop, "desk", 0)
    each(laptop, desk, "laptop", 17)
    for number in range(34, 40):  # both edit
        desk.write(f"n{number}.md", f"desk says {number}")
        laptop.write(f"n{number}.md", f"laptop says {number}")
        wanted[f"n{number}.md"] = f"desk says {number}"
        wanted[f"n{number}_other_version_1.md"] = f"laptop says {number}"
        asked.add(f"n{number}.md")
    for number in (40, 41):  # both say the same
        for one in (desk, laptop):
            one.write(f"n{number}.md", f"agreed on {number}")
        wanted[f"n{number}.md"] = f"agreed on {number}"
    for remover, editor, number in ((desk, laptop, 42), (laptop, desk, 43)):  # a change wins over a removal
        (remover.root / f"n{number}.md").unlink()
        editor.write(f"n{number}.md", f"still true {number}")
        wanted[f"n{number}.md"] = f"still true {number}"
    for one in (desk, laptop):  # both remove
        (one.root / "n44.md").unlink()
    del wanted["n44.md"]
    for number in range(3):  # new files with the same name
        desk.write(f"same_{number}.md", f"desk made {number}")
        laptop.write(f"same_{number}.md", f"laptop made {number}")
        wanted[f"same_{number}.md"] = f"desk made {number}"
        wanted[f"same_{number}_other_version_1.md"] = f"laptop made {number}"
        asked.add(f"same_{number}.md")
    (desk.root / "n45.md").rename(desk.root / "moved_45.md")  # one renames, the other edits
    laptop.write("n45.md", "edited 45")
    wanted |= {"moved_45.md": "fact 45", "n45.md": "edited 45"}
    # 24 + 6 + 2 + 2 + 1 + 3 + 1 = 39 changes per side, and one by a command, while the server is out of reach
    offline = laptop.run("memory", "sync", code=4, url=NOWHERE)
    assert offline.count("\n") == 1 and "does not answer" in offline
    laptop.run("remember", "The laptop was on a train.", url=NOWHERE)
    desk.run("remember", "The desk has a new lamp.")

    settle(desk)
    settle(laptop, desk)
    here, there = desk.files(), laptop.files()
    assert here == there
    plain = {name: says(text) for name, text in here.items()}
    assert [text for text in plain.values() if "on a train" in text or "new lamp" in text][1:]
    assert {name: text for name, text in plain.items() if name in wanted} == wanted
    assert len(plain) == len(wanted) + 2
    assert {item["file"] for item in laptop.questions()} == asked and not desk.questions()

    shown = laptop.run("memory", "inbox")
    assert "desk says 34" in shown and "laptop says 34" in shown
    first, second, third = laptop.questions()[:3]
    for verb, item in (("accept", first), ("reject", second), ("keep", third)):
        laptop.run("memory", "inbox", verb, item["id"])
    settle(laptop, desk)
    assert desk.files() == laptop.files()
    now = {name: says(text) for name, text in desk.files().items()}
    assert now[first["file"]].startswith("laptop") and first["other"] not in now
    assert now[second["file"]].startswith("desk") and second["other"] not in now
    assert now[third["file"]].startswith("desk") and now[third["other"]].startswith("laptop")
    assert len(laptop.questions()) == len(asked) - 3

    (store,) = [one for one in client(served, served.anna).beta.memory_stores.list() if one.name == "shop (private)"]
    versions = list(client(served, served.anna).beta.memory_stores.memory_versions.list(store.id, limit=100))
    numbers = sorted(one.to_dict()["number"] for one in versions)
    assert numbers == list(range(1, len(numbers) + 1))
    assert not list(client(served, served.ben).beta.memory_stores.list())


def test_a_server_and_a_client_killed_in_the_middle(
    machine: Callable[..., Machine], serve: Callable[[], Served], served: Served
) -> None:
    desk, laptop = machine("desk", served.anna), machine("laptop", served.anna)
    desk.run("remember", "We deploy on Tuesdays.")
    texts = dict[str, str]()
    for number in range(40):
        desk.write(f"n{number:02}.md", f"fact {number}")
        texts[f"n{number:02}.md"] = f"fact {number}"
    ends = [lambda one: one.kill(), lambda _: served.kill()]  # the client, then the server
    for end in ends:
        before = len(stored(served))
        syncing = subprocess.Popen(
            [sys.executable, "-m", "reverie", "memory", "sync"],
            env=desk.env(),
            cwd=desk.folder / "work",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        until = time.monotonic() + 60
        while len(stored(served)) < before + 5 and time.monotonic() < until:
            time.sleep(0.01)
        end(syncing)
        said = syncing.communicate(timeout=60)[0].decode()
        assert "Traceback" not in said
        for number in range(0, 40, 5):  # what may have been sent without an answer is changed again
            texts[f"n{number:02}.md"] += " and more"
            desk.write(f"n{number:02}.md", texts[f"n{number:02}.md"])
    assert syncing.returncode in (0, 4)
    again = serve()
    desk.url = laptop.url = again.url
    settle(desk, laptop)
    assert desk.files() == laptop.files()
    plain = {name: says(text) for name, text in laptop.files().items()}
    assert {name: text for name, text in plain.items() if name in texts} == texts
    assert len(plain) == len(texts) + 1 and not desk.questions()
    assert len(stored(again)) == len(plain)


def stored(served: Served) -> list[Any]:
    """Every memory in the private stores of anna."""
    api = client(served, served.anna).beta.memory_stores
    return [one for store in api.list() for one in api.memories.list(store.id, limit=100)]


def test_a_revoked_token_stops_syncs_and_nothing_else(machine: Callable[..., Machine], served: Served) -> None:
    import psycopg

    desk = machine("desk", "")
    refused = desk.run("memory", "login", stdin="rev_wrong\n", code=1)
    assert "does not know this token" in refused
    assert "anna" in desk.run("memory", "login", stdin=f"{served.anna}\n")
    (kept,) = (desk.folder / "home" / "store-tokens").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.read_text().strip() == served.anna
    desk.run("remember", "We deploy on Tuesdays.")
    assert json.loads(desk.run("memory", "store", "--json"))["stores"][0]["memories"] == 1
    with psycopg.connect(served.dsn, autocommit=True) as connection:
        connection.execute("update tokens set revoked_at = now() where person_id = %s", (served.ids["anna"],))
    said = desk.run("memory", "sync", code=1)
    assert said.count("\n") == 1 and "reverie memory login" in said and served.anna not in said
    assert "Remembered" in desk.run("remember", "The lamp is new.")
    assert "does not know" in desk.run("memory", "store", code=1)
    assert "does not know" in " ".join(desk.run("doctor").split())
    assert "Removed" in desk.run("memory", "logout")
    assert "There is no token" in desk.run("memory", "sync", code=2)
    assert len(desk.files()) == 2


def test_private_by_default_and_shared_on_request(machine: Callable[..., Machine], served: Served) -> None:
    anna, ben, eve = (machine(name, getattr(served, name)) for name in ("anna", "ben", "eve"))
    other = machine("anna2", served.anna)
    for one, text in ((anna, "Anna drinks tea."), (ben, "Ben drinks coffee."), (eve, "Eve drinks water.")):
        one.run("remember", text)
        one.write("office.md", f"the office opens at {len(text)}")
        one.write("build.md", f"{text} And builds take long.")
    anna.write("secret.md", f"the token is {SECRET}")
    settle(anna, ben, eve)
    assert any("secret.md" in one for one in anna.sync()["held_back"])
    assert "Nothing was changed" in anna.run("memory", "share", "office", code=2)

    anna.run("memory", "share", "build", "--yes")
    ben.run("memory", "share", "build", "--yes")
    anna.run("memory", "share", "office", "--with", "organisation", "--yes")
    ben.run("memory", "share", "office", "--with", "organisation", "--yes")
    assert "not in a team 'core'" in eve.run("memory", "share", "office", "--with", "team:core", "--yes", code=2)
    settle(anna, ben, eve, other)
    assert anna.files() == {**other.files(), "secret.md": anna.files()["secret.md"]}
    common = {name: text for name, text in anna.files().items() if name.startswith("team/")}
    assert common == {name: text for name, text in ben.files().items() if name.startswith("team/")}
    assert set(common) == {
        "team/build.md",
        "team/build_other_version_1.md",
        "team/organisation/office.md",
        "team/organisation/office_other_version_1.md",
    }
    assert {one["file"] for one in ben.questions()} == {"team/build.md", "team/organisation/office.md"}
    for one, foreign in ((anna, ("coffee.", "water")), (ben, ("tea.", "water")), (eve, ("tea", "coffee"))):
        private = [text for name, text in one.files().items() if not name.startswith("team/")]
        assert not [text for text in private if any(word in text for word in foreign)]
    assert not any("drinks" in text for name, text in common.items() if "build" not in name)
    assert not any("secret" in memory.path for memory in stored(served))

    # what the organisation says is changed only on request, and can be taken back
    ben.write("team/organisation/office.md", "the office is closed")
    assert any("reverie memory share" in one for one in ben.sync()["held_back"])
    anna.sync()
    assert "closed" not in anna.files()["team/organisation/office.md"]
    ben.run("memory", "share", "team/organisation/office.md", "--yes")
    anna.run("memory", "unshare", "team/build.md", "--yes")
    settle(anna, ben)
    assert "closed" in anna.files()["team/organisation/office.md"]
    assert "team/build.md" not in ben.files() and "build.md" in anna.files()
    # also the only file of a folder
    anna.write("tea.md", "tea is at four")
    anna.run("memory", "share", "tea", "--with", "team:core", "--yes")
    settle(anna, other)
    assert "team/teams/core/tea.md" in other.files()
    assert "tea.md is private" in anna.run("memory", "unshare", "team/teams/ea", "--yes")
    settle(anna, other)
    assert "team/teams/core/tea.md" not in {*anna.files(), *other.files()} and "tea.md" in anna.files()
    # an undo counts for all, but not the undo of what others did
    anna.run("memory", "share", "tea", "--with", "team:core", "--yes")
    anna.run("memory", "undo", "latest")
    settle(anna, other)
    assert "team/teams/core/tea.md" not in {*anna.files(), *other.files()} and "tea.md" in other.files()
    anna.run("memory", "share", "tea", "--with", "team:core", "--yes")
    other.sync()
    other.run("memory", "undo", "latest")
    settle(anna, other)
    assert "team/teams/core/tea.md" in anna.files()


def test_a_server_restored_from_a_backup_takes_nothing_back(machine: Callable[..., Machine], served: Served) -> None:
    import psycopg

    desk = machine("desk", served.anna)
    desk.run("remember", "We deploy on Tuesdays.")
    desk.write("a.md", "first")
    desk.write("b.md", "only here")
    desk.sync()
    desk.write("a.md", "second")
    desk.sync()
    old = topic("a.md", "first")
    with psycopg.connect(served.dsn, autocommit=True) as connection:  # the last change never happened, others did
        given = (old, sha256(old.encode()).hexdigest())
        connection.execute("update memories set content = %s, sha256 = %s where path = '/a.md'", given)
        connection.execute("update versions set content = %s, sha256 = %s where path = '/a.md'", given)
        connection.execute("delete from memories where path = '/b.md'")
        connection.execute("delete from versions where path = '/b.md'")
        connection.execute("update versions set id = 'memver_other' where number = (select max(number) from versions)")
        connection.execute("update memories set version_id = 'memver_other' where path = '/a.md'")
        reasons = [row[0] for row in connection.execute("select reason from versions order by number")]
    assert "Asked for with `reverie remember`." in reasons and any("an editor" in one for one in reasons)
    assert desk.sync()["kept_both"] == ["a.md"]
    plain = {name: says(text) for name, text in desk.files().items()}
    assert plain["a_other_version_1.md"] == "second" and plain["b.md"] == "only here"
    assert {one.path for one in stored(served)} >= {"/a.md", "/a_other_version_1.md", "/b.md"}


def test_settings_of_a_folder_cannot_redirect_memory(machine: Callable[..., Machine], served: Served) -> None:
    desk = machine("desk", served.anna, project="")
    desk.url = ""
    work = desk.folder / "work" / ".reverie"
    work.mkdir()
    (work / "settings.toml").write_text(f'[memory]\nstore = "{served.url}"\n')
    desk.run("remember", "We deploy on Tuesdays.")
    assert "Nothing is set up" in desk.run("memory", "sync", code=2)
    assert not stored(served)
    for url, said in (("http://memory.example.com", "not encrypted"), ("https://me:pw@host", "password")):
        assert said in desk.run("memory", "sync", code=2, url=url)


def test_sessions_programs_and_hooks_use_the_server(machine: Callable[..., Machine], served: Served) -> None:
    desk, laptop = machine("desk", served.anna), machine("laptop", served.anna)

    def python(here: Machine, code: str, stdin: str = "") -> str:
        done = subprocess.run(
            [sys.executable, *code.split()] if code.startswith("-m") else [sys.executable, "-c", code],
            env=here.env(),
            cwd=here.folder / "work",
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    program = (
        "from reverie.sync import Memory\n"
        "with Memory.open() as memory:\n"
        "    memory.remember({!r}, origin='typed')\n"
        "    print([one.name for one in memory.list()])\n"
    )
    python(desk, program.format("The lighthouse is painted in June."))
    assert "lighthouse" in python(laptop, program.format("The pier is closed on Mondays."))
    desk.sync()
    assert desk.files() == laptop.files() and len(desk.files()) == 2
    trusted = [json.loads(one.run("memory", "inferred", "--json"))["statements"] for one in (desk, laptop)]
    assert trusted == [[], []]  # what the user said on one machine is the user's word on the other

    desk.write("hook.md", "The bell rings at noon.")
    job = {"agent": "claude-code", "session": "s", "transcript": "", "cwd": str(desk.folder / "work")}
    told = python(desk, "-m reverie.daemon.work", json.dumps({**job, "ended": False, "variables": {}}))
    assert json.loads(told)["sent"] == 1
    laptop.run("run", "--model", "embedded", "hello")
    assert "hook.md" in laptop.files()

    desk.write("hook.md", "The bell rings at noon, and the word is swordfish-of-bergen.")
    desk.sync()
    desk.run("memory", "purge", "swordfish-of-bergen", "--yes")
    settle(desk, laptop)
    api = client(served, served.anna).beta.memory_stores
    versions = [one for store in api.list() for one in api.memory_versions.list(store.id, view="full")]
    assert len(versions) > 4 and not any("swordfish" in (one.content or "") for one in versions)
    assert "The bell rings" in laptop.files()["hook.md"] and desk.files() == laptop.files()
