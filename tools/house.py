"""The size of the house: lines of code per package, and their ceilings in tests/house.toml.

    python tools/house.py            prints both
    python tools/house.py --write    writes the lines as the new ceilings

`tests/test_architecture.py` fails if a package is over its ceiling, or far below it.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOUSES = ("src/reverie", "bench")
CEILINGS = ROOT / "tests" / "house.toml"
TOP = "(top)"
"""The modules that are in no package."""
SLACK, LEAST_SLACK = 0.02, 20
"""How far below its ceiling a package may be: this part of it, or so many lines."""
_HEAD = """# The most lines of code per package. `python tools/house.py` prints them beside the lines there are.
# Code was removed: lower the ceiling (`python tools/house.py --write`). Raise one only with a reason in the commit.
"""


def lines_of(house: Path) -> dict[str, int]:
    """The lines of all modules, by package."""
    lines = Counter[str]()
    for path in house.rglob("*.py"):
        parts = path.relative_to(house).parts
        lines[parts[0] if len(parts) > 1 else TOP] += path.read_text(encoding="utf-8").count("\n")
    return dict(lines)


def ceilings() -> dict[str, dict[str, int]]:
    """The most lines per package, by house."""
    return tomllib.loads(CEILINGS.read_text("utf-8"))


def wrong(house: str, lines: dict[str, int], most: dict[str, int]) -> list[str]:
    """What does not fit, and what to do."""
    found = list[str]()
    for package in sorted({*lines, *most}):
        has, may = lines.get(package, 0), most.get(package, 0)
        what = f"{house}, {package}: {has:,} lines, and the ceiling is {may:,}."
        if has > may:
            found.append(f"{what} Remove code; or raise it in tests/house.toml and say in the commit why.")
        elif has < may - max(SLACK * may, LEAST_SLACK) or not has:
            found.append(f"{what} Lower it, so that it does not grow again: python tools/house.py --write")
    return found


def main() -> int:
    lines = {house: lines_of(ROOT / house) for house in HOUSES}
    if "--write" in sys.argv[1:]:
        tables = "".join(
            f'\n["{house}"]\n' + "".join(f'"{package}" = {count}\n' for package, count in sorted(packages.items()))
            for house, packages in lines.items()
        )
        CEILINGS.write_text(_HEAD + tables, "utf-8")
    known = ceilings() if CEILINGS.exists() else {}
    for house, packages in lines.items():
        print(f"{house:<16}{'lines':>9}{'ceiling':>9}")
        for package, count in sorted(packages.items(), key=lambda item: -item[1]):
            print(f"{package:<16}{count:>9,}{known.get(house, {}).get(package, 0):>9,}")
        print(f"{'total':<16}{sum(packages.values()):>9,}{sum(known.get(house, {}).values()):>9,}\n")
    problems = [text for house in HOUSES for text in wrong(house, lines[house], known.get(house, {}))]
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
