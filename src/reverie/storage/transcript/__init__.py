"""One conversation on disk: the file, its records, and the view the model sees."""
