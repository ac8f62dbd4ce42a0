"""Questions about recorded sessions, answered from what a compaction left of them."""
