"""The pictures of the docs: what a program writes to a terminal becomes an SVG that needs nothing else."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

SCREEN = (
    "\x1b[1mReverie\x1b[0m <0.1> & more\r\n"
    "\x1b[1m\x1b[36m› \x1b[0mrun\x1b[38;2;255;0;16m red\x1b[39m\x1b]8;;x\x07 \x1b[Kend\n"
    + "".join(f"── line {number} \x1b[2m████\x1b[22m 日本\n" for number in range(60))
)


@pytest.fixture(scope="module")
def pictures(request: pytest.FixtureRequest) -> ModuleType:
    path = request.config.rootpath / "tools" / "terminal_picture.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["draw", "animate"])
def test_a_picture_has_every_line_at_its_columns_and_needs_no_network(pictures: ModuleType, kind: str) -> None:
    make: Callable[[str, str, int], str] = getattr(pictures, kind)
    picture = make(SCREEN, "a <title>", 60)
    assert picture == make(SCREEN, "a <title>", 60)
    assert "http" not in picture.replace("http://www.w3.org/2000/svg", "") and "\x1b" not in picture
    texts = [one for one in ElementTree.fromstring(picture).iter() if one.tag.endswith("}text")]
    assert [one.text for one in texts[:6]] == ["a <title>", "Reverie", "<0.1> & more", "›", "run", "red"]
    assert texts[1].get("font-weight") == "600" and texts[5].get("fill") == "#ff0010"
    assert texts[4].get("x") == "16.8" and texts[6].text == "end"
    wide = [one for one in texts if one.text == "日本"]
    assert len(wide) == 60 and wide[0].get("textLength") == f"{4 * 8.4:.1f}"
    assert picture.count("<rect ") >= 61  # a frame, and a bar per line


def test_the_pictures_of_the_docs_are_well_formed(request: pytest.FixtureRequest) -> None:
    folder: Path = request.config.rootpath / "docs" / "images"
    for name in ("demo.svg", "chat.svg"):
        text = "".join(ElementTree.parse(folder / name).getroot().itertext())
        assert "port" in text or "pier" in text
