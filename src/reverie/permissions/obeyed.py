"""Files that are obeyed later without anybody asking for it: a change to one is never waved through.

The line: what starts by itself is on the list (an agent reads it; a shell, git, an editor, a build server or a tool of
the folder runs it), and so are Makefiles with all they include, since nobody reads those before `make`. What runs only
when the user runs the project (package.json, setup.py, tests) is not: it is what an agent is asked to edit.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path

from reverie.regular_files import read_regular_text

OBEYED_NAMES: tuple[str, ...] = (
    # agents
    *("agents.md", "agent.md", "agents.*.md", "claude*.md", "gemini.md", "qwen.md", ".mcp.json", "mcp.json"),
    *(".reverie", ".claude", ".claude.json", ".agents", ".codex", ".gemini", ".cursor", ".cursorrules", ".windsurf"),
    *(".windsurfrules", ".clinerules*", ".roo", ".roorules*", ".kiro", ".junie", ".continue", ".aider*", ".amazonq"),
    *(".opencode", "opencode.json*", "copilot-instructions.md", "*.instructions.md", "*.prompt.md"),
    # git and what it runs
    *(".git", ".gitmodules", ".gitconfig", ".githooks", ".husky", ".huskyrc*", ".pre-commit-*", "lefthook*"),
    *(".lefthook*", ".overcommit.yml", ".lintstagedrc*", "lint-staged.config.*"),
    # shells, and what runs when a folder is entered or a program starts
    *(".envrc*", ".direnv", ".autoenv*", "mise.toml", ".mise*", ".bash*", ".zsh*", ".zprofile", ".zlog*", ".profile"),
    *(".login", ".cshrc", ".tcshrc", ".kshrc", ".inputrc", ".tmux.conf", ".screenrc", ".xprofile", ".xinitrc"),
    *(".xsession*", ".config", ".local", "launchagents", ".vimrc", ".exrc", ".nvim*", ".lvimrc", ".dir-locals*.el"),
    *(".emacs*", ".gdbinit", ".lldbinit", ".psqlrc", ".sqliterc", ".irbrc", ".pryrc", ".rprofile", ".pdbrc"),
    *("sitecustomize.py", "usercustomize.py", "*.pth", ".venv", "venv", "site-packages", "node_modules"),
    # editors
    *(".vscode", ".idea", ".vs", ".zed", ".fleet", ".nova", ".run", "*.code-workspace", "*.sublime-project"),
    *(".devcontainer", ".devcontainer.json"),
    # build servers
    *(".gitlab-ci*", ".gitlab", ".circleci", ".travis.y*ml", "*appveyor.y*ml", "azure-pipelines*", ".azure-pipelines"),
    *("jenkinsfile*", "bitbucket-pipelines.y*ml", ".drone*", ".woodpecker*", ".buildkite", ".teamcity", ".cirrus*"),
    *("cloudbuild*", "buildspec*", ".semaphore", ".forgejo", ".gitea", ".builds", ".build.yml", ".tekton", ".ci"),
    *("wercker.y*ml", "netlify.toml", "vercel.json", "renovate.json*", ".renovaterc*"),
    # lists of commands behind one word
    *("makefile", "gnumakefile", "makefile.*", "gnumakefile.*", "*.mk", "*.mak", "*.make", "justfile", ".justfile"),
    *("*.just", "taskfile*.y*ml"),
)
"""Names of files and folders at any depth, in lower case; a folder stands for all that is in it."""

OBEYED_PATHS: tuple[str, ...] = (
    *(".github/workflows", ".github/actions", ".github/instructions", ".github/prompts", ".github/agents"),
    *(".github/hooks", ".github/dependabot.y*ml", ".yarn/plugins", ".yarn/releases", ".cargo/config*"),
)
"""Folders and files that only mean it in this place."""

_LINKED = ("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md")
_MAKEFILES = ("Makefile", "makefile", "GNUmakefile")
_INCLUDE = re.compile(r"^ *[-s]?include[ \t]+(.+)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:\([^()]*\)|\{[^{}]*\}|.)")
_MOST_BYTES = 1_000_000


def is_obeyed(path: Path, root: Path) -> bool:
    """Whether a file below the folder `root` is obeyed later by its name, or because one that is obeyed names it."""
    inside = path.relative_to(root)
    parts = [part.lower() for part in inside.parts]
    if any(fnmatchcase(part, name) for part in parts for name in OBEYED_NAMES):
        return True
    for known in OBEYED_PATHS:
        wanted = known.split("/")
        for start in range(len(parts) - len(wanted) + 1):
            if all(map(fnmatchcase, parts[start:], wanted)):
                return True
    folders = [path.parent, *path.parent.parents]
    return any(_names_it(folder, path) for folder in folders if folder.is_relative_to(root))


def _names_it(folder: Path, path: Path) -> bool:
    """Whether instructions in this folder are a link to the file, or a Makefile in it includes the file."""
    for name in _LINKED:
        if (folder / name).is_symlink() and Path(os.path.realpath(folder / name)) == path:
            return True
    inside = path.relative_to(folder).as_posix()
    return any(_includes(folder / name, inside) for name in _MAKEFILES)


def _includes(makefile: Path, inside: str) -> bool:
    try:
        if not makefile.is_file() or makefile.stat().st_size > _MOST_BYTES:
            return False
        text = read_regular_text(makefile, errors="replace").replace("\\\n", " ")
    except OSError:
        return False
    for line in _INCLUDE.findall(text):
        for word in _VARIABLE.sub("*", line.split("#")[0]).split():
            # The value of a variable is not known here, so it may be anything.
            if fnmatchcase(inside, os.path.normpath(word)):
                return True
    return False
