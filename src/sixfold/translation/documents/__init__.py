"""Documents in, documents out: what is prose in each format, and where its markup goes."""
