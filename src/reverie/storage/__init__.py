"""Files on disk that must survive a crash. It does not know models or layers."""
