"""Millions of lines in many files, translated by threads or by Ray, restartable."""
