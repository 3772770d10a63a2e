"""Prompt in, text out: what decoder-only models write, as it is written or at once."""
