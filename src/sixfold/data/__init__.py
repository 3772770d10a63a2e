"""Corpora as streams of records, cleaned, stored as tokens and read as batches; no torch, and no task is known here."""
