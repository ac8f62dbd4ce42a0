"""English formulas of facts: who somebody is, what is going on, where things are, what became of a memory."""

from __future__ import annotations

import re
from typing import Final

from reverie.offline.language.lexicon import pattern
from reverie.offline.language.parts_en import AILMENT, CONDITION, NAME, ROLE

FACTS: Final[dict[str, re.Pattern[str]]] = {
    "person": pattern(
        rf"\bbeen an? (?:[\w-]+ ){{0,2}}{ROLE} (?:for|since)\b",
        rf"\bi used to be an? \w+|\bi was an? (?:[\w-]+ ){{0,2}}{ROLE} (?:before|until|till|for (?:\d+|\w+) years)\b",
        rf"^\((?:an? )?(?:[\w-]+ )?{ROLE}, ",
        r"(?:^|[,.(] ?|\b(?:an?|i\'m|i am) )[\w-]{3,}(?: [\w-]+)? by (?:trade|training|profession|education)\b",
        rf"^[(\W]*(?!the\b|our\b|my\b|this\b|that\b|your\b)(?!.*\b(?:is|are|was|has|does|fails?"
        rf"|crashes)\b)(?:an? )?(?:[\w-]+ )?"
        rf"{ROLE} (?:since (?:the|\d{{4}}|before|forever|my)|for (?:\d+|two|three|five|ten|twenty|many"
        rf"|over) (?:years|decades))\b",
        r"\b(?:just|only) (?:me and my|my) (?:wife|husband|brother|sister|partner|father|mother|son|daughter|cousin"
        r"|friend)\b(?: and"
        r" (?:me|i)\b)?|\ball (?:the|of the|my) [\w+#.]+ i know (?:is|comes|came|i)\b|\bi (?:do"
        r"|keep) the (?:computers|it|books) \b",
        r"\bi (?:only |just )?have (?:only )?(?:one|no|a broken|limited|bad|poor) [\w ]*(?:hand|arm|eyes?|vision"
        r"|sight|hearing|wrist|finger)s?\b",
        rf"\b{ROLE} here\b|\b(?:i\'m |i am )?coming from (?-i:[A-Z])\w+|\b(?:first|second|third|fourth|\d+(?:st"
        rf"|nd|rd|th)) (?:day|week|month|year) (?:with|on|at|in|doing|of)\b",
        r"\b(?:is|isn\'?t) my (?:first|second|third|native|mother) (?:language|tongue|job)\b|\bi (?:chair|head"
        r"|direct|founded|own a|started a|sign (?:it|things|them) off)\b",
        r"\b(?:like )?i know [\w+#. ]+ \(|\bi (?:run|own) (?:a|an|my|our) (?:[\w-]+ ){0,2}\w+\b(?! (?:script|test"
        r"|command|build|server|query))",
        r"\bi (?:look after|take care of|oversee|administer|supervise|handle|operate) (?:the|our|all|two|three"
        r"|\d)\b|\bi (?:dictate|commute|live in|speak|touch.?type|read lips)\b",
        r"\bi (?:usually|mostly|mainly|normally|rarely|hardly ever) (?:work|read|use|write|type|come|sit|do|code"
        r"|live|look)\b",
        r"\bmy (?:plan|aim|dream|ambition) (?:is|this year)\b|\bmy (?:wrists?|eyes|eyesight|hearing|hands?|vision"
        r"|english|spelling) (?:is|are|isn'?t|aren'?t|hurts?)\b",
        r"\bi (?:wrote|did|used|taught|coded|worked|programmed) (?:in |with |on |as )?[\w+#. ]{2,25} (?:for"
        r"|during|all through) (?:my (?:whole|entire)?|years|a decade|most of|many)\b",
        r"^(?:[\w ]+: )?(?:an? )?(?:[\w-]+ ){0,2}" + ROLE + r", (?:no|zero|not|never|\d+|new)\b",
        rf"\bi (?:have|suffer from|live with) (?:\w+ )?{AILMENT}\b|\bfor a living\b|\bin my day job\b",
        r"\bi (?:teach|study|research|coach|lecture|farm|tutor|practi[sc]e (?:law|medicine)) (?!it\b|this\b"
        r"|that\b|the\b)\w+",
        rf"\bi(?:'m| am) (?-i:[A-Z][a-z]+), (?:an? |the )?(?:\w+ ){{0,3}}{ROLE}\b|\bi learn nothing\b",
        r"\b(?:zero|no) (?:knowledge of |experience (?:with|in) )?[\w+#.]+ (?:experience|knowledge|background)\b",
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
        rf"\bbackground\s?[:=](?=.*\b(?:i|my|me|i'm|i've|im|years?|degree|phd|self-taught|{ROLE})\b)"
        r"|\b(?:context on me|about me|about myself|who i am)\s?[:=]|\bi speak\b|\bi(?:'m"
        r"| am) (?:comfortable|fluent|experienced|proficient|rusty|slow|weak|strong|good|bad|terrible"
        r"|confident) (?:with|in|at|on)\b",
        r"\bi know (?!i\b|that\b|you\b|it\b|what\b|how\b|this\b|the\b|we\b|why\b|but\b)[\w ,+#.-]+\b(?:but|well"
        r"|inside)\b",
    ),
    "not_person": pattern(
        r"\bi(?:'m| am|m) (?:\w+ly )?(?:the one|a bit|a little|in a (?:hurry|meeting)|on (?:my way|it|line)"
        r"|not sure|sure|sorry|afraid|done|back|tired|going|trying|getting|seeing|"
        r"looking|thinking|wondering|stepping|heading|happy|glad|confused|stuck|changing|adding|ready|off|out"
        r"|here|about to|an idiot)\b",
        r"\bif i were\b|\bi(?:'ve| have) (?:done|seen|run|been|used|read|written) (?:it|this|that|the|them|a|an|all)\b",
    ),
    "goal": pattern(
        r"\bi(?:\'m| am) (?:sitting|retaking|cramming for|revising for) (?:the|my|an?) \w+|\bi(?:\'m"
        r"| am) taking (?:the|my|an?) [\w -]{2,30}"
        r" (?:exam|test|certificate|certification)\b|\b(?:is|as) my (?:practice|exercise|training ground|playground)\b",
        r"\b(?:understanding|learning|knowledge|practice) (?:that |is what )?i(?:\'m| am) after\b",
        r"\bthe point for me is\b|\bmy goal\b|\bi(?:'m| am)(?: here)? (?:trying )?to (?:learn|understand)\b"
        r"|\bi want to (?:learn|understand|be able to|reason through|get better)\b",
        r"\bi(?:'m| am) (?:studying|preparing|training|learning)\b|\bi(?:'m| am) (?:building|doing|writing"
        r"|making) (?:this|it) (?:\w+ )?(?:solo|alone|for fun|as a hobby|to learn|on my own)\b"
        r"|\bnot trying to ship\b",
    ),
    "event": pattern(
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
    "limit": pattern(
        r"\b(?:by|until|till|til|before|from|starting|as of|no later than|not later than|due|deadline|at the latest)\b"
    ),
    "parked": pattern(
        r"\b(?:version|project|port|feature|plan|product|release|edition|branch office|programme|program) (?:is"
        r"|was|got) (?:\w+ )?(?:dead|killed|gone|history|abandoned|over|cancell?ed|scrapped)\b",
        r"\b(?:in )?(?:maintenance mode|feature freeze|code freeze|end of life|eol|sunset)\b(?! (?:flag|option"
        r"|method|function))|\bonly (?:security|bug|critical) ?fix(?:es)?\b",
        r"\b(?:is|are|was|been|stays?|got|now|put) (?:\w+ )?(?:parked|paused|on hold|on ice|shelved|deferred"
        r"|suspended|cancell?ed|postponed|scrapped|pinned to)\b"
        r"|\b(?:parked|on hold|on ice|shelved|suspended) (?:until|till|til|because|for|since)\b|\bstopped all\b",
    ),
    "bound_by": pattern(
        r"\b(?:iso \d+|gdpr|hipaa|sox|pci|certified|certification|regulators?|regulations?|auditors?|compliance"
        r"|legal|the law|contract(?:ually)?|licen[cs]e|insurance)\b"
        r"(?=.*\b(?:why|because|so|must|needs?|requires?|looks?|wants?|insists?|forbids?|changed|demands?|reads?)\b)",
    ),
    "on_hold": pattern(
        r"\b(?:stays?|remains?|stuck|sits?) (?:on|at) [\w. ]{1,20} (?:until|till|til)\b",
        r"\b(?:parked|paused|on hold|on ice|frozen|postponed|shelved|deferred|blocked|pinned|stuck on|suspended"
        r"|closed|off limits|read-only|locked)\b(?=.*\b(?:until|till|til|because|due|for|so|while|to|by)\b)",
        r"\b(?:parked|paused|on hold|on ice|shelved|deferred|suspended|pinned to|off limits)\b|\bstopped all\b",
    ),
    "decided": pattern(
        r"\bit\'?s a (?:no|go|yes) (?:to|for|on|from)\b|\bwe (?:discussed|talked) (?:that|it|this) (?:through "
        r"|over )?with\b",
        r"\bwe(?:\'re| are|re) (?:leaving|ditching|quitting|getting rid of|killing|killing off|dumping)\b",
        r"\bthe (?:whole |main |only )?(?:point|goal|reason|purpose|idea) (?:of|behind|for) (?:this|the|all"
        r"|our) [\w ]{2,40} is\b|\bwhat matters (?:here |most )?is\b|\bturned (?:it|that|this|us) down\b|\b(?:has"
        r"|have) to be our own\b",
        r"\b(?:budget|proposal|plan|contract|deal) (?:got|was|is|has been) (?:approved|rejected|signed|cancell?ed"
        r"|cut)\b",
        r"\bthat ship has sailed\b|\b(?:we|they|management|the board|legal) (?:picked|chose|signed|bought"
        r"|went with|settled on|ruled out|approved|rejected)\b",
        r"\bit'?s (?:official|final|settled|decided|agreed)\b|\boff the table\b|\bout of the question\b"
        r"|\bnon-negotiable\b",
        r"\bwe(?:'ll|'d| will)? (?:drop|ditch|retire|discontinue|abandon|stop supporting|no longer support|adopt"
        r"|standardi[sz]e on)\b",
        r"\b(?:we|team|management|they|board|client|boss)(?:'ve| have| has)? (?:\w+ )?(?:decided|agreed|voted"
        r"|settled|committed|chose|chosen|picked)\b|\b(?:it'?s|that'?s|thats) (?:settled|decided|final|agreed)\b"
        r"|\bdecision\s?[:=]|\bthe decision\b",
        r"\bwe(?:'re| are|re) (?:dropping|replacing|migrating|moving (?:to|away|off|from)|switching|keeping"
        r"|staying|deprecating|retiring|sunsetting|abandoning|rewriting|standardi[sz]ing|discontinuing|phasing)\b",
        r"\bwe (?:stay|stick|go|went) (?:on|with)\b|\bwe dropped\b|\bthe reason (?:why )?(?:we|for|behind)\b"
        r"|\bis (?:being )?driven by\b|\bwe(?:'re| are) (?:doing|building|rewriting) this because\b",
    ),
    "owns": pattern(
        rf"\b(?:for|about|with) [\w -]{{3,40}},? (?:it|that)(?:'s| is) (?:now )?(?!(?-i:Mon|Tues|Wednes|Thurs|Fri"
        rf"|Satur|Sun)day)"
        rf"{NAME}(?! in\b| at\b)",
        r"\b(?:she|he)(?:\'s| is) (?:now )?(?:responsible|in charge|the (?:owner|lead|contact))\b",
        rf"\b(?:done|handled|run|managed|owned|maintained|approved|decided|signed off) by (?:the )?{NAME}|\b(?:Dr"
        rf"|Prof|Professor|Mr|Ms|Mrs)\.? {NAME} (?:decides|approves|signs|handles|owns|leads|runs)\b",
        rf"{NAME} (?:decides|approves|signs off)\b",
        rf"\bbelongs? to {NAME}|{NAME}(?:'s| is) (?:on|out|off|away)\b.*\b(?:leave|until|till|sick|holiday"
        rf"|vacation)\b|\bask {NAME} (?:for|about)\b|\b(?:that|this|it)'?s {NAME} now\b",
        rf"{NAME} (?:doesn'?t|does not|no longer) (?:do|run|handle|own|maintain)s?\b",
        rf"{NAME} is (?:now )?(?:our|the|my|your) (?:new )?(?:contact|point (?:person|of contact)|go-to|lead"
        rf"|owner|maintainer|liaison|manager|reviewer)\b",
        r"\b(?:anything|everything|all) (?:about|on|for|regarding) [\w ]+ goes? (?:to|through|via) (?:her|him"
        r"|them|[A-Z])",
        rf"{NAME} (?:now )?(?:owns|leads|takes over|took over|is taking over|is (?:now )?(?:in charge"
        rf"|responsible|the owner|the lead|out|on leave|away|leaving)|has it (?:now|since)|looks after)\b",
        rf"{NAME} (?:runs|handles|maintains|manages|coordinates|does) (?:the|our|all|it|that|this)\b.*\b(?:now"
        rf"|from now on|since|until|instead)\b",
        rf"{NAME} (?:has )?(?:left|moved to|went on leave|is leaving|quit|retired)\b|\bhand(?:ed|ing"
        rf"|s)?[- ]?over to {NAME}|\bowned by {NAME}",
        r"\b(?:questions|requests|approvals?|bookings) (?:about [\w ]+ )?go(?:es)? (?:to|through) (?:her|him|them"
        r"|[A-Z])",
    ),
    "trouble": pattern(
        r"\b(?:left|went|go[et]s?|got|were|was|been|sent|shipped|delivered|mailed|posted"
        r"|billed)\b[\w ]{0,40}\b(?:to the wrong|with the wrong)"
        r"\b|\b(?:took|knocked) [\w ]{3,40} (?:offline|down|out)\b",
        r"\b(?:outage|incident|post-?mortem|breach|leak(?:ed)?|double[- ]charged|went down|was down|were (?:down"
        r"|silent|lost)|data loss|broke production|recall|lawsuit|complaint)\b",
    ),
    "place": pattern(
        r"\b(?:tracker|board|dashboard|wiki|runbook|playbook|channel|workspace|drive|shared? folder|folder"
        r"|spreadsheet|notebook|page|space|site|portal|intranet|archive|registry"
        r"|knowledge base|vault|handbook|mailing list|backlog|base|doc|document|repo of|bucket|share|confluence|inbox"
        r"|thread|ticket(?:s|ing)?|post-?mortems?|project [A-Z]{2,})\b",
    ),
    "located": pattern(
        r"\bthere(?:\'s| is| are) [\w -]{3,40} (?:in|on|at|under)\b",
        r"\b(?:come|comes|came|land|lands|arrive|arrives) (?:in |up )?(?:via|through|in|on|at)\b|\b(?:write|mail"
        r"|email|reach out) to\b|\bcontact\b|\b(?:everything|all of it|it)\'?s (?:all )?in\b|\b(?:isn\'?t"
        r"|aren\'?t|not) in \w+ any",
        r"\blook at the\b|\bsteps are (?:in|on)\b",
        r"\b(?:in|to|on|at|into|via) #\w|\b(?:described|explained|written up|listed|managed|organi[sz]ed) (?:in"
        r"|on|at|under)\b|\bhang out (?:in|on)\b",
        r"\b(?:moved|migrated|switched|copied|transferred) (?:[\w'-]+ ){0,6}(?:to|into|over to)\b",
        r"\b(?:is|are|lives?|sits?|stays?|kept|stored|tracked|logged|filed|posted|documented|recorded|hosted"
        r"|found|collected|archived|maintained|published) (?:all )?(?:in|on|at|under|there|over)\b",
        r"\b(?:goe?s?|go|belongs?|post|posted|report(?:ed)?|file(?:d)?|moved|migrated|send|sent) (?:it |them "
        r"|that |there )?(?:in ?to|to|in|on|under|over to|from \S+ to)\b",
        r"\b(?:check|look|see|search|ask|read|watch|open|find)s? (?:it |there|in|at|on|under|where)\b"
        r"|\bwhere (?:the|we|i|all|our|it)\b|\b(?:board|page|wiki|doc|runbook|dashboard|channel|tracker|link"
        r"|url) (?:is|for|=)",
        r"\bthe one (?:the|that|everyone|people|we)\b|\bpeople look at\b",
    ),
    "remember": pattern(
        r"\b(?:please |pls )?remember(?: (?:that|this|to|for)|:|,)|^(?:please |pls )?remember\b|\bkeep in mind\b"
        r"|\b(?:make|take) a note\b|\bfor the record\b|\bnote (?:to self|that|for)\b",
        r"\bsave (?:this|that|it|to (?:your )?memory|in memory)\b|\bdon'?t (?:you )?(?:ever )?forget\b|\bmemori[sz]e\b",
    ),
    "tells": pattern(
        r"\bheads[- ]?up\b|\bfyi\b|\bfor your information\b|\bjust so you know\b|\bbefore i forget\b|\bbtw\b"
        r"|\bby the way\b|\b(?:quick )?(?:context|background)\b",
        r"\b(?:one|two|few|couple) more things?\b|\breminder\b|\bsmall change\b|\bnews\b",
    ),
    "forget": pattern(
        r"\b(?:drop|delete|erase|remove|discard|clear|wipe|scrap|lose|throw (?:out|away)|get rid of) (?:everything"
        r"|all(?: that)?|whatever|anything|what) you(?:'ve| have)?(?: got)? (?:noted|saved|remember(?:ed)?|know"
        r"|stored|kept"
        r"|memori[sz]ed|in (?:your |the )?(?:memory|notes)"
        r"|(?:wrote|written) (?:down|about)|have (?:on|about)|(?:on|about) (?=\w))|\bthrow (?:that|the"
        r"|this|your) (?:[\w-]+ )?(?:note|memory|entry|rule)s?(?: (?:about|on|of) [\w -]{3,40})? (?:away|out)\b"
        r"|\b(?:take|get) (?:it|that|this|them|him|her) out of (?:your )?(?:memory|notes)\b|\bscratch (?:the|that"
        r"|my) [\w -]+ (?:thing|rule|note)\b",
        r"\b(?:don\'?t|no longer|not) (?:need|have) to remember\b|\bno need to remember\b",
        r"\bforget (?:that|what|my|our|about|the|everything|all|it\b.*\babout|this|those|these|any)\b"
        r"|\bcan forget\b|\bplease forget\b|\bunlearn\b",
        r"\b(?:delete|remove|drop|erase|discard|scrap|throw away|get rid of) (?:the|that|your|my|this"
        r"|any) (?:note|memory|memories|rule|entry|reminder|preference|thing)s?\b|\bfrom (?:your )?memory\b"
        r"|\bstop remembering\b",
    ),
    "not_forget": pattern(
        r"\b(?:don'?t|do not|never|didn'?t|before i|i always|i|lest (?:i|we)|not) forget\b|\bforgot\b"
    ),
    "changed": pattern(
        r"\b(?:an?|one|two|three|four|\d+) (?:day|week|month|hour)s? (?:earlier|later|sooner)\b|\bbrought forward\b"
        r"|\b(?:and |, )?not the \d{1,2}(?:st|nd|rd|th)\b|\b(?:go|going|switch|switching|change|changing) back to\b",
        r"\b(?:it|that)(?:'s| is)? different (?:for|with|when|though|now)\b",
        r"\b(?:moved|pushed|slipped|postponed|delayed|rescheduled|changed?|switched|replaced|renamed|migrated"
        r"|left|took over|takes over|no longer|any ?more|instead|new (?:date|deadline|owner|plan|place|rule)"
        r"|used to|not .{1,30} but|now\b|since (?:today|monday|tuesday|wednesday|thursday|friday|this|last)"
        r"|from now on|update|correction|actually|i told you|i said|that was (?:when|before|because)|has it"
        r"|is back|reversed|only for)",
    ),
    "harks_back": pattern(
        r"\bi (?:know i )?(?:told|said|asked|mentioned)(?: to)? you\b|\b(?:what|when|the thing|the rule|my rule"
        r"|that rule) (?:i|we) (?:said|told|gave|had|agreed)\b|\bi said\b"
        r"|\bmy (?:rule|note|thing|preference) (?:about|on|with)\b|\byou (?:told|reminded) me\b|\babout (?:the"
        r"|that|my) [\w -]+ (?:rule|preference)\b",
    ),
    "excepts": pattern(
        r"\b(?:for|with|in|on) [\w -]{3,30},? (?:it'?s|that'?s|it is|that is) (?:different|another (?:matter|story)"
        r"|(?:ok|okay|fine|allowed)(?! now))\b|\b(?:it|that)(?:'s| is) different (?:for|with|when)\b",
        r"\b(?:except|exception|unless|apart from|other than|only (?:for|when|if|above|below)|but (?:not )?for"
        r"|does ?n[o']?t apply|doesnt apply|everything else|below that|above that)\b",
    ),
}
