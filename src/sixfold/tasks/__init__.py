"""What a model learns and how it is judged: columns, batches, loss and validation of each task."""
