"""What the embedded model knows of language: sentences, days, and the words that make a speech act, in five languages.

General grammar only, shared by its tasks. Nothing here knows what a memory is, reads a file or asks for the time.
"""
