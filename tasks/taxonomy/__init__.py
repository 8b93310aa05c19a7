"""Positions in a taxonomy: `TaxonomyClassifier`."""
