"""Messages between agents: their form, mailboxes on disk, who is there, and the way to whoever is meant."""
