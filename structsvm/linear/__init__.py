"""Machines with one weight per feature, trained by gradient descent: SGD-QN and tracking."""
