"""Draws what a program wrote to a terminal as SVG: a still picture, or one that scrolls by itself.

The pictures need no script, no font and no network. The same text gives the same bytes. In an animated picture only two
things move: the sheet of lines, and a cover below the last line. A viewer who prefers no motion sees the end.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from reverie.text.columns import width

_CODE = re.compile(r"\x1b(?:\[([0-9;]*)m|\[[0-9;?]*[A-Za-ln-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>(][A-Z0-9]?)")
_FAMILY = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_BACK, _EDGE, _TEXT, _DIM, _BOLD = "#10151f", "#2a3344", "#c9d1e0", "#77829a", "#ffffff"
_PALETTE = ("#5b6478", "#ff7b8a", "#8bd49c", "#f2c572", "#8aa8ff", "#d3a4f0", "#7cc7ff", _TEXT)
_CHAR, _ROW = 8.4, 20
_LEFT, _TOP, _BOTTOM = 22, 54, 18
_ROWS = 30  # of an animated picture
_TYPED, _LINE, _LOOK, _TITLE = 5, 1, 9, 6  # how long a line stays the last one, relative to each other
_FIRST_S, _END_S, _WHOLE_S = 2.5, 3.5, 28.0


@dataclass(frozen=True, slots=True)
class Look:
    """How a piece of text looks."""

    colour: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underlined: bool = False

    @property
    def attributes(self) -> str:
        fill = self.colour or (_DIM if self.dim else _BOLD if self.bold else _TEXT)
        return (
            f' fill="{fill}"'
            + ' font-weight="600"' * self.bold
            + ' fill-opacity=".65"' * (self.dim and bool(self.colour))
            + ' font-style="italic"' * self.italic
            + ' text-decoration="underline"' * self.underlined
        )

    def after(self, codes: str) -> Look:
        """The look after these codes."""
        look = self
        left = [int(code or 0) for code in codes.split(";")]
        while left:
            look = look._after(left.pop(0), left)
        return look

    def _after(self, code: int, left: list[int]) -> Look:
        values = {name: getattr(self, name) for name in self.__slots__}
        match code:
            case 0:
                return Look()
            case 1 | 2 | 3 | 4:
                values[("bold", "dim", "italic", "underlined")[code - 1]] = True
            case 22:
                values["bold"] = values["dim"] = False
            case 23 | 24:
                values[("italic", "underlined")[code - 23]] = False
            case 38 | 48:
                colour = _rgb(left)
                if code == 38:
                    values["colour"] = colour
            case 39:
                values["colour"] = ""
            case _ if 30 <= code <= 37 or 90 <= code <= 97:
                values["colour"] = _PALETTE[code % 10]
            case _:
                pass
        return Look(**values)


def _rgb(left: list[int]) -> str:
    """Takes the numbers of a colour of 256, or of red, green and blue."""
    if left.pop(0) == 2:
        red, green, blue = left.pop(0), left.pop(0), left.pop(0)
    elif (number := left.pop(0)) < 16:
        return _PALETTE[number % 8]
    elif number < 232:
        red, green, blue = (
            0 if not step else 55 + 40 * step
            for step in ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
        )
    else:
        red = green = blue = 8 + 10 * (number - 232)
    return f"#{red:02x}{green:02x}{blue:02x}"


Line = list[tuple[str, Look]]


def read_lines(text: str) -> list[Line]:
    """The lines of a text with escape sequences, in pieces of one look."""
    lines, look = list[Line](), Look()
    for raw in text.replace("\r", "").rstrip("\n").split("\n"):
        line, at = Line(), 0
        for code in _CODE.finditer(raw):
            if raw[at : code.start()]:
                line.append((raw[at : code.start()], look))
            at = code.end()
            look = look if code[1] is None else look.after(code[1])
        if raw[at:]:
            line.append((raw[at:], look))
        lines.append(line)
    return lines


def draw(text: str, title: str, columns: int) -> str:
    """A still picture of a terminal."""
    lines = read_lines(text)
    body = "".join(_draw_line(line, number) for number, line in enumerate(lines))
    return _window(title, columns, len(lines), "", f'<g transform="translate({_LEFT} {_TOP})">{body}</g>')


def animate(text: str, title: str, columns: int) -> str:
    """A picture that scrolls through the lines."""
    lines = read_lines(text)
    begins, last = _start_times(lines), len(lines)
    css = (
        f"#sheet{{transform:translateY(-{_offset(last)}px)}}#cover{{transform:translateY({last * _ROW}px)}}"
        "@media (prefers-reduced-motion:no-preference){"
        + "".join(f"#{name}{{animation:{name} {_WHOLE_S:.0f}s step-end infinite}}" for name in ("sheet", "cover"))
        + f"}}\n{_keyframes('sheet', begins, _offset)}\n{_keyframes('cover', begins, lambda rows: rows * _ROW)}"
    )
    wide = round(columns * _CHAR) + 2 * _LEFT
    body = (
        f'<clipPath id="pane"><rect x="0" y="{_TOP}" width="{wide}" height="{_ROWS * _ROW + 2}"/></clipPath>\n'
        f'<g clip-path="url(#pane)"><g transform="translate({_LEFT} {_TOP})"><g id="sheet">\n'
        + "\n".join(_draw_line(line, number) for number, line in enumerate(lines) if line)
        + f'\n<rect id="cover" x="-4" y="-2" width="{wide}" height="{(_ROWS + 2) * _ROW}" fill="{_BACK}"/></g></g></g>'
    )
    return _window(title, columns, _ROWS, css, body)


def _window(title: str, columns: int, rows: int, css: str, body: str) -> str:
    wide, high = round(columns * _CHAR) + 2 * _LEFT, _TOP + rows * _ROW + _BOTTOM
    dots = "".join(
        f'<circle cx="{24 + 20 * number}" cy="22" r="6" fill="{colour}"/>'
        for number, colour in enumerate(("#ff6b6b", "#f2c572", "#8bd49c"))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
        f' font-family="{_FAMILY}" font-size="14" role="img" aria-label={quoteattr(title)}>\n'
        + (f"<style>\n{css}\n</style>\n" if css else "")
        + f'<rect x=".5" y=".5" width="{wide - 1}" height="{high - 1}" rx="10" fill="{_BACK}" stroke="{_EDGE}"/>\n'
        f'{dots}\n<text x="{wide / 2:.0f}" y="27" fill="{_DIM}" text-anchor="middle">{escape(title)}</text>\n'
        f"{body}\n</svg>\n"
    )


def _draw_line(line: Line, number: int) -> str:
    """One line: every piece at its column and as wide as its columns, in any font; bars are rectangles."""
    y = number * _ROW + 14
    column, out = 0, list[str]()
    for text, look in line:
        if text.strip():
            at, shown = column + len(text) - len(text.lstrip(" ")), text.strip(" ")
            x, long = at * _CHAR, width(shown) * _CHAR
            if set(shown) in ({"█"}, {"─"}):
                top, high = (y - 11, 12) if "█" in shown else (y - 5, 1)
                out.append(f'<rect x="{x:.1f}" y="{top}" width="{long:.1f}" height="{high}"{look.attributes}/>')
            else:
                out.append(
                    f'<text x="{x:.1f}" y="{y}" textLength="{long:.1f}"{look.attributes}'
                    f' xml:space="preserve">{escape(shown)}</text>'
                )
        column += width(text)
    return "".join(out)


def _start_times(lines: Sequence[Line]) -> list[float]:
    """When each line appears. The first screenful is there from the start; typing and empty lines take longer."""
    weights = list[int]()
    for line in lines[_ROWS:]:
        text = "".join(piece for piece, _ in line)
        typed = text[:2] in ("› ", "$ ")
        weights.append(_TYPED if typed else _TITLE if text.startswith("──") else _LINE if text else _LOOK)
    each = (_WHOLE_S - _FIRST_S - _END_S) / max(1, sum(weights))
    return [0.0] * min(_ROWS, len(lines)) + [_FIRST_S + each * sum(weights[:at]) for at in range(len(weights))]


def _offset(rows: int) -> int:
    return max(0, rows - _ROWS) * _ROW


def _keyframes(name: str, begins: Sequence[float], move: Callable[[int], int]) -> str:
    """The keyframes of the sheet or the cover: it jumps when a new line moves it."""
    sign = "-" if name == "sheet" else ""
    moves = {at: move(rows) for rows, at in enumerate(begins, 1)} | {_WHOLE_S: move(len(begins))}
    frames, before = list[str](), -1
    for at, now in moves.items():
        if now != before or at == _WHOLE_S:
            frames.append(f"{100 * at / _WHOLE_S:.3f}%{{transform:translateY({sign}{now}px)}}")
            before = now
    return f"@keyframes {name}{{{''.join(frames)}}}"


@contextmanager
def tmux() -> Generator[Callable[..., str]]:
    """A tmux server of its own; call it with the arguments of a tmux command."""
    with tempfile.TemporaryDirectory(prefix="reverie-tmux-") as folder:

        def run(*arguments: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
            command = ["tmux", "-S", f"{folder}/socket", "-f", "/dev/null", *arguments]
            return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=True).stdout

        try:
            yield run
        finally:
            subprocess.run(["tmux", "-S", f"{folder}/socket", "kill-server"], capture_output=True)


def has_tmux() -> bool:
    return shutil.which("tmux") is not None
