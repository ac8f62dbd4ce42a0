"""Counts old-fashioned English in README, docs, help, errors, prompts, docstrings and comments, and shows where it is.

`python tools/plain_english.py` prints one line per kind of text: words, hits, hits per 1,000 words. It exits with 1 when
a kind has more than LIMIT. `--places` prints every hit with its place and what to write instead; paths narrow the
search. The list below grows: add a pattern when a reader stumbles.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 0.5
PER_THING = (
    "answer|call|case|child|command|day|entry|file|folder|fork|item|line|machine|memory|message|minute|model|name|note|"
    "page|paragraph|path|person|pattern|process|project|question|record|request|result|round|row|run|scenario|second|"
    "sentence|server|session|set|test|thread|tool|topic|turn|user|word|write"
)

# What to look for, and what to write instead.
PATTERNS: tuple[tuple[str, str], ...] = (
    (r"need not|needn't", "does not have to"),
    (r"anew\b", "again"),
    (r"dear(?:er|est)\b(?! user)", "more expensive"),
    (r"(?<!there )(?<!here )(?:is|are|was|were|be|being) no (?!longer|more than|less than|fewer|doubt|good|\d)\w+", "is not a …"),
    (r"(?:seen?|unseen|known|there|so|works?|runs?|counts?|exists?|is|are|holds?) no more\b(?! than)", "no longer"),
    (r"(?:take|takes|taken|took|taking|mistaken?) (?:\w+ ){1,3}for (?:an?|no|the|his|its|one)\b", "treat as"),
    (rf"(?:one|two|three|four|five|ten|a|\d+(?:\.\d+)?|once|twice|words?|lines?|bytes?|tokens?|times?) an? (?:{PER_THING})\b(?<!a day)(?<!a second)(?<!a minute)", "per"),
    (rf"(?:one|a|\d+) (?:line|file|entry|word|request|row|message|record|answer|page|name|token|case|folder)s? an? (?:{PER_THING})", "per"),
    (r"may stand|stands? (?:once|there|in|on|at|under|between|before|behind|after|alone|first|last|still)", "is"),
    (r"lies? (?:in|on|at|under|beside|between|below|above|there|where)", "is"),
    (r"belongs? into", "belongs in"),
    (r"(?:is|are|was|were|be|been|being|gets?) told(?! to\b)", "is reported; the user is told that"),
    (r"(?:is|are|was|were|be|been) told to the", "is reported to"),
    (r"told (?:apart|of|at once)|tell (?:apart|of)|tells (?:apart|of)", "distinguish, report"),
    (r"without (?:it|its|their|them|anybody|anyone|the \w+) noticing", "unnoticed; silently"),
    (r"also (?:where|if|when|while|though|without|with no)", "even where, even if"),
    (r"(?:shall|shalt|ought|lest|albeit|amid(?:st)?|amongst|whilst|unto|hither(?:to)?|thither|whence|hence(?:forth)?|heretofore)\b", "plain words"),
    (r"(?:there|here|where)(?:of|in|by|upon|unto|fore)\b(?<!therefore)(?<!Therefore)(?<!thereby)(?<!hereby)", "plain words"),
    (r"(?:seldom|oft|thrice|naught|nought|aught|betimes|forthwith|yonder|begets?|beheld|bade|foregoing|aforesaid)\b", "plain words"),
    (r"upon", "on"),
    (r"(?:knows?|takes?|asks?|reads?|writes?|keeps?|finds?|sees?|loses?|sends?|makes?|gives?|gets?|costs?|bears?|hears?|says?|trusts?|touches|calls?|leaves|moves|breaks?) no(?:thing|body|ne)? (?!longer|more|fewer|less|sense|difference|network|result|output|error|content)\w+", "does not … any"),
    (r"nor (?:is|are|does|do|did|was|were|has|have|can|may|will)", "and … not"),
    (r"for (?:want|lack) of", "without"),
    (r"(?:in|at) (?:vain|its stead|their stead|whole)", "plain words"),
    (r"as (?:yet|ever|of old|it stands|they stand)\b", "still; unchanged"),
    (r"of (?:late|old)\b", "lately"),
    (r"(?:half|twice|thrice) as (?:many|much|long) again", "50% more"),
    (r"a good many|full many|many a\b", "many"),
    (r"but for\b|save for|save that|all but one", "except for"),
    (r"such (?:a|an) one|such as (?:are|is|were|was)\b", "one like it"),
    (r"(?:holds?|held) good", "is true"),
    (r"(?:a|any|the) time to come|(?:times?|days?) to come", "future"),
    (r"(?:comes?|came|come) (?:to pass|of it|about)\b", "happens"),
    (r"(?:what|who|where|when|how) (?:soever|ever so)", "plain words"),
    (r"be (?:it|they|he)\b", "whether"),
    (r"(?:is|are|was|were) (?:nothing|nobody|none) (?:but|of)", "only"),
    (r"nothing but|none but|nobody but|no one but", "only"),
    (r"(?:is|are) (?:unseen|unheard|unasked|unnamed|untold|unmoved)\b", "plain words"),
    (r"(?:goes|go|went) (?:unseen|unsaid|untold|unasked)", "plain words"),
    (r"(?:a|the) (?:dearth|multitude|host) of", "few, many"),
    (r"it is (?:said|told|held|meant) that", "say who"),
    (r"(?:says?|said|saying) so\b", "reports it"),
    (r"(?:does|do|did) so (?:no more|anew|again and again)", "plain words"),
    (r"letters?(?= (?:to|from|of|between|for) (?:an?|the|each|other) (?:agent|lead|teammate|team|session|peer)s?)", "message"),
    (r"correspondence|the post\b(?! request)|by post", "messages"),
    (r"(?:mayn't|mustn't needs|must needs|would fain|had rather|were it|had it not|should it)\b", "if it"),
    (r"(?<!as )(?<!so )(?:much|far|long) as it (?:may|might|would)", "plain words"),
    (r"(?:one's|another's) (?:own|like)", "your own"),
    (r"of (?:them|those|these) (?:one|two|three|none|many|some)\b", "two of them"),
    (r"(?:to|in|by|with|for|from|at|of) whom", "who … to"),
    (r"thereupon|whereupon|hereupon", "then"),
    (r"to the (?:last|end) (?:byte|word|letter)", "exactly"),
    (r"(?:wherever|whenever|whoever|whatever|whichever) (?:may|might|should|it be|they be)", "plain words"),
    (r"by (?:far and|and) (?:wide|by|large)", "plain words"),
    (r"(?:at|in) (?:one|a) (?:go|stroke)", "at once"),
    (r"(?:yields?|bears?|makes?) (?:witness|mention)", "mentions"),
    (r"(?:has|have|had) (?:naught|to do with it)", "plain words"),
    (r"and (?:the like|so forth|such)\b", "and similar"),
)  # fmt: skip
KINDS = ("README", "docs", "help and errors", "docstrings", "comments")
# Lists of words and shapes that the code looks for are data, not our prose.
DATA = ("src/reverie/offline/language", "src/reverie/text/dates", "src/reverie/text/word_lists")
ONE = re.compile("|".join(f"(?P<p{n}>\\b(?:{pattern}))" for n, (pattern, _) in enumerate(PATTERNS)), re.IGNORECASE)
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"``[^`]*``|`[^`\n]*`")
NOT_PROSE = re.compile(r"\\[bswdnSWDB(\[]|\(\?[:P=!<]|\[\^|^\S*$|^[^a-z]*$|</?\w+[ >/]")
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


@dataclass(frozen=True)
class Text:
    kind: str
    path: Path
    line: int
    text: str


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("paths", nargs="*", help="files or folders; default: README.md, docs and src")
    parser.add_argument("--places", action="store_true", help="show every hit and what to write instead")
    arguments = parser.parse_args()
    words = dict.fromkeys(KINDS, 0)
    hits = dict.fromkeys(KINDS, 0)
    for text in texts(
        [Path(path).resolve() for path in arguments.paths] or [ROOT / "README.md", ROOT / "docs", ROOT / "src"]
    ):
        plain = CODE.sub(" code ", text.text)
        words[text.kind] += len(WORD.findall(plain))
        for hit in ONE.finditer(plain):
            hits[text.kind] += 1
            if arguments.places:
                line = text.line + plain.count("\n", 0, hit.start())
                instead = PATTERNS[int((hit.lastgroup or "p0")[1:])][1]
                around = " ".join(plain[max(0, hit.start() - 30) : hit.end() + 30].split())
                print(f"{shown(text.path)}:{line}: “{' '.join(hit.group().split())}” ({instead}): … {around} …")
    rates = {kind: 1000 * hits[kind] / words[kind] for kind in KINDS if words[kind]}
    for kind, rate in rates.items():
        print(f"{kind:16}{words[kind]:7,} words {hits[kind]:5} hits {rate:6.2f} per 1,000")
    over = [kind for kind, rate in rates.items() if rate > LIMIT]
    if over:
        print(
            f"More than {LIMIT} per 1,000 words in: {', '.join(over)}. See them: python tools/plain_english.py --places"
        )
    return 1 if over else 0


def shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def texts(paths: list[Path]) -> Iterator[Text]:
    for path in paths:
        files = sorted(file for file in path.rglob("*") if file.suffix in (".md", ".py")) if path.is_dir() else [path]
        for file in files:
            if str(shown(file)).startswith(DATA):
                continue
            source = file.read_text("utf-8")
            if file.suffix == ".md":
                kind = "README" if file.name == "README.md" else "docs"
                yield Text(kind, file, 1, FENCE.sub(lambda fence: "\n" * fence.group().count("\n"), source))
            else:
                yield from of_python(file, source)


def of_python(file: Path, source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    docstrings: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            constant = node.body[0].value  # pyright: ignore[reportAttributeAccessIssue]
            docstrings.add(id(constant))
            # The docstring of a command is its help.
            kind = "help and errors" if getattr(node, "decorator_list", None) and "cli" in file.parts else "docstrings"
            yield Text(kind, file, constant.lineno, constant.value)
    skipped = docstrings | {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            text = node.value
        else:
            continue
        if text.count(" ") >= 2 and not NOT_PROSE.search(text):
            yield Text("help and errors", file, node.lineno, text)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith(("# pyright", "# noqa", "# fmt", "# type")):
            yield Text("comments", file, token.start[0], token.string[1:])


if __name__ == "__main__":
    sys.exit(main())
