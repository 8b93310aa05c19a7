"""What a model has learnt, in readable form: weights by feature and label, and why one output beat another."""
