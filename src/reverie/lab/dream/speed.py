"""How long a dream of the embedded model takes over many files: a directory made up for it, in a home of its own."""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from reverie.memory.opening import open_memory
from reverie.models.registry import EMBEDDED
from reverie.paths import Places
from reverie.session.session import Session
from reverie.settings import load_settings
from reverie.text.folding import word_set
from reverie.types import JsonObject

_THINGS = ("pump", "valve", "tank", "belt", "fan", "lamp", "gate", "door", "panel", "meter", "motor", "sensor")
_WORDS = sorted(
    word_set(
        """anchor basket candle drawer engine feather garden hammer island jacket kettle ladder magnet needle orchard
        pillow quarry ribbon saddle tunnel umbrella vessel wagon yard zinc amber bridge copper donkey ember forest
        glacier harbour ivory jungle kernel lantern meadow nectar otter pepper quartz river silver timber urchin
        velvet willow xenon yeast"""
    )
)
_LINES = 12


def measure_speed(files: int) -> JsonObject:
    """Seconds of a first dream over so many files (one in ten a copy), and of a second one that has nothing to do."""
    with tempfile.TemporaryDirectory(prefix="reverie-lab-") as folder:
        return asyncio.run(_measure(Path(folder), files))


async def _measure(folder: Path, files: int) -> JsonObject:
    cwd, home = folder / "work", folder / "home"
    cwd.mkdir()
    settings = load_settings(cwd)
    places = type(settings.places)(home=home, user_home=home, runtime=settings.places.runtime)
    settings = replace(settings, places=places, memory=type(settings.memory)())
    memory = open_memory(settings, Places.of(cwd, settings)).directory.root
    memory.mkdir(parents=True, mode=0o700)
    size = _made_up(memory, files)
    found: JsonObject = {"files": files, "bytes": size}
    for which in ("first_s", "second_s"):
        async with await Session.open(cwd=cwd, settings=settings, model=EMBEDDED, interactive=False) as session:
            assert session.dreaming is not None, "there is a memory"
            began, worked = time.perf_counter(), time.process_time()
            task = session.dreaming.start()
            await task.wait()
            found[which] = round(time.perf_counter() - began, 3)
            found[which.replace("_s", "_cpu_s")] = round(time.process_time() - worked, 3)
            found[which.replace("_s", "")] = task.result.outcome if task.result is not None else "failed"
    found["left"] = len(list(memory.glob("*.md"))) - 1
    return found


def _sentence(thing: str, number: int, line: int) -> str:
    """One of many sentences, always the same for the same thing and line."""
    some = [_WORDS[(number * 31 + line * 17 + step * 7 * (number % 5 + 1)) % len(_WORDS)] for step in range(4)]
    return f"The {some[0]} of the {thing} is {some[1]} by {some[2]} {line + number % 50} and the {some[3]}."


def _made_up(memory: Path, files: int) -> int:
    """Writes the directory; how many bytes it holds."""
    size = 0
    index: list[str] = []
    for number in range(files):
        of = number - 1 if number % 10 == 9 else number  # a copy of the one before it, with a word more
        thing = f"{_THINGS[of % len(_THINGS)]} {of}"
        body = "".join(f"{_sentence(thing, of, line)}\n" for line in range(_LINES))
        body += "" if of == number else "Its spare parts lie in the cellar.\n"
        name = f"project_{thing.replace(' ', '_')}{'' if of == number else '_copy'}.md"
        head = f"---\nname: {thing.title()}\ndescription: All about the {thing}\ntype: project\n---\n\n"
        (memory / name).write_text(head + body)
        index.append(f"- [{thing.title()}]({name}) — all about it\n")
        size += len(head + body)
    (memory / "MEMORY.md").write_text("".join(index))
    return size
