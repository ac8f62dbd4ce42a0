"""Messages between agents: their form, inboxes on disk, who is there, and how a message reaches its reader."""
