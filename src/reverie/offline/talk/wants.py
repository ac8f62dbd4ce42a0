"""What the user wants with a message: one of a few things a librarian can distinguish, in five languages.

By the form of the sentence, never by its subject. In doubt it is a question. It is an order only by its
literal words at the beginning: never if it denies, quotes, reports or asks.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from reverie.offline.talk.orders import TICKED, is_doubtful, is_negated, ordered_commands
from reverie.parsing import LONGEST_MESSAGE
from reverie.quick import dataclass
from reverie.text.patterns import late


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep this."""

    text: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget what is known about this."""

    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """Run these commands, one after the other."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unsure:
    """Perhaps an order: to run these commands, or without any to forget something."""

    commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WhatIsKnown:
    """What does memory hold? `about` is empty for all of it."""

    about: str


@dataclass(frozen=True, slots=True)
class LastTime:
    """What was said in the session before this one?"""


@dataclass(frozen=True, slots=True)
class Delegate:
    """Let several agents do these at once."""

    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """What is this project?"""


@dataclass(frozen=True, slots=True)
class Greeting:
    """Hello, or who are you."""


@dataclass(frozen=True, slots=True)
class Thanks:
    """Only politeness."""


@dataclass(frozen=True, slots=True)
class Told:
    """A statement, not a question."""

    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """Something to make or change, which needs a model that thinks."""

    text: str


@dataclass(frozen=True, slots=True)
class Lookup:
    """A question, or words to look for."""

    text: str


Want: TypeAlias = (
    Remember
    | Forget
    | Run
    | Unsure
    | WhatIsKnown
    | LastTime
    | Delegate
    | Overview
    | Greeting
    | Thanks
    | Told
    | Work
    | Lookup
)

_POLITE = (
    r"(?:(?:please|hey|hi|hello|ok(?:ay)?|so|and|now|then|also|btw|by the way|can you|could you|would you|bitte"
    r"|kannst du|könntest du|por favor|puedes|podrías|请|請|麻烦|ちょっと)[,、，:\s]*)*"
)


def _begins(words: str) -> re.Pattern[str]:
    return late(rf"^[\s¡]*{_POLITE}(?:{words})", re.IGNORECASE)


_REMEMBER = _begins(
    r"(?:always )?remember(?: that| this| to|:|,)? |(?:take (?:a )?note|make a note|note down|note)(?: that| of|:|,) ?"
    r"|keep in mind(?: that|:|,)? |(?:don['’]t|do not|never) forget(?: that|:|,)? |save (?:this|that)(?: down)?:? "
    r"|merk(?:e)? dir(?:,? dass|[:,])? ?|behalte?,? dass |denk(?:e)? (?:bitte )?daran[:,]? ?(?:dass )?"
    r"|vergiss (?:bitte )?nicht[:,]? ?(?:dass )?|notier(?:e)?[:,]? |recuerda(?: que|:)? |acuérdate de que "
    r"|no (?:te )?olvides(?: de)?(?: que|:)? |ten en cuenta que |anota(?: que|:)? |记住|記住|记下|请记|記得|记得|别忘了"
    r"|不要忘记|覚えておいて(?:ください)?[:、]?|覚えて(?:ください)?[:、]"
)
_BARE = late(r"\bremember $", re.IGNORECASE)
_NAMED_ONLY = late(r"(?:wh(?:at|o|ich|ere|en|y|ose)(?:ever)?|how|everything|anything|all)\b", re.IGNORECASE)
"""A clause that names what to keep and does not say it."""
_REMEMBER_JA = late(
    r"^(?P<text>.{4,}?)(?:[、,]?(?:ことを|と|って|を)?(?:覚えておいて|記憶して|メモして)(?:ください|ね)?[。!！]?)$"
)
_FORGET = _begins(
    r"forget (?:about |that |what (?:i|we) said about |the memory (?:about|of) |everything about )?"
    r"|stop remembering (?:that )?|delete the memor(?:y|ies) (?:about|of) "
    r"|vergiss\b(?! (?:bitte )?nicht)(?: bitte)?,? ?(?:dass |alles über |das mit )?|olvida (?:que |lo de |todo sobre )?"
    r"|olvídate de (?:que |lo de )?|忘记(?!了)|忘掉(?!了)"
)
_QUOTED = (">", "+", "-", "|", "#", "「", "『", '"', "“")
_FORGET_JA = late(r"^(?P<text>.{2,}?)(?:のこと)?(?:を|は)?忘れて(?:ください|ね|いい)?[。!！]?$")
_RUN = late(
    r"\b(?:run|execute|start|try|führe?|starte|ejecuta|corre|lanza)\b|运行|執行|执行|実行|走らせて|跑一下",
    re.IGNORECASE,
)
_BARE_RUN = _begins(r"(?:run|execute|ejecuta|运行|执行)[:：]?\s*")
_SHELL_LINE = late(r"^\s*[$!]\s*(\S.*)$")
_COMMAND = late(r"^[A-Za-z0-9_./~-]+(?: +[^\s?？]+)*$")
_ENGLISH = late(
    r"\b(?:the|a|an|it|them|this|that|these|those|all|my|our|your|every|tests?|server|again|and|away|into|out|der|die"
    r"|das|los|las)\b|吗|嗎|了",
    re.IGNORECASE,
)
_KNOWN = late(
    r"^\W*(?:(?:so|and|ok|hey)[, ]+)*(?:what (?:do|did) you (?:know|remember|have (?:saved|stored|in memory))"
    r"|what(?:['’]s| is| have you got| do you have) in (?:your |the )?memory|what have you (?:learned|learnt|saved"
    r"|kept)|(?:show|list)(?: me)? (?:your |the |all |my )*memor(?:y|ies)|do you (?:know|remember) anything"
    r"|was weißt du|was hast du (?:dir )?gemerkt|woran erinnerst du dich|qué (?:sabes|recuerdas)|你(?:知道|记得"
    r"|記得)(?:些)?什么|你(?:都)?记住了什么|何を覚えて)(?P<rest>.*)$",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT = late(r"\b(?:about|of|on|über|von|sobre|de)\s+(?P<what>.+?)\W*$|关于(?P<zh>.+?)的?\W*$", re.IGNORECASE)
_LAST = late(
    r"\b(?:last (?:time|session|conversation|chat)|previous (?:session|conversation|chat)|(?:did|were) we (?:talk"
    r"|discuss|do|work|leave off|doing|working)\w*(?: about| on)?(?: (?:yesterday|before|earlier))?\W*$|where (?:did"
    r"|were) we (?:leave|stop)\w*|letztes mal|letzte (?:sitzung|unterhaltung)|zuletzt gemacht|la última (?:vez|sesión"
    r"|conversación)|sesión anterior)\b|上次|上一次|上回|前回|この前",
    re.IGNORECASE,
)
_OVERVIEW = late(
    r"\b(?:(?:this|the) (?:project|repo(?:sitory)?|codebase|program|app|folder|directory)|(?:dieses|das) (?:projekt"
    r"|repo)|(?:este|el) (?:proyecto|repositorio))\b|这个(?:项目|仓库)|このプロジェクト|このリポジトリ",
    re.IGNORECASE,
)
_GENERAL = late(
    r"^\W*(?:(?:so|and|ok|hey)[, ]+)*(?:what(?:['’]s| is| does| do we have)?|tell me about|describe|explain"
    r"|give me an overview|was (?:ist|macht|tut)|worum geht es|qué (?:es|hace)|de qué trata)\b|^.{0,8}(?:是什么|做什么"
    r"|介绍)|(?:何ですか|とは)",
    re.IGNORECASE,
)
_DELEGATE = late(
    r"^\s*(?:please )?(?:send|have|let|ask|use|start|lass|schicke?|pide a|manda)\b[^:：]{0,60}\b(?:agents|forks"
    r"|agenten|agentes)\b[^:：]{0,40}[:：]\s*(?P<tasks>.+)$|^\s*in parallel[:：]\s*(?P<more>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_GREETING = late(
    r"^\W*(?:hi|hello|hey|good (?:morning|evening|afternoon|day)|greetings|yo|howdy|hallo|guten (?:tag|morgen|abend)"
    r"|servus|moin|hola|buen(?:os|as) (?:días|tardes|noches)|你好|您好|嗨|こんにちは|おはよう(?:ございます)?"
    r"|こんばんは)(?:\s+(?:there|reverie|you|all))?\W*$",
    re.IGNORECASE,
)
_WHO = late(
    r"\b(?:who|what) are you\b|\bwhat can (?:you|i) (?:do|ask)|\bwhat do you do\b|\bhow (?:do|can) (?:you"
    r"|i use you) work|^\W*help(?: me)?\W*$|\bare you (?:an? )?(?:ai|llm|model|gpt|claude|chatgpt|real|human|bot)\b"
    r"|\bwer bist du\b|\bwas kannst du\b|\bquién eres\b|\bqué puedes hacer\b|你是谁|你能做什么|你会什么|あなたは誰"
    r"|何ができ",
    re.IGNORECASE,
)
_THANKS = late(
    r"^\W*(?:(?:thanks?(?: you)?|thx|ty|cheers|great|perfect|nice|cool|ok(?:ay)?|got it|good|fine|bye|goodbye|see you"
    r"|yes|no|sure|danke(?: schön| dir)?|super|tschüss|gracias|vale|adiós|muchas|谢谢|多谢|好的|好|再见"
    r"|ありがとう(?:ございます)?|了解|はい)[\s,!.]*(?:so much|a lot|you|very much|all)?[\s,!.]*)+\W*$",
    re.IGNORECASE,
)
_WORK = _begins(
    r"(?:fix|write|implement|refactor|add|create|change|rename|delete|remove|translate|rewrite|review|debug|optimi[sz]e"
    r"|generate|build|update|improve|convert|migrate|port|clean up|set up|make|solve|design|draft|compose|summari[sz]e"
    r"|schreibe?|behebe?|erstelle?|ändere?|füge|lösche?|übersetze?|baue?|korrigiere?|fasse?|escribe|arregla|crea|cambia"
    r"|añade|borra|traduce|corrige|implementa|resume)\b|(?:帮我)?(?:写|修复|修改|实现|创建|添加|删除|翻译|重构|优化"
    r"|总结)"
)
_WORK_JA = late(
    r"(?:書いて|修正して|直して|作って|実装して|追加して|削除して|翻訳して|変更して|要約して)(?:ください|ね)?\W*$"
)
_SPEAKER = late(
    r"\b(?:i|i['’]m|my|we|we['’]re|our|ich|wir|mein|unser|yo|mi|nosotros|nuestr[oa]s?)\b|我|我们|私|僕|弊社", re.I
)
_RULE = late(
    r"^\W*(?:no[,.! ]|always\b|never\b|don['’]t\b|do not\b|stop\b|instead\b|prefer\b|use\b|from now on\b|nein[,.! ]"
    r"|immer\b|nie\b|nunca\b|siempre\b|不要|别|以后|总是|いつも|必ず)",
    re.IGNORECASE,
)
_ASKING = late(
    r"[?？]\s*$|^\W*(?:(?:so|and|ok|hey|please)[, ]+)*(?:what|which|where|when|who|whose|why|how|is|are|was|were|do"
    r"|does|did|can|could|should|would|will|has|have|tell|show|find|list|look|search|explain|read|open|give|was"
    r"|welche[rsnm]?|wo|wann|wer|warum|wie|gibt|zeig|suche?|qué|cuál|dónde|cuándo|quién|por qué|cómo|busca|muestra)\b"
    r"|吗[?？。]?$|什么|哪|怎么|为什么|谁|多少|何|どこ|いつ|誰|なぜ|どう|ですか|ますか",
    re.IGNORECASE,
)
_QUESTION = late(r"[^.!?。！？\n]*(?:[?？]|[吗嗎呢か][。\s]*(?:\n|$))|.*[?？]$", re.DOTALL)
"""Its first or last sentence is a question."""
_KEPT_NOT = late(
    r"(?:(?:das|dies|es|so|bitte|mir|this|that|it|esto|eso)\s+)*(?:nicht|not|nie|never|kein\w*)[.!,\s]*(?:dass\b"
    r"|that\b|$)",
    re.IGNORECASE,
)


def read_want(text: str) -> Want:
    """What the message wants. The order matters: what must not be mistaken comes first."""
    said = text.strip()[:LONGEST_MESSAGE]
    asks = bool(_ASKING.search(said))
    if commands := _commands(said):
        return Run(commands)
    if (sent := _DELEGATE.match(said)) and not is_negated(re.split("[:：]", said)[0]):
        tasks = tuple(part.strip(" -*\n") for part in re.split(r"[;；\n]", sent["tasks"] or sent["more"]))
        if found := tuple(task for task in tasks if task):
            return Delegate(found)
    if _THANKS.match(said):
        return Thanks()
    if _GREETING.match(said) or _WHO.search(said):
        return Greeting()
    if not _QUESTION.match(said):
        if kept := _kept(said):
            return Told(said) if _KEPT_NOT.match(kept) else Remember(kept)
        if dropped := _dropped(said):
            return Unsure() if is_doubtful(dropped) else Forget(dropped)
    ticked = tuple(found.strip() for found in TICKED.findall(said))
    if ticked and not _QUESTION.match(said) and not _WORK.match(said) and _RUN.search(TICKED.sub(" ", said)):
        if is_negated(said) and (_RULE.match(said) or not asks):
            return Told(said)
        if not asks:
            return Unsure(ticked)
    if known := _KNOWN.match(said):
        about = _ABOUT.search(known["rest"])
        return WhatIsKnown((about["what"] or about["zh"] or "").strip() if about else "")
    if asks and _LAST.search(said):
        return LastTime()
    if _OVERVIEW.search(said) and _GENERAL.search(said) and len(said) < 80:
        return Overview()
    if _WORK.match(said) or _WORK_JA.search(said):
        return Work(said)
    if not asks and (_SPEAKER.search(said) or _RULE.search(said)) and len(said.split()) + said.count("，") > 2:
        return Told(said)
    return Lookup(said)


def _commands(said: str) -> tuple[str, ...]:
    """Commands to run: between backquotes where running is asked for, after `$` or `!`, or bare after `run`."""
    if shell := _SHELL_LINE.match(said):
        is_text = "\n" in said or (said[0] == "!" and is_negated(said))
        return () if is_text else (shell[1].strip(),)
    if ordered := ordered_commands(said):
        return ordered
    bare = _BARE_RUN.match(said)
    rest = said[bare.end() :].strip() if bare else ""
    if rest and _COMMAND.match(rest) and not _ENGLISH.search(rest) and not is_doubtful(rest) and rest[-1] not in ".!":
        return (rest,)
    return ()


def _kept(said: str) -> str:
    found = _REMEMBER.match(said)
    if found:
        kept = said[found.end() :].strip(" :：,，、")
        return "" if _BARE.search(found[0]) and _NAMED_ONLY.match(kept) else kept
    ja = None if said.startswith(_QUOTED) else _REMEMBER_JA.match(said)
    return ja["text"].strip() if ja else ""


def _dropped(said: str) -> str:
    found = _FORGET.match(said)
    if found:
        return said[found.end() :].strip(" :：,，.。!")
    ja = None if said.startswith(_QUOTED) else _FORGET_JA.match(said)
    return ja["text"].strip() if ja else ""
