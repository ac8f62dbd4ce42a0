"""Files with a head that describe something to use: agents, commands and skills.

One reader for all of them, so that each has the same limits and says the same about a file that cannot be used.
"""

from __future__ import annotations

import os
from pathlib import Path

from reverie.instructions.withheld import why_withheld
from reverie.memory.frontmatter import Frontmatter, split
from reverie.regular_files import read_head

MAX_BYTES = 100_000


def read_with_head(path: Path, what: str, project: Path | None = None) -> Frontmatter | str:
    """Returns the text with its head, or one sentence that says why `what` cannot be used.

    `project`: the file belongs to this project and may not lead to anything that the project must not read.
    """
    if project is not None:
        real, root = os.path.realpath(path), os.path.realpath(project)
        if not Path(real).is_relative_to(root):
            return f"{path}: leads out of the project and is not read."
        if why := why_withheld(real, root):
            return f"{path}: leads to {real}, which {why}, and is not read."
    try:
        data = read_head(path, MAX_BYTES + 1)
    except OSError as error:
        return f"{path}: {what} cannot be read: {error.strerror or error}."
    if len(data) > MAX_BYTES:
        return f"{path}: {what} may have {MAX_BYTES:,} bytes; shorten it, or move details to other files."
    try:
        return split(data.decode("utf-8"))
    except UnicodeDecodeError:
        return f"{path}: not UTF-8 text, so {what} is left out; save it as UTF-8."
