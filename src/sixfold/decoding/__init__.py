"""Searches for the best target; they know a model only by its next-token scores."""
