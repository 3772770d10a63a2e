"""Scores of translations, their significance, and comparisons of systems; no torch."""
