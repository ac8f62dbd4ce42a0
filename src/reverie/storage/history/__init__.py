"""Every version of a folder of text files, kept as a bare git repository."""
