"""The code on the pages of adapters compiles, and the names that it takes from Reverie exist."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

from reverie.errors import MissingExtra

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "adapters").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_compiles(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), flags=re.S | re.M)
    assert blocks
    for block in blocks:
        compile(block, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("reverie"):
                try:
                    module = import_module(node.module)
                except (ImportError, MissingExtra):
                    continue  # an SDK that is not here
                assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)
