"""Dreams as jobs: their rows and routes, uploaded sessions, leases, the process that dreams, and the landing."""
