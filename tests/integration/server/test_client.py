"""The memory directory of machines and a memory server: real `reverie` processes in homes of their own, a real server.
Nothing is lost, conflicts are questions, and nobody sees the private files of another person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.server.conftest import Served, client

pytestmark = pytest.mark.integration
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Machine:
    """A home and a project folder, used by real processes."""

    folder: Path
    url: str
    token: str
    project: str = "shop"
    more: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        (self.folder / "work").mkdir(parents=True)

    def run(self, *args: str, code: int = 0, url: str = "", stdin: str = "") -> str:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "REVERIE_HOME": str(self.folder / "home"),
            "REVERIE_STORE": url or self.url,
            "REVERIE_STORE_PROJECT": self.project,
            **({"REVERIE_STORE_TOKEN": self.token} if self.token else {}),
            **self.more,
        }
        env = {name: value for name, value in env.items() if value}
        done = subprocess.run(
            [sys.executable, "-m", "reverie", *args],
            env=env,
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
