"""What survives a compaction."""
