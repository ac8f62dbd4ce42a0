"""Where the user writes: several lines, history, folded pastes, completion of commands and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from reverie.cli.chat.attachments import Pastes
from reverie.cli.chat.completer import is_completed
from reverie.cli.chat.input import Said
from reverie.cli.output import one_line
from reverie.cli.screen import printable
from reverie.quick import dataclass
from reverie.types import Origin

_MOST_OFFERS = 50
_TYPED = CompleteEvent(text_inserted=True)


@dataclass(frozen=True, slots=True)
class _Offer:
    word: str
    back: int
    """How many characters before the cursor it replaces."""


class Offers(OptionList, can_focus=False):
    """The completions above the text. The composer moves the mark."""

    def __init__(self) -> None:
        super().__init__(id="offers", markup=False, compact=True)
        self.offered = list[_Offer]()

    def show_offers(self, offers: list[tuple[_Offer, str, str]]) -> None:
        self.offered = [offer for offer, _, _ in offers]
        self.clear_options()
        room = max(12, max((len(shown) for _, shown, _ in offers), default=0) + 2)
        for _, shown, about in offers:
            line = Text(no_wrap=True, overflow="ellipsis")
            line.append(f"{shown:<{room}}")
            line.append(about, style="dim")
            self.add_option(Option(line))
        self.display = bool(offers)
        self.highlighted = 0 if offers else None

    @property
    def marked(self) -> _Offer | None:
        at = self.highlighted
        return self.offered[at] if self.display and at is not None and at < len(self.offered) else None


class Composer(TextArea):
    """The text that the user writes. `Sent` carries it with its origins."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+enter,shift+enter,ctrl+j", "new_line", "New line", show=False),
    ]

    class Sent(Message):
        def __init__(self, said: Said) -> None:
            super().__init__()
            self.said = said

    class TakeBack(Message):
        """The user wants the last waiting message back."""

    class NextMode(Message):
        """The user wants the next permission mode."""

    class Left(Message):
        """The user wants to move through the conversation."""

    def __init__(self, history: History, completer: Completer, pastes: Pastes | None = None) -> None:
        super().__init__(id="composer", soft_wrap=True, compact=True, highlight_cursor_line=False, tab_behavior="focus")
        self._pastes = pastes or Pastes()
        self._entered = False  # something here was not typed key by key
        self._store = history
        self._past: list[str] | None = None  # the newest first
        self._at = -1
        self._draft = ""
        self._completer = completer
        self._completed: str | None = None  # the text for which the user closed the completions
        self._offered_for = ""
        self.has_waiting: Callable[[], bool] = lambda: False

    # -- text -----------------------------------------------------------------------------------------------------

    @property
    def before_cursor(self) -> str:
        row, column = self.cursor_location
        lines = self.text.split("\n")
        return "\n".join([*lines[:row], lines[row][:column]])

    def put(self, text: str) -> None:
        """Replaces the text, for example with one from the history."""
        self.load_text(text)
        self.move_cursor(self.document.end)
        self._entered = bool(text)

    def empty(self) -> None:
        self.load_text("")
        self._entered, self._at, self._draft = False, -1, ""

    def _send(self) -> None:
        text = self.text
        if not text.strip():
            return
        blocks = self._pastes.split(text, Origin.ENTERED if self._entered else Origin.TYPED)
        self._store.store_string(text)
        if self._past is not None:
            self._past.insert(0, text)
        self.empty()
        self.post_message(self.Sent(Said(blocks, text)))

    def _on_paste(self, event: events.Paste) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        event.stop()
        event.prevent_default()
        text, is_mark = self._pastes.take(event.text)
        self._entered = self._entered or not is_mark
        self.insert(text)

    def action_new_line(self) -> None:
        self.insert("\n")

    # -- keys -----------------------------------------------------------------------------------------------------

    async def _on_key(self, event: events.Key) -> None:
        if self._take_key(event.key):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def _take_key(self, key: str) -> bool:
        """Handles a key that does more than to write; False for others."""
        offers = self._offers
        if key in ("enter", "tab", "up", "down", "escape"):
            self._refresh_offers()
        marked = offers.marked
        match key:
            case "enter" | "tab" if marked is not None and not (key == "enter" and self._is_complete(marked)):
                self._complete(marked)
            case "enter" if self.before_cursor.endswith("\\"):
                self.action_delete_left()
                self.insert("\n")
            case "enter":
                self._send()
            case "up" | "down" if marked is not None:
                (offers.action_cursor_up if key == "up" else offers.action_cursor_down)()
            case "up" if not self.text and self._at < 0 and self.has_waiting():
                self.post_message(self.TakeBack())
            case "up" if self.cursor_at_first_line:
                self._recall(1)
            case "down" if self.cursor_at_last_line and self._at >= 0:
                self._recall(-1)
            case "escape" if marked is not None:
                self._completed = self.before_cursor
                offers.show_offers([])
            case "tab":
                self.post_message(self.Left())
            case "shift+tab":
                self.post_message(self.NextMode())
            case _:
                return False
        return True

    @property
    def past(self) -> list[str]:
        """Earlier messages, the newest first."""
        if self._past is None:
            self._past = [printable(one) for one in self._store.load_history_strings()]
        return self._past

    def _recall(self, step: int) -> None:
        at = min(self._at + step, len(self.past) - 1)
        if at == self._at:
            return
        if self._at < 0:
            self._draft = self.text
        self._at = at
        self.put(self.past[at] if at >= 0 else self._draft)

    # -- completion -----------------------------------------------------------------------------------------------

    @property
    def _offers(self) -> Offers:
        return self.screen.query_one(Offers)

    def _is_complete(self, marked: _Offer) -> bool:
        """Whether Enter sends: the marked word is written already."""
        return self.before_cursor.endswith(marked.word) and len(marked.word) <= marked.back

    def on_text_area_changed(self) -> None:
        self._refresh_offers()

    def _refresh_offers(self) -> None:
        """Shows the completions for the text as it is now. A key that comes first must not use older ones."""
        text = self.before_cursor
        if text in (self._offered_for, self._completed):
            return
        self._completed, self._offered_for = None, text
        if len(text) > 2_000 or self._at >= 0 or not is_completed(text):
            self._offers.show_offers([])
            return
        self._offers.show_offers([_offer(one) for one in self._completer.get_completions(Document(text), _TYPED)])
        self.run_worker(self._search(text), exclusive=True)

    async def _search(self, text: str) -> None:
        """Shows completions that take time to find, if the text is still the same."""
        found = list[tuple[_Offer, str, str]]()
        async for one in self._completer.get_completions_async(Document(text), _TYPED):
            found.append(_offer(one))
            if len(found) >= _MOST_OFFERS:
                break
        if self.is_attached and self.before_cursor == text and text != self._completed:
            self._offers.show_offers(found)

    def _complete(self, offer: _Offer) -> None:
        row, column = self.cursor_location
        self.replace(offer.word, (row, max(0, column - offer.back)), (row, column))


def _offer(one: Completion) -> tuple[_Offer, str, str]:
    return _Offer(one.text, -one.start_position), one_line(one.display_text, 60), one_line(one.display_meta_text, 200)
