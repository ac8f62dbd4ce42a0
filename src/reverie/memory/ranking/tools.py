"""The tools in use: what they are called in a memory, which files warn about them and which only say how to use them.

Somebody who is using a tool does not need its manual; what goes wrong with it is exactly what they need.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from reverie.memory.ranking.text import words
from reverie.memory.ranking.topic import Topic
from reverie.memory.search_index import IndexedFile, SearchIndex

_PROGRAM = re.compile(r"\w+\((.*)\)?", re.DOTALL)
_WRAPPER_WORDS: Final = "sudo env time nice nohup exec command xargs uv uvx npx pipx poetry bundle run"
_WRAPPERS: Final = frozenset(_WRAPPER_WORDS.split())
_GENERIC_WORDS: Final = """
    mcp tool tools query search list get set read write find run call fetch create update delete bash sh zsh cd ls cat
    echo grep rg head tail sed awk wc python python3 node make git rm cp mv mkdir test issues issue file files server
    api client
"""
_GENERIC: Final = frozenset(_GENERIC_WORDS.split())
"""Too common, as a name of a tool, to say that a memory is about it."""
_MANUAL = re.compile(
    r"\b(using|usage|how to|how-to|how do|cheat ?sheet|arguments?|parameters?|params|syntax|calling|invocation|"
    r"invok\w+|commands?|cli|flags|options|examples?|reference|manual|running|quick ?start|basics)\b",
    re.IGNORECASE,
)
_WARNING = re.compile(
    r"\b(warn\w*|gotchas?|pitfalls?|traps?|caveats?|beware|careful|watch out|quirks?|bugs?|broken|danger\w*|never|"
    r"don'?t|do not|must not|silently|misleading|wrong\w*|incident|lag|sampled|hangs?|fails?|loses?|drops|undone|"
    r"known issues?|limitations?|problems?|needs?)\b",
    re.IGNORECASE,
)
_STRONG_WARNING = re.compile(
    r"\b(warning|gotchas?|pitfalls?|traps?|caveats?|beware|watch out|quirks?|known issues?|problems?)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ToolInUse:
    """A tool by the names a memory may call it: the whole identifier, or all the words of one of its names."""

    identifier: str
    names: tuple[frozenset[str], ...]


def tools_in_use(seen: Sequence[str]) -> tuple[ToolInUse, ...]:
    """From names such as `mcp__jira__search` or `Bash(argocd app history)`; built-in tools are left out."""
    found: dict[str, ToolInUse] = {}
    for name in seen:
        identifier = name.strip()
        if identifier.startswith("mcp__"):
            names = tuple(frozenset(words(part)) - _GENERIC for part in identifier.split("__")[1:3])
        elif "(" in identifier:
            match = _PROGRAM.match(identifier)
            program = _program(match[1] if match else "")
            names = (frozenset({program}) - _GENERIC,)
            identifier = program if names[0] else ""
        else:
            continue
        if identifier:
            found[identifier] = ToolInUse(identifier, tuple(name for name in names if name))
    return tuple(found.values())


def _program(line: str) -> str:
    for part in line.rstrip(")").split():
        name = part.rsplit("/", 1)[-1].lower()
        if "=" in part or part.startswith("-") or name in _WRAPPERS:
            continue
        return name
    return ""


def tool_terms(tools: Sequence[ToolInUse]) -> str:
    """The tools' names as words to search for."""
    return " ".join(sorted({word for tool in tools for name in tool.names for word in name}))


def about_tool(tools: Sequence[ToolInUse], file: IndexedFile) -> float:
    """1 if the header names a tool in use, by identifier or by name; 0 if not."""
    header = file.header.lower()
    seen = set(words(file.header))
    return float(any(tool.identifier.lower() in header or any(n <= seen for n in tool.names) for tool in tools))


def is_manual(tools: Sequence[ToolInUse], file: IndexedFile, index: SearchIndex) -> bool:
    """Whether the file tells how to use a tool in use, rather than what to beware of or where something is."""
    if not tools or not about_tool(tools, file):
        return False
    header = file.header.replace("_", " ").replace("-", " ")
    if _STRONG_WARNING.search(header):
        return False
    reference = file.type == "reference" or file.path.rsplit("/", 1)[-1].startswith("reference")
    if _MANUAL.search(header.replace("reference ", " ", 1) if reference else header):
        return reference or not _WARNING.search(header)
    return reference and not _WARNING.search(header) and _shows_calls(tools, index.read(file))


def _shows_calls(tools: Sequence[ToolInUse], topic: Topic) -> bool:
    """Whether the body shows how the tool is called: a command line or a call in code."""
    for tool in tools:
        for called in {tool.identifier, *(word for name in tool.names for word in name)}:
            if re.search(rf"(`|^\s*\$?\s*){re.escape(called)}[ (]", topic.body, re.IGNORECASE | re.MULTILINE):
                return True
    return False
