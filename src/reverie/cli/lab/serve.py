"""`reverie lab serve`: measures the memory server with few and many memories, beside a folder and mem0."""

from __future__ import annotations

from pathlib import Path

import click

from reverie.cli.options import cwd_option, examples, json_option, load_places
from reverie.cli.output import answer, show_progress, table, warn

_SIZES = (1_000, 100_000, 1_000_000)
_BESIDE = (1_000, 10_000)
_SIZES_HELP = "How many memories, in 1,000 stores.  [default: 1000, 100000 and 1000000; the last needs 6 GB]"


@examples("reverie lab serve --json", "reverie lab serve --size 1000 --size 20000 --requests 100")
@click.command("serve")
@click.option("--size", "sizes", multiple=True, type=click.IntRange(min=1_000), help=_SIZES_HELP)
@click.option("--requests", default=400, show_default=True, type=click.IntRange(min=40), help="Requests of each kind.")
@click.option(
    "--texts",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path("docs"),
    show_default=True,
    help="A folder with Markdown files: memories and questions are made of their sentences.",
)
@click.option("--alone", is_flag=True, help="Without the folder and mem0.")
@cwd_option
@json_option
def serve(sizes: tuple[int, ...], requests: int, texts: Path, alone: bool, cwd: Path, as_json: bool) -> None:
    """Measure how fast the memory server writes and recalls.

    A PostgreSQL of its own gets 1,000 stores: private ones, and those of projects, teams and an organisation. Memories
    are made of sentences of a folder; their vectors lie around those of 2,000 real sentences. A real server answers
    over HTTP: one client alone for the times, eight for the requests per second. Beside it, the same texts are in a
    memory directory, and in mem0 (without its model, with our encoder) if that is installed. The encoder must be
    there: `reverie models add minilm`.

    Exit codes: 0: the middle time with the most memories is at most 3 times that with the fewest; 1: it is not; 2:
    wrong usage.
    """
    from tempfile import TemporaryDirectory

    from reverie.lab.serve.beside import PROGRAM, measure_folder, measure_mem0
    from reverie.lab.serve.run import AIM, measure_server, questions, summary
    from reverie.lab.serve.texts import load_sentences
    from reverie.memory.recall.encoder import open_encoder
    from reverie.server.embedded import EmbeddedPostgres

    settings, places = load_places(cwd)
    encoder = open_encoder(places.models, settings.memory.encoder)
    sentences = load_sentences(texts)
    with TemporaryDirectory(prefix="reverie-lab-") as scratch:
        postgres = EmbeddedPostgres.at(Path(scratch))
        postgres.start()
        try:
            found = measure_server(
                postgres, encoder, places.home, sentences, sizes or _SIZES, requests, lambda said: show_progress(said)
            )
        finally:
            postgres.remove()
    show_progress("done", ends_line=True)
    if not alone:
        asked = questions(sentences, requests // 2)
        for size in _BESIDE:
            found.append(measure_folder(places.home, sentences, size, requests // 4, asked))
            if PROGRAM.is_file():
                folder = places.models / settings.memory.encoder
                found.append(measure_mem0(PROGRAM, folder, sentences, size, asked, requests // 4))
        if not PROGRAM.is_file():
            warn(f"mem0 is not in {PROGRAM}, so it is left out; `make .venv-clients/mem0/.installed` installs it.")
    result = summary(found)
    rows: list[tuple[str, ...]] = [
        ("store", "memories", "writes/s", "p50 ms", "p95 ms", "recalls/s", "p50 ms", "p95 ms", "MB")
    ]
    for one in found:
        values = [value for kind in (one.writes, one.recalls) for value in (kind.per_second, kind.p50_ms, kind.p95_ms)]
        size = f"{one.megabytes:,.0f}" if one.megabytes else ""
        rows.append((one.name, f"{one.memories:,}", *(f"{value:,.1f}" for value in values), size))
    answer(
        as_json,
        result,
        *table(rows, right=tuple(range(1, 9))),
        f"With the most memories, a recall takes {result['recall_ratio']} times as long as with the fewest, "
        f"and a write {result['write_ratio']} times.",
    )
    raise SystemExit(0 if max(result["recall_ratio"], result["write_ratio"]) <= AIM else 1)
