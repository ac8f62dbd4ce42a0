"""What a recorded session would have cost under other policies."""
