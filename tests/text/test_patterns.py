"""Late patterns: they find what a compiled pattern finds, and every one in the source compiles."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

import reverie
from reverie.text.patterns import late

SOURCE = Path(reverie.__file__).parent
USERS = [path for path in sorted(SOURCE.rglob("*.py")) if " = late(" in path.read_text()]


def test_a_late_pattern_finds_what_a_compiled_one_finds() -> None:
    text = "One fish, two Fish"
    for method, args in (
        ("search", (text,)),
        ("match", ("fish bowl",)),
        ("fullmatch", ("FISH",)),
    ):
        early, now = (getattr(kind("fish", re.IGNORECASE), method)(*args) for kind in (re.compile, late))
        assert now is not None
        assert (now.span(), now[0]) == (early.span(), early[0])
    for method, args in (("findall", (text,)), ("sub", ("cat", text)), ("subn", ("cat", text, 1)), ("split", (text,))):
        early, now = (getattr(kind("fish", re.IGNORECASE), method)(*args) for kind in (re.compile, late))
        assert now == early
    pattern = late("(?P<kind>f)ish")
    assert pattern.pattern == "(?P<kind>f)ish"
    assert pattern.groupindex == {"kind": 1}
    assert [match["kind"] for match in pattern.finditer(text)] == ["f"]


def test_a_mistake_is_found_at_the_first_use() -> None:
    broken = late("(")
    with pytest.raises(re.error):
        broken.search("x")


@pytest.mark.parametrize("path", USERS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_every_late_pattern_compiles(path: Path) -> None:
    module = importlib.import_module(".".join(("reverie", *path.relative_to(SOURCE).with_suffix("").parts)))
    names = [
        target.id
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "late"
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    ]
    assert names
    for name in names:
        assert getattr(module, name).flags >= 0, name
