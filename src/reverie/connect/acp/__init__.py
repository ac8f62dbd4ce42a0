"""`reverie acp`: Reverie as an agent inside an editor, over the Agent Client Protocol on standard input and output."""
