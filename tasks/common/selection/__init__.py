"""Choices on held-out examples: their records, the searches for C and the loss, and sums of losses."""
