"""What a model has learnt, as people read it: weights by feature and label, and why one output won over another."""
