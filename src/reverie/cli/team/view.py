"""Shows what the members of a team do: as lines, as a live table on a terminal, or as JSON.

Standard output gets only the last answer of the lead; everything else goes to standard error.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

from reverie.agents.messages.structured import mark_cut_off
from reverie.agents.team.team_file import TeamPlan
from reverie.cli.diff_preview import Pages, preview
from reverie.cli.output import columns, one_line, pad, paint_for, plural, table
from reverie.cli.screen import HOLD, SHOW, clean, erase_rows, printable, raw_stream
from reverie.cli.tool_lines import call_text
from reverie.permissions.patterns import make_rule
from reverie.permissions.rules import ToolCall
from reverie.quick import dataclass
from reverie.text.columns import cut
from reverie.types import JsonObject

Answer = Callable[[str, bool, bool], Awaitable[None]]
_REDRAW_S = 0.25
_WORDS = {"y": "yes", "a": "always", "m": "more", "n": "no"}


@dataclass(frozen=True, slots=True)
class _Question:
    """An open question of the lead, and its possible answers."""

    id: str
    call: str
    has_rule: bool
    pages: Pages

    @property
    def keys(self) -> list[str]:
        if self.pages.left:
            return ["m", "n"]  # the user can only allow a call that was shown in full
        return ["y", "a", "n"] if self.has_rule else ["y", "n"]

    @property
    def help(self) -> str:
        return ", ".join(f"{key}: {_WORDS[key]}" for key in self.keys) + ", then Enter"


class TeamView:
    """Writes every event of every member as JSON with the field `member`. Events of the team have the type `team`."""

    def __enter__(self) -> TeamView:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, text: str) -> None:
        """Shows a notice about the team."""
        self._write({"type": "team", "what": "notice", "text": text})

    def show_start(self, name: str, pid: int) -> None:
        self._write({"type": "team", "what": "started", "member": name, "pid": pid})

    def show_event(self, name: str, event: JsonObject) -> None:
        """Shows an event of a member's session."""
        self._write({"member": name, **event})

    def show_end(self, name: str, why: str) -> None:
        """Shows that a member ended; `why` is empty if it did not fail."""
        self._write({"type": "team", "what": "failed" if why else "ended", "member": name, "why": why})

    def answer_with(self, answer: Answer) -> None:
        """Lets the user answer the lead's questions here."""
        del answer

    def _write(self, value: JsonObject) -> None:
        sys.stdout.write(json.dumps(value) + "\n")  # one write per line: members write at the same time
        sys.stdout.flush()


class TextTeamView(TeamView):
    """Lines on standard error, and on a terminal a table of all members below them."""

    def __init__(self, plan: TeamPlan, cwd: Path) -> None:
        self._lead = plan.lead.name
        self._cwd = cwd
        self._names = [member.name for member in plan.members]
        self._wide = max(len(name) for name in self._names)
        self._doing: dict[str, tuple[str, float]] = {name: ("starting", time.monotonic()) for name in self._names}
        self._answer_text = ""
        self._paint = paint_for(sys.stderr)
        self._rows = 0  # of the table on the terminal
        self._next_draw: asyncio.TimerHandle | None = None
        self._answer: Answer | None = None
        self._questions: list[_Question] = []

    def __enter__(self) -> TextTeamView:
        if sys.stderr.isatty():
            self._refresh()
        return self

    def __exit__(self, *_: object) -> None:
        if self._next_draw is not None:
            self._next_draw.cancel()
            self._next_draw = None
            self._draw([])
        if self._answer is not None:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        if self._answer_text:
            print(printable(self._answer_text), flush=True)

    def say(self, text: str) -> None:
        self._line(self._paint.dim(one_line(text)))

    def show_start(self, name: str, pid: int) -> None:
        self._line(f"{self._name_cell(name)} started {self._paint.dim(f'(PID {pid})')}")

    def show_end(self, name: str, why: str) -> None:
        self._set_activity(name, "failed" if why else "ended")
        self._line(f"{self._name_cell(name)} {self._paint.bad('failed: ' + one_line(why)) if why else 'ended'}")

    def show_event(self, name: str, event: JsonObject) -> None:
        match event.get("type"):
            case "turn_started":
                self._set_activity(name, "thinking")
            case "tool_started":
                call = call_text(str(event.get("name")), event.get("input"), self._cwd)
                self._set_activity(name, call)
                self._line(f"{self._name_cell(name)} {call}")
            case "tool_finished":
                self._set_activity(name, "thinking")
                if event.get("is_error"):
                    self._line(f"{self._name_cell(name)} {self._paint.bad(one_line(str(event.get('text')), 200))}")
            case "notice" if event.get("level") != "info" or event.get("source") == "team":
                self._line(f"{self._name_cell(name)} {self._paint.warning(one_line(str(event.get('text'))))}")
            case "permission_asked" if name == self._lead:
                self._show_question(event)
            case "permission_asked":
                self._set_activity(name, "asks for a permission")
            case "turn_ended":
                self._show_turn_end(name, event)
            case _:
                pass

    def _show_turn_end(self, name: str, event: JsonObject) -> None:
        self._set_activity(name, "idle")
        text, error = str(event.get("text") or ""), event.get("error")
        if name == self._lead and event.get("reason") in ("answered", "cut_off"):
            self._answer_text = text if event.get("reason") == "answered" else mark_cut_off(text)
        said = self._paint.bad(one_line(str(error))) if error else one_line(text, 200)
        if said:
            self._line(f"{self._name_cell(name)} {said}")

    # -- questions ------------------------------------------------------------------------------------------------

    def answer_with(self, answer: Answer) -> None:
        self._answer = answer
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read_answer)

    def _show_question(self, event: JsonObject) -> None:
        tool, given, cwd = str(event.get("tool")), event.get("input"), Path(str(event.get("cwd") or self._cwd))
        call = call_text(tool, given, self._cwd, columns() - 4)
        rule = make_rule(ToolCall("", tool, cast(JsonObject, given), False, cwd)) if isinstance(given, dict) else None
        pages = Pages(preview(tool, given, cwd, self._paint, columns() - 2))
        question = _Question(str(event.get("id")), call, rule is not None, pages)
        self._questions.append(question)
        self._line(f"{self._paint.warning('?')} {self._paint.bold(call)}")
        self._line(self._paint.dim(f"  {one_line(str(event.get('reason')))}"))
        self._show_page(question)

    def _show_page(self, question: _Question) -> None:
        for line in question.pages.next():
            self._line(f"  {line}")
        if question.pages.left:
            self._line(self._paint.warning(f"  … {plural(question.pages.left, 'more line')}"))
        self._line(self._paint.dim(f"  {question.help}"))

    def _read_answer(self) -> None:
        word = sys.stdin.readline().strip().lower()
        if not self._questions or self._answer is None:
            return
        question = self._questions[0]
        key = next((key for key in question.keys if word in (key, _WORDS[key])), None)
        if key is None:
            self._line(self._paint.dim(f"  {question.help}"))
            return
        if key == "m":
            self._show_page(question)
            return
        self._questions.pop(0)
        self._line(self._paint.dim(f"  {'refused' if key == 'n' else 'allowed'}: {question.call}"))
        task: asyncio.Future[Any] = asyncio.ensure_future(self._answer(question.id, key != "n", key == "a"))
        task.add_done_callback(lambda _done: None)

    # -- the screen -----------------------------------------------------------------------------------------------

    def _name_cell(self, name: str) -> str:
        return self._paint.accent(pad(name, self._wide))

    def _set_activity(self, name: str, what: str) -> None:
        self._doing[name] = (what, time.monotonic())

    def _line(self, text: str) -> None:
        if self._next_draw is None:
            print(text, file=sys.stderr, flush=True)
        else:
            self._draw(self._table(), above=f"{text}\n")

    def _refresh(self) -> None:
        self._next_draw = asyncio.get_running_loop().call_later(_REDRAW_S, self._refresh)
        self._draw(self._table())

    def _draw(self, lines: Sequence[str], above: str = "") -> None:
        """Replaces the table, below a finished line; in one write, so that nothing flickers."""
        text = clean(above + "".join(f"{line}\n" for line in lines))
        terminal = raw_stream(sys.stderr)
        terminal.write(f"{HOLD}{erase_rows(self._rows)}{text}{SHOW}")
        terminal.flush()
        self._rows = len(lines)

    def _table(self) -> list[str]:
        """One line per member, and only as many as the terminal has rows for."""
        rows = list[tuple[str, str, str]]()
        for name in self._names:
            what, since = self._doing[name]
            busy = what not in ("idle", "ended", "failed")
            took = f"{time.monotonic() - since:.0f} s" if busy else ""
            style = self._paint.bold if busy else self._paint.dim
            shown = cut(one_line(what), max(20, columns() - self._wide - 12))
            rows.append((style(one_line(name)), shown if busy else self._paint.dim(shown), self._paint.dim(took)))
        return list(table(rows))[: max(1, shutil.get_terminal_size().lines - 2)]
