"""Self-contained HTML pages: of training runs, corpus audits and comparisons, with charts as SVG."""
