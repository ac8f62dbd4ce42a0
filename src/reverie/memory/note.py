"""Turns a sentence of the user into a topic file: its type, its name, its description. The rules are plain, so the same
sentence always gives the same file, and the user can overrule each of them. Also names a memory that may be about the
same: it is shown, and decides nothing. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from reverie.errors import UserError
from reverie.memory.taxonomy import MemoryType, Trust, file_name
from reverie.memory.topic_file import TopicFile, body_statements, statements_of
from reverie.parsing import LONGEST_SENTENCE
from reverie.quick import dataclass
from reverie.text.cutting import cut_at, first_outside, shorten
from reverie.text.dates.calendar import add_days, weekday_ahead, weekday_back
from reverie.text.patterns import late
from reverie.text.sameness import similarity
from reverie.text.sentences import capitalize_first, pauses
from reverie.text.word_lists import FUNCTION_WORDS
from reverie.text.words import content_terms

DESCRIPTION_CHARACTERS = 150
TITLE_CHARACTERS = 60
_STEM_WORDS = 6
_SHORT_FORMS = ("im", "ive", "dont", "its", "thats")
_FEWEST = 2
_NEAR = 0.5
"""The shared part of the words of two statements that may be about the same."""

_CONTROL = late(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LEAD = late(
    r"^(?:(?:please|hey|ok(?:ay)?|so)[,\s]+)*(?:(?:remember|note|keep in mind|don't forget|do not forget|fyi|save)\b"
    r"[:,]?\s*)(?:(?:that|this|the fact that)\b[:,]?\s*)?",
    re.IGNORECASE,
)
_BECAUSE = late(r"(?<!\s),?\s+(?:because|since (?=(?:we|it|the|they|i|our)\b))", re.IGNORECASE)
_FEWEST_WORDS = 3
_LINK = late(r"!?\[([^\[\]]+)\]\([^()\s]*\)")
_ADDRESS = late(r"https?://[^\s()<>\[\]\"`]+")
_EMPTIED = late(r"\s*[(<\[\"`]\s*(?:(?:see|at|in|under|here)\b)?[\s:]*[)>\]\"`]", re.IGNORECASE)
"""What is left around an address that was removed."""
_DANGLING = late(r"(?:\s+(?:is|are|was|at|in|on|see|under|here|lives?|found|be|can))+$", re.IGNORECASE)
_MARKS = late(r"\s*(?:(?:#{1,6}|[-*+])\s+|>\s*)*")
_EMPHASIS = late(r"\A(\*{1,3})(?=[^\s*])([^*]+)\1\Z")

_OPENING = late(
    r"^(?:(?:from now on|from here on|going forward|in future|ab jetzt|ab sofort|in zukunft|künftig|please|bitte)\b"
    r"[,:]?\s+|(?:no|nein|ok(?:ay)?|hey|so)[,:]\s+)+(?=\S)",
    re.IGNORECASE,
)
_CLOSING = late(
    r"[,;]\s*(?:ok(?:ay)?|alright|right|please|thanks|thank you|bitte|danke|ja|gut)\s*[?!.]*\s*$", re.IGNORECASE
)
"""Words around a statement that a title does without."""

_NORM = late(
    r"\b(?:always|never|don'?t|do not|avoid|stop|make sure|prefer(?:ably)?|instead of|rather than|must(?:n'?t)?|"
    r"should(?:n'?t)?|no more|only ever|whenever you|when you|next time|from now on|immer|niemals|nie|bitte|"
    r"(?:soll|muss|darf|müss|dürf)(?:e?n|te|ten|st|t)?|statt|anstelle|ab jetzt|künftig|toujours|jamais|siempre|"
    r"nunca)\b|不要|总是|永远|请|してください|しないで|必ず",
    re.IGNORECASE,
)
_ORDER = late(
    r"^(?:(?:please|bitte|just|only|also|and|then|always|never)[,\s]+)*(?:use|run|write|keep|ask|check|commit|put|add|name|"
    r"test|format|explain|answer|be|start|show|read|skip|leave|call|tell|treat|wrap|prefix|sign|squash|rebase|review|talk|"
    r"speak|reply|respond|follow|include|give|indent|describe|document|mention|link|quote|translate|spell|install|pin|mock|"
    r"stick|wait|remove|delete|handle|return|raise|deploy|release|ship|sort|group|split|merge|push|pull|open|close|send|"
    r"save|store|move|rename|replace|update|upgrade|build|compile|lint|type|cache|log|print|count|limit|cut|shorten|list|"
    r"order|number|mark|flag|label|tag|assign|create|make|do|let|try|think|plan|verify|confirm|validate|measure|profile|"
    r"fix|refactor|inline|extract|import|export|copy|paste|look|search|find|choose|pick|take|get|set|turn|switch|enable|"
    r"disable|allow|deny|ignore|exclude|repeat|retry|stay|work|focus|begin|end|finish|avoid|stop|remind|warn|notify|inform|"
    r"propose|suggest|summari[sz]e|separate|combine|compare|convert|prefer|say|see)\b(?!['’]s\b)",
    re.IGNORECASE,
)
_BEFORE_A_VERB = late(
    r"^\S+(?:\s+(?!(?:that|which|what|who|whom|where|if|when|how|why|as|and|after|before|until|unless|once|while)\b)[\w-]+){0,3}\s+"
    r"(?:is|are|was|were|has|have|had|will|would|can|could|lives?|live|needs?|happens?|goes|go|runs?|starts?|ends?)\b",
    re.IGNORECASE,
)
"""“Test reports are in …”: the first word is a noun."""
_ORDER_DE = late(
    r"^(?:(?:und|dann|also|außerdem|nur)\s+)*(?:(?:verwend|benutz|nutz|schreib|antwort|frag|lass|nimm|mach|prüf|zeig|"
    r"erklär|kürz|sortier|trenn|füg|lösch|entfern|ersetz|änder|speicher|setz|stell|beend|sag|sprich|gib|nenn|bau|führ|ruf|"
    r"schick|meld|erinner|formatier|kommentier|dokumentier|committ|installier|vermeid|beacht|denk|bleib|geh|komm|fass|fang|hör|"
    r"wähl|behalt|merk|notier|übersetz|rück|öffn|schließ|verzicht|unterlass)e?|(?:acht|deploy|halt|leg|red|start|such|test|"
    r"warn|wart)e|keine?n?|nicht|niemals|nie|immer|stets)\s",
    re.IGNORECASE,
)
_PERSON = late(
    r"\b(?:i am|i'm|i work|i've|i have (?:been|worked|never|a|no|\d)|i know|i speak|i live|i prefer|i like|i love|"
    r"i hate|i dislike|i don'?t (?:know|like|speak)|i use|i usually|my (?:name|role|job|team|background|goal|title|"
    r"time ?zone|pronouns|editor|native|first language|expertise)|call me|ich bin|ich arbeite|je suis|soy)\b"
    r"|我(?:是|叫|喜欢|的名字)|私は|저는",
    re.IGNORECASE,
)
_SUBJECT_IS_USER = late(
    r"^(?:(?:actually|also|and|but|so|personally|for me|at home|at work|eigentlich|übrigens|privat)[,\s]+)*"
    r"(?:(?:i|ich|je|yo|eu|io)\b(?!/)|j['’]|(?:my|mine|mein(?:e[rnms]?)?|mon|ma|mes|mi|mis|meu|minha|mio|mia)\s"
    r"(?!(?:branch|pr|pull request|change|patch|commit|ticket|task|fix|änderung|aufgabe|zweig|next)\b))",
    re.IGNORECASE,
)
"""What a sentence says about “I” and “my …” is about the user."""
_EVENT = late(
    r"^(?:i|ich)(?:['’]ve| have| habe)?\s+(?:just|already|gerade|eben|schon|will|werde|fixed|refactored|renamed|merged|"
    r"committed|pushed|rebased|bumped|deleted|opened|filed|started|deployed|released)\b"
    r"|^(?:i|ich)\b.*\b(?:today|yesterday|tomorrow|tonight|heute|gestern|morgen|last (?:night|week)|this week)\b",
    re.IGNORECASE,
)
"""Something that the user did or will do once."""
_TO_THE_AGENT = late(
    r"\bi(?:'d| would)? (?:want|like|need|expect) you\b|\bich (?:will|möchte|erwarte|hätte gern), dass du\b",
    re.IGNORECASE,
)
_ELSEWHERE = late(
    r"https?://|\b(?:dashboards?|runbooks?|wiki|confluence|notion|jira|linear|asana|trello|grafana|datadog|sentry|kibana|"
    r"pagerduty|figma|miro|google (?:doc|drive|sheet)s?|sharepoint|slack|discord|teams channel|mailing list|"
    r"servicenow|zendesk|airtable|youtrack|bugzilla|"
    r"issue tracker|(?:tracked|documented|filed|archived|described|posted|listed|published) (?:at|in|on|under)|"
    r"(?:dokumentiert|beschrieben|abgelegt) (?:in|im|unter|auf)|you(?: can)? find|"
    r"findest du|finden sich|the docs (?:are|live)|vault|1password|bitwarden|s3 bucket|"
    r"bucket)\b|(?:^|\s)#[a-z][\w-]{2,}",
    re.IGNORECASE,
)

_DOUBTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        late(
            r"\b(?:lazy|stupid|idiot|incompetent|useless|clueless|annoying|dumb|bad at (?:his|her|their) job)\b", re.I
        ),
        "it judges a person; what they do and want is more useful than what somebody thinks of them",
    ),
    (
        late(
            r"^\W*(?:i |we )?(?:just )?(?:fixed|refactored|renamed|merged|committed|pushed|rebased|bumped|deleted)\b",
            re.I,
        ),
        "it describes a change that git already records; what was surprising about it may be worth more",
    ),
    (
        late(
            r"\b(?:in this (?:conversation|session|chat)|right now|at the moment|currently (?:working|debugging|"
            r"looking)|next step|to-?do:|for now)\b",
            re.I,
        ),
        "it describes the state of this conversation, which will soon change",
    ),
    (
        late(
            r"\b(?:function|class|method|module|endpoint|component|constant)\b.*\b(?:is|are|lives?|defined|implemented|"
            r"declared)\b.*\b(?:in|at)\b.*[\w/]+\.\w{1,4}\b",
            re.I,
        ),
        "the code itself shows it; a search finds it, and stays right when the code changes",
    ),
)

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NEAR_DAYS = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1}
_RELATIVE = late(
    rf"\b(?:(?P<near>{'|'.join(_NEAR_DAYS)})|(?P<lead>on|by|until|till|before|since|from|after|this|next|last) "
    rf"(?P<day>{'|'.join(_DAYS)}))\b(?!\s*\()",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence made into a memory. `file` is the name of a new file; `doubt` is why it may not be worth keeping, as
    the end of a sentence, or empty; `is_titled` means that the title was given, not made."""

    type: MemoryType
    statement: str
    file: str
    topic: TopicFile
    doubt: str
    is_titled: bool = False


@dataclass(frozen=True, slots=True)
class Related:
    """A memory that may be about the same as a new statement. `statement` is its sentence."""

    file: str
    statement: str
    share: float


def make_note(
    text: str, *, today: date, type: MemoryType | None = None, name: str = "", trust: Trust = Trust.CONFIRMED
) -> Note:
    """The memory that the user's text makes; `UserError` if there is nothing to remember. `today` is the user's day:
    `tomorrow` gets its date. A text with its own frontmatter keeps it."""
    text = _CONTROL.sub(" ", text.replace("\r\n", "\n")).strip("\ufeff \t\n")  # they would act on a terminal
    if not text:
        raise UserError("There is nothing to remember: the text is empty.")
    given = TopicFile.parse(text)
    if given.front.present:
        return _from_topic(given, today, type, name, trust)
    asked = _LEAD.sub("", text, count=1).strip() or text
    text = add_dates(text if asked == text else capitalize_first(asked), today)
    first = _first_sentence(text)
    kind = type or classify(text)
    title = shorten(" ".join(name.split()), DESCRIPTION_CHARACTERS) or title_of(capitalize_first(first))
    topic = TopicFile.new(
        name=title,
        description=shorten(first, DESCRIPTION_CHARACTERS),
        type=kind,
        trust=trust,
        body=_body(text, kind),
    )
    return Note(kind, first, _file(kind, name or first), topic, find_doubt(text), bool(name))


def _from_topic(given: TopicFile, today: date, type: MemoryType | None, name: str, trust: Trust) -> Note:
    body = add_dates(given.body.strip(), today)
    first = given.description or _first_sentence(body)
    if not body and not first:
        raise UserError("There is nothing to remember: the text below the frontmatter is empty.")
    kind = type or given.type or classify(f"{first}\n{body}")
    title = shorten(" ".join(name.split()), DESCRIPTION_CHARACTERS) or given.name or title_of(first)
    topic = given.with_changes(
        name=title,
        description=shorten(first, DESCRIPTION_CHARACTERS),
        type=kind,
        trust=trust,
        body=body if body != given.body.strip() else None,
    )
    return Note(kind, first, _file(kind, title), topic, find_doubt(body), bool(name or given.name))


def classify(text: str) -> MemoryType:
    """The most likely type of a text: how to work, about the user, a place elsewhere, else the project."""
    first = _first_sentence(text)
    if _TO_THE_AGENT.search(first) or _is_order(first):
        return MemoryType.REFERENCE if first.lower().startswith(("see ", "read ")) else MemoryType.FEEDBACK
    if _PERSON.search(first) or (_SUBJECT_IS_USER.search(first) and not _EVENT.search(first)):
        return MemoryType.USER
    if _NORM.search(first) and not re.search(r"https?://", first):
        return MemoryType.FEEDBACK
    if _ELSEWHERE.search(text):
        return MemoryType.REFERENCE
    return MemoryType.FEEDBACK if _NORM.search(text) else MemoryType.PROJECT


def _is_order(sentence: str) -> bool:
    """Whether a sentence begins with the verb of an order, and not with a noun that is spelled like one."""
    if _ORDER_DE.search(sentence):
        return True
    return bool(_ORDER.search(sentence)) and not _BEFORE_A_VERB.search(sentence)


def find_doubt(text: str) -> str:
    """Why a text may not be worth remembering, as the end of a sentence; empty if there is no doubt."""
    return next((why for pattern, why in _DOUBTS if pattern.search(text[:LONGEST_SENTENCE])), "")


def add_dates(text: str, today: date) -> str:
    """Adds the date after every day that is named relative to today."""

    def written(found: re.Match[str]) -> str:
        if found["near"]:
            day = add_days(today, _NEAR_DAYS[found["near"].lower()])
        else:
            step = weekday_back if found["lead"].lower() in ("last", "since") else weekday_ahead
            day = step(today, _DAYS.index(found["day"].lower()))
        return f"{found[0]} ({day.isoformat()})"

    return _RELATIVE.sub(written, text)


def title_of(sentence: str) -> str:
    """A short title: the sentence without introduction, reason, addresses and end, cut after a word with content."""
    sentence = _CLOSING.sub("", _LINK.sub(r"\1", sentence[:LONGEST_SENTENCE]))
    if opening := _OPENING.match(sentence):
        sentence = capitalize_first(sentence[opening.end() :])
    reason = _BECAUSE.search(sentence)
    said = cut_at(sentence, reason.start()) if reason is not None and reason.start() else sentence
    bare = _ADDRESS.sub("", said)
    if bare != said:
        bare = _DANGLING.sub("", _EMPTIED.sub("", bare).strip(" :,;—-."))
    bare = bare.strip().rstrip(" :,;—-.!。！") or said
    short = shorten(bare, TITLE_CHARACTERS)
    if short == bare:
        return short
    said = short.rstrip("…").rstrip(" ,;:—-").split(" ")
    while len(said) > _FEWEST_WORDS and said[-1].casefold().strip(",;:") in FUNCTION_WORDS:
        said.pop()
    return " ".join(said).rstrip(" ,;:—-") or short


def _file(kind: MemoryType, title: str) -> str:
    """The file name, from the words that say what it is about. Numbers change, so they are not in the name."""
    plain = title_of(_RELATIVE.sub("", title)).replace("'", "").replace("’", "")
    found = [word for word in re.findall(r"[^\W_]+", plain) if not word.isdigit()]
    telling = [word for word in found if word.casefold() not in FUNCTION_WORDS and word.casefold() not in _SHORT_FORMS]
    return file_name(kind, " ".join((telling or found)[:_STEM_WORDS]))


def _first_sentence(text: str) -> str:
    line = next((line for line in text.splitlines() if line.strip(" #*->\t")), text.strip())
    line = _EMPHASIS.sub(r"\2", _MARKS.sub("", line[: 2 * LONGEST_SENTENCE], count=1).strip())
    ends = [end for end, _ in pauses(line) if _is_sentence(line[:end])]
    return line[: first_outside(line, ends)].strip()[:LONGEST_SENTENCE]


def _is_sentence(text: str) -> bool:
    """Whether a sentence can end here: it has at least three words."""
    return len(text.split()) >= _FEWEST_WORDS or not text.isascii()  # scripts without spaces have no such words


def _body(text: str, kind: MemoryType) -> str:
    """The statement first; below it its reason, if one sentence gives it."""
    if kind in (MemoryType.FEEDBACK, MemoryType.PROJECT) and "\n" not in text and "**" not in text:
        end, then = next(pauses(text), (len(text), len(text)))
        first, rest = text[:end], text[then:]
        said, *why = _BECAUSE.split(first, maxsplit=1)
        if why and why[0].strip() and len(said.split()) > 2 and first_outside(text, [len(said) + 1]):
            parts = [said.rstrip(" ,.") + ".", f"**Why:** {why[0].strip()}", rest.strip()]
            return "\n\n".join(filter(None, parts))
    return text


def find_related(statement: str, memories: Mapping[str, str]) -> Related | None:
    """The memory that a new statement may be about, for a person to look at: the likeness of words decides nothing."""
    terms = _terms(statement)
    if len(terms) < _FEWEST:
        return None
    best: Related | None = None
    for file, text in memories.items():
        lower = text.lower()
        if sum(term in lower for term in terms) < _NEAR * len(terms):
            continue  # of thousands of files, most need no closer look
        for other in statements_of(text):
            others = _terms(other)
            if len(others) < _FEWEST:
                continue
            share = similarity(terms, others)
            if share >= _NEAR and (best is None or share > best.share):
                best = Related(file, other, share)
    return best


def _terms(statement: str) -> frozenset[str]:
    """The words of a statement without its numbers, because a correction changes the numbers."""
    return frozenset(term for term in content_terms(statement) if not any(char.isdigit() for char in term))


def revise(topic: TopicFile, old: str, note: Note) -> TopicFile:
    """Puts the new statement in the place of the old one; the rest of the memory stays."""
    was_whole = len([one for one in statements_of(topic.text) if one != topic.description]) <= 1
    now = note.topic
    if was_whole:
        name = now.name if topic.name == title_of(old) or topic.name.endswith("…") or not topic.name else topic.name
        return topic.with_changes(name=name, description=now.description, trust=now.trust, body=now.body)
    statement = now.body.strip()
    alone = note.statement if len(body_statements(now.text)) == 1 else statement
    body = topic.body.replace(old, statement if old.endswith((".", ";", "!", "?")) else alone.rstrip("."), 1)
    if body == topic.body:
        body = f"{statement}\n\n{topic.body}"
    is_described = topic.description.rstrip(".") in (old.rstrip("."), "")
    is_lead = old in body_statements(topic.text)[:1]
    return topic.with_changes(
        description=now.description if is_described else None, trust=now.trust if is_lead else None, body=body
    )
