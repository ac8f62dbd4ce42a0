"""`reverie connect`: puts Reverie into Claude Code and Codex, and takes it out again without a trace."""
