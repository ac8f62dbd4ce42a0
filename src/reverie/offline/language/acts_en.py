"""English formulas of speech acts: rules, reasons, praise, and what is not meant. Apostrophes are often left out."""

from __future__ import annotations

import re
from typing import Final

from reverie.offline.language.lexicon import pattern
from reverie.offline.language.parts_en import (
    DIRECTIVE,
    IN_THIS_TASK,
    MAKE,
    NOT_NO,
    NOT_NOW,
    OPENER,
    PEOPLE,
    STAFF,
    VERB,
)

ACTS: Final[dict[str, re.Pattern[str]]] = {
    "standing": pattern(
        rf"(?:^|[,.;:!] ?|\band |\bbut )(?:when(?:ever)?|if) you (?!(?!need)\w+ed\b|{IN_THIS_TASK})[a-z]+"
        r" (?:an?|something|any|anything|another|more)"
        r" [^,.;:]{0,40}?\b(?:give|tell|show|ask|attach|add|leave|include|mention"
        r"|link|cite|send|let|put|keep|mark|write|use|say) (?:me|us|the|it|them|an?|your|my|its|which|what)\b",
        r"\b(?:read[- ]?only|off limits|taboo) (?:for|to) you\b"
        r"|\bnot (?:for you|yours) to (?:touch|change|edit|write)\b",
        r"\b(?:one|two|another|a|my) (?:more )?(?:\w+ )?rules? (?:before|while|when|as|until) [^:.]{2,30}:",
        r"(?:^|[,.;:!] ?|\band |\bbut )nothing (?:gets|goes) \w+ (?:between|without|during|outside|unless)\b",
        rf"\bbefore you (?!{NOT_NOW})[^,.;]{{3,40}} (?:tell|show|ask|warn) me\b",
        r"\b(?:can|could|would) you (?:please )?(?:in (?:the )?future|from now on)\b|\b(?:anything|everything"
        r"|whatever) [\w -]{3,40}"
        r" (?:waits? for|needs?|goes through) (?:me|my (?:ok|okay|approval))\b",
        r"\b(?:for|in|with) (?:all|every|any)(?: one)?(?: of)? your (?!files?\b|changes?\b)\w+|\b(?:lose|drop|break"
        r"|stop|quit) (?:the|that|this"
        r"|your) habit\b|\bno need to (?:ping|tell|warn|check with|wait for) me\b|\bask (?:me )?first,? (?:each"
        r"|every) time\b",
        r"(?:^|[,.;:] ?)next time,? (?!i\b|we\b|it\b|its\b|it\'s\b|the\b|he\b|she\b|they\b|there\b|that\b|this\b"
        r"|around\b|an?\b|round\b"
        r"|is\b|was\b|for\b|on\b|in\b|at\b|maybe\b|my\b|our\b|someone\b|somebody\b)[a-z]+",
        r"\b(?:when(?:ever)?|if) (?:you|i) [^,.;]{3,60}, what (?:i|we) (?:need|want|expect|like)\b",
        r"\bhabits? (?:i|we)(?:\'d)? (?:need|want|would like|like) you to \w+|\bthings? (?:i|we) (?:need"
        r"|want) you to stop doing\b",
        r"\b(?:don\'?t|do not|no) (?!have\b|forget\b|worry\b|know\b|idea\b)[^,.;]{3,60} (?:whenever (?:i|you) \w+"
        r"|when i (?:ask|say|tell|request|send|write|paste|report|mention|give)\b)",
        r"\bgo ahead (?:whenever|any ?time)\b|\bto be (?:asked|consulted|told)\b[^.;]{0,20}\b(?:every time|each time"
        r"|always|first"
        r"|before(?:hand)?)\b",
        r"\b(?:same|that|this) (?:approach|order|way|procedure|pattern|layout|style|format) (?:whenever|every time"
        r"|each time"
        r"|for (?:all|every|any) )|\bthat\'?s how (?:the |our |all )?[\w -]{3,30}s (?:should|must|have to|has to"
        r"|need to) be \w+",
        rf"\b(?:anything|everything|whatever) you(?:\'ll| ever)? {MAKE}\b|^(?:in|for|with|on) (?:the |our |my "
        rf"|all )?[\w /-]{{3,40}}s,? (?:i|we) (?:want|need|prefer|like|use|always|never)\b",
        r"\b(?:never|don\'?t|do not|no) need to ask\b|\bwhen(?:ever)? you (?:suggest|propose|show|write|give"
        r"|explain|send|change|touch)\b[^,.;]{2,40}\b(?:give me|show me|tell me|explain|include|add|mention|put)\b",
        r"\bunless i (?:ask|say|tell|request|explicitly)\b|\balways has been\b|\balways have\b(?= in )"
        r"|\bno exceptions?\b",
        r"\byou (?:can|may) [\w /]{2,30} (?:freely|any ?time|at will|as you like|whenever you like|without asking)\b",
        r"\bdo (?:it|them|this|that) (?:like|this|that)[\w ]* (?:for|with) (?:all|every|any|each)\b"
        r"|\bgood default for (?:all|anything|everything|any)\b",
        r"\bwhen(?:ever)? (?:the|an?|my|your) (?:answer|reply|response|explanation|question|change|fix|task"
        r"|request|message|text|draft|report|review|diff)\b[^,]{2,40}, (?:just|only|no|always|never|please|skip"
        r"|don\'?t|give|show|ask|tell|keep)\b",
        r"(?:^|[,.;] ?)every (?:single )?time\b(?! (?:i|we|you|it|the|he|she|they|a|an)\b)",
        r"\b(?:goes|holds|applies) (?:for|to) (?:everything|anything|all|every|any)\b|\bany day\b"
        r"|\bas a matter of (?:course|principle)\b",
        r"\bwhen (?:something|anything|stuff|things?|it) (?:fails?|breaks?|goes wrong"
        r"|comes? up), (?:please )?(?:tell|show|ask|stop|say|let|give|call|just)\b",
        r"\bfrom (?:now|here|today) on\b|\bfrom today,? (?:please|i|you|we)\b|\b(?:going|moving) forward\b"
        r"|\bhenceforth\b",
        r"(?:^|[,.;:!] ?|\band |\bplease |\bpls |\bso |\bbut )(?:in|for) (?:the )?future\b|\b(?:always|never"
        r"|don'?t|not|please|pls|rule|remember)\b.*\b(?:in|for) (?:the )?future\b",
        r"\bas a (?:general )?rule\b|\brule(?: of thumb)?(?: (?:for|in|on) [^:.]{2,40})?\s?[:=]|\bhouse (?:rule"
        r"|style)s?\b|\bground rules?\b",
        r"\bwhenever (?:you|i) (?!can\b|like\b|want\b|have\b|get\b|are\b|'re\b|feel\b|run\b|try\b|open\b|click\b)",
        rf"\b(?:when|if|before|after|every time|each time) (?:you|i) (?!{NOT_NOW})[^,.;]{{3,70}}[,:] ?(?:please "
        rf"|then |pls |also |just )*{DIRECTIVE}",
        rf"\b(?:when|if) (?:you|i) (?!{NOT_NOW})[^,.;]{{3,70}}\b(?:always|never|please|i want|for me)\b"
        rf"|\b(?:always|never|generally|please)\b[^.;]{{3,70}}\bwhen you (?!{NOT_NOW})\w+",
        r"\b(?:don'?t|do not|never|not) ever\b|\bnever again\b|(?<!,) ever\.\s*$|^ever\b",
        r"\b(?:can|could|would) you (?:please )?stop \w+ing\b|(?:^|[,.:;!] ?|please |pls |and )(?:stop"
        r"|quit) \w+ing\b(?! (?:it|the|that|this)\b)",
        r"\bi (?:do ?n[o']?t|never|don't) want (?:to see |you to |any more |anything )",
        r"(?:^|[,.;:] ?|and |but )(?:in general|generally)\b(?! speaking| not| it| the| they)"
        r"|[,;] (?:please,? )?in general(?: please)?\s*[.!]?$",
        rf"\b(?:any|every|each|all)(?: of)?(?: the| my)? [\w/ -]{{2,30}}? you(?:'ll|'ve| ever)? {MAKE}\b",
        r"\bno [\w-]+(?: [\w-]+)? from you\b",
        r"\byou (?:can|may|should) always\b|\bno need to ask\b",
        r"\b(?:i|we)(?:'d| would)? (?:always|generally|usually|really )?(?:prefer|like) (?:my|our|them|those"
        r"|these|all|it when) ",
        r"\b(?:the|my|our) (?:standing|permanent|general) (?:rule|order|instruction|policy)\b",
        r"\bfor (?:all|any|every) future\b|\bthe next time you\b|(?:^|[,.;] ?)next time,? (?:please|you|ask|use"
        r"|don'?t|do|just|make|check|run|leave|keep|show)\b",
    ),
    "habit": pattern(
        r"(?<!\bcan )(?<!could )(?<!would )(?<!will )(?<!\bit )(?<!they )(?<!\bhas )(?<!have )(?<!\bhad"
        r" )(?<!\bwas )(?<!were )(?<!\bdid )(?<!does )(?<!should )"
        r"(?<!seems to )(?<!that )(?<!which )(?<!\bit's (?=always))(?<!\bits (?=always))(?<!hat's"
        r" (?=always))(?<!hats (?=always))"
        r"(?<!ere's (?=always))(?<!y're (?=always))\b(?:always|never)\b(?! (?:good|nice|great|fun|happy|seems?"
        r"|[a-z]+(?:ed|[^s]s)|looks?|looked"
        r"|happens?|happened"
        r"|had|was|were|got|did|worked|heard|seen|mind)\b)",
        r"\b(?:every single time|at all times|without exception|only ever)\b",
    ),
    "forbids": pattern(
        r"\b(?:can|could|would) you (?:please )?stop \w+ing\b",
        r"(?:^|[,.:;!] ?|\bplease |\band )keep [\w' -]{3,40} (?:out of|away from|off)\b|\bhands off\b|\boff limits\b",
        rf"(?:^|[.:;!] ?|\bplease |\band |\bbut )no (?!{NOT_NO})['\"]?[a-z][\w-]*",
        r"(?:^|[,.:;!(–—-] ?|\bplease |\bpls |\bplz |\band |\bbut |\bso )(?:don'?t|do not|never|stop|avoid"
        r"|no more|leave out)\b",
        r"\byou (?:don'?t|do not|never|must ?n[o']?t|should ?n[o']?t|shouldnt|are not to|can'?t just) \w+",
        r"\b(?:i|we) (?:don'?t|do not|never) want\b|\bplease leave\b.*\b(?:out|alone)\b",
    ),
    "displeased": pattern(
        r"\bdrives? me (?:nuts|crazy|mad|insane|up the wall)\b|\bi only (?:wanted|asked)\b|\buseless\b",
        r"^(?:no|nope|nah|ouch|whoa|woah|wow|ugh|hey|jeez|geez|argh|hmm*|stop|wait|sigh|oof|yikes|sorry but"
        r"|please|wtf|damn)\b(?! problem)",
        r"^(?:roll ?back|revert|undo|take that back|put (?:it|that) back)\b|\bshould(?:\'ve"
        r"| have) been\b(?! (?:fixed|done))",
        r"\bthat'?s (?:not|wrong|exactly what i|the wrong|too)\b|\bnot what i (?:asked|wanted|meant)\b|\bwrong\b",
        r"\bi (?:asked|told|said|meant)(?: you)? (?:for|to|not)\b|\bi only asked\b",
        r"\byou (?:keep|still|always|did (?:that|it|this)|ask me)\b|\b(?:yet |not )?again[.,!]|\btoo (?:long|much"
        r"|verbose|many|wordy)\b",
        r"\bwhy (?:did|do|are|would) you\b|\bi can'?t (?:read|follow|use|work with)\b|\bdoesn'?t help\b"
        r"|\bi keep having to\b",
        r"\bannoy|\bhate\b|\bconfus|!!|\bstop \w+ing\b",
    ),
    "prefers": pattern(
        r"\bi(?:'d| would)? (?:really |much |strongly )?(?:prefer|like|love|hate|dislike|rather)\b(?! to know"
        r"| it\b| that\b|$)",
        r"\bi want (?!to\b)|\bwe want (?!to\b)|\bmy preference\b|\bplease (?:use|keep|write|put|give|leave|always"
        r"|never)\b",
        r"\bi(?:'m| am) (?:fond|not a fan) of\b|\bno need for\b|\bskip the\b",
    ),
    "permits": pattern(
        r"\b(?:want|like|prefer|need) to be (?:asked|consulted|told)\b|\bgo ahead (?:whenever|any ?time|without)\b",
        r"\bonly (?:if|when|after|with|once) (?:i|my|there|we|it)\b",
        r"\byou (?:can|may|don'?t (?:have|need) to|needn'?t|are free to|are allowed to)\b",
        r"\bwithout (?:asking|showing|checking|telling|my (?:ok|okay|approval|permission))\b|\bno need to ask\b",
        r"\bask (?:me )?(?:first|before)\b|\bcheck with me\b|\b(?:that|this) one you ask\b"
        r"|\bshow me [\w ]{3,30} before you\b",
        r"\bi(?:'ll| will)? (?:\w+ )?(?:apply|post|push|merge|send|run|deploy|publish|sign|submit) (?:it|them"
        r"|that|those)\b",
    ),
    "our_way": pattern(
        r"^[\w ,/-]{3,40} here[.!]?$",
        r"\b(?:in|on|at|for) (?:this|our|the) (?:lab|team|group|office|repo|project|game|company|firm|shop|studio"
        r"|kitchen|ward"
        r"|codebase|department|org|house|desk|clinic|practice|plant|school|institute|newsroom|crew)\b",
        r"\baround here\b|\bhere,? we\b|\bpeople here\b|\beveryone here\b|\bhow we do\b|\bthe way we do\b",
        r"\bwe (?:only|always|never|exclusively|strictly) \w+",
        r"\bour (?:convention|policy|style|standard|rule|practice)s?\b|\bis (?:our|the) (?:convention|policy"
        r"|standard|rule)\b",
    ),
    "keep_on": pattern(
        r"\bkeep to (?:that|this)\b",
        r"\bdo (?:that|it|this|them) (?:in |with )?(?:that|this|the same) \w+ (?:whenever|every time|each time"
        r"|always|for (?:all"
        r"|every|any))\b|\bsame (?:approach|order|way|procedure|pattern|layout|style|format) (?:whenever|every time"
        r"|each time"
        r"|for (?:all|every|any))\b",
        r"\b(?:that|this)\'?s how (?:the |our |all )?[\w -]{3,30}s (?:should|must|have to|has to|need to) be \w+",
        r"\b(?:that\'?s|this is|that is) the rule\b|\bdo (?:that|it|this) (?:whenever|every time|always)\b",
        r"\bexactly (?:how|the way) (?:we|i|you)\b|\bkeep it up\b",
        r"\bstick (?:with|to) (?:that|this|it|those)\b|\bdo (?:that|this|it) (?:again|everywhere|for the others?"
        r"|for all)\b|\bin the other \w+ too\b",
        r"\bkeep (?:on )?(?:doing|using|going with) (?:that|this|it|so|them)\b|\bkeep (?:it|that|this) (?:that"
        r"|this) way\b|\bkeep doing\b",
        r"\b(?:that|this)(?:'?s| is| was) (?:exactly )?(?:the way|how) (?:i|we) (?:\w+ )?(?:want|like|do|need"
        r"|work|prefer)\b",
        r"\b(?:do|make|write|format) (?:it|them|all of them) (?:like )?(?:that|this)(?: way)? (?:every time"
        r"|always|from now on|in future)\b",
        r"\bmore of (?:that|this)\b|\balways like (?:that|this)\b|\bsame (?:way )?(?:again|next time|every time)\b",
    ),
    "approves": pattern(
        r"\b(?:exactly|just|absolutely|totally|spot)[ -](?:right|on|what i wanted|what we need)\b|\bright (?:call"
        r"|choice|decision|move)\b",
        r"\bgood (?:that you|call|choice|thinking|idea|move|instinct)\b|\bglad (?:that )?you\b|\bperfect\b"
        r"|\bi (?:really )?(?:like|love) (?:how|that) you\b",
        r"\b(?:was|is) (?:the|a) (?:right|good|smart|better|best) \w+|\bworked (?:out )?(?:great|well"
        r"|perfectly)\b|\bnice touch\b",
        r"\b(?:yes|yeah|yep),? (?:that|this|the|one|exactly)\b|\bwell done\b",
    ),
    "praises": pattern(
        r"\bgood (?:call|thinking|idea|move) (?:\w+ing|not)\b|\bthe way to go (?:here|for|with)\b",
        r"\b(?:much|way|far) better than \w+ing\b|\b(?:that|this)(?:'s| is| was) (?:clever|smart|exactly (?:it"
        r"|what i (?:want|need)))\b",
        r"\b(?:was|were) (?:exactly |just |absolutely |definitely )?(?:the )?right\b|\bexactly right\b|\b(?:was"
        r"|is) the right (?:call|choice|decision|move)\b",
        r"\bgood (?:that|thing) you\b|\bglad (?:that )?you\b|\bi (?:really )?(?:like|love) (?:how|that) you\b"
        r"|\bgood call (?:on|to|with|not)\b",
    ),
    "written": pattern(
        r"\b(?:it'?s|is|are|even|already) (?:even |already )?(?:written|documented|noted|stated) (?:down|in"
        r"|there)\b|\bas (?:always|usual|i said|agreed|per|documented|before)\b",
        r"\b(?:read|see|check|look at) the (?:readme|docs?|guidelines|instructions|contributing)\b",
        r"\b(?:that|it|this)(?:'?s| is| stands) (?:all |already |even )?(?:in|part of) (?:the|your"
        r"|our) (?:\w+ )?(?:file"
        r"|instructions?|prompt|guidelines?|rules|readme|contributing|conventions)\b",
    ),
    "demands": pattern(r"\b(?:needs?|must|should|has to|have to|required?|requires|only|not allowed|may not)\b"),
    "complains": pattern(
        r"^(?:why )?(?:do )?you (?:keep|still|ask|again|did|just|(?:always|never) (?!need\b|have to\b|may\b|can\b"
        r"|should\b|ask\b))\b"
    ),
    "reason": pattern(
        r"\b(?:because|bc|b/c|cuz|cause)\b|\bsince (?!monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d"
        r"|this|last|then|when)",
        r"\bso that\b|\botherwise\b|\bor else\b|\b(?:the )?reason\b|\bthat'?s why\b|\bdue to\b"
        r"|\bfor \w+ reasons\b|\bin order to\b",
        r"\b(?:makes?|made) (?:us|me|them|it)\b|\bit'?s a [\w ]{3,25} thing\b|\bas (?:the|our|we|it|they)\b",
    ),
    "people": pattern(
        rf"\b(?:my|our|the) (?:{STAFF}) (?:\w+ly )?\w{{3,}}s\b|\b(?:each|all) of (?:those|these|them) (?:goes|go"
        rf"|needs?|gets?) (?:through|to|past)\b",
        r"\b(?:procurement|licensing|security|hr|it|the (?:office|court|council|committee|hospital|school|venue"
        r"|agency|ministry|bank|press)) (?:\w+ )?(?:turned|said|wants?|prints?|needs?|requires?|signed|blocks?"
        r"|insists?|reads?|checks?|decides?|decided)\b",
        rf"\b(?:{PEOPLE})s?\b (?!who\b|that\b|to\b)(?:also |always |usually |really |still |never |only |all "
        rf"|now |just |already )?(?:is|are|was|were|reads?|wants?|needs?|asks?|asked|insists?|complain(?:s|ed)?"
        rf"|expects?|agreed|decided|knows?|knew|uses?|used|looks?|looked|checks?"
        r"|checked|sees?|saw|hates?|loves?|prefers?|gets?|got|has|have|had|does|do|did|don'?t|doesn'?t|can'?t"
        r"|cannot|won'?t|never|always|makes?|made|signs?|signed|owns?|runs?|lost|spent|copy|copies|opens?"
        r"|commutes?|edits?|lies?|works?|pays?|paid|approves?|reviews?|reviewed|ripped|forwards?|watch(?:es)?"
        r"|care|cares|relies|rely|depends?|answers?|reads)\b",
        r"\b(?:i|we) (?:\w+ )?(?:lose track|forward|read (?:it|this|these|them)|can'?t (?:follow|read|tell|see)"
        r"|review on|had to|lost|have to|always have|keep having|end up|get (?:lost|confused)|share|print)\b",
        r"\b(?:we'?re|we are) (?:a|an|the|all|bound|obliged|required|not allowed|audited|certified)\b|\b(?:goes"
        r"|go|went|sent|forwarded) to (?:the |our )?(?:\w+ )?(?:client|customer|team|board|printer|press"
        r"|regulator|editor)s?\b",
    ),
    "manner": pattern(
        r"\b(?:can|could|would) you (?:please )?(?:in (?:the )?future|from now on)\b",
        rf"^(?:please|pls|plz) (?!{VERB}|make\b|help\b|no\b|don\b|do\b)[a-z]{{4,}} |\b(?:max(?:imum)?|at most"
        rf"|at least|no more than|min(?:imum)?) \d+ \w+",
        r"\b\w+ (?:please|pls) (?:real|short|long|small|big|plain|raw|simple|in|as|without|with)\b",
        r"^[\w.\'/ -]{2,30},? (?:please|pls)[.!]?$|\b(?:can|could|would) you (?:please |always )?(?:keep|use"
        r"|avoid|stick|write|put|leave|give|answer) (?!this\b|that\b|it\b)",
        r"(?:^|[,.;] )so (?:please )?(?:bold|keep|use|avoid|write|put|leave|give|answer|no|always|never|skip"
        r"|stick|make|mark)\b",
        r"^(?:and |but |so |ok,? |please |pls |no,? |also |then |yes,? )*(?:be |give me |show me |tell me "
        r"|send me |leave out |avoid |prefer |stick |thank |(?:use|keep|put|call|say|answer|reply|talk|speak"
        r"|write|phrase|format|name|quote|cite|round|sort) (?!the\b|this\b|that\b|it\b|an?\b|them\b|those\b"
        r"|these\b|me\b))",
        r"(?:^|[,.;] ?)[\w' -]{3,40},? (?:please|pls|plz)(?:[,.!]|$)|\b(?:please|pls) no \w+|^(?:only"
        r"|just) [a-z]+s\b|\bat a time\b|\bone \w+ per \w+\b|\bfirst[,.!]? (?:please|always)|\b\w+ first[.!]",
    ),
    "solved": pattern(
        r"\bwhat (?:we|i)(?:'ve| have)? (?:did|done|finished|achieved|accomplished|managed|got (?:done|finished"
        r"|through))(?: today| so far)?\b",
        r"\bturns? out\b|\broot cause (?:is|was) (?!known|found|clear)|\b(?:was|were) (?:caused|due) (?:by|to)\b"
        r"|\b(?:it'?s|got) fixed\b|\bfixed (?:now|it|that)\b|\bworks now\b|\bnot our (?:bug|fault)\b"
        r"|\bmy (?:mistake|fault|bad)\b|\bfalse alarm\b",
    ),
    "mishap": pattern(
        r"\bhid .* from (?:us|me)\b|\b(?:went|gone) unnoticed\b|\bslipped through\b|\bfor (?:an hour|(?:two|three"
        r"|several|\d+) (?:hours|days|weeks|months)|hours|days|weeks|months)\b|\bbecause of (?:one|that|it)\b",
        r"\blast (?:time|week|month|year|spring|summer|autumn|fall|winter|quarter|sprint|release|submission|deploy)\b",
        r"\b(?:once|twice|three times)\b(?! you| we| i| the| it)|\balready (?:had|happened|lost)\b",
        r"\bwe (?:had|lost|ruined|shipped|broke|spent|blew|missed|burn(?:t|ed)|wasted|got)\b|\b(?:took|cost|bit"
        r"|burn(?:t|ed)|hurt) (?:us|me)\b",
        r"\b(?:bitten|burnt|burned|complained|ripped|yelled|dropped|wiped|crashed|doubled|leaked|went down"
        r"|fell over|blew up)\b",
        r"\bnobody (?:could|knew|noticed|reads|turned)\b|\bi had to explain\b|\bin (?:january|february|march"
        r"|april|may|june|july|august"
        r"|september|october|november|december)\b",
    ),
    "once": pattern(
        r"\b(?:half|almost|nearly) (?:done|finished|through)\b",
        r"\b(?:just|only) (?:for )?(?:this|the) (?:once|one|time)\b|\bthis (?:once|one time|time(?: only"
        r"| around)?)\b|\bfor (?:this|the) (?:one|task|pr|commit|letter|file|run|demo)\b",
        r"\bfor (?:now|today|the moment|the time being)\b|\bright now\b|\bat the moment\b|\bjust now\b"
        r"|\btemporarily\b|\byet\b\s*[.!]?$",
        r"\b(?:in this case|today only|one-?off|exceptionally)\b|\bwhat we(?:'ve| have)? (?:did|done)\b",
        r"\b(?:just|only) for (?:tonight|today|once|a (?:day|moment|while|few))\b|\bback (?:on|in|to"
        r"|with) the (?:main|normal|usual|old|regular"
        r"|real) \w+",
        r"\bin this (?:list|table|chart|view|loop|function|column|query|plot|paragraph|sentence|figure)\b"
        r"|\bin the (?:example|test|sample"
        r"|demo|dummy|mock|seed) (?:data|fixtures?|file|set)\b",
        r"\bthis (?:one|answer|reply) (?:as|in|with|without|like)\b|\bback to (?:normal|usual)\b|\bback to [\w -]{2,30}"
        r" (?:as usual|as before|again|afterwards)\b",
    ),
    "supposed": pattern(
        r"\b(?:suppose|supposing|imagine|hypothetically|thought experiment|let'?s (?:say|pretend|assume)|what if"
        r"|assuming)\b",
        r"\bif (?:we|i|you|they|he|she|it|the \w+|someone) (?:were|had|moved|switched|wanted|decided|used|went"
        r"|could|asked|did|started|ever)\b",
        r"\bwould (?:you|it|that|we|i) (?!mind|please|like you)\b.*\?|\bin theory\b|\bjust (?:thinking out loud"
        r"|curious|wondering)\b",
    ),
    "mocked": pattern(
        r"^(?:great|nice|wonderful|fantastic|awesome|cool),? (?:another|one more|yet another)\b",
        r"\bthanks for (?:nothing|\w+ing my|\w+ing (?:it|everything) up|breaking|losing|deleting|ruining)\b"
        r"|\bwow,? thanks\b",
        r"^(?:sure|yes|yeah|great|right),? and (?:from now on|let'?s|then|next)\b|\bbrilliant[.!]|^(?:sure|yeah"
        r"|oh),? let'?s\b",
        r"🙃|🙄|(?:^|\s)/s\b|\bwhat could (?:possibly )?go wrong\b|\byeah,? right\b|\bas if\b.*!|\blol\b.*\balways\b",
        r"^(?:oh|ah|wow),? (?:great|sure|wonderful|fantastic|brilliant|nice|lovely|yes|perfect|good)\b"
        r"|\bjust what (?:i|we) needed\b",
        r"\bworked (?:out )?so well\b|\bbecause (?:who|why) (?:needs?|not)\b|\bsure,? (?:why not|let'?s)\b"
        r"|\bgenius\b|\ball the time in the world\b",
    ),
    "quoted": pattern(
        r"(?<!what the )\b(?!i\b|we\b)\w+ (?:wrote|says?|said|claims?|writes|mailed)\b[^.]*[\"“:]",
        r"\b(?:colleague|coworker|co-worker|friend|neighbou?r|brother|sister|guy|someone|somebody|people|blog"
        r"|article|book|cookbook|tutorial"
        r"|docs?|documentation|guide|readme|manual|post|tweet|video|podcast|stack ?overflow|chatgpt|e?mail|letter"
        r"|client|customer"
        r"|internet|reddit|paper|author|textbook|message|wiki page|review|comment)s? (?:also )?(?:say|said|says"
        r"|claim|claims|claimed"
        r"|insist|insists|think|thinks|told|tells|wants us|wrote|writes|recommends?|suggests?|suggested|goes"
        r"|reads(?! (?:along|it|them|my|our|the|only|on|your|these|this)\b)|states?)\b",
        r"\b(?:he|she|they) (?:also )?(?:says?|claims?|thinks?|insists?|wants? us|wants? to ban)\b",
        r"\baccording to\b|[:：]\s*“…”|\bquote\b|\bthe following (?:e?mail|text|message|prompt)\b",
    ),
    "asks": pattern(
        rf"^{OPENER}(?:who|whom|whose|what|whats|what's|which|why|where|wheres|how|hows)(?:'s"
        rf"|'re)?(?!.* is (?:described|documented|written|explained|in|on|kept|listed)\b)"
        r" (?:is|are|was|were|do|does|did|should|can|could|would|will|about|come|many|much|exactly|if|left|the|to"
        r"|has|have|i|we|you|s)\b",
        rf"^{OPENER}when (?:is|are|was|were|do|does|did|should|can|could|would|will)\b",
        rf"^{OPENER}(?:(?:is|are|was|were|does|did|should|would|will|has|have|am|isn'?t|aren'?t|don'?t you)"
        rf"|do(?! (?:it|that|this|the)\b))"
        r" (?:it|that|this|there|the|we|you|i|they|he|she|people|anybody|anyone|somebody|our|my)\b",
        r"\b(?:i wonder|do you know|any idea|not sure) (?:if|whether|why|how|what|which)\b",
    ),
    "requests": pattern(
        rf"^(?:ok(?:ay)?,? |so,? |now,? |then,? |and |also,? |but |great,? |cool,? |right,? |first,? |please "
        rf"|pls |plz |just |next,? |lets? |let's )*{VERB}",
        rf"^(?:\w+,? )?(?:can|could|would|will) you (?:please |pls |also |just |quickly )?{VERB}|\bi (?:need"
        rf"|want|would like|'d like) you to\b",
        rf"\b(?:can|could) you (?:please |also |now |just )?{VERB}",
        r"^(?:now|next|ok so|then) (?:the|we|you|for)\b|^(?:let'?s|lets)\b",
    ),
    "filler": pattern(
        r"^(?:(?:ok(?:ay)?|thanks?|thank you|thx|ty|cheers|great|good|nice|cool|perfect|awesome|yes|yeah|yep|yup"
        r"|no|nope|hi|hello|hey|heya"
        r"|right|sure|fine|alright|works?|working|done|merged|got it|interesting|ah|oh|hm+|haha|lol|that helped"
        r"|sounds good|lgtm|go on|go"
        r"|back|well|pff+|puh|so|now|the|it|that|all|set|good|morning|you|very|much|a lot|man|there|ahead)[,.!:) ]*)+$",
    ),
}
