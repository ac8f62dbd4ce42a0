"""The dreams of the offline mind: it lists, reads and tidies a memory directory by rules.

It acts like any model that dreams: it lists and reads files, searches transcripts with narrow greps, writes whole
files, and ends with a reason for each. Every round is a pure function of the request. It never rewords freely:
statements are kept, joined, dated, replaced by what the user said, or quoted in the reason when they are removed.
"""
