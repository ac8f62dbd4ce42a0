"""Loads the instruction files of a folder: found, included, cleaned and limited, with a warning for each problem.

Every file is shown once. A project's file may include files outside the project only if the user approved them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path

from reverie.instructions.find import InstructionCandidate, InstructionScope, candidates, read_text
from reverie.instructions.includes import MAX_WORDS, Include, expand, includes
from reverie.instructions.markdown import without_comments
from reverie.instructions.rules import ConditionalRule, gitignore, match_rules, split_rule
from reverie.instructions.withheld import why_withheld
from reverie.models.window import REFERENCE_WINDOW, scaled
from reverie.paths import Places
from reverie.quick import dataclass
from reverie.settings import Settings

MAX_DEPTH = 5  # how deep includes may be nested


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """One file as the model sees it: with its includes and without comments."""

    path: Path
    scope: InstructionScope
    text: str


@dataclass(frozen=True, slots=True)
class Instructions:
    """The instructions of a folder: files in order (later ones win), and rules for some files only."""

    files: tuple[InstructionFile, ...] = ()
    conditional_rules: tuple[ConditionalRule, ...] = ()
    warnings: tuple[str, ...] = ()

    def matching_rules(self, touched: Path, shown: Collection[Path] = ()) -> list[ConditionalRule]:
        """Returns the rules for a touched file, except for those whose `path` is in `shown`."""
        return match_rules(self.conditional_rules, touched, shown)


def load_instructions(
    places: Places, settings: Settings, *, managed_dir: Path | None = None, window: int = REFERENCE_WINDOW
) -> Instructions:
    """Reads the instruction files for `places.cwd`; none in a bare session. Small windows have lower limits."""
    if settings.session.bare:
        return Instructions()
    return _Loader(places, settings, window).load(managed_dir)


@dataclass(frozen=True, slots=True)
class _Reach:
    """How far the includes of a file may reach."""

    anywhere: bool
    depth: int = 0


class _Loader:
    def __init__(self, places: Places, settings: Settings, window: int) -> None:
        given = settings.instructions
        self._places = places
        self._user_home = settings.places.user_home
        self._warn_from = max(1, scaled(given.warn_characters, window))
        self._most = self._left = max(1, scaled(given.max_characters, window))
        self._exclude = tuple(_expand_home(pattern, self._user_home) for pattern in given.exclude)
        self._approved = [os.path.realpath(path) for path in given.approved_includes]
        self._project = os.path.realpath(places.checkout)
        self._shown: set[str] = set()
        self._warnings: list[str] = []

    def load(self, managed_dir: Path | None) -> Instructions:
        files: list[InstructionFile] = []
        later: dict[str, tuple[InstructionCandidate, tuple[str, ...], str]] = {}
        texts: set[tuple[Path, str]] = set()
        for one in candidates(self._places, managed_dir):
            read = self._open(one)
            if read is None:
                continue
            real, text = read
            patterns, text = split_rule(text) if one.rule else ((), text)
            if patterns:
                later.setdefault(real, (one, patterns, text))
                continue
            if not self._fits(one.path, text):
                continue
            self._shown.add(real)
            text = self._finish(text, one, real)
            # Two files with the same text (AGENTS.md and CLAUDE.md) are shown once.
            if text and (one.folder, text) not in texts:
                texts.add((one.folder, text))
                files.append(InstructionFile(one.path, one.scope, text))
        self._left = self._most  # rules with paths are not shown now, so they do not count
        rules = [self._rule(real, *one) for real, one in later.items() if real not in self._shown]
        return Instructions(tuple(files), tuple(filter(None, rules)), tuple(dict.fromkeys(self._warnings)))

    def _rule(
        self, real: str, one: InstructionCandidate, patterns: tuple[str, ...], text: str
    ) -> ConditionalRule | None:
        """Loads a rule. It knows what is shown at the start, but not the other rules."""
        if not self._fits(one.path, text):
            return None
        shown = set(self._shown)
        self._shown.add(real)
        text = self._finish(text, one, real)
        self._shown = shown
        return ConditionalRule(one.path, one.folder, patterns, text) if text else None

    # -- one file -------------------------------------------------------------------------------------------------

    def _open(self, one: InstructionCandidate) -> tuple[str, str] | None:
        try:
            real = os.path.realpath(one.path, strict=True)
        except OSError as error:
            self._warn(f"{one.path} cannot be read ({error.strerror}); it was left out.")
            return None
        if real in self._shown or (one.scope is not InstructionScope.MANAGED and self._is_excluded(one.path, real)):
            return None
        if one.scope in (InstructionScope.PROJECT, InstructionScope.LOCAL) and not self._is_allowed_link(one, real):
            self._warn(
                f"{one.path} leads to {real}, outside the project, and was left out; to allow it, add that file to "
                "`instructions.approved_includes` in your own settings."
            )
            return None
        is_users = one.scope in (InstructionScope.MANAGED, InstructionScope.USER)
        if not is_users and (why := self._why_withheld(real)):
            self._warn(f"{one.path} leads to {real}, which {why}, and was left out.")
            return None
        read = read_text(Path(real))
        if read.problem:
            self._warn(f"{one.path} {read.problem}; it was left out.")
            return None
        if self._is_strangers(one, real, read.owner):
            self._warn(f"{one.path} belongs to another user and is outside the project; it was left out.")
            return None
        if read.damaged:
            self._warn(
                f"{one.path} has bytes that are not UTF-8 (shown as \N{REPLACEMENT CHARACTER}); save it as UTF-8."
            )
        return real, read.text

    def _finish(self, text: str, one: InstructionCandidate, real: str) -> str:
        reach = _Reach(anywhere=one.scope in (InstructionScope.MANAGED, InstructionScope.USER))
        text = self._with_includes(text, one.path, real, reach).strip()
        if len(text) > self._warn_from:
            self._warn(
                f"{one.path} has {len(text):,} characters with its includes. Above {self._warn_from:,} it costs every "
                "request more than it helps; move details into rules with `paths:` or into files read when needed."
            )
        return text

    def _fits(self, path: Path | str, text: str) -> bool:
        if len(text) > self._left:
            self._warn(
                f"{path} was left out, because with it the instruction files would exceed the {self._most:,} "
                "characters of `instructions.max_characters`; shorten them."
            )
            return False
        self._left -= len(text)
        return True

    def _is_allowed_link(self, one: InstructionCandidate, real: str) -> bool:
        """A link in a project must not lead out of it, or a clone could fetch the user's files."""
        inside = one.folder.is_relative_to(self._project)
        return _is_under(real, self._project if inside else os.path.realpath(one.folder)) or self._is_approved(real)

    def _is_strangers(self, one: InstructionCandidate, real: str, owner: int) -> bool:
        """Above the project there are folders such as /tmp, where anybody may put a file."""
        if (
            one.scope in (InstructionScope.MANAGED, InstructionScope.USER)
            or _is_under(real, self._project)
            or self._is_approved(real)
        ):
            return False
        return owner not in (os.getuid(), 0)

    # -- includes -------------------------------------------------------------------------------------------------

    def _with_includes(self, text: str, path: Path, real: str, reach: _Reach) -> str:
        text = without_comments(text)
        folders = tuple(dict.fromkeys((path.parent, Path(real).parent)))
        found: dict[int, str] = {}

        def means(include: Include) -> bool:
            target = self._target(include, folders)
            if target is not None:
                found[include.start] = target
            return target is not None

        def content(include: Include) -> str | None:
            return self._include(found[include.start], include, path, reach)

        if sum(1 for _ in includes(text)) == MAX_WORDS:
            self._warn(f"{path} has more than {MAX_WORDS} words that start with @; only the first ones are checked.")
        return expand(text, means, content)

    def _target(self, include: Include, folders: tuple[Path, ...]) -> str | None:
        for spelling in include.spellings():
            if spelling.endswith("/"):
                continue
            starts = (
                (self._user_home / spelling[2:],) if spelling.startswith("~/") else tuple(f / spelling for f in folders)
            )
            for start in starts:
                try:
                    real = os.path.realpath(start, strict=True)
                    if stat.S_ISREG(os.stat(real).st_mode):  # noqa: PTH116 (a stat of a resolved string)
                        return real
                except (OSError, ValueError):  # missing, too long, a loop: then it is only a word
                    continue
        return None

    def _include(self, real: str, include: Include, by: Path, reach: _Reach) -> str | None:
        if self._is_excluded(Path(real), real):
            return None
        in_project = _is_under(real, self._project)
        if not (in_project or reach.anywhere or self._is_approved(real)):
            self._warn(
                f"{by} includes {real}, which is outside the project and was not read; to allow it, add that file to "
                "`instructions.approved_includes` in your own settings."
            )
            return None
        if not reach.anywhere and (why := self._why_withheld(real)):
            self._warn(f"{by} includes {real}, which {why}; it was not read.")
            return None
        if real in self._shown:
            return ""
        if reach.depth >= MAX_DEPTH:
            self._warn(f"{by} includes {real}, more than {MAX_DEPTH} files deep; it was not read.")
            return None
        read = read_text(Path(real))
        if read.problem or read.damaged:
            self._warn(f"{by} includes {real}, which {read.problem or 'is not a text file'}; it was not read.")
            return None
        if not self._fits(real, read.text):
            return None
        self._shown.add(real)
        # A project's file does not get more rights because a file of the user includes it.
        inner = _Reach(anywhere=reach.anywhere and not in_project, depth=reach.depth + 1)
        return self._with_includes(read.text, Path(real), real, inner)

    # -- what may be read -----------------------------------------------------------------------------------------

    def _is_approved(self, real: str) -> bool:
        return any(real == path or _is_under(real, path) for path in self._approved)

    def _why_withheld(self, real: str) -> str:
        return "" if real in self._approved else why_withheld(real, self._project)

    def _is_excluded(self, path: Path, real: str) -> bool:
        if not self._exclude:
            return False
        spec = gitignore(self._exclude)
        for name in dict.fromkeys((str(path), real)):
            inside = name.removeprefix(f"{self._project}/") if _is_under(name, self._project) else None
            if spec.match_file(name.lstrip("/")) or (inside and spec.match_file(inside)):
                return True
        return False

    def _warn(self, sentence: str) -> None:
        self._warnings.append(sentence)


def _is_under(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")


def _expand_home(pattern: str, user_home: Path) -> str:
    negated = "!" if pattern.startswith("!") else ""
    rest = pattern.removeprefix("!")
    return f"{negated}{user_home}/{rest[2:]}" if rest.startswith("~/") else pattern
