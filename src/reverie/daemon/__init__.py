"""The service behind the hooks of Claude Code and Codex: one process per home, started on demand, ending when idle."""
