"""Programs that run in environments of others."""
