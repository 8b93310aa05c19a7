"""Inspection of models: weights by feature and label, and the reasons why one output beat another."""
