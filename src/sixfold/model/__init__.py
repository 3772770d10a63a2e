"""The Transformer in torch: modules hold weights and nothing else."""
