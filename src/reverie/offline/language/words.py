"""The tables of `lexicon`: function words and speech formulas of everyday language, never the words of a trade."""

from __future__ import annotations

from typing import Final

from reverie.text.tongue import Tongue

_LEAD: Final = (
    r"^(?:please |pls |and |so |but |also |ok(?:ay)?,? |no,? |yes,? |btw,? |by the way,? |fyi,? |heads[- ]?up:? |(?:hi"
    r"|hello|hey|thanks|(?:for |some |quick )?(?:context|background)|just so you know)[,.:!]* )*"
)
VERB: Final = (
    r"(?:(?:add|adjust|apply|ask|bring|build|bump|calculate|change|check|clean|clear|close|combine|commit|compare"
    r"|continue|convert|copy|create|debug|delete|deploy|describe|disable|do|download|draw|drop|enable|explain|extend"
    r"|extract|fetch|fill|find|finish|fix|generate|get|give|go|handle|help|implement|improve|include|insert|install"
    r"|investigate|keep|list|load|look|make|merge|migrate|move|open|paste|plot|prepare|print|propose|pull|push|put|read"
    r"|rebase|rebuild|redo|reduce|refactor|remove|rename|replace|rerun|reset|restart|restore|revert|rewrite|run|save"
    r"|send|show|skip|solve|sort|split|squash|start|stop|suggest|summari[sz]e|swap|switch|take|tell|translate|trim|try"
    r"|turn|undo|update|use|validate|verify|walk|write)\b(?!,))"
)
_ROLE: Final = (
    r"(?:(?!(?:bit|user|number|matter|other|another|better|later|former|newer|older|over|never|ever|after|under|longer"
    r"|for|or|nor|different|moment|comment|document|current|recent|present|independent|important|server|folder"
    r"|parameter|error|computer|sucker|believer|fan|supporter)\b)\w{2,}(?:er|or|ant|ent|ist|ian|eer|man|woman|yst)"
    r"|admin|apprentice|architect|ceo|cfo|cto|chef|clerk|coach|cook|counsel|dba|dev|devops|expert|head|intern|judge"
    r"|lead|mechanic|medic|midwife|nurse|paralegal|phd|pilot|pm|postdoc|sysadmin|scholar|secretary|sre|trainee"
    r"|undergrad|vet|attorney)"
)
_NAME: Final = r"\b(?-i:[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)?)"

_EN: Final = {
    "remember": rf"{_LEAD}(?:remember|(?:keep|bear) in mind|(?:make|take) a note|note(?= for|:)|don'?t forget)"
    r"(?: this| that| please| for (?:later|(?:the )?(?:future|next time)|all [^:.,]{3,40}))*(?::| that\b|[.!]*$)"
    r"|^for the record[:,]|[,;.–—-] (?:and )?(?:please )?(?:remember (?:that|this)|keep (?:that|this) in mind)[.!]*$",
    "standing": r"\bfrom (?:now|today) on\b|\b(?:going|moving) forward\b|\bhenceforth\b|\bas a (?:general )?rule\b"
    rf"|\bin (?:the )?future(?:[.!]?$|,? (?:please|always|never|only|i want|do not|don'?t|{VERB}))|\bnever again\b"
    r"|\b(?:don'?t|do not|never) ever\b|\bfor all future\b|\bunless i (?:ask|say|tell)\b"
    rf"|\b(?:whenever|every (?:single )?time) you [^,.]+, (?:please |also |then )?(?:always|never|i want|don'?t|{VERB})"
    r"|^(?:please )?(?:stop|quit) \w+ing (?!(?:it|the|that|this)\b)|^(?:house |ground )?rules?(?: of thumb)?(?: (?:for"
    r"|in|on) [^:.]{2,40})?: ",
    "orders": rf"{_LEAD}(?:always|never) (?!(?:\w+ed|\w+[^su]s|the|an?|mind|was|had|seen|been)\b)[a-z]+"
    r"|\bi(?:'d| would)? (?:strongly |really |much |generally |usually )?prefer (?!the\b|this\b|that\b|it\b|to\b|if\b"
    r"|you\b|option|\d|an?\b|your\b|version)[a-z]+",
    "person": rf"{_LEAD}i(?:'m| am) (?:just |still |also |only |now )?(?:an?|the)(?: [\w'&/+.-]+){{0,5}}? {_ROLE}\b"
    rf"|{_LEAD}i(?:'m| am) (?:\w+ ){{0,2}}{_ROLE} (?:at|in|for|of|by) |\bi work (?:as|at|for) (?:an?|the|our) "
    r"|\bmy (?:day job|job|role|profession|background|native language|mother tongue) is\b|\bi(?:'m"
    r"| am) (?:\w+ly )?(?:new (?:to|here)|colou?r-?\s?blind|blind|deaf|dyslexic|self-taught|left-handed)\b|\bi(?:'ve"
    r"| have) (?:never|hardly ever|barely) (?:used|written|touched|worked|coded|programmed) |\bi (?:lead|manage|teach"
    r"|maintain|supervise) (?:an?|the|our|my) |\bby (?:trade|training|profession)\b|\bfor a living\b|\bi(?:'ve"
    r"| have) been (?:an? )?[\w ]{3,40} for (?:\w+ )?(?:years|decades|months)\b",
    "decided": r"\b(?:we|the (?:team|board|client|customer)|management)(?:'ve| have| has)? (?:just |now "
    r"|finally )?(?:decided|agreed|voted|settled on)\b|\bdecision: |\bwe(?:'re| are) (?:dropping|migrating"
    r"|moving (?:off|away)|deprecating|retiring|abandoning|phasing out) |\b(?:is|are|stays?) (?:parked|on hold|on ice"
    r"|shelved|postponed)\b"
    rf"|{_NAME} (?:now )?(?:owns|leads|takes over|took over|is taking over|is (?:in charge|responsible)) (?!to )",
    "event": r"\b(?:launch|release|deadline|freeze|demo|delivery|submission|hearing|trial|audit|conference|keynote"
    r"|exam|migration|cutover|go-?live|rollout|inspection|handover|contract|expir(?:es|y)|due|ships?|deliver|goes live"
    r"|starts?|begins?|ends?|launches|closes?)\b",
    "located": r"\b(?:are|lives?|sits?|kept|stored|tracked|logged|filed|posted|documented|recorded|hosted|archived"
    r"|published|found|moved) (?:now )?(?:all )?(?:in|on|at|under|to)\b|\b(?:goe?s?|belongs?) (?:in ?to|to|in|on)\b",
    "reason": r"\b(?:because|bc|otherwise|so that|that'?s why|due to)\b|^since\b",
    "forget": r"\bforget (?:that|what|my|our|about|the|everything|all|it|this|those|these|any|whatever)\b|\b(?:can"
    r"|should|please) forget\b|\bunlearn\b|\bstop remembering\b|\bno (?:need|longer need) to remember\b|\b(?:delete"
    r"|remove|erase|drop|wipe|clear|scrap|discard|get rid of|throw (?:out|away)) (?:\w+ ){0,3}(?:you (?:know|have"
    r"|noted|saved|stored|remember\w*|kept|wrote)|you(?:'ve| have) \w+|(?:notes?|memor(?:y|ies)|entry|entries"
    r"|reminder)\b)|\b(?:from|out of|in) (?:your )?(?:memory|memories|notes)\b.*\b(?:delete|remove|erase|wipe)"
    r"|\b(?:delete|remove|erase|wipe|drop|take|get|keep|leave)\b.{0,60}\b(?:from|out of) (?:your |the )?(?:memory"
    r"|memories|notes)\b|\b(?:don'?t|do not|never|not|no need to|please not) (?:\w+ ){0,4}?(?:save|store|stored|saved"
    r"|remember|keep a note|memori[sz]e|write (?:that|this|it) down|noted down|(?:put|kept) in (?:your )?memory)\b"
    r"|\boff the record\b",
    "deletes": r"\b(?:delete|remove|erase|drop|wipe|clear|scrap|discard|get rid of|throw (?:that|it|this) (?:out"
    r"|away))\b",
    "kept": r"\b(?:memory|memories|remember\w*|stored|saved|noted|written down|kept|(?:you|u) know about)\b",
    "not_forget": r"\b(?:don'?t|do not|never|didn'?t|before i|not to|we|(?<!can )(?<!could )(?<!would )you"
    r"|i|i always) forget\b|\bforgot\b",
    "changed": r"\bi (?:know i )?(?:once |had )?(?:told|asked|said)\b|\b(?:earlier|previously|until now|so far)\b"
    r"|\b(?:moved|pushed|postponed|delayed|rescheduled|brought forward|changed|switched|replaced|renamed|migrated"
    r"|took over|takes over|no longer|any ?more|instead of|is now|are now|not the \d|correction|used to|since (?:today"
    r"|yesterday|monday|last|this)|we left|we dropped|(?:is|are) gone)\b|\bnow[.!]?$",
    "void": r"\b(?:pretend\w*|role-?\s?play\w*|make[- ]believe|as if|fiction\w*|for (?:fun|the exercise)"
    r"|let'?s (?:rehearse|practi[sc]e)|mock interview|(?:interview|sales|pitch) (?:simulation|practi[sc]e|training)"
    r"|(?:test|sample|example|dummy) (?:input|sentence|text)|suppose|supposing|imagine|hypothetical\w*"
    r"|thought experiment|let'?s (?:say|assume)|say i'?m|in (?:this|the) (?:scenario|story|game|novel|scene)"
    r"|my character|jk|joke|sarcas\w+|what if|in theory|thinking out loud|kidding|joking|never ?mind|scratch that"
    r"|ignore (?:that|what i)|on second thoughts?|haha\w*|lol)\b|🙃|🙄|😂|🤣|😄|😉|;-?\)|(?:^|\s)/s\b"
    r"|\bwhat could (?:possibly )?go wrong\b|\byeah,? right\b|^(?:oh|ah|wow),? (?:great|sure|wonderful|fantastic"
    r"|brilliant|nice|lovely|perfect)\b|^(?:great|sure|yes|yeah|right),? (?:another|and (?:from now on|let'?s|then))\b"
    r"|\bjust what (?:i|we) needed\b|\bthanks for (?:nothing|breaking|losing|deleting|ruining)\b|\bgenius\b"
    r"|^(?:brilliant|wonderful|fantastic)[,.!]|\bif (?:we|i|you|they|he|she|it|someone) (?:were|had|moved|switched"
    r"|wanted|decided|ever)\b",
    "unmeant": r"\b(?:just|only) (?:for )?(?:this|the) (?:once|one|time)\b|\bthis (?:once|time)\b|\bfor (?:this"
    r"|the) (?:one|task|pr|commit|letter|file|run|demo)\b|\bfor (?:now|today|tonight|once|the moment|the time being)\b"
    r"|\bright now\b|\bat the moment\b|\btemporarily\b|\btoday only\b|\bone-?off\b|\bin this (?:file|list|table"
    r"|function|query|case)\b|\b(?!i\b|we\b)\w+ (?:wrote|says?|said|claims?|writes|thinks?|insists?|told (?:me|us)"
    r"|wants? us|recommends?|suggests?)\b|\baccording to\b|[:：]\s*“…”|\bas (?:always|usual|i said|agreed"
    r"|documented)\b|\b(?:already|even) (?:written|documented|noted|know)\b|\bturns? out\b|\bfixed (?:now|it|that)\b"
    r"|\b(?:maybe|perhaps|probably|might|not sure|i think|i guess|could|apparently|supposedly|rumou?r|unless we"
    r"|would)\b",
    "asks": r"^(?:ok(?:ay)?,? |so,? |and |but |well,? |then )?(?:(?:who|whom|whose|what|whats|which|why|where|how"
    r"|when)(?:'s|'re)? |(?:is|are|was|were|does|did|should|would|will|has|have|am|can|could|isn'?t|aren'?t) (?:it"
    r"|that|this|there|the|we|you|i|they|he|she|our|my)\b)|\b(?:i wonder|do you know|any idea|do you remember)\b",
    "requests": rf"^(?:ok(?:ay)?,? |so,? |now,? |then,? |and |also,? |but |great,? |cool,? |right,? |first,? "
    rf"|please |pls "
    rf"|just |next,? |lets? |let's )*{VERB}|\b(?:can|could|would|will) you (?:please |pls |also |just |now )?{VERB}"
    r"|\bi (?:need|want|would like|'d like) you to\b|^(?:let'?s|lets)\b",
    "filler": r"^(?:(?:ok(?:ay)?|thanks?|thank you|thx|ty|cheers|great|good|nice|cool|perfect|awesome|yes|yeah|yep|no"
    r"|nope|hi|hello|hey|right|sure|fine|alright|works?|done|merged|got it|ah|oh|hm+|haha|lol|sounds good|lgtm|go on"
    r"|well|so|now|it|that|all|set|morning|you|very|much|a lot|there|ahead)[,.!:) ]*)+$",
}
_DE: Final = {
    "remember": r"\b(?:merke? dir|bitte merken|denk daran|vergiss nicht|notiere? dir)\b",
    "standing": r"\b(?:künftig|zukünftig|in zukunft|ab (?:jetzt|sofort)|von (?:nun|jetzt) an)\b"
    r"|^(?:bitte )?immer wenn du\b|^regel: ",
    "orders": r"^(?:bitte |und |nein,? )*(?:immer (?!noch|wieder)|nie(?:mals)? )(?!das|die|der"
    r"|ge\w+en\b).*?(?<!ge)\w{3,}en\b",
    "person": r"\bich bin (?:hier )?(?:eine?|die|der"
    r"|gelernte[rs]?)? ?(?:[a-zäöüß-]+ ){0,2}?(?-i:[A-ZÄÖÜ][\wäöüß-]*(?:er|in|ist|ent|ant|or|eur|arzt|chef|mann"
    r"|frau))\b|\bich arbeite als |\bmein beruf ist\b|\bich bin (?:neu|blind|farbenblind|gehörlos)\b",
    "decided": r"\bwir haben (?:uns )?.{0,60}\b(?:entschieden|beschlossen|geeinigt)\b|\b(?:liegt|ist"
    r"|bleibt) (?:\w+ )?(?:auf eis|pausiert|zurückgestellt|ausgesetzt|abgesagt)\b|\b[A-ZÄÖÜ]\w+ übernimmt\b",
    "event": r"(?:freeze|launch|release|termin|frist|abgabe|prüfung|audit|demo|lieferung|messe|umzug|migration|abnahme"
    r"|stichtag)\w*\b|\b(?:beginnt|startet|endet|fällig|geht live|abgeschaltet)\b",
    "located": r"\b(?:liegen|stehen|findest|landen|gehören|gehört|verwaltet|gepflegt)\b",
    "reason": r"\b(?:weil|denn|sonst|damit|deshalb|nämlich)\b",
    "forget": r"\bvergiss\b|\bkannst du .*\bvergessen\b|\b(?:lösch|streich|entfern)\w*\b.*\b(?:notiz|notizen|regel"
    r"|erinnerung|eintrag|gedächtnis|gespeichert|gemerkt|weißt)|\b(?:nicht|nirgends) (?:\w+ )?(?:speichern|merken"
    r"|gespeichert|aufschreiben|notieren)\b",
    "deletes": r"\b(?:lösch|streich|entfern|wirf)\w*",
    "kept": r"\b(?:gedächtnis|notiz\w*|gemerkt|gespeichert|erinner\w*|notiert)\b",
    "not_forget": r"\bvergiss (?:bitte )?(?:nicht|das nicht)\b|\bnicht vergessen\b|\bhabe? vergessen\b",
    "changed": r"\b(?:bisher|früher|vorher|verschoben|geändert|umgezogen|nicht mehr|gewechselt|ersetzt|übernimmt"
    r"|umgestellt|statt)\b",
    "void": r"\b(?:tu so|spiel\w*|rollenspiel|angenommen|nehmen wir an|stell dir vor|was wäre|hypothetisch|scherz)\b"
    r"|🙃|🙄|\bna (?:toll|super|klasse|prima)\b|\bja klar\b|^(?:oh|ach) (?:toll|super|wie schön)\b|\bwenn (?:wir"
    r"|ich) .*\b(?:wäre|würde|hätte)",
    "unmeant": r"\b(?:nur (?:dieses|diesmal|heute|einmal)|diesmal|ausnahmsweise|gerade|momentan|vorerst|erst mal"
    r"|fürs erste|vielleicht|könnten?|würden?|vermutlich|wahrscheinlich|laut|wie (?:immer|gesagt|üblich))\b"
    r"|[:：]\s*“…”|\b(?:sagt|sagte|meint|meinte|schreibt|schrieb|behauptet|stand)\b",
    "asks": r"^(?:wer|was|wie|wo|wann|warum|wieso|weshalb|welche[rsnm]?|ist|sind|hast|kannst|soll|sollen|gibt"
    r"|können)\b",
    "requests": r"^(?:bitte |ok,? |dann |jetzt |und |auch )*(?:schreib|mach|änder|füg|zeig|erklär|erstell|bau|prüf"
    r"|such|find|führ|starte|benenn|verschieb|übersetz|korrigier|setz|nimm|gib|schau|öffne|lies|teste|stell|rechne"
    r"|fass|hilf|ersetz|aktualisier|installier|commit|push)\w*\b|\b(?:kannst|könntest|würdest) du\b",
    "filler": r"^(?:(?:ok|okay|danke|super|gut|prima|ja|nein|hallo|hi|alles klar|passt|perfekt|klar|vielen"
    r"|dank)[,.! ]*)+$",
}
_ES: Final = {
    "remember": r"^(?:por favor,? |y )*(?:recuerda|acuérdate|ten en cuenta|no olvides|toma nota|apunta)\b",
    "standing": r"\b(?:de ahora en adelante|a partir de (?:ahora|hoy)|en adelante|en el futuro"
    r"|cada vez que (?:me )?\w+[ae]s|nunca más)\b",
    "orders": r"^(?:por favor,? siempre \w+|(?:no,? )?(?:nunca|jamás) \w{3,}[ae]s\b)|^prefiero (?!est|es[eo]|la\b"
    r"|el\b)\w+",
    "person": r"\bsoy (?:el |la |una? )?[\wáéíóúñ]+(?:ora?|ista|er[oa]|[ae]nt[ea]|[óo]log[oa]|ic[oa]|ad[oa]|ari[oa]"
    r"|jef[ea])\b|\btrabajo (?:como|de|en) |\bmi (?:profesión|puesto) es\b|\bllevo \w+ años\b",
    "decided": r"\b(?:hemos decidido|decidimos|hemos acordado|acordamos|está decidido)\b|\b(?:está|queda"
    r"|sigue) (?:en pausa|parad[oa]|aparcad[oa]|suspendid[oa]|cancelad[oa])\b",
    "event": r"\b(?:lanzamiento|entrega|plazo|auditoría|demo|presentación|migración|inspección|examen|juicio|feria"
    r"|cierre|publicación|vence|empieza|comienza|termina|sale|lanzamos|entregamos)\b",
    "located": r"\b(?:están|se (?:guarda|registra|guardan|registran|encuentra|encuentran|publican|suben))\b",
    "reason": r"\b(?:porque|ya que|para que|si no|por eso)\b",
    "forget": r"\b(?:olvida|olvídate|puedes olvidar)\b|\b(?:borra|elimina|quita)\b.*\b(?:nota|regla|recuerdo|memoria"
    r"|entrada|sabes|guardado)\b|\bno (?:lo |la |quiero que )?(?:guardes|recuerdes|apuntes|almacenes)\b"
    r"|\bno quiero que .*guard",
    "deletes": r"\b(?:borra|elimina|quita|bórra\w*|elimína\w*)\b",
    "kept": r"\b(?:memoria|recuerd\w*|guarda\w*|anota\w*|nota|apunta\w*)\b",
    "not_forget": r"\bno (?:te |lo )?olvid|\bse me olvidó\b",
    "changed": r"\b(?:antes|te dije|hasta ahora|ya no|se (?:movió|ha movido|aplazó|ha aplazado|cambió|ha cambiado)"
    r"|en (?:vez|lugar) de|pasa a)\b",
    "void": r"\b(?:finge|finjamos|juguemos|supón|supongamos|imagina|imaginemos|hipotéticamente|qué pasaría si"
    r"|digamos que|es broma)\b|🙃|🙄|\bqué podría salir mal\b|\bsí,? claro\b|\b(?:ah|oh),? (?:genial|perfecto"
    r"|estupendo)\b|\blo que faltaba\b",
    "unmeant": r"\b(?:solo|sólo)? ?(?:por )?esta vez\b|\bpor ahora\b|\bde momento\b|\bahora mismo\b|\b(?:solo"
    r"|por) hoy\b|\b(?:dice|dijo|opina|escribió|según|quizás?|podría\w*|tal vez|como siempre|como dije)\b|[:：]\s*“…”",
    "asks": r"^¿|^(?:qué|quién|cómo|cuándo|dónde|por qué|cuáles?)\b",
    "requests": r"^(?:por favor,? |ok,? |vale,? |ahora |y |luego |también )*(?:cambia|haz|crea|añade|agrega|escribe"
    r"|corrige|arregla|ejecuta|corre|muestra|muéstra\w*|explica\w*|renombra|mueve|revisa|busca|abre|genera|actualiza"
    r"|convierte|traduce|prueba|sube|instala|vuelve|pon|dame|dime|ordena|resume|compara|mira|lee|prepara)\b"
    r"|\b(?:puedes|podrías) \w+",
    "filler": r"^(?:(?:ok|vale|gracias|perfecto|genial|bien|sí|no|hola|listo|muy|claro|entendido|muchas)[,.!¡ ]*)+$",
}
_ZH: Final = {
    "remember": r"^(?:请|麻烦)?(?:你)?(?:记住|记一下|记下来)",
    "standing": r"(?:^|[，。；、,])(?:请)?以后(?!再|的|就)|以后(?:都|请|不要|别|一律)|今后|从现在(?:开始|起)|从今往后"
    r"|再也不要|每次[^，。]*(?:都要|请|必须|务必)",
    "orders": r"^(?:请)?(?:总是|永远|绝对不要|千万(?:不要|别)|一定要)",
    "person": r"我是(?:一名|一个|个|位|搞|学)[^，。,；;不]{1,20}|我在[^，。]{2,15}工作|我(?:的)?(?:职业|岗位)是",
    "decided": r"我们(?:已经)?决定|(?:大家|团队|会上)(?:一致)?(?:决定|同意)|(?:项目|功能|开发)[^，。]{0,10}(?:暂停"
    r"|搁置|取消)|[^，。]{1,6}(?:接手|接管)",
    "event": r"上线|发布|发版|截止|演示|交付|封网|冻结|评审|验收|审计|迁移|切换|停机|考试|开庭|答辩|到期|下线|改到"
    r"|推迟",
    "located": r"放在|存在|记录在|都在|在[^，。]{1,30}(?:里|上|中|群)|搬到|迁到|挪到",
    "reason": r"因为|由于|否则|不然|以免|免得|毕竟",
    "forget": r"忘(?:掉|了|记)(?:吧|那|之前|关于|我|这|它)|把[^，。]{1,20}(?:忘|删)(?:掉|了)|(?:删|去)(?:掉"
    r"|除)?[^，。]{0,14}(?:记忆|记录|笔记|规则)|不用(?:再)?记|(?:不要|别)(?:保存|记录|记下|存)",
    "deletes": r"删|去掉|清除",
    "kept": r"记(?:住|忆|录|下|得)|保存|笔记",
    "not_forget": r"别忘|不要忘|不能忘|我忘|忘了(?:说|告诉|提)|没忘",
    "changed": r"之前|以前|原来|改(?:到|成|为|了)|推迟|延期|提前|不再|换成|搬到|迁到|取消|作废|接手|离职|挪到"
    r"|不是.*(?:而是|是)",
    "void": r"假装|扮演|假设|假如|如果.*(?:会怎|怎么办|会不会)|要是.*(?:会|呢|怎么)|设想|打个比方|开玩笑|🙃|🙄|呵呵"
    r"|真是太好了",
    "unmeant": r"这(?:一)?次(?:就|先|不)|就这一次|只(?:有)?这(?:一)?次|暂时|目前先|今天先|先临时|现在先|可能|也许|大概"
    r"|据说|老规矩|照旧|(?:同事|朋友|有人|网上|文章|书上|教程|客户|邮件|老板|他|她|他们)(?:里|上|中)?(?:说|写|认为"
    r"|觉得|提到|建议)|[:：]\s*“…”",
    "asks": r"[?？]\s*$|吗[。]?$|(?:什么|怎么|为什么|哪里|哪个|谁|多少|是不是|能不能|有没有).*(?:呢|啊|[?？])\s*$",
    "requests": r"^(?:帮(?:我|忙)?|麻烦|再|先|然后|现在|把|给我|你(?:去|来|先)|接着|顺便|继续|跑|看(?:一)?下|改|写|加"
    r"|运行|提交|生成|检查|修|查)",
    "filler": r"^(?:好|好的|谢谢|嗯|可以|行|对|是的|明白|收到|你好|不错|没问题|辛苦了|多谢|哦|啊|[，。！,.! ])+$",
}
_JA: Final = {
    "remember": r"(?:覚えて(?:おいて)?|記憶して|メモして|記録して)(?:おいて)?(?:ください|下さい|ね)?[。！!]?$"
    r"|忘れないで",
    "standing": r"今後(?:は|も)|これから(?:は|も)|以後|次回(?:から|以降)|二度と|毎回.*(?:ください|下さい|ほしい)",
    "orders": r"^(?:必ず|絶対に|決して|常に).*(?:ください|下さい|こと|ように)",
    "person": r"(?:私|僕|俺|わたし)は[^。、]{1,30}(?:師|士|者|員|医|家|長|職|生|担当|ア|ー)(?:です|で、|をして|として)"
    r"|歴\d+年",
    "decided": r"(?:こと)?に(?:決まり|決め|決定)ました|採用することに|使わないことに|(?:保留|凍結|中断|中止)(?:に"
    r"|と)?(?:なり|です)",
    "event": r"リリース|締め?切り|納期|納品|デモ|監査|移行|公開|展示会|試験|検収|フリーズ|引き?継ぎ|ローンチ|提出",
    "located": r"に(?:あり|載っ|置い|まとめ|保存|記録|入っ|登録|移り)|で(?:管理|共有|追跡)",
    "reason": r"ため|ので|から(?:です|、|。)|でないと|ないと",
    "forget": r"忘れて(?:ください|下さい|いい|もいい|くれ|ほしい|おいて|。|$)|(?:記憶|メモ|ルール|記録).*(?:削除|消し"
    r"|忘れ)|(?:保存|記録|記憶)(?:し)?ないで",
    "deletes": r"削除|消し|取り消",
    "kept": r"記憶|覚え|メモ|記録|保存",
    "not_forget": r"忘れないで|忘れずに|忘れてい(?:た|まし)|忘れ(?:た|まし)",
    "changed": r"以前|前は|これまで|変更|延期|変わり|移り|ではなく|じゃなく|やめました|もう(?:使って)?(?:い)?ません"
    r"|交代|に(?:なり|変え)ました|前倒し",
    "void": r"ふりをし|ロールプレイ|になりきっ|もし.*(?:たら|なら|ば|場合)|仮に|としたら|想像し|冗談|🙃|🙄|(?:笑)$",
    "unmeant": r"今回(?:だけ|は|のみ)|一回だけ|とりあえず|今(?:は|だけ)|一時的|今日だけ|たぶん|かもしれ|いつも(?:通り"
    r"|どおり)|(?:同僚|友人|誰か|記事|ブログ|上司|メール|お客様|ネット)(?:が|は|に|で)?.*(?:言って|書いて|言い|書かれ"
    r"|によると)|[:：]\s*“…”",
    "asks": r"(?:か|かな)[?？。]?$|[?？]\s*$|教えて(?:ください|下さい)?。?$",
    "requests": r"(?:直して|書いて|追加して|変えて|見て|実行して|作って|出して|説明して|調べて|確認して|更新して"
    r"|まとめて|置き換えて)(?:ください|下さい|くれ|もらえ|いただけ|ほしい)?(?:ますか|ませんか)?[。？?!]?$",
    "filler": r"^(?:ありがとう(?:ございます)?|はい|了解(?:です)?|なるほど|わかりました|OK|お疲れ様(?:です)?|いいですね"
    r"|助かります|[、。！ ])+$",
}
WORDS: Final[dict[Tongue, dict[str, str]]] = {"en": _EN, "de": _DE, "es": _ES, "zh": _ZH, "ja": _JA}
