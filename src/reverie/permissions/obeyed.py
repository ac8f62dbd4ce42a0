"""Files that are obeyed later without anybody asking for it: a change to one is never waved through.

The line: what starts by itself is on the list (an agent reads it; a shell, git, an editor, a build server or a tool of
the folder runs it), and so are Makefiles, since nobody reads those before `make`. What runs only when the user runs the
project (package.json, setup.py, tests) is not. Only names count here; `obeyed_links` follows links and includes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import translate
from functools import cache, lru_cache

MAKEFILES = ("makefile", "gnumakefile", "bsdmakefile", "makefile.*", "gnumakefile.*", "*.mk", "*.mak", "*.make")

OBEYED_NAMES: tuple[str, ...] = (
    # agents
    *("agents.md", "agent.md", "agents.*.md", "claude*.md", "gemini.md", "qwen.md", "warp.md", "crush.md", "skill.md"),
    *("mcp.json", "opencode.json*", "copilot-instructions.md", "*.instructions.md", "*.prompt.md", "*.chatmode.md"),
    # git and what it runs
    *("lefthook*", "lint-staged.config.*", "simple-git-hooks.*"),
    # shells, and what runs when a folder is entered or a program starts
    *("mise.toml", "mise.*.toml", "launchagents", "_vimrc", "_gvimrc", "_exrc", "sitecustomize.py"),
    *("usercustomize.py", "*.pth", "venv", "site-packages", "node_modules"),
    # editors
    *("*.code-workspace", "*.sublime-project"),
    # build servers
    *("*appveyor.y*ml", "azure-pipelines*", "jenkinsfile*", "bitbucket-pipelines.y*ml", "cloudbuild*", "buildspec*"),
    *("wercker.y*ml", "netlify.toml", "vercel.json", "renovate.json*", "codemagic.y*ml", "zuul.y*ml", "zuul.d"),
    # lists of commands behind one word
    *(*MAKEFILES, "justfile", "*.just", "taskfile*.y*ml"),
)
"""Names of files and folders at any depth, in lower case; a folder includes all that is in it."""

PLAIN_DOT_NAMES: tuple[str, ...] = (
    *(".gitignore", ".gitattributes", ".gitkeep", ".keep", ".mailmap", ".git-blame-ignore-revs", ".*ignore"),
    *(".editorconfig", ".clang-format", ".nojekyll", ".nvmrc", ".node-version", ".python-version", ".ruby-version"),
    *(".env.example", ".env.sample", ".env.template", ".env.dist", ".changeset", ".well-known"),
)
"""Names with a dot in front that only hold data. Every other name with a dot in front counts as obeyed."""

OBEYED_IN_GITHUB: tuple[str, ...] = (
    *("workflows", "actions", "instructions", "prompts", "agents", "chatmodes", "skills", "hooks", "scripts"),
    *("copilot*", "dependabot.y*ml", "renovate.json*", "*.yml", "*.yaml", "*.json", "*.toml"),
)
"""What counts in the folder `.github`; the rest of it (owners, forms for reports) is for people."""

PAGES_FOR_PEOPLE: tuple[str, ...] = (
    *("README*", "CHANGELOG*", "CHANGES*", "HISTORY", "NEWS", "RELEASE*", "CONTRIBUT*", "LICEN[CS]E*", "COPYING"),
    *("NOTICE*", "SECURITY", "CODE_OF_CONDUCT", "AUTHORS", "MAINTAINERS", "OWNERS", "GOVERNANCE", "SUPPORT", "THANKS"),
    *("INSTALL*", "BUILD*", "ROADMAP", "TODO*", "UPGRAD*", "MIGRATI*", "ARCHITECTURE*", "DESIGN*", "FAQ", "NOTES"),
    *("TESTING", "DEVELOP*", "USAGE", "EXAMPLE*", "API", "SPEC*", "GLOSSARY", "INDEX", "SUMMARY", "OVERVIEW"),
    *("TROUBLESHOOTING", "DEPLOY*", "BENCHMARK*", "CITATION", "CREDITS", "*_TEMPLATE"),
)
"""Names in capitals, without `.md`, that people read. Any other page in capitals at the top may be an agent's."""


@cache
def _one(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


def is_listed(name: str) -> bool:
    """Whether a file or folder of this name is obeyed wherever it is. Case does not matter."""
    return _one(OBEYED_NAMES).match(name.lower()) is not None


def is_obeyed(parts: Sequence[str]) -> bool:
    """Whether the path with these components, from the top of the project on, is obeyed by its names."""
    above = ("", *parts)
    return any(is_obeyed_in(above[at], name) for at, name in enumerate(parts)) or (
        len(parts) == 1 and is_page_for_agents(parts[0])
    )


@lru_cache(maxsize=20_000)
def is_obeyed_in(folder: str, name: str) -> bool:
    """Whether a file or folder is obeyed by its name and that of the folder it is in."""
    lower = name.lower()
    if is_listed(lower) or (folder.lower() == ".github" and _one(OBEYED_IN_GITHUB).match(lower)):
        return True
    return lower.startswith(".") and lower != ".github" and _one(PLAIN_DOT_NAMES).match(lower) is None


def is_page_for_agents(name: str) -> bool:
    """Whether a file at the top of a project has a name in capitals that no page for people has."""
    page = name[:-3]
    return name.lower().endswith(".md") and page.isupper() and _one(PAGES_FOR_PEOPLE).match(page) is None


def is_makefile(name: str) -> bool:
    """Whether `make` would read a file of this name, or people would include it."""
    return _one(MAKEFILES).match(name.lower()) is not None
