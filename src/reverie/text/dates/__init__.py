"""Days in five languages: a calendar to count with, one grammar per language, and `finding`, which asks them."""
