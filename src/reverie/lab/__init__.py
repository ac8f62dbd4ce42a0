"""Measurements on recorded work. Every figure in `docs/benchmarks.md` comes from here."""
