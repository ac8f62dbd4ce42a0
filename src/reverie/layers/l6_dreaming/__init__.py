"""Layer 6: dreaming, the consolidation of memory across sessions.

Triggers: after a turn, if every gate is open (a day since the last, ten minutes since the last look, five transcripts
changed, the lock), or by hand. Costs one background agent of some rounds, forked or fresh, whichever is cheaper; a
closed gate costs a stat or less. Returns one version of the memory directory with a reason a file, or nothing. Never:
writes to the directory while it works, rewrites a log, loses more than a quarter of what was known without naming it,
overwrites what somebody else changed meanwhile, or reaches the conversation with a failure.
"""
