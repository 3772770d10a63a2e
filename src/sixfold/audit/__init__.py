"""What `sixfold doctor` finds in a corpus: misaligned pairs, near-duplicates, damage and leaks of test sets."""
