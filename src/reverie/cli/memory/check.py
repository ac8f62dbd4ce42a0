"""`reverie memory check`: finds problems in the memory directory and repairs them."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import click

from reverie.cli.memory.opening import undo_hint, version_json, with_memory
from reverie.cli.options import examples
from reverie.cli.output import answer, can_ask, get_paint, one_line, plural, say, say_all, say_dim, wrap_hanging
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.lookup import absorb
from reverie.memory.opening import OpenedMemory
from reverie.memory.secrets.scan import find_secrets
from reverie.memory.upkeep.checkup import CheckFinding, Problem, apply_fixes, check
from reverie.storage.history.versions import Version

_OF_A_KIND = 3
_ALL_HELP = f"Show all findings. Without --all, at most {_OF_A_KIND} of the same kind are shown per file."


@examples(
    "reverie memory check",
    "reverie memory check --fix",
    "reverie memory check --json | jq -r '.findings[].problem' | sort | uniq -c",
)
@click.command("check")
@click.option("-a", "--all", "everything", is_flag=True, help=_ALL_HELP)
@click.option("--fix", is_flag=True, help="Repair without asking.")
@with_memory
def command(everything: bool, fix: bool, as_json: bool, memory: OpenedMemory) -> int:
    """Find problems in the memory directory and repair them.

    Finds index lines for files that do not exist, files with more than one index line, files without an index line,
    copies and near-copies, names of repository files that do not exist any more, long lines, an index that is longer
    than its limits, broken frontmatter, missing types and descriptions, and secrets. Many findings can be repaired; on
    a terminal, Reverie asks first. All repairs together are one version, and no text is lost.

    Exit codes: 0: no findings are left; 1: there are findings.
    """
    absorb(memory.directory)  # names and index follow edits by hand
    found = _find(memory)
    fixable = sum(one.fix is not None for one in found)
    if not found and not as_json:
        count = len(memory.directory.names())
        say(f"Nothing is wrong with {plural(count, 'memory', 'memories')} in {memory.directory.root}.")
    elif not as_json:
        _show(found, most=len(found) if everything else _OF_A_KIND)
        say(f"\n{plural(len(found), 'finding')}, {fixable} of them with a repair.")
    asks = bool(fixable) and not fix and not as_json and can_ask()
    version = None
    if fix or (asks and click.confirm(f"Repair {plural(fixable, 'finding')}, as one version?")):
        version = _fix(memory, found)
    left = _find(memory) if version else found
    if as_json:
        findings = [_finding_json(one) for one in left]
        root = str(memory.directory.root)
        answer(True, {"directory": root, "findings": findings, "version": version_json(version)})
    elif version:
        say(f"Repaired {plural(len(found) - len(left), 'finding')}, {len(left)} left.")
        say_all(undo_hint(version))
    elif fixable and not asks:
        say(get_paint().dim("`reverie memory check --fix` repairs them, as one version."))
    return 1 if left else 0


def _finding_json(one: CheckFinding) -> dict[str, object]:
    what = one.fix.what if one.fix else None
    return {"problem": one.problem.value, "file": one.file, "line": one.line, "message": one.message, "fix": what}


def _find(memory: OpenedMemory) -> tuple[CheckFinding, ...]:
    def kinds(text: str) -> list[str]:
        return [found.kind for found in find_secrets(text)]

    return check(memory.directory, repo=memory.places.checkout, secrets=kinds)


def _fix(memory: OpenedMemory, found: tuple[CheckFinding, ...]) -> Version | None:
    # A repair may copy words into the frontmatter or the index; it must not copy a secret.
    secret = {one.file for one in found if one.problem is Problem.SECRET}
    sound = [one for one in found if one.file not in secret]
    return apply_fixes(memory.directory, sound, WriteInfo(Writer.USER, "Fixed with `reverie memory check`."))


def _show(found: tuple[CheckFinding, ...], *, most: int) -> None:
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
                say_dim(f"would {one.fix.what}", 6)
        for problem, count in seen.items():
            if count > most:
                say(paint.dim(f"    and {count - most} more of the kind {problem}; --all shows them"))
