"""The memory directory and a memory server in step: tokens, requests, the state of the last sync, and the rounds."""
