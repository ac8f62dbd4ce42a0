"""Dreaming without a model: the index and copies of files are put in order, and no word is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.layers.l6_dreaming.by_code import tidy
from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.loss import loss
from reverie.memory.topic_file import decode
from reverie.session import Session
from tests.layers.dreams import BAKERY, begun, house

HEAD = "---\nname: {0}\ndescription: About {0}\ntype: project\n---\n\n"


def tidied(folder: Path, files: dict[str, str]) -> tuple[dict[str, str], str]:
    place = house(folder, files)
    copy = MemoryCopy.make(place.memory, folder / "copies")
    said = tidy(copy)
    after = {name: decode(data) for name, data in copy.files().items()}
    copy.remove()
    return after, said


def test_a_copy_with_a_little_more_is_joined(tmp_path: Path) -> None:
    body = "The mill stands at the river.\nIt grinds on Tuesdays.\nThe miller is Anselm.\n"
    files = {
        "MEMORY.md": "- [Mill](mill.md) — a\n- [Mill two](mill-two.md) — b\n",
        "mill.md": HEAD.format("Mill") + body,
        "mill-two.md": HEAD.format("Mill two") + body + "- The spare key hangs at the door.\n",
    }
    after, said = tidied(tmp_path, files)
    assert after["mill.md"] == files["mill.md"] + "- The spare key hangs at the door.\n"
    assert after["MEMORY.md"] == "- [Mill](mill.md) — a\n" and "mill-two.md" not in after
    assert "- mill-two.md: joined into mill.md" in said


def test_the_index_is_repaired_and_long_lines_that_repeat_their_file_shrink(tmp_path: Path) -> None:
    told = (
        "The kiln reaches 1200 degrees. It cools for two days. The glaze is kept in the cellar behind the second door. "
        "Orders go to Lena before noon."
    )
    files = {
        "MEMORY.md": f"- [Kiln](project_kiln.md) — {told}\n- [Gone](gone.md) — x\n- [Kiln](project_kiln.md) — again\n",
        "project_kiln.md": HEAD.format("Kiln") + told.replace(". ", ".\n") + "\n",
        "project_clay.md": HEAD.format("Clay") + "Clay comes from Westerwald.\n",
    }
    after, _ = tidied(tmp_path, files)
    assert after["MEMORY.md"] == ("- [Kiln](project_kiln.md) — About Kiln\n- [Clay](project_clay.md) — About Clay\n")
    assert after["project_kiln.md"] == files["project_kiln.md"]


def test_what_is_clean_stays_to_the_byte(tmp_path: Path) -> None:
    clean = {name: text for name, text in BAKERY.items() if name != "project_oven_copy.md"}
    clean["MEMORY.md"] = BAKERY["MEMORY.md"].replace("- [Oven again](project_oven_copy.md) — a copy\n", "")
    after, said = tidied(tmp_path, clean)
    assert after == clean and said == "Nothing had to be changed."


words = ["harbour", "lamp", "violin", "bridge", "granite", "otter", "copper", "thistle", "anchor", "comet", "saddle"]
sentences = st.lists(st.sampled_from(words), min_size=3, max_size=5, unique=True).map(
    lambda some: " ".join(some) + ".\n"
)


@given(
    st.dictionaries(st.sampled_from(["a.md", "b.md", "c.md", "team/d.md"]), st.lists(sentences, max_size=5), min_size=1)
)
def test_no_statement_is_ever_lost(tmp_path_factory: pytest.TempPathFactory, bodies: dict[str, list[str]]) -> None:
    files = {name: HEAD.format(name) + "".join(lines) for name, lines in bodies.items() if lines}
    files["MEMORY.md"] = "".join(f"- [{name}]({name}) — x\n" for name in ("a.md", "b.md", "z.md"))
    after, _ = tidied(tmp_path_factory.mktemp("tidy"), files)
    assert loss(files, after).lost == ()


def test_the_embedded_model_dreams_by_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REVERIE_MEMORY_PATH", str(tmp_path / "memory"))
    place = house(tmp_path, {**BAKERY, "user_mara_copy.md": BAKERY["user_mara.md"]})

    async def run() -> None:
        async with await Session.open(cwd=place.work, model="embedded") as session:
            task = begun(session).start()
            await task.wait(20)
            assert task.result is not None and (task.result.outcome, task.result.way) == ("landed", "code")

    asyncio.run(run())
    assert "user_mara_copy.md" not in place.files and place.files["user_mara.md"] == BAKERY["user_mara.md"]
