"""Files on disk that must survive a crash. It calls no model and knows no layer."""
