"""The public names: programs of other people rest on them, so nobody changes one by accident."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import reverie
from reverie.library.reference import reference_page, sync_types

ROOT = Path(__file__).resolve().parents[2]
FROZEN = Path(__file__).with_name("public_names.txt")
UPDATE = "python -m tests.library.test_public_names > tests/library/public_names.txt"


def public_names() -> str:
    """One line per public name, method and field, with its signature."""
    lines = list[str]()
    for name in sorted(reverie.__all__):
        found: Any = getattr(reverie, name)
        if name == "__version__":
            continue
        if not inspect.isclass(found):
            lines.append(f"{name}{inspect.signature(found)}")
            continue
        bases = ", ".join(base.__name__ for base in found.__bases__ if base is not object)
        lines.append(f"class {name}({bases})" if bases else f"class {name}")
        if dataclasses.is_dataclass(found):
            lines += [f"  {name}.{one.name}: {one.type}" for one in dataclasses.fields(found)]
        elif not issubclass(found, Exception):
            lines += [f"  {name}.{one}" for one in _members(found)]
    return re.sub(r"<function (\w+) at 0x\w+>", r"\1", "\n".join(lines) + "\n")


def _members(found: type) -> list[str]:
    listed = list[str]()
    for name, member in sorted(vars(found).items()):
        if name.startswith("_"):
            continue
        function: Any = member.__func__ if isinstance(member, classmethod) else member
        if inspect.isfunction(function):
            wait = "async " if inspect.iscoroutinefunction(function) else ""
            listed.append(f"{name}: {wait}{inspect.signature(function)}")
        else:
            listed.append(name)
    return listed


def test_the_public_names_and_their_signatures_are_those_that_were_promised() -> None:
    assert public_names() == FROZEN.read_text(), (
        "The public names changed. If you want this, write it in CHANGELOG.md, and update the list and the pages:\n"
        f"  {UPDATE}\n"
        "  python -m reverie.library.reference > docs/api.md\n"
        "  python -m reverie.library.reference --sync > src/reverie/sync.pyi"
    )


def test_types_and_lazy_names_are_the_same() -> None:
    """A type checker reads the imports, a program reads `PUBLIC`."""
    tree = ast.parse(Path(reverie.__file__).read_text())
    typed = {
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("reverie.")
        for alias in node.names
    }
    assert typed == {(module, name) for module, names in reverie.PUBLIC.items() for name in names}


def test_every_public_name_is_documented() -> None:
    for name in reverie.__all__:
        found: Any = getattr(reverie, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(found), name
        for member, value in vars(found).items() if inspect.isclass(found) else ():
            function: Any = value.__func__ if isinstance(value, classmethod) else value
            if inspect.isfunction(function) and not member.startswith("_"):
                assert function.__doc__, f"{name}.{member}"


def test_the_reference_and_the_types_of_the_blocking_classes_are_current() -> None:
    assert (ROOT / "docs" / "api.md").read_text() == reference_page(), "see UPDATE in this file"
    assert (ROOT / "src" / "reverie" / "sync.pyi").read_text() == sync_types(), "see UPDATE in this file"


def test_the_memory_loads_nothing_else() -> None:
    code = "import sys; from reverie import Memory; Memory; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.startswith("reverie")}
    assert ours == {"reverie", "reverie.errors", "reverie.library", "reverie.library.memory"}
    assert not {"asyncio", "dataclasses", "importlib.metadata", "anthropic", "click", "yaml"} & set(loaded)


if __name__ == "__main__":
    sys.stdout.write(public_names())


def test_every_name_of_reverie_in_the_docs_is_public() -> None:
    """A name that a page imports, and a class that the page of the library names, so that a program can catch it."""
    classes = {
        name for path in (ROOT / "src").rglob("*.py") for name in re.findall(r"^class (\w+)", path.read_text(), re.M)
    }
    tools = {"Agent"}
    text = (ROOT / "docs" / "library.md").read_text()
    named = set(re.findall(r"`([A-Z]\w+)(?:[.(][^`]*)?`", text)) & classes - tools
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S):
            for imported in re.findall(r"^\s*from reverie import (.+)$", block, re.M):
                named |= {one.split(" as ")[0].strip(" ()") for one in imported.split(",")}
    assert "HoldsSecret" in named and named <= set(reverie.__all__), sorted(named - set(reverie.__all__))
