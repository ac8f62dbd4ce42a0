"""`reverie context`: shows what fills the window of a session, from a live session or from the transcript."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reverie.cli.options import examples, folder_options, load_places, session_choice, web_option
from reverie.cli.output import Paint, answer, format_size, format_tokens, get_paint, line_width, pad, plural
from reverie.cli.sessions.cost import find_transcript, session_in_home, show_page
from reverie.text.columns import width

if TYPE_CHECKING:
    from reverie.context.window_fill import WindowFill
    from reverie.paths import Places
    from reverie.session.session import Session
    from reverie.settings import Settings

_BAR = 60
_OFF = 0.05
"""Above this share of the used tokens, a line says that the parts do not add up."""
_LABEL = 34


@examples(
    "reverie context",
    "reverie context 3f2a",
    "reverie context last --web",
    "reverie context last --json | jq '.sources[] | select(.source == \"tool_results\")'",
)
@click.command("context")
@session_choice()
@web_option
@folder_options
def command(session: str, web: bool, as_json: bool, cwd: Path) -> None:
    """Show what fills the window of a conversation.

    The window is the number of tokens that fit into one request. Shows the tokens of the system prompt, tools,
    instructions, messages, thinking, tool calls and results; the free tokens; and the tokens that are reserved for
    compaction and for the answer. SESSION is the id of a session (its first characters are enough), `last`, or the path
    of a transcript.
    """
    settings, places = load_places(cwd)
    path = find_transcript(session, places)
    if web:
        show_page(cwd, f"/sessions/{session_in_home(path, places)}/window")
        return
    found = _ask_live_session(path, places) or _read_transcript(path, settings)
    lines = context_lines(found, get_paint(), line_width(100))
    answer(as_json, {"session": path.stem, **found.to_json()}, *lines)


def _ask_live_session(path: Path, places: Places) -> WindowFill | None:
    """The report of a live session; None if the session is not live or does not answer."""
    from reverie.context.window_fill import WindowFill
    from reverie.errors import ReverieError
    from reverie.runtime.live_client import ask_live, live_sessions

    for live in live_sessions(places.projects, path.stem):
        if live.id == path.stem and live.socket is not None:
            try:
                return WindowFill.from_json(ask_live(live.socket, {"do": "context"})["context"])
            except (ReverieError, KeyError, TypeError):  # an older version, or a session that is closing
                return None
    return None


def _read_transcript(path: Path, settings: Settings) -> WindowFill:
    from reverie.context.window_fill import fill
    from reverie.models.catalogue import Catalogue
    from reverie.models.window import limits_of
    from reverie.models.wire import model_id
    from reverie.storage.transcript.chain import conversation
    from reverie.storage.transcript.session_files import read_session
    from reverie.storage.transcript.view import View

    view = View.of(conversation(read_session(path).records))
    header = view.header
    answered = (entry.message.fields.get("model") for entry in reversed(view.entries))
    name = header.model if header is not None else str(next(filter(None, answered), ""))
    facts = Catalogue.load(settings.catalogue.files).facts(model_id(name))
    return fill(view, limits_of(name, facts, settings), model=model_id(name))


def context_text(session: Session, *, paint: Paint | None = None, wide: int = 100) -> str:
    """The same for the session of a chat."""
    from reverie.context.window_fill import fill
    from reverie.models.wire import model_id

    found = fill(session.view, session.conversation.thresholds, model=model_id(session.parts.model.name))
    return "\n".join(context_lines(found, paint or Paint(False), wide))


def context_lines(found: WindowFill, paint: Paint, wide: int) -> Iterator[str]:
    """The bar, one line per source, and the lifetime of the cache."""
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
        kept = f"{plural(found.on_disk, 'result')} on disk ({format_size(found.on_disk_bytes)})"
        yield paint.dim(f"{kept}, a preview of each in the window.")
    if found.cleared:
        yield paint.dim(
            f"{plural(found.cleared, 'result')} cleared, about {format_tokens(found.cleared_tokens)} tokens."
        )
    if found.requested_again:
        rests = f"; nothing is cleared for {plural(found.resting_rounds, 'round')}" if found.resting_rounds else ""
        yield paint.dim(f"{plural(found.requested_again, 'cleared result')} requested again: such results stay{rests}.")
    if found.over > found.used * _OFF:
        yield paint.dim(
            f"The parts do not add up: the estimate is {format_tokens(found.over)} tokens above the reported total. "
            "The other agent probably dropped old results without recording it. The parts are scaled to fit."
        )
    if found.ttl_reason:
        kept = "1 h" if found.ttl == "1h" else "5 min"
        yield paint.dim(f"Its prompt cache is kept for {kept}: {found.ttl_reason}.")


def _line(name: str, count: int, window: int, bar: str, label: int) -> str:
    return f"  {pad(name, label)}{format_tokens(count):>7} {count / window:>6.1%}  {bar}".rstrip()


def _bar(found: WindowFill, paint: Paint, wide: int) -> str:
    """Used, free, buffer and reserve in proportion, each at least one column."""
    pieces = ((found.used, "█"), (found.free, "·"), (found.buffer, "░"), (found.reserve, "▒"))
    total = sum(size for size, _ in pieces) or 1
    spans = [max(1, round(wide * size / total)) if size else 0 for size, _ in pieces]
    spans[spans.index(max(spans))] += wide - sum(spans)
    drawn = [mark * span for (_, mark), span in zip(pieces, spans, strict=True)]
    return paint.accent(drawn[0]) + paint.dim("".join(drawn[1:]))
