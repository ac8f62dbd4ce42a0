"""`reverie memory check`: what points nowhere, stands twice, is out of date, too long, broken or secret, and repair."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

import click

from reverie.cli.memory.opening import undo_hint, version_json, with_memory
from reverie.cli.options import examples
from reverie.cli.output import answer, can_ask, get_paint, one_line, plural, say, say_all, wrap, wrap_hanging

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory
    from reverie.memory.upkeep.checkup import Finding
    from reverie.storage.history.versions import Version

_OF_A_KIND = 3


@click.command(
    "check",
    epilog=examples(
        "reverie memory check",
        "reverie memory check --fix",
        "reverie memory check --json | jq -r '.findings[].problem' | sort | uniq -c",
    ),
)
@click.option("-a", "--all", "everything", is_flag=True, help="Every finding, also many of a kind in one file.")
@click.option("--fix", is_flag=True, help="Put right what has one right answer, without asking.")
@with_memory
def command(everything: bool, fix: bool, as_json: bool, memory: OpenedMemory) -> int:
    """Look the memory directory over, and put right what can be.

    Finds dead and double pointers, files no index lists, copies and near-copies, files of the repository that are
    named but gone, over-long lines, an index over its limits, broken frontmatter, missing types and descriptions, and
    secrets. What has one right answer can be fixed (on a terminal you are asked); all fixes are one version, and none
    loses a word.

    Exit codes: 0 nothing is wrong (any more), 1 something is.
    """
    found = _look(memory)
    version = None
    if as_json:
        if fix:
            version = _fix(memory, found)
            found = _look(memory) if version else found
        findings = [
            {
                "problem": one.problem.value,
                "file": one.file,
                "line": one.line,
                "message": one.message,
                "fix": one.fix.what if one.fix else None,
            }
            for one in found
        ]
        told = {"directory": str(memory.directory.root), "findings": findings, "version": version_json(version)}
        answer(True, told)
        return 1 if found else 0
    if not found:
        count = len(memory.directory.names())
        say(f"Nothing is wrong with {plural(count, 'memory', 'memories')} in {memory.directory.root}.")
        return 0
    _show(found, most=len(found) if everything else _OF_A_KIND)
    fixable = [one for one in found if one.fix]
    say(f"\n{plural(len(found), 'finding')}, {len(fixable)} of them with a fix.")
    if not fixable:
        return 1
    if not fix:
        if not can_ask():
            say(get_paint().dim("`reverie memory check --fix` puts them right, as one version."))
            return 1
        if not click.confirm(f"Put {plural(len(fixable), 'finding')} right, as one version?"):
            return 1
    version = _fix(memory, found)
    left = _look(memory)
    say(f"Fixed {plural(len(found) - len(left), 'finding')}, {len(left)} left.")
    say_all(undo_hint(version))
    return 1 if left else 0


def _look(memory: OpenedMemory) -> tuple[Finding, ...]:
    from reverie.memory.secrets.scan import find_secrets
    from reverie.memory.upkeep.checkup import check

    def kinds(text: str) -> list[str]:
        return [found.kind for found in find_secrets(text)]

    return check(memory.directory, repo=memory.places.checkout, secrets=kinds)


def _fix(memory: OpenedMemory, found: tuple[Finding, ...]) -> Version | None:
    from reverie.memory.changes import WriteInfo, Writer
    from reverie.memory.upkeep.checkup import Problem, apply_fixes

    # A fix may copy words from a file into its head or the index: not where one of them is a secret.
    secret = {one.file for one in found if one.problem is Problem.SECRET}
    sound = [one for one in found if one.file not in secret]
    return apply_fixes(memory.directory, sound, WriteInfo(Writer.USER, "Fixed with `reverie memory check`."))


def _show(found: tuple[Finding, ...], *, most: int) -> None:
    paint = get_paint()
    for number, (file, own) in enumerate(groupby(found, key=lambda one: one.file)):
        say("\n" * bool(number) + paint.accent(one_line(file)))
        seen = Counter[str]()
        for one in own:
            seen[one.problem] += 1
            if seen[one.problem] > most:
                continue
            where = f"line {one.line}: " if one.line else ""
            mark = paint.warning("!") if one.fix is None else paint.dim("·")
            say(wrap_hanging(f"{one.problem.value}: {where}{one.message}", f"  {mark} ", 4))
            if one.fix:
                for line in wrap(f"would {one.fix.what}", 6):
                    say(paint.dim(f"      {line}"))
        for problem, count in seen.items():
            if count > most:
                say(paint.dim(f"    and {count - most} more of the kind {problem}: --all shows them"))
