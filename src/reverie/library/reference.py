"""Writes docs/api.md, the reference of the public names, and sync.pyi, the types of the blocking classes, from the
source. Tests check both.

    python -m reverie.library.reference > docs/api.md
    python -m reverie.library.reference --sync > src/reverie/sync.pyi
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import reverie
from reverie.regular_files import read_regular_text

_WIDE = 120
_HEAD = """# The library: reference

`python -m reverie.library.reference > docs/api.md` writes this page from the docstrings. [The library](library.md)
shows how to use these names. They come from `reverie`; `reverie.sync` has the classes with coroutines without async.
"""
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def reference_page() -> str:
    """The page: classes and functions first, then what they return, then errors."""
    parts = [_HEAD]
    for module, names in reverie.PUBLIC.items():
        known = _definitions(module)
        if module == "reverie.errors":
            rows = "".join(f"| `{name}` | {_first_line(known[name])} |\n" for name in names)
            parts.append(f"## Errors\n\n| error | meaning |\n|---|---|\n{rows}")
            continue
        parts += [_section(known[name]) for name in names]
    return "\n".join(parts)


def _definitions(module: str) -> dict[str, ast.ClassDef | _Function]:
    tree = _tree(module)
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | _Function)}


def _tree(module: str) -> ast.Module:
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    return ast.parse(read_regular_text(Path(spec.origin)))


def _section(node: ast.ClassDef | _Function) -> str:
    if not isinstance(node, ast.ClassDef):
        return f"## {node.name}\n\n`{_signature(node)}`\n\n{_doc(node)}"
    fields = "".join(f"- `{name}: {kind}`{f': {doc}' if doc else ''}\n" for name, kind, doc in _fields(node))
    parts = [f"## {node.name}\n\n{_doc(node)}", fields]
    for method in _methods(node):
        if _is_property(method):
            returns = f": {_source(method.returns)}" if method.returns else ""
            parts.append(f"### {node.name}.{method.name}\n\n`{method.name}{returns}`\n\n{_doc(method)}")
        else:
            wait = "await " if isinstance(method, ast.AsyncFunctionDef) else ""
            parts.append(f"### {node.name}.{method.name}\n\n`{wait}{_signature(method)}`\n\n{_doc(method)}")
    return "\n".join(filter(None, parts))


def _methods(node: ast.ClassDef) -> Iterator[_Function]:
    yield from (one for one in node.body if isinstance(one, _Function) and not one.name.startswith("_"))


def _is_property(method: _Function) -> bool:
    return any(isinstance(one, ast.Name) and one.id in ("property", "cached_property") for one in method.decorator_list)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """The public fields of a record with their types and what is written below them."""
    for at, one in enumerate(node.body):
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name) or one.target.id.startswith("_"):
            continue
        below = node.body[at + 1] if at + 1 < len(node.body) else None
        text = ""
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            text = " ".join(below.value.value.split())
        yield one.target.id, _source(one.annotation), text


def _signature(node: _Function) -> str:
    """Name, parameters and result, without `self`."""
    given = [one for one in _parameters(node) if one not in ("self", "cls")]
    returns = f" -> {_source(node.returns)}" if node.returns else ""
    return f"{node.name}({', '.join(given)}){returns}"


def _parameters(node: _Function) -> list[str]:
    """The parameters one by one, as they are written."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    made = [_parameter(one, value) for one, value in zip(plain, defaults, strict=True)]
    if args.vararg:
        made.append(f"*{_parameter(args.vararg, None)}")
    elif args.kwonlyargs:
        made.append("*")
    made += [_parameter(one, value) for one, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [*made, *([f"**{_parameter(args.kwarg, None)}"] if args.kwarg else [])]


def _parameter(one: ast.arg, default: ast.expr | None) -> str:
    kind = f": {_source(one.annotation)}" if one.annotation else ""
    value = "" if default is None else (" = " if kind else "=") + _source(default)
    return f"{one.arg}{kind}{value}"


def _source(node: ast.expr) -> str:
    """The source of a type or a default, with the quotation marks of this project."""
    return ast.unparse(node).replace("'", '"')


def _doc(node: ast.ClassDef | _Function) -> str:
    """The docstring as Markdown: a line that begins with a name and a colon becomes an item of a list."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    text = re.sub(r"^(`\w+`: )", r"- \1", text, flags=re.MULTILINE)
    return re.sub(r"(?<=\S)\n(- `)", r"\n\1", text) + "\n"


def _first_line(node: ast.ClassDef | _Function) -> str:
    return " ".join((ast.get_docstring(node) or "").split())


def sync_types() -> str:
    """The stub of `reverie.sync`: the same methods without async."""
    classes, imports, own = list[str](), dict[str, set[str]](), set[str]()
    for module, names in reverie.PUBLIC.items():
        known = _definitions(module)
        found = [node for name in names if isinstance(node := known[name], ast.ClassDef) and _has_coroutines(node)]
        if not found or not module.startswith("reverie.library"):
            continue
        classes += [_stub(node) for node in found]
        own |= {node.name for node in found}
        used = {one.id for text in classes for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Name)}
        used |= {word for text in classes for word in re.findall(r"\bos\b", text)}
        for name, source in _imports(_tree(module)):
            if name in used:
                imports.setdefault(source, set()).add(name)
    imports = {source: names - own for source, names in imports.items() if names - own}
    imports.setdefault("types", set()).add("TracebackType")
    imports.setdefault("typing", set()).add("Self")
    plain = [f"import {name}" for name in sorted(imports.pop("", ()))]
    others = [_import_line(source, names) for source, names in sorted(imports.items()) if "reverie" not in source]
    ours = [_import_line(source, names) for source, names in sorted(imports.items()) if "reverie" in source]
    head = "# Written by `python -m reverie.library.reference --sync`: the types of what sync.py makes at run time.\n\n"
    return head + "\n".join([*plain, *others, "", *ours, "", *classes])


def _import_line(source: str, names: set[str]) -> str:
    line = f"from {source} import {', '.join(sorted(names))}"
    if len(line) <= _WIDE:
        return line
    return "\n".join([f"from {source} import (", *(f"    {name}," for name in sorted(names)), ")"])


def _has_coroutines(node: ast.ClassDef) -> bool:
    return any(isinstance(one, ast.AsyncFunctionDef) and one.name == "__aenter__" for one in node.body)


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.name, node.module) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def _stub(node: ast.ClassDef) -> str:
    lines = [f"class {node.name}:", _first_paragraph(node, 4), ""]
    for method in _methods(node):
        lines += [f"    @{ast.unparse(one).replace('cached_property', 'property')}" for one in method.decorator_list]
        returns = _source(method.returns) if method.returns else "None"
        given = _parameters(method)
        line = f"    def {method.name}({', '.join(given)}) -> {returns}:"
        if len(line) > _WIDE:
            line = "\n".join([f"    def {method.name}(", *(f"        {one}," for one in given), f"    ) -> {returns}:"])
        lines += [line, _first_paragraph(method, 8)]
    lines += ["    def __enter__(self) -> Self: ...", "    def __exit__("]
    kinds = ("type[BaseException] | None", "BaseException | None", "TracebackType | None")
    given = ", ".join(f"{name}: {kind}" for name, kind in zip(("kind", "error", "trace"), kinds, strict=True))
    return "\n".join([*lines, f"        self, {given}", "    ) -> None: ...", ""])


def _first_paragraph(node: ast.ClassDef | _Function, indent: int) -> str:
    text = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
    return textwrap.indent(textwrap.fill(f'"""{text}"""', _WIDE - indent), " " * indent)


if __name__ == "__main__":
    sys.stdout.write(sync_types() if "--sync" in sys.argv[1:] else reference_page())
