"""What measurements share: the recordings they are given, a home of their own, and the files of a memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from reverie.errors import UserError
from reverie.models.base import Capabilities, ModelEvent, Request
from reverie.settings import Settings, load_settings
from reverie.types import JsonObject


@dataclass(frozen=True, slots=True)
class Silent:
    """Stands for a model: it has a name and capabilities, and never answers."""

    name: str
    capabilities: Capabilities

    async def stream(self, request: Request) -> AsyncGenerator[ModelEvent]:
        raise NotImplementedError("nothing is sent while this is measured")
        yield

    async def close(self) -> None:
        pass


def recordings(paths: Sequence[Path], pattern: str = "*.jsonl") -> list[Path]:
    """These transcripts, and those anywhere in these folders. Raises UserError if a path does not exist."""
    found = list[Path]()
    for path in paths:
        if not path.exists():
            raise UserError(f"{path} does not exist; name a folder of transcripts, or transcripts (*.jsonl).")
        found += sorted(path.rglob(pattern)) if path.is_dir() else [path]
    return found


@contextmanager
def own_home(overrides: JsonObject | None = None) -> Generator[tuple[Path, Settings]]:
    """A working folder, and settings with a home and a memory beside it: all of it is gone afterwards."""
    with TemporaryDirectory(prefix="reverie-lab-") as folder:
        cwd, home = Path(folder) / "work", Path(folder) / "home"
        cwd.mkdir()
        settings = load_settings(cwd, overrides=overrides)
        places = type(settings.places)(home=home, user_home=home, runtime=settings.places.runtime)
        yield cwd, replace(settings, places=places, memory=type(settings.memory)())


def memory_files(root: Path) -> dict[str, Path]:
    """Every visible `.md` file of a directory, by relative path."""
    named = ((path.relative_to(root), path) for path in sorted(root.rglob("*.md")) if path.is_file())
    return {name.as_posix(): path for name, path in named if not any(part.startswith(".") for part in name.parts)}
