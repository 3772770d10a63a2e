"""The HTTP server: its own API, LibreTranslate's, the page and the attention explorer; no torch."""
