"""Words after a prefix with which a command does more than the prefix says, although it begins with it.

`git fetch --upload-pack=…` runs any program, `make test -f …` obeys any file, `make test deploy` makes a second target.
Rules for many calls do not cover them; a rule with the exact text does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from reverie.text.patterns import late

_OPTIONS = {
    "git": "--upload-pack --receive-pack --exec --output --open-files-in-pager -O --template --unsafe-paths"
    " --smtp-server --sendmail-cmd",
    "make": "-f --file --makefile --eval -E -I --include-dir",
    "just": "-f --justfile --shell --shell-arg --set -c --command --dotenv-path -d --working-directory",
    "rake": "-f --rakefile -r --require -e --execute -E -p -I -R --rakelibdir",
    "gradle": "-I --init-script -b --build-file -c --settings-file -p --project-dir --include-build -g"
    " --gradle-user-home",
    "mvn": "-f --file -s --settings -gs --global-settings -Dexec -Dmaven.ext -DargLine -Djvm",
    "npm": "--script-shell --prefix -C --dir --cwd --node-options --userconfig --globalconfig --registry",
    "cargo": "--config --manifest-path",
    "go": "-exec -toolexec -vettool -overlay -modfile -ldflags -C",
    "kubectl": "--kubeconfig",
}
"""Options that name a program to run, or a file or a server to obey, by program."""
_LIKE = {"pnpm": "npm", "yarn": "npm", "bun": "npm", "./gradlew": "gradle", "./mvnw": "mvn"}
_TASKS = frozenset({"make", "rake", "gradle", "mvn"})
"""Programs for which each further word is one more thing to do."""
_BUNDLED = frozenset({"make", "rake"})  # `-kf x` is `-k -f x`
_SCRIPTS = frozenset({"npm", "cargo"})  # what follows `--` is for a script
_SHORTEST = 4  # characters of an abbreviated option: `--up`
_VARIABLE = late(r"([A-Za-z_.][\w.-]*)[:+?!]*=(.*)", re.DOTALL)
_STEERING = frozenset({"SHELL", ".SHELLFLAGS", "MAKEFLAGS", "GNUMAKEFLAGS", "MFLAGS", "MAKEFILES"})
_SHELL_TEXT = late(r"[;&|$`<>(){}\\\n\"']")
_ADDRESS = late(r"://|.@[^/]*:")


def does_more(words: Sequence[str | None], known: int) -> bool:
    """Whether a command does more than its first `known` words say. A word that is None is not known."""
    program = _LIKE.get(words[0] or "", words[0] or "")
    options = _OPTIONS.get(program, "").split()
    before = ""
    for word in filter(None, words[known:]):
        if word == "--":
            options = []
            if program in _SCRIPTS:
                return False
        if word.startswith("-"):
            if any(_is_option(program, word, option) for option in options):
                return True
        elif before != "--tests" and _adds_work(program, words[1], word, known):
            return True
        before = word
    return False


def _adds_work(program: str, sub: str | None, word: str, known: int) -> bool:
    """Whether an argument that is not an option is more to do, text for a shell, or another server."""
    if found := _VARIABLE.fullmatch(word):
        return program in ("make", "just") and (found[1] in _STEERING or bool(_SHELL_TEXT.search(found[2])))
    if program == "just":
        return bool(_SHELL_TEXT.search(word))
    if program == "git":
        return sub == "push" and bool(_ADDRESS.search(word))
    return known > 1 and program in _TASKS and not word.isdigit()


def _is_option(program: str, word: str, option: str) -> bool:
    name = word.partition("=")[0]
    if option.startswith("--"):
        return name == option or (len(name) >= _SHORTEST and option.startswith(name))
    if option.startswith("-D"):
        return word.startswith(option)
    if len(option) > 2:  # as in Go: with one dash or two
        return name in (option, f"-{option}")
    letters = re.sub("[^A-Za-z].*", "", word[1:])
    return letters[:1] == option[1] or (program in _BUNDLED and option[1] in letters)
