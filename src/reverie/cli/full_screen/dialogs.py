"""Dialogs over the conversation: permission, one key, a list to choose from, lines to read.

Keys that were typed in the flow of a message do not answer a dialog that has just appeared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import monotonic
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from reverie.cli.chat.input import ActList, PickRow
from reverie.cli.full_screen.markdown import Line, draw_ours
from reverie.cli.output import exact, one_line, plural
from reverie.errors import ReverieError
from reverie.text.columns import width

_PAUSE_S = 0.4  # without keys, before a dialog takes one
_AROUND = 9  # rows of a dialog around its lines
STOP = "stop"
DIALOG_COLUMNS = 110
"""How wide a dialog is at most (see app.tcss)."""


class Lines(ScrollView, can_focus=True):
    """Lines to read. `seen` is the number of lines that were in sight, from the first on."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(classes="lines")
        self._texts = texts
        self._lines = list[Line]()
        self._wide: int = 0
        self.seen = 0
        self.on_seen: Callable[[], None] = lambda: None

    @property
    def left(self) -> int:
        return max(0, len(self._lines) - self.seen)

    def on_resize(self) -> None:
        wide: int = self.scrollable_content_region.width
        if wide != self._wide:
            self._wide = wide
            all_seen = self._lines and not self.left
            self._lines = [line for text in self._texts for line in draw_ours(text, wide)]
            self.seen = len(self._lines) if all_seen else 0
            self.virtual_size = Size(wide, len(self._lines))
        self._note()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._note()

    def _note(self) -> None:
        """Records how far the user has read. A jump over lines does not count as reading them."""
        if not self.is_attached or not self._lines:
            return
        # What the dialog cuts off is not in sight.
        in_sight = min(self.scrollable_content_region.height, self.screen.find_widget(self).visible_region.height)
        top, bottom = self.scroll_offset.y, self.scroll_offset.y + in_sight
        if top <= self.seen < bottom:
            self.seen = min(bottom, len(self._lines))
        self.on_seen()

    def render_line(self, y: int) -> Strip:
        at, width = y + self.scroll_offset.y, self.size.width
        line = self._lines[at] if at < len(self._lines) else []
        return Strip(line).extend_cell_length(width).crop(0, width).apply_style(self.rich_style)


class Dialog(ModalScreen[str]):
    """A dialog with a title. It returns a word."""

    def __init__(self) -> None:
        super().__init__()
        self.opened_at = inf
        """When it was on the screen."""

    def on_mount(self) -> None:
        self.call_after_refresh(self._note_opened)

    def _note_opened(self) -> None:
        self.opened_at = monotonic()

    def on_resize(self, event: events.Resize) -> None:
        for lines in self.query(Lines):
            lines.styles.max_height = max(3, event.size.height - _AROUND)

    def is_early(self, event: events.Key) -> bool:
        """Whether a key belongs to what the user wrote before the dialog appeared. It delays the dialog again.

        What counts is when the key was pressed: on a busy machine it may arrive much later.
        """
        early = event.time - self.opened_at < _PAUSE_S
        if early:
            self.opened_at = max(self.opened_at, event.time)
        return early


class Reader(Dialog):
    """Lines to read, for example the help."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,ctrl+c", "leave", show=False)]

    def __init__(self, title: str, texts: Sequence[str]) -> None:
        super().__init__()
        self._title, self._texts = title, texts

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text(one_line(self._title), style="bold"), markup=False)
            yield Lines(self._texts)
            yield Static(Text("↑↓ PgUp PgDn scroll · Esc closes", style="dim"), markup=False)

    def on_mount(self) -> None:
        self.query_one(Lines).focus()

    def action_leave(self) -> None:
        self.dismiss("")


class Choice(Dialog):
    """A question that is answered with one key."""

    def __init__(self, question: str, offers: Mapping[str, str]) -> None:
        super().__init__()
        self._question, self._given = question, dict(offers)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog small"):
            lines = draw_ours(self._question, 10_000)
            yield Static(Text("\n".join("".join(part.text for part in line) for line in lines)), markup=False)
            yield Static(_keys(self._given), markup=False)

    def on_key(self, event: events.Key) -> None:
        event.stop()
        if event.key == "ctrl+c":
            self.dismiss(STOP)
        elif event.key == "escape" and not self.is_early(event):
            self.dismiss("no, as it is")
        elif (word := self._given.get((event.character or "").lower())) and not self.is_early(event):
            self.dismiss(word)


class Permission(Dialog):
    """Asks about a tool call. It can be allowed only after all its lines were in sight."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pagedown,space", "page(1)", show=False, priority=False),
        Binding("pageup", "page(-1)", show=False),
    ]

    def __init__(self, title: str, reason: str, texts: Sequence[str], rules: Sequence[str], *, saves_to: str) -> None:
        super().__init__()
        self._title, self._reason, self._texts = title, reason, texts
        self._rules, self._saves_to = rules, saves_to

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text.assemble(("? ", "yellow"), (one_line(self._title), "bold")), markup=False)
            yield Static(Text(one_line(self._reason), style="dim"), markup=False)
            yield Lines(self._texts)
            if self._rules:
                saved = f" (always: saved in {exact(self._saves_to)})" if self._saves_to else ""
                yield Static(Text(f"rule: {exact(', '.join(self._rules))}{saved}", style="dim"), markup=False)
            yield Static("", id="answers", markup=False)
            why = Input(placeholder="Why not? Enter: no reason. Esc: back", id="why", compact=True)
            why.display = False
            yield why

    def on_mount(self) -> None:
        lines = self.query_one(Lines)
        lines.on_seen = self._show_answers
        lines.focus()
        self._show_answers()

    @property
    def offers(self) -> dict[str, str]:
        """The keys that work now."""
        if self.query_one(Lines).left:
            return {"n": "no"}
        lasting = {"s": "session"} if self._rules else {}
        if self._rules and self._saves_to:
            lasting["a"] = "always"
        return {"y": "once", **lasting, "n": "no"}

    def _show_answers(self) -> None:
        left = self.query_one(Lines).left
        shown = {"y": "yes, once", "s": "this session", "a": "always", "n": "no"}
        line = _keys({key: shown[key] for key in self.offers})
        if left:
            line = Text.assemble((f"… {plural(left, 'more line')}: Space or PgDn   ", "yellow"), line)
        self.query_one("#answers", Static).update(line)

    def action_page(self, step: int) -> None:
        lines = self.query_one(Lines)
        # One line less than a page: the reader sees where it continues.
        lines.scroll_relative(y=step * max(1, lines.size.height - 1), animate=False)

    def on_key(self, event: events.Key) -> None:
        why = self.query_one("#why", Input)
        if event.key == "ctrl+c":
            event.stop()
            self.dismiss(STOP)
        elif event.key == "escape":
            event.stop()
            if why.display:
                why.display = False
                self.query_one(Lines).focus()
            elif not self.is_early(event):
                self.dismiss("no")
        elif not why.display and (word := self.offers.get((event.character or "").lower())):
            event.stop()
            if self.is_early(event):
                return
            if word == "no":
                why.display = True
                why.focus()
            else:
                self.dismiss(word)
        elif not why.display and event.is_printable:
            self.is_early(event)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(f"no {event.value}".strip())


class Picker(ModalScreen[str | None]):
    """A list to choose from, with a search. Returns the value of the row, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "leave", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", show=False, priority=True),
        Binding("down,ctrl+n,tab", "move(1)", show=False, priority=True),
        Binding("enter", "take", show=False, priority=True),
        Binding("delete,ctrl+x", "act", show=False, priority=True),
    ]

    def __init__(
        self,
        title: str,
        rows: Callable[[], Sequence[PickRow]],
        rank: Callable[[str, Sequence[PickRow]], list[PickRow]],
        managed: ActList | None = None,
    ) -> None:
        super().__init__()
        self._title, self._rows, self._rank, self._managed = title, rows, rank, managed
        self._found = list[PickRow]()
        self._asked: str | None = None  # the row of which Del was pressed once

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(Text(one_line(self._title), style="bold"), markup=False)
            yield Input(placeholder="type to search", id="wanted", compact=True)
            yield OptionList(markup=False, compact=True)
            about = Static("", id="about", markup=False)
            about.display = self._managed is not None
            yield about
            yield Static("", id="how", markup=False)

    def on_mount(self) -> None:
        self.query_one(Input).focus()
        self._fill()
        self._say(self._how, "dim")
        if self._managed is not None and self._managed.every:
            self.set_interval(self._managed.every, self._fill)

    @property
    def _how(self) -> str:
        act = f"Del {self._managed.verb}" if self._managed is not None else "Enter"
        return f"↑↓ {act} · Esc closes"

    def _say(self, text: str, style: str) -> None:
        self.query_one("#how", Static).update(Text(one_line(text), style=style))

    def on_input_changed(self) -> None:
        self._forget_asked()
        self._fill(keep=False)

    def on_resize(self) -> None:
        self._fill()

    def _fill(self, *, keep: bool = True) -> None:
        shown = self.query_one(OptionList)
        before = self._marked() if keep else None
        self._found = self._rank(self.query_one(Input).value, self._rows())
        shown.clear_options()
        room = max(10, shown.scrollable_content_region.width - 2)
        rows = self._found[:500]
        notes = max((width(one_line(row.note)) for row in rows), default=0)
        most = max(room // 2, room - notes - 2) if notes else room
        column = min(most, max((width(one_line(row.text)) for row in rows), default=0))
        for row in rows:
            text = one_line(row.text, column)
            line = Text(no_wrap=True, overflow="ellipsis")
            line.append(text + " " * (column - width(text) + 2))
            line.append(one_line(row.note, max(4, room - column - 2)), style="dim")
            shown.add_option(Option(line))
        if not self._found:
            nothing = "nothing fits" if self.query_one(Input).value else "There is nothing here."
            shown.add_option(Option(Text(nothing, style="dim"), disabled=True))
        else:
            values = [row.value for row in rows]
            shown.highlighted = values.index(before) if before in values else 0
        self._tell_more()

    def _tell_more(self) -> None:
        if self._managed is not None:
            marked = self._marked()
            lines = self._managed.about(marked) if marked is not None else ()
            self.query_one("#about", Static).update(Text("\n".join(one_line(line) for line in lines), style="dim"))

    def on_option_list_option_highlighted(self) -> None:
        self._tell_more()
        if self._asked != self._marked():
            self._forget_asked()

    def _forget_asked(self) -> None:
        """Any other key than a second Del: nothing is removed."""
        if self._asked is not None:
            self._asked = None
            self._say(self._how, "dim")

    def _marked(self) -> str | None:
        at = self.query_one(OptionList).highlighted
        return self._found[at].value if at is not None and at < len(self._found) else None

    def action_move(self, step: int) -> None:
        self._forget_asked()
        shown = self.query_one(OptionList)
        (shown.action_cursor_down if step > 0 else shown.action_cursor_up)()

    def action_take(self) -> None:
        if self._managed is None and (value := self._marked()) is not None:
            self.dismiss(value)

    def on_option_list_option_selected(self) -> None:
        self.action_take()

    def action_act(self) -> None:
        if self._managed is None or (value := self._marked()) is None:
            return
        if self._asked != value:
            self._asked = value
            self._say(f"Del again {self._managed.verb}: {value}", "yellow")
            return
        self._asked = None
        try:
            self._say(self._managed.act(value), "")
        except ReverieError as error:
            self._say(str(error), "red")
        self._fill()

    def action_leave(self) -> None:
        self.dismiss(None)


def _keys(offers: Mapping[str, str]) -> Text:
    shown = Text()
    for key, word in offers.items():
        shown.append(f" {key} ", style="reverse bold")
        shown.append(f" {one_line(word)}   ")
    return shown
