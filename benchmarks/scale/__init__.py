"""Scale: one part per file."""
