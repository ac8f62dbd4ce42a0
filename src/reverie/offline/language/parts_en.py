"""Parts that English speech formulas are made of: verbs of requests, roles of people, what may follow “when you”."""

from __future__ import annotations

from typing import Final

NOT_NOW: Final = (
    r"(?:'?re\b|are\b|get\b|got\b|finish|have\b|had\b|can\b|could\b|see\b|want\b|like\b|were\b|did\b|said\b"
    r"|do(?:ne)?\b|need\b"
    r"|think\b|know\b|come back|find\b|run into|hit\b|start\b|begin\b)"
)
IN_THIS_TASK: Final = (
    r"(?:see (?!(?:some|any)thing else)|(?<=if you )need\b"
    r"|(?:notice|spot|encounter|find|have|had|can|could|want|get|got|like|are|were|think|know|hit|run|did|do|come)\b)"
)
"""After “if you”, with things of a kind: what may turn up in the task at hand."""
MAKE: Final = (
    r"(?:write|make|open|create|send|give|show|draft|produce|post|generate|do(?! not|n't)|touch|print|build|add"
    r"|answer|suggest|run)"
)
PLAIN_VERB: Final = (
    r"add|cherry-pick|adjust|apply|ask|bring|build|bump|calculate|change|check|clean|clear|close|collect|combine"
    r"|commit|compare|compute|continue|convert|copy|create|debug|delete|deploy|describe|disable|do"
    r"|download|draw|drop|enable|explain|extend|extract|fetch|fill|find|finish|fix|generate|get|give|go"
    r"|handle|help|implement|improve|include|increase|inline|insert|install|investigate|keep|kill|lets"
    r"|let's|load|look|make|merge|migrate|move|open|paste|plot|polish|prepare|print|proceed|propose|pull"
    r"|push|put|read|rebase|rebuild|recalculate|redo|reduce|refactor|regenerate|reload|remove|rename"
    r"|reopen|reorder|repair|repeat|replace|replot|reproduce|rerun|reset|resolve|restart|restore|retry"
    r"|return|revert|rewrite|rollback|save|see|send|shorten|show|skip|solve|split|squash|start|stop|submit"
    r"|suggest|summari[sz]e|swap|switch|take|tell|throw|tidy|translate|trim|try|turn|undo|uninstall|use"
    r"|validate|verify|vectori[sz]e|walk|write"
)
NOUN_OR_VERB: Final = (
    r"benchmark|call|count|design|diff|document|draft|export|format|hide|import|list|mark|measure|mock"
    r"|order|patch|plan|port|profile|render|review|roll|run|scale|scan|search|set|sort|spin|stash|sum"
    r"|support|sync|tag|test|trace|tune|update|upgrade|upload|work|wrap|zip"
)
OBJECT: Final = (
    r"(?= (?:the|an?|it|this|that|them|these|those|all|every|each|both|my|our|your|me|us|on the|on it|only|some|any|\d+"
    r"|again|[`'\"/.\-]))"
)
VERB: Final = rf"(?:(?:{PLAIN_VERB})\b(?!,)|(?:{NOUN_OR_VERB})\b(?:{OBJECT}|$))"
NOT_ROLE: Final = (
    r"(?!(?:bit|user|number|matter|other|another|better|later|former|newer|older|sucker|believer|over|per|never"
    r"|ever|after"
    r"|under|longer|slower|faster|happier|for|or|nor|different|moment|comment|document|current|recent|present|patient"
    r"|independent|important|want|went|sent|meant|constant|server|folder|parameter|error|computer)\b)"
)
ROLE: Final = (
    rf"(?:{NOT_ROLE}\w{{2,}}(?:er|or|ant|ent|ist|ian|eer|man|woman|smith|yst)|actuary|admin|apprentice|architect"
    rf"|ceo|cfo|cto|chef"
    r"|clerk|coach|cook|counsel|dba|dean|dev|devops|eng|executive|expert|freelance|guy|head|hobbyist|intern|judge"
    r"|lab tech"
    r"|lead|mechanic|medic|midwife|native|newbie|noob|novice|nurse|paralegal|person|phd(?: student)?|pilot|pm|postdoc"
    r"|principal|qa|salesperson|sysadmin|scholar|secretary|amateur|sre|steward|surveyor|trainee|undergrad|vet|member"
    r"|attorney)"
)
CONDITION: Final = (
    r"(?:\w*-?colou?r-?\s?blind|blind|deaf|dyslexic|left-handed|visually impaired|hard of hearing|autistic|adhd"
    r"|bilingual"
    r"|retired|self-taught|based in|located in|native|remote|part-time|self-employed|freelance|solo|on-?call"
    r"|new to|new at"
    r"|new here|fluent|responsible for|in charge of|studying|learning|training (?:as|to)|building this"
    r"|taking (?:this|a|the) "
    r"(?:course|class|bootcamp)|working (?:as|at|in|on the|for|nights|from)|from the|by (?:trade|training))"
)
AILMENT: Final = (
    r"(?:dyslexia|adhd|autism|aphasia|low vision|poor eyesight|rsi|carpal tunnel|arthritis|migraines?"
    r"|hearing loss|tinnitus|tremors?"
    r"|colou?r (?:vision|blindness)|epilepsy|photosensitivity|a (?:hearing|visual|reading) (?:impairment|disability))"
)

NOT_NO: Final = (
    r"(?:problem|idea|need|one|worries|longer|wait|way|more|matter|rush|thanks|i|it|that|this|the|we|you|clue"
    r"|doubt|reason|luck|harm|hurry|not|just|please|its|they|he|she|there|what|why|but|and|so|a|an|don|do|let"
    r"|lets|my|in|is|use|if|on|for|then|new|such)\b"
)
STAFF: Final = (
    r"boss|manager|supervisor|advisor|professor|client|customer|auditor|reviewer|editor|lawyer|accountant"
    r"|colleague|team|board|journal"
    r"|regulator|court|publisher|landlord|doctor|director|principal|coach|partner|investor|vendor|contractor"
    r"|designer|wife|husband|committee|council|tester"
)
PEOPLE: Final = (
    r"team|tester|customer|client|user|people|nobody|no one|everyone|everybody|someone|somebody|boss|manager|management"
    r"|ceo|cfo|cto|vp|legal|compliance"
    r"|auditor|reviewer|editor|student|patient|colleague|junior|senior|designer|design|ops|sales|marketing"
    r"|support|finance|partner|reader|board"
    r"|journal|regulator|lawyer|accountant|investor|intern|contractor|vendor|supplier|court|judge|publisher"
    r"|printer|helpdesk|audience|guest"
    r"|kids|parents|half the \w+|the (?:whole|entire|rest of the) \w+|whole team|they|he|she"
    r"|(?-i:[A-Z][a-z]{2,}(?:'s \w+)?)"
)
NAME: Final = r"\b(?-i:[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)?)"
OPENER: Final = r"(?:ok(?:ay)?,? |so,? |and |but |hm+,? |well,? |then |look, |listen, )?"

DIRECTIVE: Final = (
    rf"(?:always|never|don'?t|do not|you (?:should|must|may|can|draft|ask|show)|make|let|{VERB}"
    r"|(?!it\b|the\b|this\b|that\b|we\b|i\b|they\b|there\b|he\b|she\b|nothing\b|everything\b|some\b|all\b|an?\b"
    r"|is\b|what\b|how\b)"
    r"[a-z]+ (?:the|an?|it|them|me|every|each|all|in|on|with|my|our|to) )"
)
