"""Texts in, translations out: splitting, decoding, checks, glossaries and memories; no torch except in the GPU engine."""
