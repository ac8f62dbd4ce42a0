"""The memory server on PostgreSQL: stores, versions and dreams for many people and machines (decision 0055)."""
