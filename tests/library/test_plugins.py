"""Models, encoders and stores of other packages: a small package on `sys.path`, found through its entry points."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reverie import Memory, UserError
from reverie.errors import UnknownModel
from reverie.memory.recall.ranker import Ranker
from reverie.models.catalogue import Catalogue
from reverie.models.registry import ModelAccess, open_model

CODE = """
from pathlib import Path
from reverie.offline.model import EmbeddedModel

class Parrot(EmbeddedModel):
    def __init__(self, model): super().__init__(); self.model = model
    @property
    def name(self): return f"acme:{self.model}"

class Letters:
    identity = "letters-1"
    def encode(self, texts): return [[text.lower().count(chr(97 + n)) + 0.01 for n in range(26)] for text in texts]

class Kept:
    def __init__(self, address, home):
        self.folder = Path(address.partition("://")[2]); self.log = self.folder.with_suffix(".log")
    def note(self, word):
        with self.log.open("a") as file: file.write(word + " ")
    def pull(self): self.note("pull")
    def push(self): self.note("push")

def open_model(model, access): return Parrot(model)
def open_letters(): return Letters()
def broken(*given): raise RuntimeError("the licence is missing")
def wrong(*given): return 42
number = 3
"""
ENTRIES = """
[reverie.models]
acme = acme_reverie:open_model
broken = acme_reverie:broken
wrong = acme_reverie:wrong
lost = acme_nowhere:open
number = acme_reverie:number
[reverie.encoders]
letters = acme_reverie:open_letters
flawed = acme_reverie:wrong
[reverie.stores]
kept = acme_reverie:Kept
plain = acme_reverie:broken
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    info = folder / "acme_reverie-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "acme_reverie.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-reverie\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "acme_reverie", raising=False)
    importlib.invalidate_caches()
    return folder


def opened(name: str) -> Any:
    return open_model(name, ModelAccess(), Catalogue.load(()))


def test_a_package_adds_a_provider_of_models(package: Path) -> None:
    assert opened("acme:large").name == "acme:large" and opened("acme:large").model == "large"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("broken:x", "The plug-in 'broken' of the package acme-reverie failed: RuntimeError: the licence is missing."),
        ("wrong:x", "What the plug-in 'wrong' of the package acme-reverie returned is not a model"),
        ("lost:x", "The plug-in 'lost' of the package acme-reverie failed: ModuleNotFoundError"),
        ("number:x", "The plug-in 'number' of the package acme-reverie is not a function"),
    ],
)
def test_an_error_in_a_plugin_names_its_package(package: Path, name: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        opened(name)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_known_names_load_no_plugin(package: Path) -> None:
    opened("embedded")
    with pytest.raises(UnknownModel):
        opened("nobody:knows")
    assert "acme_reverie" not in sys.modules


def test_a_package_brings_an_encoder(package: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    head = "---\nname: Boiler\ndescription: The boiler is in the cellar\ntype: project\n---\n\n"
    (memory / "project_boiler.md").write_text(head + "The boiler is in the cellar.\n")
    with Ranker.open(memory, None, tier="semantic", encoder="letters") as ranker:
        assert ranker.rank("where is the boiler in the cellar?").tier == "semantic"
    for name, says in (("flawed", "package acme-reverie failed"), ("nobody", "no installed package offers one")):
        with pytest.raises(UserError, match=says):
            Ranker.open(memory, None, tier="semantic", encoder=name)
        with Ranker.open(memory, None, encoder=name) as ranker:
            assert ranker.tier == "builtin" and says in ranker.note


def test_a_package_keeps_memories_elsewhere(package: Path, tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(f"kept://{tmp_path}/far") as memory:
            await memory.remember("The staging port is 8080")
            await memory.list()
            assert memory.path == tmp_path / "far"

    asyncio.run(work())
    assert (tmp_path / "far.log").read_text().split() == ["pull", "push", "pull", "push"]


@pytest.mark.parametrize(
    ("address", "says"), [("plain://x", "package acme-reverie failed"), ("s4://x", "No installed")]
)
def test_a_store_that_fails_or_is_missing_is_one_sentence(package: Path, address: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        Memory.open(address)


def test_a_store_that_fails_later_names_its_package(package: Path, tmp_path: Path) -> None:
    async def work(spoil: Callable[[Any], None]) -> None:
        async with Memory.open(f"kept://{tmp_path}/far") as memory:
            spoil(sys.modules["acme_reverie"])
            with pytest.raises(UserError, match="package acme-reverie failed: OSError"):
                await memory.list()

    def spoil(module: Any) -> None:
        def pull(self: Any) -> None:
            raise OSError("the network is down")

        module.Kept.pull = pull

    asyncio.run(work(spoil))
