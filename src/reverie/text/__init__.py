"""Text analysis that needs no context: words, statements, days, and whether two statements agree. One answer per
question, shared by memory, the layers and the offline mind. Nothing here reads a file or the clock."""
