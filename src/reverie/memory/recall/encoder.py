"""A sentence encoder without torch: a folder of the BERT family (config, tokenizer, safetensors) that numpy runs on one
thread, because recall runs next to the agent's work. The `semantic` extra brings numpy, tokenizers and safetensors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias
from weakref import WeakValueDictionary

from reverie.errors import MissingExtra, UserError
from reverie.parsing import load_json
from reverie.paths.installed import pip_install
from reverie.paths.places import check_name
from reverie.plugins import ENCODERS, Plugin, find_plugin, guarded
from reverie.regular_files import LARGEST, read_regular_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]

WEIGHTS: Final = "model.safetensors"
TOKENIZER: Final = "tokenizer.json"
CONFIG: Final = "config.json"
MINILM: Final = "minilm"
"""The encoder that `reverie models add` downloads, and that recall uses unless the settings name another."""
DEFAULT_TOKENS: Final = 256
BATCH_TOKENS: Final = 2_048


class SentenceEncoder(Protocol):
    """Turns texts into unit vectors. Packages can bring their own (`reverie.encoders`)."""

    identity: str
    """Changes with the weights: only vectors of the same identity can be compared."""

    def encode(self, texts: Sequence[str]) -> Floats:
        """One row per text."""
        ...


class Encoder:
    """Turns texts into unit vectors; their dot product says how close the meanings are."""

    def __init__(self, folder: Path) -> None:
        """`MissingExtra` if the libraries are not installed, `UserError` if the folder is not such an encoder."""
        self.folder = folder
        config = _config(folder)
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = float(config.get("layer_norm_eps", 1e-12))
        self._first_token = _pools_first_token(folder)
        self._tokenizer = _tokenizer(folder)
        self._weights = _weights(folder)
        self.identity = identity(folder)
        """Changes with the weights: only vectors of the same identity can be compared."""

    def encode(self, texts: Sequence[str]) -> Floats:
        """One row per text. The end of a very long text is not read."""
        import numpy as np
        from threadpoolctl import threadpool_limits

        if not texts:
            return np.zeros((0, self._weights["embeddings.word_embeddings.weight"].shape[1]), np.float32)
        tokens: list[list[int]] = [list(found.ids) for found in self._tokenizer.encode_batch(list(texts))]
        with threadpool_limits(limits=1, user_api="blas"):
            return np.concatenate([self._forward(batch) for batch in _batches(tokens)])

    def _forward(self, batch: Sequence[Sequence[int]]) -> Floats:
        """All tokens of a batch go through the dense layers in one product; only attention separates the texts."""
        import numpy as np

        weights = self._weights
        ends = np.cumsum([len(ids) for ids in batch]).tolist()
        spans = list(zip([0, *ends[:-1]], ends, strict=True))
        ids = np.concatenate([np.asarray(ids, np.int64) for ids in batch])
        places = np.concatenate([np.arange(len(ids)) for ids in batch])
        x = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][places]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        x = self._normalise(x, "embeddings.LayerNorm")
        for layer in range(self._layers):
            at = f"encoder.layer.{layer}."
            seen = self._attention(x, at, spans)
            x = self._normalise(self._dense(seen, f"{at}attention.output.dense") + x, f"{at}attention.output.LayerNorm")
            inner = _gelu(self._dense(x, f"{at}intermediate.dense"))
            x = self._normalise(self._dense(inner, f"{at}output.dense") + x, f"{at}output.LayerNorm")
        pooled = np.stack([x[a] if self._first_token else x[a:b].mean(axis=0) for a, b in spans])
        return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), np.float32(1e-9))

    def _attention(self, x: Floats, at: str, spans: Sequence[tuple[int, int]]) -> Floats:
        import numpy as np

        query, key, value = (self._dense(x, f"{at}attention.self.{part}") for part in ("query", "key", "value"))
        out = np.empty_like(x)
        scale = np.float32(1 / math.sqrt(x.shape[1] / self._heads))
        for a, b in spans:
            q, k, v = (part[a:b].reshape(b - a, self._heads, -1).transpose(1, 0, 2) for part in (query, key, value))
            scores = (q @ k.transpose(0, 2, 1)) * scale
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            out[a:b] = (scores @ v).transpose(1, 0, 2).reshape(b - a, -1)
        return out

    def _dense(self, x: Floats, name: str) -> Floats:
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normalise(self, x: Floats, name: str) -> Floats:
        import numpy as np

        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(self._epsilon))
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


_open = WeakValueDictionary[str, Encoder]()
"""Those in use: the conversations of one process share the weights."""


def open_encoder(models_dir: Path | None, name: Path | str) -> SentenceEncoder:
    """An encoder by its folder, by its name in the home, or by the name that an installed package gave it. `UserError`
    if there is none."""
    folder = name if isinstance(name, Path) else models_dir / check_name(name, "model name") if models_dir else None
    if folder is not None and folder.is_dir():
        weights = folder / WEIGHTS
        key = f"{weights} {weights.stat().st_mtime_ns if weights.is_file() else 0}"
        found = _open.get(key)
        if found is None:
            found = _open[key] = Encoder(folder)
        return found
    if isinstance(name, Path) or name == MINILM:
        raise UserError(f"There is no sentence encoder; `reverie models add {MINILM}` downloads one.")
    plugin = find_plugin(ENCODERS, name)
    if plugin is None:
        raise UserError(f"There is no sentence encoder {name!r}, and no installed package offers one (memory.encoder).")
    return _OthersEncoder(plugin)


class _OthersEncoder:
    """The encoder of a package. What it returns is checked, and an error says whose it is."""

    def __init__(self, plugin: Plugin) -> None:
        self._whose = plugin.whose
        self._encoder: Any = plugin()
        with guarded(self._whose):
            self.identity = str(self._encoder.identity)

    def encode(self, texts: Sequence[str]) -> Floats:
        import numpy as np

        with guarded(self._whose):
            rows = np.asarray(self._encoder.encode(list(texts)), np.float32)
            if rows.ndim != 2 or len(rows) != len(texts):
                raise ValueError(f"{rows.shape} is not one row per text")
            return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-9))


def identity(folder: Path) -> str:
    """A short name for these weights, from the size and both ends of the file."""
    path = folder / WEIGHTS
    digest = hashlib.blake2b(str(path.stat().st_size).encode(), digest_size=12)
    with path.open("rb") as file:
        digest.update(file.read(1 << 16))
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        digest.update(file.read())
    return digest.hexdigest()


def _batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[Sequence[int]]]:
    batch: list[Sequence[int]] = []
    size = 0
    for ids in tokens:
        if batch and size + len(ids) > BATCH_TOKENS:
            yield batch
            batch, size = [], 0
        batch.append(ids)
        size += len(ids)
    yield batch


def _gelu(x: Floats) -> Floats:
    """x·Φ(x), with Abramowitz and Stegun's 7.1.26 for the error function (numpy lacks it); good to 2e-7."""
    import numpy as np

    a = np.abs(x) * np.float32(0.70710678)
    t = 1 / (1 + np.float32(0.3275911) * a)
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = (tail * np.exp(-a * a)).astype(np.float32)
    return np.where(x >= 0, x * (1 - tail / 2), x * tail / 2).astype(np.float32)


def _config(folder: Path) -> Mapping[str, Any]:
    missing = [name for name in (CONFIG, TOKENIZER, WEIGHTS) if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"{folder}: not a sentence encoder, {' and '.join(missing)} missing; name a folder that has them."
        )
    config: Mapping[str, Any] = _json(folder / CONFIG)
    if config.get("model_type") != "bert" or config.get("hidden_act", "gelu") != "gelu":
        raise UserError(
            f"{folder / CONFIG}: model_type {config.get('model_type')!r} cannot be run here; use an encoder of the BERT"
            " family."
        )
    return config


def _json(path: Path) -> Any:
    try:
        return load_json(read_regular_text(path, LARGEST))
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); fetch the encoder again.") from error


def _pools_first_token(folder: Path) -> bool:
    path = folder / "1_Pooling" / CONFIG
    return path.is_file() and bool(_json(path).get("pooling_mode_cls_token"))


def _tokenizer(folder: Path) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _missing(error) from error
    limit = folder / "sentence_bert_config.json"
    most = int(_json(limit).get("max_seq_length", DEFAULT_TOKENS)) if limit.is_file() else DEFAULT_TOKENS
    tokenizer: Any = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.enable_truncation(most)
    return tokenizer


def _weights(folder: Path) -> dict[str, Floats]:
    try:
        import numpy as np
        import safetensors.numpy
    except ImportError as error:
        raise _missing(error) from error
    loading: Any = safetensors.numpy
    loaded: dict[str, Any] = loading.load_file(folder / WEIGHTS)
    return {name.removeprefix("bert."): np.asarray(value, np.float32) for name, value in loaded.items()}


def _missing(error: ImportError) -> MissingExtra:
    return MissingExtra(f"The semantic tier needs {error.name}; install it with `{pip_install('semantic')}`.")
