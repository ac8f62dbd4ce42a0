"""One conversation on disk: the file, its records, and the view that the model sees."""
