"""Whether a message is an order to run commands, and whether a word in it makes an order doubtful. In five languages.

An order is a message of known words only: polite words, an imperative, commands between backquotes. Every other word
makes it something else (a question, a report, a quotation, a condition), so these need no rules of their own.
"""

from __future__ import annotations

import re

from reverie.text.patterns import late

TICKED = late(r"`([^`\n]+)`")
_COMMAND, _ITEM = "\0", "\1"
_ITEMS = late(r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]", re.MULTILINE)
_AND_TELL = late(
    r"(?:[,\s]\s?(?:and|then|und|y)\s(?:then\s)?(?:show|tell|give|zeige?|sage?|muestra|muéstra|di|da)\s?(?:me"
    r"|mir)\b[^\0.!?。！？\n`\"]{0,60})[.!\s]*$",
    re.IGNORECASE,
)
_WORDS = late(
    r"""(?P<command>\0)
      | (?P<asked>(?:can|could)\syou\b | (?:would|will)\syou\splease\b | kannst\sdu\b | könntest\sdu\b
        | puedes\b | podrías\b
        | 你能 | 你可以 )
      | (?P<verb>(?:run|execute|start|try|launch|führe?|starte|lass|ejecutar?|corre|correr|lanzar?)\b
        | 运行 | 運行 | 执行 | 執行 | 跑 )
      | (?P<final>(?:ausführen|starten|laufen\slassen)\b
        | を?\s?(?:実行して|走らせて)(?:ください|下さい|くれ|ね|よ)? )
      | (?P<object>(?:this|these|the|following|commands?|both|den|die|befehle?|folgenden?|el|los|siguientes?
        |comandos?)\b
        | 命令 | 以下 )
      | (?P<plain>(?:please|hey|hi|hello|ok(?:ay)?|so|and|now|then|first|next|also|just|yes|sure|btw|by\sthe\sway|again
        |go\sahead|after\sthat|afterwards|finally|for\sme|once|quickly|thanks|thank\syou
        |bitte|jetzt|dann|danach|zuerst|erst|und|mal|aus|laufen|danke|hallo|nochmal
        |por\sfavor|ahora|luego|primero|después|y|gracias|hola|otra\svez)\b
        | 请 | 請 | 麻烦你? | 麻煩 | 帮我 | 現在 | 现在 | 先 | 然后 | 接着 | 再 | 和 | 一下 | 吧 | 把
        | 谢谢
        | ちょっと | 今 | まず | 次に | それから | と | お願いします )
      | (?P<item>\x01)
      | (?P<gap>[\s,、，;；:：.。!！¡¿&]+)
      | (?P<mark>[?？])
      | (?P<other>.)
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_NOT = late(
    r"\b(?:not|never|no|nor|neither|cannot|dont|nicht|nie|niemals|nein|kein\w*|nunca|jamás|tampoco|pas|jamais)\b"
    r"|n['’]t\b|不|别|別|没|沒|未|勿|ない|なく|ません|禁止",
    re.IGNORECASE,
)
_DOUBT = late(
    r"(?<!\bi )(?<!\bwe )(?<!\byou )\b(?:said|says|told|wrote|asked)\b|\b(?:if|unless|when|whether|should|or)\b"
    r"|\b(?:sagte|sagt|meinte|schrieb|wenn|falls|sobald|ob|oder|dijo|dice|escribió|si|cuando|o)\b|说|說|如果|要是|除非"
    r"|言った|言って|言われ|もし|なら|[?？\"“”„«»「」『』]",
    re.IGNORECASE,
)


def is_negated(text: str) -> bool:
    """Whether something is denied or forbidden in a text, outside of its commands."""
    return _NOT.search(TICKED.sub(" ", text)) is not None


def is_doubtful(text: str) -> bool:
    """Whether a text denies, reports, quotes, asks or sets a condition: then it is not a plain order."""
    return is_negated(text) or _DOUBT.search(text) is not None


def ordered_commands(said: str) -> tuple[str, ...]:
    """The commands between backquotes that a message orders to run; none if it says anything else."""
    commands = tuple(found.strip() for found in TICKED.findall(said))
    if not commands or _COMMAND in said or _ITEM in said:
        return ()
    text = re.sub(r"[ \t]+", " ", _ITEMS.sub(_ITEM, TICKED.sub(_COMMAND, said))).strip()
    kinds = [str(found.lastgroup) for found in _WORDS.finditer(_AND_TELL.sub("", text))]
    kinds = [kind for kind in kinds if kind != "gap"]
    if "mark" in kinds[:-1] or "other" in kinds or kinds[0] == "item":
        return ()
    if kinds[-1] == "mark" and "asked" not in kinds:
        return ()
    begins = kinds.index("command")
    ends = len(kinds) - kinds[::-1].index("command")
    if "verb" in kinds[:begins]:
        return commands if "object" not in kinds[: kinds.index("verb")] else ()
    return commands if "final" in kinds[ends:] else ()
