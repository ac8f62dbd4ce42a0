"""What a line of an index states: where it stands, and where more is to be read, is nothing that must be kept."""

from __future__ import annotations

import pytest

from reverie.offline.consolidate.index_rows import read_rows


@pytest.mark.parametrize(
    ("line", "states"),
    [
        ("see the file kiln.md for details", ""),
        ("see kiln.md", ""),
        ("more in the file", ""),
        ("item 4 of the long list", ""),
        ("note: entry 12 of this huge index", ""),
        ("(meta) checked 2025-02-03, okay (reviewed by nightly-job)", ""),
        ("last verified 2024-01-05, good, still open", ""),
        ("last verified with the blue probe only", "Last verified with the blue probe only"),
        ("see the file loom.md for what the weavers want", "See the file loom.md for what the weavers want"),
        ("see kiln.md, but use port 8443 since May", "See kiln.md, but use port 8443 since May"),
        ("number 4 shaft is bent: do not use it", "Number 4 shaft is bent: do not use it"),
    ],
)
def test_book_keeping_is_no_content(line: str, states: str) -> None:
    _, below = read_rows(f"- [Kiln](kiln.md) — hot\n  - {line}\n")
    assert below.states == states
