"""Weights and tokenisers of other toolkits, read and written."""
