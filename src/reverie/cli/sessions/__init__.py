"""Commands about conversations: list, show, cost, context, compact, notes, tasks."""
