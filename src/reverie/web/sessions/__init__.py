"""What the pages about sessions show: transcripts as they are read, the list of all sessions, search, live state."""
