"""What the offline mind knows of language: sentences, days, and the words that make a speech act, in five languages.

General grammar only, shared by its tasks. This package does not know memories, read files or ask for the time.
"""
