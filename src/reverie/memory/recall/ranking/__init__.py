"""The parts of the local ranker: text, words, tools in use, meaning, and the decision to be silent.

`reverie.memory.recall.ranker` puts them together; nothing here touches the memory directory but to read it.
"""
