"""What a short message of the user asks for: yes to a question, keep this, forget that. Word lists in many languages.
They may raise or lower trust; text in a language that is missing here is judged by its words alone."""

from __future__ import annotations

import re
from typing import Final

from reverie.text.folding import word_set
from reverie.text.patterns import late
from reverie.text.sentences import sentences
from reverie.text.words import CJK, content_terms

_ASSENT: Final = word_set(
    """yes y yep yeah yup ya yess ok okay okey k sure right correct exactly precisely agreed agree absolutely definitely
    indeed always please do it go ahead immer siempre toujours sempre altijd zawsze всегда deal
    that thats this so is way approved confirmed true 👍 👌 ✅ 💯 ja jo jawohl genau
    richtig stimmt passt einverstanden klar gerne mach machen bitte korrekt sí si claro correcto exacto vale hazlo
    adelante acuerdo dale oui ouais exact exactement accord vas-y vas fais faites sim certo exato isso pode concordo
    sì esatto giusto va bene да ага точно верно хорошо конечно давай согласен tak dobrze dokładnie zgoda evet tamam
    doğru prima klopt akkoord ano jasně jo souhlasím igen rendben persis betul setuju joo kyllä selvä oo sige đúng vâng
    được ใช่
    نعم أجل صحيح موافق हाँ हां जी ठीक כן נכון בסדר ναι σωστά da tak"""
) | word_set(
    """好 好的 对 對 是 是的 可以 没错 沒錯 行 嗯 同意 就这样 没问题 对的 确认 好啊 当然 はい ええ うん そうです
    その通り その通りです お願いします いいです 了解 承知しました それで オッケー 네 예 응 맞아요 맞습니다
    좋아요 그래요 그렇게 해주세요 동의"""
)
_FILLER: Final = word_set(
    """and then but very much so thanks thank you btw the a an to me pls plz und dann doch danke y muchas et merci por
    favor s'il te plaît plait vous stp svp пожалуйста bitte per favore alsjeblieft will should remember save note great
    nice perfect cool good super wonderful excellent toll prima perfekt genial perfecto parfait perfetto отлично"""
)
_LASTING: Final = late(
    r"\b(?:remember|memor[yi]\w*|save (?:this|that|it) (?:for|as|in)|note (?:that|down|this)|keep (?:in mind|this"
    r"|that)|always|never|from now on"
    r"|in (?:the )?future|going forward|every time|each time|by default|as a rule|permanent\w*|for (?:next time|later)"
    r"|merke?n?|notier\w*|immer|nie(?:mals)?|künftig|zukünftig|ab jetzt|ab sofort|in zukunft|jedes mal"
    r"|standardmäßig|recuerd\w*|anot\w*|siempre|nunca|a partir de ahora|en adelante|cada vez|por defecto"
    r"|retien\w*|retenir|mémoris\w*|toujours|jamais|désormais|dorénavant|à l'avenir|chaque fois"
    r"|par défaut|lembr\w*|sempre|d'ora in poi|ricord\w*|memorizz\w*|onthoud\w*|altijd|nooit|voortaan"
    r"|запомни\w*|всегда|никогда|впредь|отныне|каждый раз|по умолчанию|zapamięta\w*|zawsze|nigdy"
    r"|hatırla\w*|her zaman|asla|bundan sonra)\b"
    r"|记住|记下|以后|今后|总是|一直|永远|每次|默认|從今|從現在|从现在|覚えて|記憶|今後|常に|必ず|いつも|毎回"
    r"|これから|デフォルト|기억|앞으로|항상|절대|매번|기본",
    re.IGNORECASE,
)
_FORGET: Final = late(
    r"\b(?:forget|unlearn|vergiss|vergessen|olvid[ae]\w*|oublie\w*|esque[çc][ae]\w*|dimentica\w*"
    r"|scorda\w*|vergeet|glöm"
    r"|glem|zapomnij|zapomeň|felejtsd|unut\w*|uită|забудь\w*|забудьте|ξέχνα\w*|lupakan|quên)\b"
    r"|忘掉|忘了|忘记|忘記|别记|不要记|别存|不要存|忘れて|覚えないで|保存しないで|記憶しないで|잊어|انس[ىَ]?|भूल|ลืม|שכח|תשכח",
    re.IGNORECASE,
)
_UNWANTED: Final = late(
    r"\b(?:do not|don['’]?t|never|please stop|stop|shouldn['’]?t|rather not|rather you didn['’]?t"
    r"|not want)\s+(?:you\s+)?(?:\w+\s+){0,4}?"
    r"(?:to be\s+|be\s+)?(?:stor(?:e|ed|ing)|sav(?:e|ed|ing)|kept|keep (?:that|this|it|any)|remember(?:ed|ing)?"
    r"|memori[sz]\w*"
    r"|record(?:ed|ing)?|on file)(?! the| to| button| file)"
    r"|\bnicht (?:mehr )?(?:\w+ )?(?:speichern|gespeichert|merken|gemerkt|behalten)|\bno (?:quiero que )?(?:lo "
    r"|la |eso )?"
    r"(?:guardes|recuerdes|almacenes)|\bne (?:garde|retiens|mémorise|conserve)|\bне (?:храни|запоминай|сохраняй)"
    r"|别(?:再)?(?:记|存|保存)|不要(?:再)?(?:记|存|保存)|覚えないで|保存しないで|저장하지|기억하지",
    re.IGNORECASE,
)
"""The user does not want something to be kept."""
_DELETE: Final = late(
    r"\b(?:delete|erase|remove|wipe|purge|drop|scrap|discard|get rid of|clear|lösch\w*|entfern\w*|streich\w*"
    r"|borra\w*|elimin\w*"
    r"|quita\w*|suprim\w*|bórra\w*|elimína\w*|supprim\w*|efface\w*|retire\w*|enlève\w*|apag\w*|remov\w*|exclu[ia]\w*"
    r"|cancell\w*|rimuov\w*|toglie\w*|togli|verwijder\w*|wis|radera|ta bort|slet\w*|fjern|usuń|skasuj|smaž\w*"
    r"|odstraň|töröld"
    r"|sil(?:in|er misin|iver)?|kaldır|șterge|удали\w*|сотри\w*|убери\w*|видали\w*|διέγραψε|hapus|xoá|xóa)\b"
    r"|删|刪|清除|移除|抹掉|消して|削除|消去|지워|삭제|없애|احذف|امسح|हटा|मिटा|ลบ|מחק",
    re.IGNORECASE,
)
_MEMORY: Final = late(
    r"\b(?:memor(?:y|ies)|remember\w*|notes?|noted|what you know|you know about|stored|saved|on file|record"
    r"|about me|entry|entries"
    r"|gedächtnis|erinnerung\w*|notiz\w*|gemerkt|gespeichert|über mich|weißt|memoria|recuerdo\w*|nota\w*"
    r"|guardad\w*|sobre mí"
    r"|sabes|mémoire|souvenir\w*|retenu|noté\w*|sur moi|sais|lembr\w*|memóri\w*|sobre mim|ricord\w*|memori\w*|su di me"
    r"|geheugen|onthouden|over mij|памят\w*|запис\w*|заметк\w*|обо мне|помни\w*|pamię\w*|notat\w*|o mnie)\b"
    r"|记忆|記憶|笔记|记录|记住|メモ|覚え|기억|메모|저장",
    re.IGNORECASE,
)
_CHANGED: Final = late(
    r"\b(?:no longer|not? any ?more|any ?more|instead|from now on|(?:is|are|it's|we) now|now (?:it|we|use|it's)"
    r"|changed?|actually|correction|moved?"
    r"|switch(?:ed|ing)?|replace[ds]?"
    r"|scrap|stop|wrong|outdated|obsolete|nicht mehr|statt(?:dessen)?|ab jetzt|ab sofort|geändert|falsch"
    r"|veraltet|ya no"
    r"|en vez|cambi\w+|en lugar|plus de|ne \w+ plus|désormais|au lieu|changé|больше не|теперь"
    r"|вместо|já não"
    r"|mudou|non \w+ più|invece|niet meer|voortaan|już nie|zamiast|artık|yerine)\b"
    r"|不再|改成|改为|改到|换成|而不是|もう|ではなく|変更|代わりに|이제|더 이상|대신|바뀌",
    re.IGNORECASE,
)
_ONCE: Final = late(
    r"\b(?:once|this (?:one|time|once)|for now|just (?:this|for)|today|diesmal|dieses mal|für jetzt|nur heute"
    r"|esta vez|por ahora"
    r"|cette fois|pour l'instant|на этот раз|пока)\b|这次|这一次|今回だけ|この一回|이번",
    re.IGNORECASE,
)
_NOT_FORGET: Final = late(
    r"\b(?:do not|don['’]?t|never) forget\b|\bnicht vergessen\b|\bno (?:te )?olvid\w+|n['’]oublie|не забудь|别忘"
    r"|不要忘|忘れないで",
    re.IGNORECASE,
)
_SAVE: Final = late(
    r"\b(?:remember|save|store|keep|note|jot|write (?:it |this |that |these |them )?down|bookmark|memori[sz]e|record"
    r"|merk\w*|speicher\w*|notier\w*|behalt\w*|schreib\w* .{0,30}auf|halt\w* .{0,20}fest"
    r"|recuerd\w*|guard\w*|anot\w*|apunt\w*|memoriz\w*|registr\w*|retiens|retenez|note[sz]?|enregistr\w*"
    r"|mémoris\w*|souviens"
    r"|gard\w*|conserv\w*|lembr\w*|salv\w*|ricord\w*|annot\w*|segna\w*|onthoud|bewaar|noteer|kom ihåg|spara|husk|gem"
    r"|zapamiętaj|zapisz|zanotuj|pamatuj|ulož|jegyezd|mentsd|hatırla\w*|kaydet\w*|not al|запомни\w*|сохрани\w*"
    r"|запиши\w*"
    r"|запам['’]ятай|збережи|θυμήσου|αποθήκευσε|ingat|simpan|nhớ|lưu|ghi)\b"
    r"|记住|记下|记一下|记录|保存|存下|存一下|收藏|覚え|保存|メモ|記録|控えて|기억|저장|메모|적어|تذكر|احفظ|सहेज|याद|จำ|บันทึก|זכור|שמור",
    re.IGNORECASE,
)
_CLAUSE: Final = late(
    r"\b(?:that|dass|que|che|dat|att|że|что|hogy|di)\s+(?=\S+(?:\s+\S+){2,})|[:：]\s*\S+(?:\s+\S+){2,}", re.IGNORECASE
)
_THING: Final = late(
    r"\b(?:error|message|link|url|address|command|list|table|output|log|snippet|quer(?:y|ies)|config\w*|page"
    r"|article|post|rules?"
    r"|text|result|path|answer|quote|steps?|instructions?|notes?|block|paste|section|line|number|id|version|file"
    r"|values?)\b",
    re.IGNORECASE,
)
_POINTS: Final = late(
    r"\b(?:this|these|those|them|it|that)\b\s*(?:$|[.,!:;)\n]|please|pls|for|in|as|too|one|from|above|below)",
    re.IGNORECASE,
)
_TO_DISK: Final = late(
    r"\b\S+\.\w{1,5}\b|\b(?:file|files|disk|folder|directory|draft|document|changes|it|them|things|answers?"
    r"|everything) (?:to|as|in(?! mind)|into"
    r"|under|on)\b.*|^\s*(?:the |this |that |your )?(?:file|files|changes|document|draft|it and)\b|^\s*(?:it"
    r"|things|them|answers?)"
    r"\s+(?!for|as|in|please|pls|too|somewhere|safe|handy|around|down)\w+",
    re.IGNORECASE,
)
"""An order about files on disk, or about the style of answers: “save the file”, “keep it short”."""
_ORDER: Final = late(
    r"(?:^|[,.;:!?)-]|\b(?:please|pls|plz|and|also|then|just|ok|okay|(?:can|could|would) you|so|to|must|should|lets"
    r"|let's|me|it|you to|que tu|que usted|dass du|quiero que|bitte|und|mal|dann|auch|kannst du|könntest du|por favor"
    r"|puedes|podrías|y|et|puis|stp|svp|peux-tu"
    r"|tu peux|il te plaît|e|ed|per favore|puoi|podes|pode|en|kun je|i|и|пожалуйста|można))\s*$",
    re.IGNORECASE,
)
"""What may be before the verb of an order."""
OWN_RULES: Final = late(
    r"\b(?:my|our|mein\w*|unser\w*|mis?|nuestr[oa]s?|mes|nos|nossas?|minhas|meus|nossos|nostr[eio]|mie|onze|mijn|мои|наши"
    r"|moje|nasze)\s+(?:\w+\s+){0,2}?(?:rules|guidelines|conventions|standards|preferences|policies|principles|regeln"
    r"|richtlinien|vorgaben|konventionen|grundsätze|reglas|normas|règles|consignes|regras|regole|regels|richtlijnen"
    r"|правила|zasady)\b|(?:我|我们|私|うち)(?:们)?的?の?(?:规则|规范|準則|ルール|規則|規約)|우리\s?규칙",
    re.IGNORECASE,
)
"""How a message calls the text beside it the user's own rules."""
_ORDER_WORDS: Final = 7
"""Content words that an order to keep something may have besides its verb, if it points at other text."""


def is_assent(text: str) -> bool:
    """Whether a message is nothing but a yes."""
    bare = text.strip().lower()
    tokens = [token for token in re.findall(r"[^\W_]+(?:[-'’][^\W_]+)*|👍|👌|✅|💯", bare) if token not in _FILLER]
    if tokens and len(tokens) <= 5 and all(token in _ASSENT for token in tokens):
        return True
    return bare.rstrip("!.。！ ") in _ASSENT


def is_question(text: str) -> bool:
    """Whether a text ends as a question. Japanese and Korean have an ending for it, with a full stop or nothing."""
    return text.rstrip(' *_`)"”\n').endswith(("?", "？", "か。", "か", "까요.", "까요"))


def single_question(text: str) -> str | None:
    """The question that a message ends with, if it is the only one in it and offers no choice."""
    asked = sentences(text, is_chat=True)
    if len(re.findall(r"[?？]|(?:か|까요)(?:[。.]|$)", text.rstrip())) != 1 or not asked or not is_question(text):
        return None
    question = asked[-1]
    return None if re.search(r"\b(?:or|oder|ou|ili|или|o bien)\b|还是|それとも|아니면", question) else question


def last_question(text: str) -> str:
    """The question at the end of a message with the sentence before it; empty if it does not end with one."""
    if not is_question(text):
        return ""
    return " ".join(sentences(text[-600:], is_chat=True)[-2:])


def is_lasting(question: str) -> bool:
    """Whether a question proposes something for later conversations, and one thing only."""
    two_parts = re.search(r"\b(?:and also|as well as|, and|und auch|et aussi|y también)\b", question, re.IGNORECASE)
    return bool(_LASTING.search(question)) and two_parts is None and not _ONCE.search(question)


def is_for_once(question: str) -> bool:
    """Whether a question is about this one time only."""
    return bool(_ONCE.search(question)) and not _LASTING.search(question)


def asks_to_forget(text: str) -> bool:
    """Whether a message orders to forget something that only memory can have: “forget that”, “forget what I told you
    about …”, “I don't want that stored”, “delete your note on …”."""
    for sentence in sentences(_NOT_FORGET.sub(" ", text), is_chat=True):
        if _UNWANTED.search(sentence):
            return True
        if any(_is_order(sentence, one) for one in _FORGET.finditer(sentence)):
            return True
        if _MEMORY.search(sentence) and any(_is_order(sentence, one) for one in _DELETE.finditer(sentence)):
            return True
    return False


def orders_removal(text: str) -> bool:
    """Whether a message orders to remove or forget something, in memory or elsewhere."""
    for sentence in sentences(_NOT_FORGET.sub(" ", text), is_chat=True):
        found = (*_FORGET.finditer(sentence), *_DELETE.finditer(sentence))
        if _UNWANTED.search(sentence) or any(_is_order(sentence, one) for one in found):
            return True
    return False


def tells_change(text: str) -> bool:
    """Whether a message says that something is no longer, or from now on, so."""
    return bool(_CHANGED.search(text)) or orders_removal(text)


def points_at_text(text: str, most: int = _ORDER_WORDS) -> bool:
    """Whether a message asks to keep something that it does not say itself: a result, a page, a paste. `most`: content
    words that the order may have."""
    for sentence in sentences(text, is_chat=True):
        order = next((one for one in _SAVE.finditer(sentence) if _is_order(sentence, one)), None)
        if order is None:
            continue
        rest = sentence[order.end() :]
        if _TO_DISK.search(rest):
            continue
        own = content_terms(_THING.sub(" ", _SAVE.sub(" ", sentence)))
        says_it = _CLAUSE.search(rest) and not _THING.match(rest.split(" ", 2)[-1])
        points = _THING.search(sentence) or _POINTS.search(rest) or not sentence.isascii() or len(own) <= 1
        if points and not says_it and len(own) <= most:
            return True
    return False


def _is_order(sentence: str, verb: re.Match[str]) -> bool:
    """Whether a verb is an order: in “the save slot” it is not. In scripts without spaces its place says nothing."""
    if not verb[0][0].isascii() and CJK.search(verb[0]):
        return True
    before, after = sentence[: verb.start()], sentence[verb.end() :]
    is_first = all(word in _ASSENT or word in _FILLER for word in re.findall(r"\w+", before.lower()[-40:]))
    return is_first or bool(_ORDER.search(before)) or not any(char.isalnum() for char in after)


def clause_to_keep(text: str) -> str:
    """What a message asks to keep in so many words: “remember that …”, “note: …”; empty if it only points at it."""
    for sentence in sentences(text, is_chat=True):
        bare = sentence.strip()
        found = _EXPLICIT.match(bare) or _EXPLICIT_AT_END.fullmatch(bare)
        if found is None or (is_question(bare) and not _POLITE.match(bare)):
            continue
        what = (found.groupdict().get("korean") or found["what"]).strip().rstrip("?？")
        if len(content_terms(what)) >= 2:
            return what
    return ""


_POLITE: Final = late(r"(?:please |pls )?(?:can|could|would|will) you\b", re.IGNORECASE)
_EXPLICIT: Final = late(
    r"(?:(?:please|pls|also|and|ok(?:ay)?|hey|so|bitte|por favor|s'il te plaît)[,\s]+)*"
    r"(?:(?:can|could|would|will) you (?:please )?)?"
    r"(?:(?:remember|don['’]?t forget|keep in mind|make a note|save (?:to|in) memory|merke? dir|denk dran|notier dir"
    r"|recuerda|ten en cuenta|anota|souviens-toi|retiens|note bien|lembre-se|ricordati|onthoud|запомни|zapamiętaj)"
    r"(?:(?:\s*[:,：，]|\s+this:)\s*(?:(?:dass|that|que|что|że)\s+)?"
    r"|\s+(?:that|dass|que|qu['’]|che|dat|что|że|de que)\s*(?<=\W)"
    r"|\s+(?=(?:i|i['’]m|we|my|our|to|not to|never|always|ich|wir|mein|unser|immer|nie|yo|mi|nuestr\w+"
    r"|je|nous|mon|notre)\b))"
    r"|(?:please |pls )?note\s*[:：]\s*"
    r"|(?:请|請)?(?:记住|記住|记一下|记下)[,，:：]?\s*)"
    r"(?P<what>\S.{5,})",
    re.IGNORECASE | re.DOTALL,
)
"""“Note that …” alone is a remark about the work at hand; “remember the …” and “remember when …” only look back."""
_EXPLICIT_AT_END: Final = late(
    r"(?P<what>\S.{5,}?)(?:という(?:こと|の)を|ことを|のを|って|と|を)?(?:覚え|記憶し)(?:ておいて|といて|て)(?:ください|下さい|ね)*[。！!]?"
    r"|(?P<korean>\S.{5,}?)(?:(?:는|은|라는)\s*(?:것|점|걸)[을를]?|[을를])?\s*기억해\s*(?:줘|둬|주세요|두세요)[.。!]?",
    re.DOTALL,
)
