"""Data with texts in it: JSON, YAML, CSV and subtitles."""
