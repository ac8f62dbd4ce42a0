"""The conversation on the screen: one widget that draws only the lines in sight.

Older messages of a long session are loaded while the user scrolls up. The view follows new text while it is at its end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from time import monotonic
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message as TextualMessage
from textual.scroll_view import ScrollView
from textual.strip import Strip

from reverie.cli.full_screen.blocks import Block, Said

_FRAME_S = 1 / 30
_KEPT_AT_RESIZE = 60
_MARGIN = 2  # columns on the left: the mark of the chosen block


class Conversation(ScrollView, can_focus=True):
    """All blocks. Keys work while it has the focus."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "choose(-1)", "Block above", show=False),
        Binding("down,j", "choose(1)", "Block below", show=False),
        Binding("enter,space", "unfold", "Open", show=False),
        Binding("left,h", "fold", "Fold", show=False),
        Binding("y,c", "copy", "Copy the block", show=False),
        Binding("g", "scroll_home", "Beginning", show=False),
        Binding("G", "scroll_end", "End", show=False),
    ]

    class Copied(TextualMessage):
        """The user wants to copy this text."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(id="conversation")
        self.blocks = list[Block]()
        self._older: Iterator[list[Block]] = iter(())
        self._back = list[list[Block]]()  # loaded once, and put back because they are far away
        self._tops = [0]  # the first line of each block, and the end
        self._chosen: Block | None = None
        self._drawn_at = 0.0
        self._waits_for_frame = False
        self._last_cost = 0.0
        self._width = 0
        self._follows = True

    # -- content --------------------------------------------------------------------------------------------------

    def add(self, block: Block) -> None:
        self.blocks.append(block)
        self.redraw(now=True)

    def take_away(self, block: Block) -> None:
        if block in self.blocks:
            self.blocks.remove(block)
            self.redraw(now=True)

    def say(self, text: str) -> None:
        """Adds lines of our own, to the block before if that has such lines too."""
        last = self.blocks[-1] if self.blocks else None
        if type(last) is Said and not text.count("\n"):
            last.add(text)
            self.redraw()
        else:
            self.add(Said(text))

    def clear(self) -> None:
        self.blocks, self._older, self._back, self._chosen = [], iter(()), [], None
        self.redraw(now=True)

    def load(self, older: Iterator[list[Block]]) -> None:
        """Shows a transcript: batches of blocks, the last batch first."""
        self._older = older
        self.load_older()
        self.scroll_to_end()

    def load_older(self) -> bool:
        """Loads the batch before the first block; False if there is none."""
        batch = self._back.pop() if self._back else next(self._older, None)
        if batch is None:
            return False
        before = self._tops[-1]
        self.blocks[:0] = batch
        self._measure()
        if not self._follows:
            self.scroll_to(y=self.scroll_y + self._tops[-1] - before, animate=False, force=True)
        self.refresh()
        return True

    # -- drawing --------------------------------------------------------------------------------------------------

    def redraw(self, *, now: bool = False) -> None:
        """Draws what changed: the first change at once, later ones at most every thirtieth of a second."""
        passed = monotonic() - self._drawn_at
        wait = max(_FRAME_S, 2 * self._last_cost) - passed
        if now or wait <= 0:
            self._draw_frame()
        elif not self._waits_for_frame:
            self._waits_for_frame = True
            self.set_timer(wait, self._draw_late)

    def _draw_late(self) -> None:
        self._waits_for_frame = False
        self._draw_frame()

    def _draw_frame(self) -> None:
        begun = monotonic()
        self._measure()
        if self._follows:
            self.scroll_to_end()
        self.refresh()
        self._drawn_at = monotonic()
        self._last_cost = self._drawn_at - begun

    def _room(self) -> int:
        return max(10, self.scrollable_content_region.width - _MARGIN)

    def _measure(self) -> None:
        if not self.size.width:
            return
        room = self._room()
        self._tops = [0, *accumulate(len(block.lines(room)) for block in self.blocks)]
        self.virtual_size = Size(self.scrollable_content_region.width, self._tops[-1])

    def render_line(self, y: int) -> Strip:
        width, line = self.size.width, y + self.scroll_offset.y
        if line >= self._tops[-1]:
            return Strip.blank(width, self.rich_style)
        at = bisect_right(self._tops, line) - 1
        block = self.blocks[at]
        drawn = block.lines(self._room())
        inside = line - self._tops[at]
        chosen = block is self._chosen and self.has_focus and inside >= block.gap
        margin = Segment("▌ " if chosen else "  ", Style(color="cyan", bold=True))
        segments = drawn[inside] if inside < len(drawn) else [Segment("")]
        return Strip([margin, *segments]).extend_cell_length(width).crop(0, width).apply_style(self.rich_style)

    # -- scrolling ------------------------------------------------------------------------------------------------

    def scroll_to_end(self) -> None:
        self._follows = True
        self.scroll_to(y=self.max_scroll_y, animate=False, force=True)

    def action_scroll_end(self) -> None:
        self.scroll_to_end()

    def action_scroll_home(self) -> None:
        self._follows = False
        self.scroll_to(y=0, animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._follows = new_value >= self.max_scroll_y - 1
        if new_value < self.size.height and new_value < old_value:
            self.call_later(self._load_near)

    def _load_near(self) -> None:
        if self.scroll_y < self.size.height and not self._follows:
            self.load_older()

    def on_resize(self, _event: events.Resize) -> None:
        if self._width and self._width != self.size.width and len(self.blocks) > _KEPT_AT_RESIZE and self._follows:
            # Drawing a long conversation in another width takes long: only its end is drawn again.
            self._back.append(self.blocks[:-_KEPT_AT_RESIZE])
            self.blocks = self.blocks[-_KEPT_AT_RESIZE:]
        self._width = self.size.width
        self.redraw(now=True)

    def on_focus(self) -> None:
        if self._chosen not in self.blocks:
            self._chosen = next((block for block in reversed(self.blocks) if block.foldable), None)
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    # -- the chosen block -----------------------------------------------------------------------------------------

    @property
    def chosen(self) -> Block | None:
        return self._chosen

    def choose(self, block: Block) -> None:
        self._chosen = block
        self._measure()
        at = self.blocks.index(block)
        top, bottom, sight = self._tops[at], self._tops[at + 1], self.size.height
        y = self.scroll_offset.y
        if top < y or bottom - top >= sight:
            y = top
        elif bottom > y + sight:
            y = bottom - sight
        self._follows = y >= self.max_scroll_y
        self.scroll_to(y=y, animate=False)
        self.refresh()

    def action_choose(self, step: int) -> None:
        if not self.blocks:
            return
        if self._chosen not in self.blocks:
            self.choose(self.blocks[-1])
            return
        at = self.blocks.index(self._chosen) + step
        if at < 0 and self.load_older():
            at = self.blocks.index(self._chosen) + step
        self.choose(self.blocks[min(max(at, 0), len(self.blocks) - 1)])

    def action_unfold(self) -> None:
        if self._chosen is not None and self._chosen.foldable:
            self._chosen.toggle()
            self._follows = False
            self.redraw(now=True)

    def action_fold(self) -> None:
        if self._chosen is not None and self._chosen.foldable:
            self._chosen.fold()
            self.choose(self._chosen)
            self.redraw(now=True)

    def action_copy(self) -> None:
        if self._chosen is not None:
            self.post_message(self.Copied(self._chosen.text))

    def on_click(self, event: events.Click) -> None:
        line = event.y + self.scroll_offset.y
        if line < self._tops[-1]:
            self._chosen = self.blocks[bisect_right(self._tops, line) - 1]
            self.action_unfold()

    def find(self, wanted: str, step: int = -1) -> Block | None:
        """Chooses the next block that contains the text, upwards by default; older messages are loaded."""
        low = wanted.casefold()
        at = self.blocks.index(self._chosen) if self._chosen in self.blocks else len(self.blocks)
        while True:
            at += step
            if at < 0:
                count = len(self.blocks)
                if not self.load_older():
                    return None
                at += len(self.blocks) - count
            if at >= len(self.blocks):
                return None
            block = self.blocks[at]
            if low in block.text.casefold():
                if block.foldable and not block.open:
                    block.toggle()
                self.choose(block)
                return block
