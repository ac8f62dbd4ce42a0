"""`reverie demo`: three days with an agent, played from real sessions."""
