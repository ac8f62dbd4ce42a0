"""Runs in the environment of mem0: adds texts with `infer=False`, asks questions, and prints how long each took. The
encoder is ours, so that only the stores differ."""

import json
import sys
import time
from pathlib import Path

from mem0 import Memory

sys.path.insert(0, str(Path(__file__).parents[3] / "src"))
from reverie.memory.recall.encoder import Encoder
from reverie.parsing import load_json


class OurEncoder:
    def __init__(self, folder: str) -> None:
        self._encoder = Encoder(Path(folder))

    def embed(self, text, memory_action=None):
        return self._encoder.encode([text])[0].tolist()

    def embed_batch(self, texts, memory_action=None):
        return self._encoder.encode(list(texts)).tolist()


given = load_json(sys.stdin.read())
store = {"path": f"{given['folder']}/qdrant", "embedding_model_dims": 384, "on_disk": True}
memory = Memory.from_config(
    {
        "vector_store": {"provider": "qdrant", "config": store},
        "history_db_path": f"{given['folder']}/history.db",
    }
)
memory.embedding_model = OurEncoder(given["encoder"])


def add(text):
    began = time.perf_counter()
    memory.add([{"role": "user", "content": text}], user_id="lab", infer=False)
    return time.perf_counter() - began


def ask(question):
    began = time.perf_counter()
    memory.search(question, filters={"user_id": "lab"}, top_k=5)
    return time.perf_counter() - began


for text in given["texts"][: given["size"]]:
    add(text)
recalls = [ask(question) for question in given["questions"]]
writes = [add(text) for text in given["texts"][given["size"] :]]
print(json.dumps({"writes": writes, "recalls": recalls}))
