"""What the librarian says, in five languages: short sentences with gaps. English where a language has no words."""

from __future__ import annotations

from typing import Literal, TypeAlias

from reverie.text.tongue import Tongue

Key: TypeAlias = Literal[
    "hello",
    "welcome",
    "cannot",
    "nothing",
    "nothing_known",
    "you",
    "changes",
    "you_said",
    "i_said",
    "left",
    "memory",
    "instructions",
    "earlier",
    "index",
    "saved",
    "updated",
    "known",
    "logged",
    "forgot",
    "which",
    "none_to_forget",
    "memory_off",
    "memory_empty",
    "memory_holds",
    "heard",
    "printed",
    "printed_nothing",
    "kept",
    "failed",
    "more_lines",
    "more_files",
    "no_agents",
    "agents_work",
    "no_last",
    "last",
    "found",
    "work",
    "doubt",
    "secret",
    "refused",
    "ask_run",
    "ask_forget",
    "not_asked",
]

ABOUT = (
    "I am Reverie's embedded mind: no key, no network, no weights. I do not think or write code; I look things "
    "up and keep"
    " things. Ask me about this project, about what is remembered or about earlier sessions, and I answer with "
    "where I found"
    " it. “Remember that …” and “forget …” keep and drop a memory; “run `…`” runs a command. For a model that "
    "thinks, set"
    " ANTHROPIC_API_KEY or OPENAI_API_KEY, or point `--model openai:<model>` and OPENAI_BASE_URL at a local "
    "server; memory and"
    " sessions stay as they are."
)
"""Said once a conversation; later a shorter word does."""

_EN: dict[Key, str] = {
    "ask_run": "If I am to run {what}, say just that: “run {what}”.",
    "ask_forget": "If I am to forget something, say just that: “forget …”.",
    "not_asked": "Only you can ask me for that: say it again, as a message of your own.",
    "hello": "Hello.",
    "welcome": "You are welcome.",
    "cannot": (
        "(I only look things up. For a model that thinks, set ANTHROPIC_API_KEY or OPENAI_API_KEY; “what can "
        "you do?” says"
        " more.)"
    ),
    "nothing_known": "I remember nothing about {what} yet.",
    "you": "you",
    "changes": "The last changes git knows of here:\n{list}",
    "nothing": "I found nothing about {what}. I looked in {places}.",
    "you_said": "Earlier in this conversation you said: {text}",
    "i_said": "Earlier in this conversation I said: {text}",
    "left": "From the notes of this conversation: {text}",
    "memory": "From memory, {file} ({age}): {text}",
    "instructions": "From the instructions, {file}: {text}",
    "earlier": "In an earlier session ({day}, {session}) you said: {text}",
    "index": "The memory index has {file}: {text}",
    "saved": "I will remember that, in {file}: {text}",
    "updated": "I changed what I remember in {file}. It said “{old}” and now says “{text}”",
    "known": "I remember that already, in {file}: {text}",
    "logged": "It is in the log of the day, {file}: {text}",
    "forgot": "I forgot {file}: {text}\n`reverie memory undo` brings it back.",
    "which": "Several memories fit. Which one shall I forget?\n{list}\nSay `forget` with its file name.",
    "none_to_forget": "I remember nothing about {what}, so there is nothing to forget.",
    "memory_off": "Memory is switched off here, so I can keep nothing; `reverie doctor` says which rule decided that.",
    "memory_empty": "My memory of this project is empty. Tell me “remember that …”, or correct me as we work.",
    "memory_holds": "This is what I remember{about}:\n{list}",
    "heard": (
        "I heard that, and it stays in this conversation. What is worth keeping is saved after the turn; "
        "“remember that …”"
        " makes sure of it."
    ),
    "printed": "It printed:",
    "printed_nothing": "It ran and printed nothing.",
    "kept": "It printed {size}; all of it is in {path}. It begins:",
    "failed": "It did not work:",
    "more_lines": "… and {count} more lines",
    "more_files": "… and {count} more files",
    "no_agents": "No agents can be started here.",
    "agents_work": "{count} agents are at work; their reports come as letters.",
    "no_last": "I find no earlier session in this folder.",
    "last": "The last session here was on {day} ({session}). You said:\n{list}",
    "found": "I looked for {what} and found this in {where}:",
    "work": "Making or changing something takes a model that thinks, and I am not one. I can show you the places.",
    "doubt": 'I would rather not keep that: {why}. If you want it kept all the same: `reverie remember "…"`.',
    "secret": "I will not keep that: it holds {kind}, and secrets are never stored. Say where it is kept instead.",
    "refused": "It was not saved: {why}",
}
_DE: dict[Key, str] = {
    "ask_run": "Wenn ich {what} ausführen soll, sag nur das: „führe {what} aus“.",
    "ask_forget": "Wenn ich etwas vergessen soll, sag nur das: „vergiss …“.",
    "not_asked": "Darum kannst nur du mich bitten: sag es noch einmal, als eigene Nachricht.",
    "hello": "Hallo.",
    "welcome": "Gern geschehen.",
    "cannot": "(Ich schlage nur nach. Für ein Modell, das denkt: ANTHROPIC_API_KEY oder OPENAI_API_KEY setzen.)",
    "nothing_known": "Über {what} weiß ich noch nichts.",
    "you": "dich",
    "nothing": "Zu {what} habe ich nichts gefunden. Gesucht habe ich in: {places}.",
    "you_said": "Vorhin in diesem Gespräch hast du gesagt: {text}",
    "i_said": "Vorhin in diesem Gespräch habe ich gesagt: {text}",
    "left": "Aus den Notizen zu diesem Gespräch: {text}",
    "memory": "Aus dem Gedächtnis, {file} ({age}): {text}",
    "instructions": "Aus den Anweisungen, {file}: {text}",
    "earlier": "In einer früheren Sitzung ({day}, {session}) hast du gesagt: {text}",
    "saved": "Das merke ich mir, in {file}: {text}",
    "updated": "Ich habe {file} geändert. Dort stand „{old}“, jetzt steht dort „{text}“",
    "known": "Das weiß ich schon, aus {file}: {text}",
    "forgot": "Vergessen: {file}: {text}\n`reverie memory undo` holt es zurück.",
    "which": "Mehrere passen. Welche soll ich vergessen?\n{list}\nSag `vergiss` mit dem Dateinamen.",
    "none_to_forget": "Zu {what} weiß ich nichts; es gibt nichts zu vergessen.",
    "memory_empty": "Mein Gedächtnis für dieses Projekt ist leer. Sag „merk dir, dass …“.",
    "memory_holds": "Das weiß ich{about}:\n{list}",
    "heard": "Das habe ich gehört; es bleibt in diesem Gespräch. „Merk dir, dass …“ bewahrt es sicher auf.",
    "printed": "Die Ausgabe:",
    "printed_nothing": "Es lief und gab nichts aus.",
    "failed": "Das hat nicht geklappt:",
    "no_last": "Ich finde hier keine frühere Sitzung.",
    "last": "Die letzte Sitzung hier war am {day} ({session}). Du hast gesagt:\n{list}",
    "found": "Ich habe nach {what} gesucht und das gefunden, in {where}:",
    "work": "Schreiben und Ändern braucht ein Modell, das denkt; das bin ich nicht. Die Stellen kann ich zeigen.",
}
_ES: dict[Key, str] = {
    "ask_run": "Si quieres que ejecute {what}, di solo eso: «ejecuta {what}».",
    "ask_forget": "Si quieres que olvide algo, di solo eso: «olvida …».",
    "not_asked": "Eso solo me lo puedes pedir tú: dilo otra vez en un mensaje tuyo.",
    "hello": "Hola.",
    "welcome": "De nada.",
    "cannot": "(Yo solo busco. Para un modelo que piense: ANTHROPIC_API_KEY u OPENAI_API_KEY.)",
    "nothing_known": "Todavía no recuerdo nada sobre {what}.",
    "you": "ti",
    "nothing": "No encontré nada sobre {what}. Busqué en: {places}.",
    "you_said": "Antes en esta conversación dijiste: {text}",
    "i_said": "Antes en esta conversación dije: {text}",
    "memory": "De la memoria, {file} ({age}): {text}",
    "instructions": "De las instrucciones, {file}: {text}",
    "earlier": "En una sesión anterior ({day}, {session}) dijiste: {text}",
    "saved": "Lo recordaré, en {file}: {text}",
    "updated": "Cambié {file}. Decía «{old}» y ahora dice «{text}»",
    "known": "Eso ya lo recuerdo, en {file}: {text}",
    "forgot": "Olvidado: {file}: {text}\n`reverie memory undo` lo recupera.",
    "which": "Hay varias que encajan. ¿Cuál olvido?\n{list}\nDi `olvida` con el nombre del archivo.",
    "none_to_forget": "No recuerdo nada sobre {what}; no hay nada que olvidar.",
    "memory_empty": "Mi memoria de este proyecto está vacía. Di «recuerda que …».",
    "memory_holds": "Esto es lo que recuerdo{about}:\n{list}",
    "heard": "Lo he oído y queda en esta conversación. «Recuerda que …» lo guarda con seguridad.",
    "printed": "Salida:",
    "printed_nothing": "Se ejecutó y no imprimió nada.",
    "failed": "No funcionó:",
    "no_last": "No encuentro ninguna sesión anterior aquí.",
    "last": "La última sesión aquí fue el {day} ({session}). Dijiste:\n{list}",
    "found": "Busqué {what} y encontré esto en {where}:",
    "work": "Escribir o cambiar algo requiere un modelo que piense, y yo no lo soy. Puedo mostrarte los lugares.",
}
_ZH: dict[Key, str] = {
    "ask_run": "如果要我运行 {what}，请只说：“运行 {what}”。",
    "ask_forget": "如果要我忘记什么，请只说：“忘掉……”。",
    "not_asked": "这只能由你来要求：请自己再说一遍。",
    "hello": "你好。",
    "welcome": "不客气。",
    "cannot": "（我只会查找。需要会思考的模型，请设置 ANTHROPIC_API_KEY 或 OPENAI_API_KEY。）",
    "nothing_known": "我还没有关于{what}的记忆。",
    "you": "你",
    "nothing": "没有找到关于 {what} 的内容。查过：{places}。",
    "you_said": "你在这次对话中说过：{text}",
    "i_said": "我在这次对话中说过：{text}",
    "memory": "来自记忆 {file}（{age}）：{text}",
    "instructions": "来自说明文件 {file}：{text}",
    "earlier": "在之前的会话（{day}，{session}）中你说过：{text}",
    "saved": "我记住了，在 {file}：{text}",
    "updated": "我改了 {file}。原来是“{old}”，现在是“{text}”",
    "known": "这个我已经记得，在 {file}：{text}",
    "forgot": "已忘记 {file}：{text}\n`reverie memory undo` 可以恢复。",
    "none_to_forget": "我没有关于 {what} 的记忆，没有可以忘记的。",
    "memory_empty": "这个项目的记忆是空的。可以说“记住……”。",
    "memory_holds": "我记得这些{about}：\n{list}",
    "heard": "我听到了，它留在这次对话里。说“记住……”可以确保保存。",
    "printed": "输出：",
    "printed_nothing": "已运行，没有输出。",
    "failed": "没有成功：",
    "no_last": "这里没有找到之前的会话。",
    "last": "上次会话是 {day}（{session}）。你说过：\n{list}",
    "found": "我查找了 {what}，在 {where} 中找到：",
    "work": "编写或修改需要会思考的模型，我不是。我可以把相关的地方找出来。",
}
_JA: dict[Key, str] = {
    "ask_run": "{what} を実行してほしいときは、「{what} を実行して」とだけ言ってください。",
    "ask_forget": "何かを忘れてほしいときは、「…を忘れて」とだけ言ってください。",
    "not_asked": "それを頼めるのはあなただけです。もう一度、ご自分の言葉で言ってください。",
    "hello": "こんにちは。",
    "welcome": "どういたしまして。",
    "cannot": "（私は調べるだけです。考えるモデルには ANTHROPIC_API_KEY か OPENAI_API_KEY を設定してください。）",
    "nothing_known": "{what}についてはまだ何も覚えていません。",
    "you": "あなた",
    "nothing": "{what} については見つかりませんでした。探した場所：{places}。",
    "you_said": "この会話で先ほど、こう言っていました：{text}",
    "i_said": "この会話で先ほど、私はこう言いました：{text}",
    "memory": "記憶 {file}（{age}）より：{text}",
    "instructions": "指示ファイル {file} より：{text}",
    "earlier": "以前のセッション（{day}、{session}）でこう言っていました：{text}",
    "saved": "覚えました（{file}）：{text}",
    "updated": "{file} を変更しました。前は「{old}」、今は「{text}」",
    "known": "すでに覚えています（{file}）：{text}",
    "forgot": "忘れました（{file}）：{text}\n`reverie memory undo` で元に戻せます。",
    "none_to_forget": "{what} については何も覚えていません。",
    "memory_empty": "このプロジェクトの記憶は空です。「…と覚えておいて」と言ってください。",
    "memory_holds": "覚えていること{about}：\n{list}",
    "heard": "わかりました。この会話の中に残ります。「…と覚えておいて」と言えば確実に保存します。",
    "printed": "出力：",
    "printed_nothing": "実行しました。出力はありません。",
    "failed": "うまくいきませんでした：",
    "no_last": "以前のセッションは見つかりません。",
    "last": "前回のセッションは {day}（{session}）です。こう言っていました：\n{list}",
    "found": "{what} を探し、{where} でこれを見つけました：",
    "work": "何かを書いたり変えたりするには考えるモデルが必要です。場所なら示せます。",
}
_TONGUES: dict[Tongue, dict[Key, str]] = {"en": _EN, "de": _DE, "es": _ES, "zh": _ZH, "ja": _JA}


_PLACES: dict[Tongue, tuple[str, str, str, str]] = {
    "en": ("memory", "the instruction files", "the files here", "earlier sessions"),
    "de": ("Gedächtnis", "Anweisungen", "Dateien", "frühere Sitzungen"),
    "es": ("la memoria", "las instrucciones", "los archivos", "sesiones anteriores"),
    "zh": ("记忆", "说明文件", "这里的文件", "以前的会话"),
    "ja": ("記憶", "指示ファイル", "ここのファイル", "以前のセッション"),
}


def places(tongue: Tongue, *, memory: bool, files: bool, past: bool) -> str:
    """Where was looked, as a list."""
    wanted = (memory, True, files, past)
    return listed([name for name, is_so in zip(_PLACES[tongue], wanted, strict=True) if is_so], tongue)


def word(tongue: Tongue, key: Key, **gaps: str) -> str:
    """The sentence in this language, its gaps filled."""
    return _TONGUES[tongue].get(key, _EN[key]).format(**gaps)


def listed(words: tuple[str, ...] | list[str], tongue: Tongue = "en") -> str:
    """“a, b and c”."""
    joins: dict[Tongue, str] = {"en": " and ", "de": " und ", "es": " y ", "zh": "、", "ja": "、"}
    comma = "、" if tongue in ("zh", "ja") else ", "
    return f"{comma.join(words[:-1])}{joins[tongue]}{words[-1]}" if len(words) > 1 else "".join(words)
