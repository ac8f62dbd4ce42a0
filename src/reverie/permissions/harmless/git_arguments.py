"""The git commands of the second list: only options that print, by subcommand, each with its class.

An option that is not listed asks: it may write (`--output`), run something (`--ext-diff`), or read elsewhere
(`--no-index`). Long options must be written in full. How git runs is decided in `git_view`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from reverie.permissions.rules import NotReadOnly, clip
from reverie.permissions.shell.options import check_format
from reverie.permissions.shell.paths import check_glob
from reverie.permissions.shell.words import Word
from reverie.quick import dataclass

# What is selected; what is printed; what prints only names and numbers; what prints content.
PICK, LOOK, NAMES, PATCH = "pick", "look", "names", "patch"


def _table(**classes: str) -> Mapping[str, str]:
    """Options by class. `=` behind a name: it needs a value; `[=]`: it may have one, written with `=`."""
    return MappingProxyType({name: kind for kind, text in classes.items() for name in text.split()})


_DIFF = _table(
    pick="--cached --staged --merge-base -R --diff-filter= -S= -G= --pickaxe-all --pickaxe-regex --relative",
    look="--color[=] --no-color --minimal --patience --histogram --diff-algorithm= --abbrev[=] --full-index -M[=] -C[=]"
    " --find-renames[=] --find-copies[=] --no-renames -a --text -w -b --ignore-all-space --ignore-space-change"
    " --ignore-space-at-eol --ignore-blank-lines --ignore-cr-at-eol --exit-code --no-prefix -z --no-ext-diff"
    " --no-textconv --inter-hunk-context= --indent-heuristic",
    names="--stat[=] --numstat --shortstat --dirstat[=] --summary --name-only --name-status --raw -s --no-patch"
    " --compact-summary --quiet",
    patch="-p -u --patch -U= --unified= --word-diff[=] --color-words[=] -W --function-context --cc --check --binary"
    " --patch-with-stat --word-diff-regex=",
)
_REVISIONS = _table(
    pick="--all --branches[=] --tags[=] --remotes[=] -n= --max-count= --skip= --since= --after= --until= --before="
    " --author= --committer= --grep= -i -E -F -P --all-match --invert-grep --merges --no-merges --first-parent"
    " --reverse --date-order --topo-order --author-date-order --left-right --left-only --right-only --cherry-pick"
    " --cherry --boundary --simplify-by-decoration --full-history --follow -g --walk-reflogs --ancestry-path"
    " --no-walk --not --min-parents= --max-parents= --exclude= --glob= --reflog --simplify-merges --dense --sparse",
    look="--oneline --graph --date= --relative-date --format= --pretty[=] --decorate[=] --no-decorate"
    " --abbrev-commit --no-abbrev-commit --parents --children --source --no-notes --full-diff --decorate-refs="
    " --no-color --color[=] --clear-decorations --show-pulls --encoding=",
    patch="-L= -c -m --diff-merges=",
)
_LOG = MappingProxyType({**_DIFF, **_REVISIONS})
_LIST = _table(
    look="-a -r -v --all --remotes --verbose --sort= --format= --color[=] --no-color --column[=] --no-column -i"
    " --ignore-case --abbrev[=] --no-abbrev --show-current",
    pick="-l --list --contains[=] --no-contains[=] --merged[=] --no-merged[=] --points-at[=]",
)
SUBCOMMANDS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "status": _table(
            look="-s -b -z --short --branch --porcelain[=] --long -u[=] --untracked-files[=] --ignored[=] --show-stash"
            " --ahead-behind --no-ahead-behind --renames --no-renames --column[=] --no-column --find-renames[=]"
        ),
        "log": _LOG,
        "show": _LOG,
        "reflog": _LOG,
        "stash": _LOG,
        "diff": _DIFF,
        "shortlog": MappingProxyType(
            {
                **{name: kind for name, kind in _REVISIONS.items() if name != "-n="},
                **_table(look="-s -n -e --summary --numbered --email --group= -w[=]"),
            }
        ),
        "grep": _table(
            look="-n -i -w -l -L -c -E -F -P -G -h -H -o -p -W -v -q -e= -A= -B= -C= -m= --line-number --ignore-case"
            " --cached --word-regexp --files-with-matches --files-without-match --name-only --count"
            " --extended-regexp --fixed-strings --perl-regexp --basic-regexp --only-matching --show-function"
            " --function-context --invert-match --quiet --and --or --not --all-match --heading --break --color[=]"
            " --no-color --full-name --column --max-depth= --max-count= --no-textconv -I -a --text -z --null"
        ),
        "rev-list": MappingProxyType({**_REVISIONS, **_table(look="--count --timestamp --header --objects")}),
        "blame": _table(
            look="-L= -e -l -s -t -w -f -n -p -c --porcelain --line-porcelain --date= --show-email --abbrev="
            " --show-name --show-number --since= --root --show-stats --score-debug -M[=] -C[=] --first-parent"
        ),
        "branch": _LIST,
        "tag": MappingProxyType({**_LIST, **_table(look="-n[=]")}),
        "rev-parse": _table(
            look="--abbrev-ref[=] --short[=] --verify -q --quiet --show-toplevel --show-prefix --show-cdup"
            " --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --symbolic"
            " --symbolic-full-name --branches[=] --tags[=] --remotes[=] --all --revs-only --no-revs"
        ),
        "ls-files": _table(
            look="-c -d -m -o -s -t -u -v -z -i -k --cached --deleted --modified --others --ignored --stage --killed"
            " --unmerged --exclude-standard --full-name --error-unmatch --eol --directory --no-empty-directory"
            " --abbrev[=] -x= --exclude= --deduplicate --debug"
        ),
        "ls-tree": _table(look="-r -d -t -l -z --long --name-only --name-status --full-name --full-tree --abbrev[=]"),
        "remote": _table(look="-v --verbose"),
        "describe": _table(
            look="--tags --all --always --long --abbrev= --exact-match --match= --exclude= --contains --first-parent"
            " --candidates= --debug"
        ),
        "merge-base": _table(look="-a --all --is-ancestor --octopus --independent --fork-point"),
        "config": _table(look="--get --get-all"),
        "show-ref": _table(look="--verify -q --quiet -s -d --heads --tags --head --hash[=] --abbrev[=] --dereference"),
        "for-each-ref": MappingProxyType({**_LIST, **_table(look="--count=")}),
        "name-rev": _table(look="--tags --name-only --always --no-undefined --refs="),
        "check-ignore": _table(look="-v -q -n -z --verbose --quiet --non-matching"),
        "count-objects": _table(look="-v -H --verbose --human-readable"),
        "cat-file": _table(look="-t -s -e"),
    }
)
_CLUSTERS = frozenset(
    {"shortlog", "grep", "status", "branch", "tag", "ls-files", "ls-tree", "blame", "remote", "count-objects"}
)
_LISTING = frozenset({"--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"})
_SHOWS_CONTENT = frozenset({"show", "diff", "grep"})
_FORMATS = frozenset({"--format", "--pretty"})


@dataclass(frozen=True, slots=True)
class GitCall:
    """One git command. `folder`: its `-C`. `at`: the place of the subcommand among the words after `git`."""

    subcommand: str
    at: int
    folder: str | None
    options: tuple[tuple[str, str | None, str], ...]
    operands: tuple[str, ...]
    paths: tuple[str, ...]
    has_dashes: bool

    @property
    def shows_content(self) -> bool:
        """Whether it may print the content of files, so that their names matter."""
        classes = {kind for _, _, kind in self.options}
        searches = any(name in ("-S", "-G") for name, _, _ in self.options)
        if self.subcommand in _SHOWS_CONTENT:
            return PATCH in classes or NAMES not in classes or searches
        return PATCH in classes or searches

    @property
    def searched(self) -> tuple[str, ...]:
        """What `git grep` names beside its pattern; it must be files."""
        has_pattern = any(name == "-e" for name, _, _ in self.options)
        return self.operands if has_pattern else self.operands[1:]

    def name_query(self) -> list[str]:
        """The arguments that list the names of all files whose content the command may print."""
        if self.subcommand == "grep":
            return ["ls-files", "-z", "--", *self.searched, *self.paths]
        picked = [name if value is None else _join(name, value) for name, value, kind in self.options if kind == PICK]
        asked = ["--name-status", "-z", "-m", "-M", "--no-ext-diff", "--no-textconv"]
        if self.subcommand == "diff" or self.operands[:1] == ("show",):
            asked = ["--name-status", "-z", "-M", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
        elif self.subcommand != "reflog":
            asked.append("--format=")
        operands, stash = self.operands, int(self.subcommand == "stash")  # the word `list` comes first
        return [
            self.subcommand,
            *operands[:stash],
            *asked,
            *picked,
            *operands[stash:],
            *(["--"] if self.has_dashes else []),
            *self.paths,
        ]


def _join(name: str, value: str) -> str:
    return f"{name}={value}" if name.startswith("--") else f"{name}{value}"


def read_git(words: tuple[Word, ...]) -> GitCall:
    """Returns the call that the words after `git` make; raises `NotReadOnly` unless it is known to print only."""
    folder, at = None, 0
    while at < len(words) and words[at].text.startswith("-"):
        if words[at].text in ("--no-pager", "-P", "--no-optional-locks"):
            at += 1
        elif words[at].text == "-C" and folder is None and at + 1 < len(words) and not words[at + 1].globs:
            folder, at = words[at + 1].text, at + 2
        else:
            raise NotReadOnly(f"git {clip(words[at].raw)} is not an option known to be harmless")
    if at == len(words) or not words[at].plain or words[at].text not in SUBCOMMANDS:
        shown = clip(words[at].raw) if at < len(words) else ""
        raise NotReadOnly(f"git {shown} is not a command known to print only")
    call = _read_subcommand(words[at].text, at, folder, words[at + 1 :])
    _check_operands(call)
    return call


def _read_subcommand(sub: str, at: int, folder: str | None, words: tuple[Word, ...]) -> GitCall:
    known = SUBCOMMANDS[sub]
    options: list[tuple[str, str | None, str]] = []
    operands: list[str] = []
    paths: list[str] = []
    has_dashes = False
    queue = list(reversed(words))
    while queue:
        word = queue.pop()
        text = word.text
        if has_dashes or not text.startswith("-") or text == "-":
            check_glob(word)
            (paths if has_dashes else operands).append(text)
        elif text == "--":
            has_dashes = True
        elif word.globs:
            raise NotReadOnly(f"{clip(word.raw)} is a glob in option position")
        else:
            options += _read_option(sub, known, text, queue)
    for name, value, _ in options:
        if name in _FORMATS and value is not None:
            check_format(f"git {sub}", value)
            if "%G" in value or "signature" in value or "describe" in value:
                raise NotReadOnly(f"the format of git {sub} may run another program")
    return GitCall(sub, at, folder, tuple(options), tuple(operands), tuple(paths), has_dashes)


def _read_option(sub: str, known: Mapping[str, str], text: str, queue: list[Word]) -> list[tuple[str, str | None, str]]:
    """Returns one option with its value, or the letters of a cluster; takes a value from the queue if it needs one."""
    if re.fullmatch(r"-\d{1,6}", text) and "-n=" in known:
        return [("-n", text[1:], PICK)]
    name, equals, value = text.partition("=") if text.startswith("--") else (text, "", "")
    if name in known and not equals:
        return [(name, None, known[name])]
    if f"{name}[=]" in known:
        return [(name, value if equals else None, known[f"{name}[=]"])]
    if f"{name}=" in known:
        if not equals:
            if not queue or queue[-1].globs:
                raise NotReadOnly(f"git {sub} {name} has no plain value")
            value = queue.pop().text
        return [(name, value, known[f"{name}="])]
    short = text[:2]
    if not text.startswith("--") and len(text) > 2:
        for form in (f"{short}=", f"{short}[=]"):
            if form in known:
                return [(short, text[2:], known[form])]
        letters = [f"-{letter}" for letter in text[1:]]
        if sub in _CLUSTERS and all(letter in known for letter in letters):
            return [(letter, None, known[letter]) for letter in letters]
    raise NotReadOnly(f"git {sub} {clip(text)} is not an option known to be harmless")


def _check_operands(call: GitCall) -> None:
    """Operands that change something: the name of a new branch, a subcommand of a subcommand, a value of a key."""
    operands = (*call.operands, *call.paths)
    given = {name for name, _, _ in call.options}
    match call.subcommand:
        case "branch" | "tag":
            if operands and given.isdisjoint(_LISTING) and not (call.subcommand == "tag" and given & {"-n", "-l"}):
                raise NotReadOnly(f"git {call.subcommand} {clip(operands[0])} makes or changes one")
        case "remote":
            if operands and (operands[0] != "get-url" or len(operands) != 2 or given):
                raise NotReadOnly(f"git remote {clip(operands[0])} may change something or use the network")
        case "stash":
            if not operands or operands[0] not in ("list", "show"):
                raise NotReadOnly("git stash is known as harmless only with list and show")
        case "reflog":
            if operands and operands[0] in ("expire", "delete", "exists", "drop", "write", "list"):
                raise NotReadOnly(f"git reflog {operands[0]} may change something")
        case "cat-file":
            if not given & {"-t", "-s", "-e"}:
                raise NotReadOnly("git cat-file shows content without the name of its file")
        case "config":
            if len(operands) != 1:
                raise NotReadOnly("git config is known as harmless only with one key, which it then prints")
        case _:
            pass
