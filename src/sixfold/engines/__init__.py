"""Models that are ready to decode, on a CPU or a GPU, behind one protocol."""
