"""The forward pass in NumPy with every intermediate kept, and pictures of it; no torch."""
