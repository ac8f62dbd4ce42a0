"""A sentence encoder of two layers with invented weights: small enough to make in a test, real enough to be run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

_WORDS = "the boiler heater is replaced repaired in march roof slates keys office bell garden beds red ink"
WORDS = _WORDS.split()
WIDTH, INNER, HEADS, LAYERS = 16, 32, 4, 2


def write_encoder(folder: Path, *, seed: int = 1, model_type: str = "bert") -> Path:
    """Writes config, tokenizer and weights to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": model_type, "hidden_act": "gelu", "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
        "hidden_size": WIDTH, "layer_norm_eps": 1e-12,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    vocabulary = {word: n for n, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    cls, sep = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]"))
    special = {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": [cls, {"Sequence": {"id": "A", "type_id": 0}}, sep],
                           "pair": [], "special_tokens": special},
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    save_file(weights(len(vocabulary), seed), folder / "model.safetensors")
    return folder


def weights(words: int, seed: int) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(seed)

    def made(*shape: int) -> np.ndarray:
        return chance.normal(0, 0.4, shape).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": made(words, WIDTH),
        "embeddings.position_embeddings.weight": made(512, WIDTH) * np.float32(0.1),
        "embeddings.token_type_embeddings.weight": made(2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for n in range(LAYERS):
        at = f"encoder.layer.{n}."
        for name, shape in {
            "attention.self.query": (WIDTH, WIDTH), "attention.self.key": (WIDTH, WIDTH),
            "attention.self.value": (WIDTH, WIDTH), "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER),
        }.items():  # fmt: skip
            found[f"{at}{name}.weight"] = made(*shape)
            found[f"{at}{name}.bias"] = made(shape[0])
        norms += [f"{at}attention.output.LayerNorm", f"{at}output.LayerNorm"]
    for name in norms:
        found[f"{name}.weight"] = 1 + made(WIDTH) * np.float32(0.1)
        found[f"{name}.bias"] = made(WIDTH) * np.float32(0.1)
    return found
