"""Texts with markup for people to read: web pages, Markdown, reStructuredText, LaTeX and manual pages."""
