"""English speech formulas. Apostrophes are often left out in a chat, so they are optional throughout."""

from __future__ import annotations

from reverie.models.embedded.language.lexicon import Lexicon, pattern
from reverie.models.embedded.language.parts_en import CONDITION, DIRECTIVE, MAKE, NAME, NOT_NOW, OPENER, ROLE, VERB

LEXICON = Lexicon(
    standing=pattern(
        r"\bfrom (?:now|here|today) on\b|\b(?:going|moving) forward\b|\bhenceforth\b",
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
    habit=pattern(
        r"(?<!\bcan )(?<!could )(?<!would )(?<!will )(?<!\bit )(?<!they )(?<!\bhas )(?<!have )(?<!\bhad"
        r" )(?<!\bwas )(?<!were )(?<!\bdid )(?<!does )(?<!should )"
        r"(?<!seems to )(?<!that )(?<!which )\b(?:always|never)\b(?! (?:seems?|looks?|looked|happens?|happened"
        r"|had|was|were|got|did|worked|heard|seen|mind)\b)",
        r"\b(?:every single time|at all times|without exception|only ever)\b",
    ),
    forbids=pattern(
        r"(?:^|[,.:;!(–—-] ?|\bplease |\bpls |\bplz |\band |\bbut |\bso )(?:don'?t|do not|never|stop|avoid"
        r"|no more|leave out)\b",
        r"\byou (?:don'?t|do not|never|must ?n[o']?t|should ?n[o']?t|shouldnt|are not to|can'?t just) \w+",
        r"\b(?:i|we) (?:don'?t|do not|never) want\b|\bplease leave\b.*\b(?:out|alone)\b",
    ),
    displeased=pattern(
        r"^(?:no|nope|nah|ouch|whoa|woah|wow|ugh|hey|jeez|geez|argh|hmm*|stop|wait|sigh|oof|yikes|sorry but"
        r"|please|wtf|damn)\b(?! problem)",
        r"^(?:roll ?back|revert|undo|take that back|put (?:it|that) back)\b",
        r"\bthat'?s (?:not|wrong|exactly what i|the wrong|too)\b|\bnot what i (?:asked|wanted|meant)\b|\bwrong\b",
        r"\bi (?:asked|told|said|meant)(?: you)? (?:for|to|not)\b|\bi only asked\b",
        r"\byou (?:keep|still|always|did (?:that|it|this)|ask me)\b|\b(?:yet |not )?again[.,!]|\btoo (?:long|much"
        r"|verbose|many|wordy)\b",
        r"\bwhy (?:did|do|are|would) you\b|\bi can'?t (?:read|follow|use|work with)\b|\bdoesn'?t help\b"
        r"|\bi keep having to\b",
        r"\bannoy|\bhate\b|\bconfus|!!|\bstop \w+ing\b",
    ),
    prefers=pattern(
        r"\bi(?:'d| would)? (?:really |much |strongly )?(?:prefer|like|love|hate|dislike|rather)\b(?! to know"
        r"| it\b| that\b|$)",
        r"\bi want (?!to\b)|\bwe want\b|\bmy preference\b|\bplease (?:use|keep|write|put|give|leave|always|never)\b",
        r"\bi(?:'m| am) (?:fond|not a fan) of\b|\binstead\b|\brather than\b|\bno need for\b|\bskip the\b",
    ),
    permits=pattern(
        r"\byou (?:can|may|don'?t (?:have|need) to|needn'?t|are free to|are allowed to)\b",
        r"\bwithout (?:asking|showing|checking|telling|my (?:ok|okay|approval|permission))\b|\bno need to ask\b",
        r"\bask (?:me )?(?:first|before)\b|\bcheck with me\b|\b(?:that|this) one you ask\b|\bshow me (?:the "
        r"|a )?\w+(?: \w+)? (?:first|before)\b",
        r"\bi(?:'ll| will)? (?:\w+ )?(?:apply|post|push|merge|send|run|deploy|publish|sign|submit) (?:it|them"
        r"|that|those)\b",
    ),
    our_way=pattern(
        r"\b(?:in|on|at|for) (?:this|our|the) (?:lab|team|group|office|repo|project|game|company|firm|shop|studio"
        r"|kitchen|ward"
        r"|codebase|department|org|house|desk|clinic|practice|plant|school|institute|newsroom|crew)\b",
        r"\baround here\b|\bhere,? we\b|\bpeople here\b|\beveryone here\b|\bhow we do\b|\bthe way we do\b",
        r"\bwe (?:only|always|never|exclusively|strictly) \w+",
        r"\bour (?:convention|policy|style|standard|rule|practice)s?\b|\bis (?:our|the) (?:convention|policy"
        r"|standard|rule)\b",
    ),
    keep_on=pattern(
        r"\bkeep (?:on )?(?:doing|using|going with) (?:that|this|it|so|them)\b|\bkeep (?:it|that|this) (?:that"
        r"|this) way\b|\bkeep doing\b",
        r"\b(?:that|this)(?:'?s| is| was) (?:exactly )?(?:the way|how) (?:i|we) (?:\w+ )?(?:want|like|do|need"
        r"|work|prefer)\b",
        r"\b(?:do|make|write|format) (?:it|them|all of them) (?:like )?(?:that|this)(?: way)? (?:every time"
        r"|always|from now on|in future)\b",
        r"\bmore of (?:that|this)\b|\balways like (?:that|this)\b|\bsame (?:way )?(?:again|next time|every time)\b",
    ),
    approves=pattern(
        r"\b(?:exactly|just|absolutely|totally|spot)[ -](?:right|on|what i wanted|what we need)\b|\bright (?:call"
        r"|choice|decision|move)\b",
        r"\bgood (?:that you|call|choice|thinking|idea|move|instinct)\b|\bglad (?:that )?you\b|\bperfect\b"
        r"|\bi (?:really )?(?:like|love) (?:how|that) you\b",
        r"\b(?:was|is) (?:the|a) (?:right|good|smart|better|best) \w+|\bworked (?:out )?(?:great|well"
        r"|perfectly)\b|\bnice touch\b",
        r"\b(?:yes|yeah|yep),? (?:that|this|the|one|exactly)\b|\bwell done\b",
    ),
    praises=pattern(
        r"\b(?:was|were) (?:exactly |just |absolutely |definitely )?(?:the )?right\b|\bexactly right\b|\b(?:was"
        r"|is) the right (?:call|choice|decision|move)\b",
        r"\bgood (?:that|thing) you\b|\bglad (?:that )?you\b|\bi (?:really )?(?:like|love) (?:how|that) you\b"
        r"|\bgood call (?:on|to|with|not)\b",
    ),
    written=pattern(
        r"\b(?:it'?s|is|are|even|already) (?:even |already )?(?:written|documented|noted|stated) (?:down|in"
        r"|there)\b|\bas (?:always|usual|i said|agreed|per|documented|before)\b",
        r"\b(?:read|see|check|look at) the (?:readme|docs?|guidelines|instructions|contributing)\b",
    ),
    demands=pattern(r"\b(?:needs?|must|should|has to|have to|required?|requires|only|not allowed|may not)\b"),
    complains=pattern(r"^(?:why )?(?:do )?you (?:keep|always|still|ask|never|again|did|just)\b"),
    reason=pattern(
        r"\b(?:because|bc|b/c|cuz|cause)\b|\bsince (?!monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d"
        r"|this|last|then|when)",
        r"\bso that\b|\botherwise\b|\bor else\b|\b(?:the )?reason\b|\bthat'?s why\b|\bdue to\b"
        r"|\bfor \w+ reasons\b|\bin order to\b",
        r"\b(?:makes?|made) (?:us|me|them|it)\b|\bit'?s a [\w ]{3,25} thing\b|\bas (?:the|our|we|it|they)\b",
    ),
    mishap=pattern(
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
    once=pattern(
        r"\b(?:just|only) (?:for )?(?:this|the) (?:once|one|time)\b|\bthis (?:once|one time|time(?: only"
        r"| around)?)\b|\bfor (?:this|the) (?:one|task|pr|commit|letter|file|run|demo)\b",
        r"\bfor (?:now|today|the moment|the time being)\b|\bright now\b|\bat the moment\b|\bjust now\b"
        r"|\btemporarily\b|\byet\b\s*[.!]?$",
        r"\b(?:in this case|today only|one-?off|exceptionally)\b|\bwhat we(?:'ve| have)? (?:did|done)\b",
    ),
    supposed=pattern(
        r"\b(?:suppose|supposing|imagine|hypothetically|thought experiment|let'?s (?:say|pretend|assume)|what if"
        r"|assuming)\b",
        r"\bif (?:we|i|you|they|he|she|it|the \w+|someone) (?:were|had|moved|switched|wanted|decided|used|went"
        r"|could|asked|did|started|ever)\b",
        r"\bwould (?:you|it|that|we|i) (?!mind|please|like you)\b.*\?|\bin theory\b|\bjust (?:thinking out loud"
        r"|curious|wondering)\b",
    ),
    mocked=pattern(
        r"🙃|🙄|(?:^|\s)/s\b|\bwhat could (?:possibly )?go wrong\b|\byeah,? right\b|\bas if\b.*!|\blol\b.*\balways\b",
        r"^(?:oh|ah|wow),? (?:great|sure|wonderful|fantastic|brilliant|nice|lovely|yes|perfect|good)\b"
        r"|\bjust what (?:i|we) needed\b",
        r"\bworked (?:out )?so well\b|\bbecause (?:who|why) (?:needs?|not)\b|\bsure,? (?:why not|let'?s)\b"
        r"|\bgenius\b|\ball the time in the world\b",
    ),
    quoted=pattern(
        r"\b(?:colleague|coworker|co-worker|friend|neighbou?r|brother|sister|guy|someone|somebody|people|blog"
        r"|article|book|cookbook|tutorial"
        r"|docs?|documentation|guide|readme|manual|post|tweet|video|podcast|stack ?overflow|chatgpt|e?mail|letter"
        r"|client|customer"
        r"|internet|reddit|paper|author|textbook|message|wiki page|review|comment)s? (?:also )?(?:say|said|says"
        r"|claim|claims|claimed"
        r"|insist|insists|think|thinks|told|tells|wants us|wrote|writes|recommends?|suggests?|suggested|goes"
        r"|reads|states?)\b",
        r"\b(?:he|she|they) (?:also )?(?:says?|claims?|thinks?|insists?|wants? us|wants? to ban)\b",
        r"\baccording to\b|[:：]\s*“…”|\bquote\b|\bthe following (?:e?mail|text|message|prompt)\b",
    ),
    asks=pattern(
        rf"^{OPENER}(?:who|whom|whose|what|whats|what's|which|why|where|wheres|how|hows)(?:'s|'re)?"
        r" (?:is|are|was|were|do|does|did|should|can|could|would|will|about|come|many|much|exactly|if|left|the|to"
        r"|has|have|i|we|you|s)\b",
        rf"^{OPENER}when (?:is|are|was|were|do|does|did|should|can|could|would|will)\b",
        rf"^{OPENER}(?:is|are|was|were|do|does|did|should|would|will|has|have|am|isn'?t|aren'?t|don'?t you)"
        r" (?:it|that|this|there|the|we|you|i|they|he|she|people|anybody|anyone|somebody|our|my)\b",
        r"\b(?:i wonder|do you know|any idea|not sure) (?:if|whether|why|how|what|which)\b",
    ),
    requests=pattern(
        rf"^(?:ok(?:ay)?,? |so,? |now,? |then,? |and |also,? |but |great,? |cool,? |right,? |first,? |please "
        rf"|pls |plz |just |next,? |lets? |let's )*{VERB}",
        rf"^(?:\w+,? )?(?:can|could|would|will) you (?:please |pls |also |just |quickly )?{VERB}|\bi (?:need"
        rf"|want|would like|'d like) you to\b",
        rf"\b(?:can|could) you (?:please |also |now |just )?{VERB}",
        r"^(?:now|next|ok so|then) (?:the|we|you|for)\b|^(?:let'?s|lets)\b",
    ),
    filler=pattern(
        r"^(?:(?:ok(?:ay)?|thanks?|thank you|thx|ty|cheers|great|good|nice|cool|perfect|awesome|yes|yeah|yep|yup"
        r"|no|nope|hi|hello|hey|heya"
        r"|right|sure|fine|alright|works?|working|done|merged|got it|interesting|ah|oh|hm+|haha|lol|that helped"
        r"|sounds good|lgtm|go on|go"
        r"|back|well|pff+|puh|so|now|the|it|that|all|set|good|morning|you|very|much|a lot|man|there|ahead)[,.!:) ]*)+$",
    ),
    person=pattern(
        rf"\bi(?:'m| am|m) (?:\w+ly )?(?:a|an|the|one of the|your|our|their|just a|still a|only a|also a|also the"
        rf"|mostly a|now the|now a)(?: [\w'&/+.-]+){{0,6}}? {ROLE}s?\b",
        rf"\bi(?:'m| am|m) (?:[\w-]+ )?(?:also |currently |completely |totally |pretty |quite |fairly |not "
        rf"|really |very |still )*{CONDITION}\b",
        rf"\bi(?:'m| am|m) (?:\w+ ){{0,2}}{ROLE}\b(?= (?:at|in|on|for|of|with|by)\b)",
        r"\bi (?:work|worked|am working) (?:as|at|in|for|mostly|mainly|nights|days|part|remotely|from)\b"
        r"|\bi (?:lead|manage|run|head|teach|study|maintain|supervise|coordinate|own) (?:a|an|the|our|my|two"
        r"|three|this|\d)\b",
        r"\bi (?:just )?(?:took over|was (?:hired|promoted|moved)|joined|came (?:over )?from|come from"
        r"|moved (?:over )?(?:from|to)|switched (?:from|to|over)|transferred|inherited)\b",
        r"\bi(?:'ve| have)? (?:been )?(?:\w+ )?(?:doing|writing|working|coding|using|teaching|programming|cooking"
        r"|practi[sc]ing|running)\b.{0,40}\b(?:for|since)\b.{0,20}\b(?:years?|yrs?|decades?|months?|\d{4})\b",
        r"\bi(?:'ve| have) (?:literally |really |honestly )?(?:never|hardly|barely) (?:ever )?(?:shipped|used"
        r"|written|touched|done|read|worked|coded|built|programmed|learned|learnt|taught)\b",
        r"\bi(?:'ve| have) (?:shipped|written|built|taught|published|led|managed|designed|run) (?:\d+|two|three"
        r"|four|five|several|many|dozens|lots|some)\b",
        r"\b(?:\d+|two|three|four|five|six|seven|eight|nine|ten|twelve|fifteen|twenty)\+? ?(?:years?|yrs?|months?"
        r"|decades?)(?:'|s')? (?:of |in |with |on |as )?(?:experience|backend|frontend|\w+(?:ing)?)\b.*",
        r"\bi did (?:my )?(?:phd|master|degree|thesis|training|\w+ for \w+ (?:years?|months?))\b"
        r"|\bmy (?:background|day job|job|role|degree|phd|training|native language|first language|mother tongue"
        r"|time ?zone|expertise|profession)\b",
        r"\b(?:first time|my first) (?:touching|using|with|writing|doing|seeing|reading|project|time)\b"
        r"|\bis (?:all )?new to me\b|\bnew (?:here|to this)\b|\bno (?:cs|formal|technical|prior"
        r"|programming) (?:degree|background|training|experience)\b",
        r"\bi (?:use|rely on|need) (?:a|an|my) (?:screen reader|magnifier|braille|keyboard only|hearing)\b"
        r"|\bi (?:read|review|work|look at (?:this|these|it)|mostly (?:come|read)) .{0,30}\bon (?:my|the"
        r"|a) (?:phone|tablet|mobile|train|commute|breaks?)\b",
        r"\b(?:background|context on me|about me|about myself|who i am)\s?[:=]|\bi speak\b|\bi(?:'m"
        r"| am) (?:comfortable|fluent|experienced|proficient|rusty|slow|weak|strong|good|bad|terrible"
        r"|confident) (?:with|in|at|on)\b",
        r"\bi know (?!i\b|that\b|you\b|it\b|what\b|how\b|this\b|the\b|we\b|why\b|but\b)[\w ,+#.-]+\b(?:but|well"
        r"|inside)\b",
    ),
    not_person=pattern(
        r"\bi(?:'m| am|m) (?:\w+ly )?(?:the one|a bit|a little|in a (?:hurry|meeting)|on (?:my way|it|line)"
        r"|not sure|sure|sorry|afraid|done|back|tired|going|trying|getting|seeing|"
        r"looking|thinking|wondering|stepping|heading|happy|glad|confused|stuck|changing|adding|ready|off|out"
        r"|here|about to|an idiot)\b",
        r"\bif i were\b|\bi(?:'ve| have) (?:done|seen|run|been|used|read|written) (?:it|this|that|the|them|a|an|all)\b",
    ),
    goal=pattern(
        r"\bthe point for me is\b|\bmy goal\b|\bi(?:'m| am)(?: here)? (?:trying )?to (?:learn|understand)\b"
        r"|\bi want to (?:learn|understand|be able to|reason through|get better)\b",
        r"\bi(?:'m| am) (?:studying|preparing|training|learning)\b|\bi(?:'m| am) (?:building|doing|writing"
        r"|making) (?:this|it) (?:\w+ )?(?:solo|alone|for fun|as a hobby|to learn|on my own)\b"
        r"|\bnot trying to ship\b",
    ),
    event=pattern(
        r"\b(?:launch|release|deadline|freeze|demo|milestone|delivery|submission|hearing|trial|audit|review"
        r"|pentest|meeting|conference|keynote|exam|migration|cutover"
        r"|go-?live|rollout|campaign|inspection|visit|deploy(?:ment)?|certification|handover|kick-?off|sprint"
        r"|beta|alpha|rc|event|opening|tasting|shoot|training"
        r"|workshop|presentation|pitch|vacation|holiday|leave|maintenance|window|cut-?off|due|expire[sd]?|expiry"
        r"|renewal|contract|election|filing|publication)\b",
        r"\b(?:launch(?:es|ing)?|releas(?:es|ing)|ship(?:s|ping|ped)?|start(?:s|ing)?|begin(?:s|ning)?|end(?:s"
        r"|ing)?|go(?:es|ing)? live|cut(?:s|ting)?|freez(?:e|es|ing)"
        r"|deliver(?:s|ing|ed|y)?|present(?:s|ing)?|moved|pushed|slipped|postponed|delayed|scheduled|rescheduled"
        r"|planned|promised|booked|switched off|turned off|shut ?down"
        r"|sealed|closed?|retire[sd]?|sunset|come[s]? into force|take[s]? effect|take[s]? over|leave[s]?|leaving"
        r"|arrive[s]?|sign(?:s|ed)? off|file[d]?|refunding|expects?|expected)\b",
    ),
    limit=pattern(
        r"\b(?:by|until|till|til|before|from|starting|as of|no later than|not later than|due|deadline|at the latest)\b"
    ),
    on_hold=pattern(
        r"\b(?:parked|paused|on hold|on ice|frozen|postponed|shelved|deferred|blocked|pinned|stuck on|suspended"
        r"|closed|off limits|read-only|locked)\b(?=.*\b(?:until|till|til|because|due|for|so|while|to|by)\b)",
        r"\b(?:parked|paused|on hold|on ice|shelved|deferred|suspended|pinned to|off limits)\b|\bstopped all\b",
    ),
    decided=pattern(
        r"\b(?:we|team|management|they|board|client|boss)(?:'ve| have| has)? (?:\w+ )?(?:decided|agreed|voted"
        r"|settled|committed|chose|chosen|picked)\b|\b(?:it'?s|that'?s|thats) (?:settled|decided|final|agreed)\b"
        r"|\bdecision\s?[:=]|\bthe decision\b",
        r"\bwe(?:'re| are|re) (?:dropping|replacing|migrating|moving (?:to|away|off|from)|switching|keeping"
        r"|staying|deprecating|retiring|sunsetting|abandoning|rewriting|standardi[sz]ing|discontinuing|phasing)\b",
        r"\bwe (?:stay|stick|go|went) (?:on|with)\b|\bwe dropped\b|\bthe reason (?:why )?(?:we|for|behind)\b"
        r"|\bis (?:being )?driven by\b|\bwe(?:'re| are) (?:doing|building|rewriting) this because\b",
    ),
    owns=pattern(
        rf"{NAME} (?:now )?(?:owns|leads|takes over|took over|is taking over|is (?:now )?(?:in charge"
        rf"|responsible|the owner|the lead|out|on leave|away|leaving)|has it (?:now|since)|looks after)\b",
        rf"{NAME} (?:runs|handles|maintains|manages|coordinates|does) (?:the|our|all|it|that|this)\b.*\b(?:now"
        rf"|from now on|since|until|instead)\b",
        rf"{NAME} (?:has )?(?:left|moved to|went on leave|is leaving|quit|retired)\b|\bhand(?:ed|ing"
        rf"|s)?[- ]?over to {NAME}|\bowned by {NAME}",
        r"\b(?:questions|requests|approvals?|bookings) (?:about [\w ]+ )?go(?:es)? (?:to|through) (?:her|him|them"
        r"|[A-Z])",
    ),
    trouble=pattern(
        r"\b(?:outage|incident|post-?mortem|breach|leak(?:ed)?|double[- ]charged|went down|was down|were (?:down"
        r"|silent|lost)|data loss|broke production|recall|lawsuit|complaint)\b",
    ),
    place=pattern(
        r"\b(?:tracker|board|dashboard|wiki|runbook|playbook|channel|workspace|drive|shared? folder|folder"
        r"|spreadsheet|notebook|page|space|site|portal|intranet|archive|registry"
        r"|knowledge base|handbook|mailing list|backlog|base|doc|document|repo of|bucket|share|confluence|inbox"
        r"|thread|ticket(?:s|ing)?|post-?mortems?|project [A-Z]{2,})\b",
    ),
    located=pattern(
        r"\b(?:is|are|lives?|sits?|stays?|kept|stored|tracked|logged|filed|posted|documented|recorded|hosted"
        r"|found|collected|archived|maintained|published) (?:all )?(?:in|on|at|under|there|over)\b",
        r"\b(?:goe?s?|go|belongs?|post|posted|report(?:ed)?|file(?:d)?|moved|migrated|send|sent) (?:it |them "
        r"|that |there )?(?:in ?to|to|in|on|under|over to|from \S+ to)\b",
        r"\b(?:check|look|see|search|ask|read|watch|open|find)s? (?:it |there|in|at|on|under|where)\b"
        r"|\bwhere (?:the|we|i|all|our|it)\b|\b(?:board|page|wiki|doc|runbook|dashboard|channel|tracker|link"
        r"|url) (?:is|for|=)|\s=\s|:\s",
        r"\bthe one (?:the|that|everyone|people|we)\b|\bpeople look at\b",
    ),
    remember=pattern(
        r"\b(?:please |pls )?remember(?: (?:that|this|to|for)|:|,)|^(?:please |pls )?remember\b|\bkeep in mind\b"
        r"|\b(?:make|take) a note\b|\bfor the record\b|\bnote (?:to self|that|for)\b",
        r"\bsave (?:this|that|it|to (?:your )?memory|in memory)\b|\bdon'?t (?:you )?(?:ever )?forget\b|\bmemori[sz]e\b",
    ),
    tells=pattern(
        r"\bheads[- ]?up\b|\bfyi\b|\bfor your information\b|\bjust so you know\b|\bbefore i forget\b|\bbtw\b"
        r"|\bby the way\b|\b(?:quick )?(?:context|background)\b",
        r"\b(?:one|two|few|couple) more things?\b|\breminder\b|\bsmall change\b|\bnews\b",
    ),
    forget=pattern(
        r"\bforget (?:that|what|my|our|about|the|everything|all|it\b.*\babout|this|those|these|any)\b"
        r"|\bcan forget\b|\bplease forget\b|\bunlearn\b",
        r"\b(?:delete|remove|drop|erase|discard|scrap|throw away|get rid of) (?:the|that|your|my|this"
        r"|any) (?:note|memory|memories|rule|entry|reminder|preference|thing)s?\b|\bfrom (?:your )?memory\b"
        r"|\bstop remembering\b",
    ),
    not_forget=pattern(r"\b(?:don'?t|do not|never|didn'?t|before i|i always|i|lest (?:i|we)|not) forget\b|\bforgot\b"),
    changed=pattern(
        r"\b(?:moved|pushed|slipped|postponed|delayed|rescheduled|changed?|switched|replaced|renamed|migrated"
        r"|left|took over|takes over|no longer|any ?more|instead|new (?:date|deadline|owner|plan|place|rule)"
        r"|used to|not .{1,30} but|now\b|since (?:today|monday|tuesday|wednesday|thursday|friday|this|last)"
        r"|from now on|update|correction|actually|i told you|i said|that was (?:when|before|because)|has it"
        r"|is back|reversed|only for)",
    ),
    harks_back=pattern(
        r"\bi (?:know i )?(?:told|said|asked|mentioned)(?: to)? you\b|\b(?:what|when|the thing|the rule|my rule"
        r"|that rule) (?:i|we) (?:said|told|gave|had|agreed)\b|\bi said\b"
        r"|\bmy (?:rule|note|thing|preference) (?:about|on|with)\b|\byou (?:told|reminded) me\b|\babout (?:the"
        r"|that|my) [\w -]+ (?:rule|preference)\b",
    ),
    excepts=pattern(
        r"\b(?:except|exception|unless|apart from|other than|only (?:for|when|if|above|below)|but (?:not )?for"
        r"|does ?n[o']?t apply|doesnt apply|everything else|below that|above that)\b"
    ),
)
