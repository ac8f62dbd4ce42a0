"""Operating the server: limits, figures, logs, accounts, backups, and the programs of PostgreSQL."""
