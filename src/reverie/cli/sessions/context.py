"""`reverie context`: what fills the window of a session, by source.

Asks a live session over its socket; for any other it reads the transcript. No event loop, no SDK, no flags.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import here, session_choice
from reverie.cli.output import Paint, answer, line_width, pad, painted, plural, size, tokens, width
from reverie.cli.sessions.cost import find_transcript

if TYPE_CHECKING:
    from reverie.context.window_fill import WindowFill
    from reverie.paths import Places
    from reverie.session.session import Session
    from reverie.settings import Settings

_EPILOG = """\b
Examples:
  reverie context
  reverie context 3f2a
  reverie context last --json | jq '.sources[] | select(.source == "tool_results")'
"""
_BAR = 60
_OFF = 0.05
"""Of what is used: from here on it is said that the parts do not add up."""
_LABEL = 34


@click.command("context", epilog=_EPILOG)
@session_choice()
@here
def command(session: str, as_json: bool, cwd: Path) -> None:
    """Show what fills the window of a conversation.

    System prompt, tools, instructions, what was said, thought, called and returned, what is free and what is kept
    back. SESSION is a session's id, its beginning, `last`, or the path of a transcript.
    """
    from reverie.paths import Places
    from reverie.settings import load_settings

    settings = load_settings(cwd)
    places = Places.of(cwd, settings)
    path = find_transcript(session, places)
    found = _ask(path, places) or _read(path, settings)
    lines = context_lines(found, painted(), line_width(100))
    answer(as_json, {"session": path.stem, **found.to_json()}, *lines)


def _ask(path: Path, places: Places) -> WindowFill | None:
    """What a live session says about itself; None if it is not live, or does not answer."""
    from reverie.context.window_fill import WindowFill
    from reverie.errors import ReverieError
    from reverie.runtime.live_client import ask_live, live_sessions

    for live in live_sessions(places.projects, path.stem):
        if live.id == path.stem and live.socket is not None:
            try:
                return WindowFill.from_json(ask_live(live.socket, {"do": "context"})["context"])
            except (ReverieError, KeyError, TypeError):  # an older one, or one that is ending: its transcript will do
                return None
    return None


def _read(path: Path, settings: Settings) -> WindowFill:
    from reverie.context.window_fill import fill
    from reverie.models.catalogue import Catalogue
    from reverie.models.window import limits_of
    from reverie.models.wire import model_id
    from reverie.storage.transcript.chain import conversation
    from reverie.storage.transcript.file import read_records
    from reverie.storage.transcript.view import View

    view = View.of(conversation(read_records(path).records))
    header = view.header
    answered = (entry.message.fields.get("model") for entry in reversed(view.entries))
    name = header.model if header is not None else str(next(filter(None, answered), ""))
    facts = Catalogue.load(settings.catalogue.files).facts(model_id(name))
    return fill(view, limits_of(name, facts, settings), model=model_id(name))


def context_text(session: Session, *, paint: Paint | None = None, wide: int = 100) -> str:
    """What fills the window of a live session, as the chat shows it."""
    from reverie.context.window_fill import fill

    found = fill(session.view, session.conversation.thresholds)
    return "\n".join(context_lines(found, paint or Paint(False), wide))


def context_lines(found: WindowFill, paint: Paint, wide: int) -> Iterator[str]:
    """The bar, a line a source, and how long the cache is kept."""
    left = f"{found.percent_left}% left before compaction"
    yield f"{paint.bold(found.model or 'no model yet')}: {found.used:,} of {found.window:,} tokens, {left}"
    yield _bar(found, paint, min(_BAR, wide - 2))
    most = max((share.tokens for share in found.shares), default=0) or 1
    label = max(_LABEL, *(width(share.label) + 2 for share in found.shares), 0)
    room = max(0, min(30, wide - label - 20))
    for share in found.shares:
        bar = paint.accent("█" * round(room * share.tokens / most))
        yield _line(share.label, share.tokens, found.window, bar, label)
    rest = (("free", found.free), ("buffer after compaction starts", found.buffer))
    for name, count in (*rest, ("reserve for the reply", found.reserve)):
        yield paint.dim(_line(name, count, found.window, "", label))
    if found.on_disk:
        kept = f"{plural(found.on_disk, 'result')} on disk ({size(found.on_disk_bytes)})"
        yield paint.dim(f"{kept}, a preview of each in the window.")
    if found.cleared:
        yield paint.dim(f"{plural(found.cleared, 'result')} cleared, about {tokens(found.cleared_tokens)} tokens.")
    if found.over > found.used * _OFF:
        yield paint.dim(
            f"The parts do not add up: they are estimated at {tokens(found.over)} tokens more than was reported. "
            "The other agent probably left out old results and did not record it. All but its prompt is scaled to fit."
        )
    if found.ttl_reason:
        kept = "1 h" if found.ttl == "1h" else "5 min"
        yield paint.dim(f"Its prompt cache is kept for {kept}: {found.ttl_reason}.")


def _line(name: str, count: int, window: int, bar: str, label: int) -> str:
    return f"  {pad(name, label)}{tokens(count):>7} {count / window:>6.1%}  {bar}".rstrip()


def _bar(found: WindowFill, paint: Paint, wide: int) -> str:
    """Used, free, buffer and reserve in proportion; what is there at all is at least one column."""
    pieces = ((found.used, "█"), (found.free, "·"), (found.buffer, "░"), (found.reserve, "▒"))
    total = sum(size for size, _ in pieces) or 1
    spans = [max(1, round(wide * size / total)) if size else 0 for size, _ in pieces]
    spans[spans.index(max(spans))] += wide - sum(spans)
    drawn = [mark * span for (_, mark), span in zip(pieces, spans, strict=True)]
    return paint.accent(drawn[0]) + paint.dim("".join(drawn[1:]))
