"""The tools in use: their names in memories, which files warn about them and which only explain them. The manual of a
tool in use is not needed; its known problems are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from reverie.memory.recall.search_index import IndexedFile, SearchIndex
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.text.words import words

_PROGRAM = late(r"\w+\((.*)", re.DOTALL)
_WRAPPER_WORDS: Final = "sudo env time nice nohup exec command xargs uv uvx npx pipx poetry bundle run"
_WRAPPERS: Final = frozenset(_WRAPPER_WORDS.split())
_GENERIC_WORDS: Final = """
    mcp tool tools query search list get set read write find run call fetch create update delete issues issue file files
    server api client
"""
_GENERIC: Final = frozenset(_GENERIC_WORDS.split())
"""Too common in names of MCP tools to say what the tool is about."""
_ORDINARY_WORDS: Final = """
    bash sh zsh cd ls cat echo grep rg head tail sed awk wc find python python3 node make git go rm cp mv mkdir test
    touch date which sort cut less open start code
"""
_ORDINARY: Final = frozenset(_ORDINARY_WORDS.split())
"""Programs whose name is an everyday word or that are used all day: a memory with the word may be about something else.
"""
_MANUAL = late(
    r"\b(using|usage|how to|how-to|how do|cheat ?sheet|arguments?|parameters?|params|syntax|calling|invocation|"
    r"invok\w+|commands?|cli|flags|options|examples?|reference|manual|running|quick ?start|basics)\b",
    re.IGNORECASE,
)
_MANUAL_OF_ANY_TYPE = late(
    r"\b(usage|how to (?:use|call|run|invoke)|cheat ?sheet|calling convention|parameters|arguments|syntax)\b|^using\b",
    re.IGNORECASE | re.MULTILINE,
)
_WARNING = late(
    r"\b(warn\w*|gotchas?|pitfalls?|traps?|caveats?|beware|careful|watch out|quirks?|bugs?|broken|danger\w*|never|"
    r"don'?t|do not|must not|silently|misleading|wrong\w*|incident|lag|sampled|hangs?|fails?|loses?|drops|undone|"
    r"known issues?|limitations?|problems?|needs?)\b",
    re.IGNORECASE,
)
_STRONG_WARNING = late(
    r"\b(warning|gotchas?|pitfalls?|traps?|caveats?|beware|watch out|quirks?|known issues?|problems?)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class ToolInUse:
    """A tool with its names in memories: its identifier, or all the words of its name."""

    identifier: str
    name: frozenset[str]
    ordinary: bool

    def named_in(self, header: str, header_words: set[str]) -> bool:
        return bool(self.name and self.name <= header_words) or ("__" in self.identifier and self.identifier in header)


def tools_in_use(seen: Sequence[str]) -> tuple[ToolInUse, ...]:
    """From names such as `mcp__jira__search` or `Bash(argocd app history)`; built-in tools are left out."""
    found: dict[str, ToolInUse] = {}
    for full in seen:
        identifier = full.strip().lower()
        name: frozenset[str] = frozenset()
        if identifier.startswith("mcp__"):
            parts = (frozenset(words(part)) - _GENERIC for part in identifier.split("__")[1:3])
            name = next((part for part in parts if part), name)
        elif match := _PROGRAM.match(identifier):
            identifier = _program(match[1])
            name = frozenset(words(identifier))
        else:
            continue
        if identifier:
            found[identifier] = ToolInUse(identifier, name, identifier in _ORDINARY)
    return tuple(found.values())


def _program(line: str) -> str:
    for part in line.rstrip(")").split():
        name = part.rsplit("/", 1)[-1]
        if "=" in part or part.startswith("-") or name in _WRAPPERS:
            continue
        return name
    return ""


def tool_terms(tools: Sequence[ToolInUse]) -> str:
    """The tools' names as search words."""
    return " ".join(sorted({word for tool in tools if not tool.ordinary for word in tool.name}))


def about_tool(tools: Sequence[ToolInUse], file: IndexedFile) -> float:
    """1 if the header names a tool in use, by identifier or by name; else 0."""
    return float(any(not tool.ordinary for tool in _named(tools, file)))


def is_manual(tools: Sequence[ToolInUse], file: IndexedFile, index: SearchIndex) -> bool:
    """Whether the file explains how to use a tool in use, and does not warn about it or say where something is."""
    if not tools:
        return False
    header = file.header.replace("_", " ").replace("-", " ")
    if _STRONG_WARNING.search(header):
        return False
    named = [tool for tool in _named(tools, file) if not tool.ordinary]
    warns = bool(_WARNING.search(header))
    if file.type != "reference" and not file.path.rsplit("/", 1)[-1].startswith("reference"):
        return bool(named) and not warns and bool(_MANUAL_OF_ANY_TYPE.search(header))
    if _MANUAL.search(header.replace("reference ", " ", 1)):
        # The header may use another name for a program than its command: then the commands in the body decide.
        return bool(named) or _shows_calls(tools, index.body(file))
    return not warns and bool(_named(tools, file)) and _shows_calls(tools, index.body(file))


def _named(tools: Sequence[ToolInUse], file: IndexedFile) -> list[ToolInUse]:
    if not tools:
        return []
    header_words = set(words(file.header))
    return [tool for tool in tools if tool.named_in(file.header.lower(), header_words)]


def _shows_calls(tools: Sequence[ToolInUse], body: str) -> bool:
    """Whether the body shows a call of the tool: a command line or a call in code."""
    calls = "|".join(re.escape(called) for tool in tools for called in (tool.identifier, *tool.name))
    return bool(re.search(rf"(`|^\s*\$?\s*)(?:{calls})[ (]", body, re.IGNORECASE | re.MULTILINE))
