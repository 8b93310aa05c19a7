"""Chains as installed programs train and run them: their features, their parameters, their files."""
