"""Parts that English speech formulas are made of: verbs of requests, roles of people, what may follow “when you”."""

from __future__ import annotations

from typing import Final

NOT_NOW: Final = (
    r"(?:'?re\b|are\b|get\b|got\b|finish|have\b|had\b|can\b|could\b|see\b|want\b|like\b|were\b|did\b|said\b"
    r"|do(?:ne)?\b|need\b"
    r"|think\b|know\b|come back|find\b|run into|hit\b|start\b|begin\b)"
)
MAKE: Final = (
    r"(?:write|make|open|create|send|give|show|draft|produce|post|generate|do|touch|print|build|add|answer|suggest|run)"
)
PLAIN_VERB: Final = (
    r"add|adjust|apply|ask|bring|build|bump|calculate|change|check|clean|clear|close|collect|combine"
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
    r"(?= (?:the|an?|it|this|that|them|these|those|all|every|each|both|my|our|your|me|us|on|out|for|through|with"
    r"|up|in|to|what|how"
    r"|whether|if|again|only|some|any|\d+|[`'\"/.\-]))"
)
VERB: Final = rf"(?:(?:{PLAIN_VERB})\b|(?:{NOUN_OR_VERB})\b(?:{OBJECT}|$))"
ROLE: Final = (
    r"(?:\w+(?:ist|ian|eer|ologist|ographer|keeper|maker|smith|trician)|accountant|actuary|admin(?:istrator)?"
    r"|advis[eo]r|agent"
    r"|analyst|apprentice|architect|artist|assistant|attorney|author|auditor|baker|barrister|bookkeeper|broker"
    r"|builder|buyer"
    r"|captain|carpenter|ceo|cfo|cto|chef|clerk|coach|composer|conductor|consultant|contractor|controller|cook"
    r"|coordinator"
    r"|counsel|curator|dba|dean|designer|developer|dev|devops|director|doctor|driver|economist|editor|electrician|eng"
    r"|engineer|epidemiologist|executive|expert|farmer|founder|freelancer|gardener|geologist|grad student|head|hobbyist"
    r"|historian|intern|inspector|instructor|inventor|investigator|journalist|judge|junior|lab tech|lawyer|lead|leader"
    r"|lecturer|librarian|maintainer|manager|mathematician|mechanic|medic|midwife|musician|novice|nurse|officer"
    r"|operator"
    r"|owner|paralegal|paramedic|partner|pharmacist|phd(?: student)?|photographer|physician|pilot|planner|pm"
    r"|postdoc|principal"
    r"|producer|professor|programmer|psychologist|publisher|qa|researcher|reviewer|salesperson|scholar|scientist"
    r"|secretary"
    r"|senior|sergeant|solicitor|sre|steward|student|supervisor|surgeon|surveyor|sysadmin|teacher|technician"
    r"|tester|therapist"
    r"|trader|trainer|trainee|translator|tutor|undergrad|vet|veteran|volunteer|welder|writer|beginner|newbie|noob"
    r"|amateur"
    r"|one-(?:wo)?man|person|guy|member|native)"
)
CONDITION: Final = (
    r"(?:\w*-?colou?r-?\s?blind|blind|deaf|dyslexic|left-handed|visually impaired|hard of hearing|autistic|adhd"
    r"|bilingual"
    r"|retired|self-taught|based in|located in|native|remote|part-time|self-employed|freelance|solo|on-?call"
    r"|new to|new at"
    r"|new here|fluent|responsible for|in charge of|studying|learning|training (?:as|to)|building this"
    r"|working (?:as|at|in|on"
    r" the|for|nights|from)|from the)"
)

NAME: Final = r"\b(?-i:[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)?)"
OPENER: Final = r"(?:ok(?:ay)?,? |so,? |and |but |hm+,? |well,? |then )?"

DIRECTIVE: Final = (
    rf"(?:always|never|don'?t|do not|you (?:should|must|may|can|draft|ask|show)|make|let|{VERB}"
    r"|(?!it\b|the\b|this\b|that\b|we\b|i\b|they\b|there\b|he\b|she\b|nothing\b|everything\b|some\b|all\b|an?\b"
    r"|is\b|what\b|how\b)"
    r"[a-z]+ (?:the|an?|it|them|me|every|each|all|in|on|with|my|our|to) )"
)
