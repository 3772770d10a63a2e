"""Training runs: from prepared inputs to the model file, resumable at every step."""
