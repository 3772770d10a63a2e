"""Office documents and books: archives of XML whose paragraphs are made of runs."""
