"""The parts of the local ranker: words, tools in use, meaning, and the decision what to show."""
