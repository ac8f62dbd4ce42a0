"""Lists files that are obeyed later without a question, such as hooks and instructions: changing one always asks.

Files that start by themselves are on the list (an agent reads them; a shell, git, an editor, a build server or a tool
runs them), and Makefiles, because nobody reads them before `make`. Files that run only when the user runs the project
(package.json, setup.py, tests) are not. Only names count here; `obeyed_links` follows links and includes.
No list can be complete, so a new file at the top of a project, where programs look for theirs, is judged the other way
round: it is free only if it is source code, text, or a usual file of a project.
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
    *("*mcp*.json", "*mcp*.toml", "*mcp*.y*ml", "*-extension.json", "plugin.json", "marketplace.json", "hooks.json"),
    *("opencode.json*", "copilot-instructions.md", "*.instructions.md", "*.prompt.md", "*.chatmode.md"),
    # git and what it runs
    *("lefthook*", "lint-staged.config.*", "simple-git-hooks.*"),
    # shells, and what runs when a folder is entered or a program starts
    *("mise.toml", "mise.*.toml", "launchagents", "_vimrc", "_gvimrc", "_exrc", "sitecustomize.py"),
    *("usercustomize.py", "*.pth", "venv", "site-packages", "node_modules"),
    *("flake.nix", "flake.lock", "shell.nix", "default.nix", "devenv.*", "devbox.json", "devbox.lock", "pixi.toml"),
    *("vagrantfile", "tiltfile", "*.tiltfile", "skaffold*.y*ml", "devspace*.y*ml", "garden*.y*ml", "procfile*"),
    *("brewfile", "dangerfile*", "earthfile", "guardfile", "captainhook.json"),
    # editors
    *("*.code-workspace", "*.sublime-project"),
    # build servers
    *("*appveyor.y*ml", "azure-pipelines*", "jenkinsfile*", "bitbucket-pipelines.y*ml", "cloudbuild*", "buildspec*"),
    *("wercker.y*ml", "netlify.toml", "vercel.json", "renovate.json*", "codemagic.y*ml", "zuul.y*ml", "zuul.d"),
    # lists of commands behind one word
    *(*MAKEFILES, "justfile", "*.just", "taskfile*.y*ml"),
)
"""Names of files and folders at any depth, in lower case; a folder includes its content."""

PLAIN_DOT_NAMES: tuple[str, ...] = (
    *(".gitignore", ".gitattributes", ".gitkeep", ".keep", ".mailmap", ".git-blame-ignore-revs", ".*ignore"),
    *(".editorconfig", ".clang-format", ".nojekyll", ".nvmrc", ".node-version", ".python-version", ".ruby-version"),
    *(".env.example", ".env.sample", ".env.template", ".env.dist", ".changeset", ".well-known"),
)
"""Names that begin with a dot and only hold data. Every other name that begins with a dot counts as obeyed."""

OBEYED_IN_GITHUB: tuple[str, ...] = (
    *("workflows", "actions", "instructions", "prompts", "agents", "chatmodes", "skills", "hooks", "scripts"),
    *("copilot*", "dependabot.y*ml", "renovate.json*", "*.yml", "*.yaml", "*.json", "*.toml"),
)
"""Obeyed names in the folder `.github`; the rest of it (owners, forms for reports) is for people."""

PAGES_FOR_PEOPLE: tuple[str, ...] = (
    *("README*", "CHANGELOG*", "CHANGES*", "HISTORY", "NEWS", "RELEASE*", "CONTRIBUT*", "LICEN[CS]E*", "COPYING"),
    *("NOTICE*", "SECURITY", "CODE_OF_CONDUCT", "AUTHORS", "MAINTAINERS", "OWNERS", "GOVERNANCE", "SUPPORT", "THANKS"),
    *("INSTALL*", "BUILD*", "ROADMAP", "TODO*", "UPGRAD*", "MIGRATI*", "ARCHITECTURE*", "DESIGN*", "FAQ", "NOTES"),
    *("TESTING", "DEVELOP*", "USAGE", "EXAMPLE*", "API", "SPEC*", "GLOSSARY", "INDEX", "SUMMARY", "OVERVIEW"),
    *("TROUBLESHOOTING", "DEPLOY*", "BENCHMARK*", "CITATION", "CREDITS", "*_TEMPLATE"),
)
"""Names in capitals, without `.md`, that people read. Any other page in capitals at the top may be an agent's."""

USUAL_FILES: tuple[str, ...] = (
    *("package*.json", "pyproject.toml", "setup.*", "tox.ini", "*.lock", "requirements*.txt", "tsconfig*.json"),
    *("cargo.toml", "go.mod", "go.sum", "dockerfile*", "*.dockerfile", "compose.y*ml", "docker-compose*.y*ml"),
)
"""Files that most projects have, named in many hooks and settings, and edited all the time (decision 0025)."""

_ENDINGS = """
    md mdx rst txt adoc org tex csv tsv html htm css scss sass less svg py pyi ipynb js jsx mjs cjs ts tsx mts cts vue
    svelte astro go rs c h cc cpp cxx hpp hh cs fs java kt scala rb php pl pm lua r jl swift m mm dart ex exs erl hs ml
    mli clj cljs el lisp scm zig nim d v sv vhd sol sql graphql proto thrift sh bash zsh fish ps1 bat asm s f90
    png jpg jpeg gif webp ico pdf patch diff log out tmp bin
"""
_SOURCE_AND_TEXT = frozenset(_ENDINGS.split())
"""Endings of files that no program looks for by name."""


@cache
def _compile(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


def is_obeyed_name(name: str) -> bool:
    """Whether a file or folder of this name is obeyed in any folder. Case does not matter."""
    return _compile(OBEYED_NAMES).match(name.lower()) is not None


def is_obeyed(parts: Sequence[str]) -> bool:
    """Whether the path with these components, relative to the project, is obeyed because of its names."""
    above = ("", *parts)
    return any(is_obeyed_entry(above[at], name) for at, name in enumerate(parts)) or (
        len(parts) == 1 and is_page_for_agents(parts[0])
    )


@lru_cache(maxsize=20_000)
def is_obeyed_entry(folder: str, name: str) -> bool:
    """Whether a file or folder is obeyed because of its name and the name of its folder."""
    lower = name.lower()
    if is_obeyed_name(lower) or (folder.lower() == ".github" and _compile(OBEYED_IN_GITHUB).match(lower)):
        return True
    return lower.startswith(".") and lower != ".github" and _compile(PLAIN_DOT_NAMES).match(lower) is None


def is_page_for_agents(name: str) -> bool:
    """Whether a file at the top of a project has a name in capitals that is not the name of a page for people."""
    page = name[:-3]
    return name.lower().endswith(".md") and page.isupper() and _compile(PAGES_FOR_PEOPLE).match(page) is None


def is_free_at_the_top(name: str) -> bool:
    """Whether no program looks for a new file of this name at the top of a project, as for a configuration."""
    stem, dot, ending = name.rpartition(".")
    if (dot and stem and ending.lower() in _SOURCE_AND_TEXT) or _compile(USUAL_FILES).match(name.lower()):
        return True
    return name.lower().startswith(".") or (not dot and _compile(PAGES_FOR_PEOPLE).match(name) is not None)


def is_makefile(name: str) -> bool:
    """Whether `make` reads files of this name, or Makefiles usually include them."""
    return _compile(MAKEFILES).match(name.lower()) is not None
