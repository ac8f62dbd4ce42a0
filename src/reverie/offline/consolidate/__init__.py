"""The embedded model's dreams: it looks round, reads, and puts a memory directory in order by rules.

Acts like any model that dreams: it lists and reads files, searches transcripts with narrow greps, writes whole files,
and ends with a reason for each. Every round is a pure function of the request. It rewords nothing it cannot account
for: statements are kept, joined, dated, replaced by what the user said, or quoted where they are taken out.
"""
