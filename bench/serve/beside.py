"""The same memories and questions beside the server: in a memory directory, and in mem0 (without its model, with our
encoder, in an environment of its own)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.serve.run import Measured, Times
from bench.serve.texts import write_memories
from reverie.errors import ReverieError
from reverie.library.memory import Memory
from reverie.memory.topic_file import TopicFile
from reverie.parsing import load_json

PROGRAM: Final = Path(".venv-clients/mem0/bin/python")
"""Where `make integration` installs mem0."""


def measure_folder(home: Path, sentences: list[str], size: int, requests: int, questions: Sequence[str]) -> Measured:
    """A memory directory with `size` files: the library writes and recalls, one after the other."""

    async def run(root: Path) -> Measured:
        for number, (_, text) in enumerate(write_memories(sentences, size)):
            (root / f"project_{number:x}.md").write_text(text)
        async with Memory.open(root, cwd=root, home=home) as memory:
            await memory.recall(questions[0])  # reads all files once
            recalls = list[float]()
            for question in questions[:requests]:
                began = time.perf_counter()
                await memory.recall(question)
                recalls.append(time.perf_counter() - began)
            writes = list[float]()
            for number, (_, text) in enumerate(write_memories(sentences[::-1], requests)):
                topic = TopicFile.parse(text)
                began = time.perf_counter()
                await memory.remember(f"{topic.body.strip()} ({number})")
                writes.append(time.perf_counter() - began)
        return Measured("folder", size, _alone(writes), _alone(recalls))

    with TemporaryDirectory(prefix="reverie-lab-") as scratch:
        root = Path(scratch) / "memory"
        root.mkdir()
        return asyncio.run(run(root))


def measure_mem0(
    program: Path, encoder: Path, sentences: list[str], size: int, questions: Sequence[str], requests: int
) -> Measured:
    """mem0 with `infer=False` in a process of its own."""
    with TemporaryDirectory(prefix="reverie-lab-") as scratch:
        given = {
            "encoder": str(encoder),
            "folder": scratch,
            "texts": [text for _, text in write_memories(sentences, size + requests)],
            "size": size,
            "questions": list(questions[:requests]),
        }
        source = Path(__file__).parent / "programs" / "mem0_times.py"
        done = subprocess.run(
            [program.absolute(), str(source)],
            input=json.dumps(given),
            capture_output=True,
            text=True,
            cwd=scratch,
            env={
                "PATH": os.defpath,
                "HOME": scratch,
                "MEM0_DIR": scratch,
                "MEM0_TELEMETRY": "False",
                "OPENAI_API_KEY": "-",
            },
        )
    if done.returncode:
        raise ReverieError(f"mem0 failed: {done.stderr.strip().splitlines()[-1:]}")
    said = load_json(done.stdout.splitlines()[-1])
    return Measured("mem0", size, _alone(said["writes"]), _alone(said["recalls"]))


def _alone(taken: Sequence[float]) -> Times:
    return Times.of(taken, len(taken) / sum(taken))
