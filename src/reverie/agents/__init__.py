"""Layer 7: agents that fork, share the prompt cache, start other agents and send each other messages."""
