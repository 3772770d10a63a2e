"""Texts in, translations out: splitting, decoding, checks, glossaries and memories. Only the GPU engine needs torch."""
