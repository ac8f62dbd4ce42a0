"""Models that are programs: Claude Code, Codex, or a command of the user's own. None of them needs a key of ours.

`frame.py` writes a request as text and reads the answer, `running.py` runs the program, and one module per program
knows its options, its output and its errors.
"""
